"""The answer file of a project: its words and the data of its layers, hashed where they are many.

Source: the words are those of `synthesis.words`, by whose functions the firmware is verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer import Answer, HashedWords, LayerAnswer, LayerForm, Registers, StoredBiases
from ai8xtools.answer.content import grid_width, hashed_channels, hashed_columns, hashed_rows
from ai8xtools.answer.hashes import run_hashes
from ai8xtools.synthesis.encode.data import loaded_input
from ai8xtools.synthesis.encode.numbering import Numbering
from ai8xtools.synthesis.mapping import MappedLayer
from ai8xtools.synthesis.network import Tensor
from ai8xtools.synthesis.pipeline import Synthesis
from ai8xtools.synthesis.place.outputs import delivery_of, pieces_of, pixel_step
from ai8xtools.synthesis.program import Program, Words
from ai8xtools.synthesis.simulate import simulate
from ai8xtools.synthesis.words import final_registers, pushes
from device.chip import KERNEL_COLUMN_BYTES

LARGEST_BYTES = 300_000
LARGEST_SHARE = 10
"""The file takes the larger of these bytes and a tenth of the project."""
_FOR_HASHES = 90
"""Per cent of it that hashes and data may take; the rest is for registers, places and headers."""
_WORDS_PER_COLUMN = 4


def build_answer(
    result: Synthesis,
    name: str,
    repeat: int,
    project_bytes: int,
    *,
    fixed_input: bool,
    average_rounding: bool = False,
    symbol_prefix: str = "",
    flash_bytes: int = 0,
) -> Answer:
    """Return the answer of a program; `project_bytes` is the size of its other files.

    `repeat` is how many times the layers are configured. With `fixed_input` the program loads
    another input than the simulation had, for which the layers are simulated again.
    `symbol_prefix` is that of a library beside which other networks can be loaded, which takes
    `flash_bytes`.
    """
    program = result.program
    simulated = result
    if fixed_input:
        loaded = loaded_input(result.mapped, program)
        fixed_input = loaded is None
        if loaded is not None:
            network = replace(result.network, sample=loaded)
            activations = simulate(network, average_rounding=average_rounding)
            simulated = replace(result, network=network, activations=activations)
    left_out = tuple(_left_out(result, repeat, fixed_input=fixed_input))
    answer = Answer(
        chip=program.chip.name,
        apb_base=program.apb_base,
        name=name,
        express=program.express,
        registers=_registers(program),
        biases=_biases(program),
        kernels=_kernels(program),
        inputs=_hashed((b.address, len(b.words), b.words) for b in program.inputs),
        pushes=_hashed(
            (a, len(words), np.array(words, np.uint32)) for a, words in pushes(program).items()
        ),
        layers=(),
        left_out=left_out,
        symbol_prefix=symbol_prefix,
        sample=result.network.sample.astype(np.int8) if symbol_prefix else None,
        flash_bytes=flash_bytes if symbol_prefix else 0,
    )
    if fixed_input:
        return answer
    largest = max(LARGEST_BYTES, project_bytes // LARGEST_SHARE) * _FOR_HASHES // 100
    used = sum(8 * len(w.hashes) for w in (answer.kernels, answer.inputs, answer.pushes))
    used += 0 if answer.sample is None else answer.sample.size
    return replace(answer, layers=tuple(_layers(simulated, largest - used)))


def _left_out(result: Synthesis, repeat: int, *, fixed_input: bool) -> Iterator[str]:
    if fixed_input:
        yield "the layers: no sample leads to the pattern that the program loads"
        return
    if repeat > 1:
        yield f"repetitions 2 to {repeat} of the layers: they read what the first has overwritten"
    numbering = Numbering.of(result.network, result.chip, 1)
    for layer in result.mapped.layers:
        if layer.buffer_shift:
            yield f"layer {numbering.number(layer)}: it moves only a part of the data buffer"


def _registers(program: Program) -> Registers:
    rows = [(address, *last) for address, last in final_registers(program).items()]
    table = np.array(rows, np.uint32).reshape(-1, 3)
    return Registers(table[:, 0], table[:, 1], table[:, 2].astype(np.uint8))


def _biases(program: Program) -> StoredBiases:
    if not program.biases:
        return StoredBiases(np.zeros(0, np.uint32), np.zeros(0, np.uint8))
    addresses = [b.address + 4 * np.arange(len(b.values), dtype=np.uint32) for b in program.biases]
    values = np.concatenate([b.values for b in program.biases])
    return StoredBiases(np.concatenate(addresses).astype(np.uint32), values.astype(np.uint8))


def _kernels(program: Program) -> HashedWords:
    def runs() -> Iterator[tuple[int, int, Words]]:
        for block in program.kernels:
            if program.express:
                count = 4 * len(block.words) // KERNEL_COLUMN_BYTES
                yield program.chip.column_address(block.address), count, block.words
            else:
                yield block.address, len(block.words) // _WORDS_PER_COLUMN, block.words

    return _hashed(runs())


def _hashed(runs: Iterable[tuple[int, int, Words]]) -> HashedWords:
    """Hash runs of words: address, count as in the file, words."""
    entries = list(runs)
    table = np.array([run[:2] for run in entries], np.uint32).reshape(-1, 2)
    hashes = run_hashes([run[2] for run in entries])
    return HashedWords(table[:, 0].copy(), table[:, 1].copy(), hashes)


def _layers(result: Synthesis, room: int) -> list[LayerAnswer]:
    """Return the layers in the order of execution, in forms that take `room` bytes together."""
    numbering = Numbering.of(result.network, result.chip, 1)
    outputs = result.activations.outputs
    layers = [
        layer for layer in result.mapped.layers if layer.index in outputs and not layer.buffer_shift
    ]
    marked = {layer.index for layer in result.mapped.delivered(outputs)}
    forms = choose_forms([_sizes(layer, outputs[layer.index]) for layer in layers], room)
    return [
        _layer(
            layer,
            numbering.number(layer),
            outputs[layer.index],
            form,
            is_output=layer.index in marked,
        )
        for layer, form in zip(layers, forms, strict=True)
    ]


def choose_forms(sizes: Sequence[dict[LayerForm, int]], room: int) -> list[LayerForm]:
    """Return the form of each layer: the richest one that all have room for, then more for some.

    `sizes` are the bytes of each layer in each form. Small layers come first.
    """
    basis = next(
        (
            form
            for form in (LayerForm.LINES, LayerForm.ROWS)
            if sum(size[form] for size in sizes) <= room
        ),
        LayerForm.CHANNELS,
    )
    forms = [basis] * len(sizes)
    left = room - sum(size[basis] for size in sizes)
    for number in sorted(range(len(sizes)), key=lambda n: sizes[n][LayerForm.FULL]):
        for form in (LayerForm.FULL, LayerForm.LINES, LayerForm.ROWS):
            more = sizes[number][form] - sizes[number][basis]
            if more <= left:
                forms[number] = form
                left -= max(more, 0)
                break
    return forms


def _sizes(layer: MappedLayer, values: Tensor) -> dict[LayerForm, int]:
    channels, pixels = len(values), int(values[0].size)
    width = grid_width(values.shape)
    lines = -(-pixels // width)

    def size(form: LayerForm) -> int:
        match form:
            case LayerForm.FULL:
                return channels * pixels * layer.output_width // 8
            case LayerForm.LINES:
                return 4 * channels * (lines + width)
            case LayerForm.ROWS:
                return 4 * channels * lines
            case LayerForm.CHANNELS:
                return 4 * channels
            case _:
                assert_never(form)

    return {form: size(form) for form in LayerForm}


def _layer(
    layer: MappedLayer, number: int, values: Tensor, form: LayerForm, *, is_output: bool
) -> LayerAnswer:
    width = grid_width(values.shape)
    rows: NDArray[np.uint32] | None
    match form:
        case LayerForm.FULL:
            rows = None
        case LayerForm.LINES | LayerForm.ROWS:
            rows = hashed_rows(values, width)
        case LayerForm.CHANNELS:
            rows = hashed_channels(values)
        case _:
            assert_never(form)
    return LayerAnswer(
        number=number,
        name=layer.name or "",
        shape=(len(values), values.shape[1], values.shape[2]),
        wide=layer.output_width == 32,
        is_output=is_output,
        step=pixel_step(delivery_of(layer)),
        places=_places(layer),
        form=form,
        values=values if "values" in form.kept else None,
        rows=rows,
        columns=hashed_columns(values, width) if "columns" in form.kept else None,
    )


def _places(layer: MappedLayer) -> NDArray[np.int64]:
    """Return instance, lane and first word of each channel."""
    start = layer.out_offset // 4
    rows = [
        (piece.instance, lane, start + piece.word)
        for piece in pieces_of(delivery_of(layer))
        for lane in piece.lanes
    ]
    return np.array(rows, np.int64).reshape(-1, 3)
