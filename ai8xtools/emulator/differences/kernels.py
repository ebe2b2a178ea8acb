"""Kernels that differ: which of which layer, or that they only stand in other places."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer import LayerAnswer
from ai8xtools.emulator.comparison.places import channels_of, is_quad
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.weights import layer_kernels
from ai8xtools.emulator.differences.difference import Difference, Subject
from ai8xtools.emulator.differences.side import LoadedWords
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen
from device.chip import GROUPS

Integers = NDArray[np.int64]

_EVERY_BIT = 255  # of a byte: no kernel in it is zero then


@frozen
class _Kernels:
    """Kernels of a layer, [processor, output, pass, row, column], and for each tap the number of
    the differing byte that holds it, counted from 1."""

    values: Integers
    bytes: Integers


def kernel_differences(
    theirs: LoadedWords, ours: LoadedWords, answers: Mapping[int, LayerAnswer]
) -> Iterator[Difference]:
    """Yield kernels that differ by layer, output and input channel."""
    differing = np.argwhere(theirs.memory.kernels != ours.memory.kernels)
    explained = np.zeros(len(differing) + 1, np.bool_)
    if not len(differing):
        return
    for number in sorted({*theirs.layers, *ours.layers}):
        pair = _read(theirs, number, differing), _read(ours, number, differing)
        present = [kernels.bytes for kernels in pair if kernels is not None]
        if not any(part.any() for part in present):
            continue
        for part in present:
            explained[part] = True
        answer, config = answers.get(number), ours.layers.get(number)
        name = f"layer {number}{f' ({answer.name})' if answer and answer.name else ''}"
        yield from (
            Difference(Subject.KERNELS, f"{name}{text}") for text in _texts(pair, config, answer)
        )
    columns = np.unique(differing[~explained[1:], :2], axis=0)
    for processor, column in columns.tolist():
        address = ours.memory.addresses.apb_base
        address += ours.memory.chip.kernel_address(processor, column)
        there, here = (side.memory.kernels[processor, column].tobytes() for side in (theirs, ours))
        yield Difference(
            Subject.UNEXPLAINED,
            f"0x{address:08x} (processor {processor} kernel column {column}): there {there.hex()}, "
            f"here {here.hex()}: a kernel of no layer",
        )


def _read(side: LoadedWords, number: int, differing: Integers) -> _Kernels | None:
    """Return the kernels of a layer; None if the project has no such layer, or it has none."""
    config = side.layers.get(number)
    if config is None or config.kernels.bypass or not config.kind.has_kernels:
        return None
    count = config.output.passes * config.output.slots * config.input.passes
    if count > 8 * side.memory.kernels[0].size * GROUPS:
        return None  # more than the memory has bits
    quad = is_quad(side.memory, config)
    try:
        values = layer_kernels(side.memory, config, binary=False, quad=quad)
        return _Kernels(values, _traced(side.memory, config, differing, quad=quad))
    except (EmulatorError, ValueError, IndexError):
        return None


def _traced(memory: Memory, config: LayerConfig, places: Integers, *, quad: bool) -> Integers:
    """Return for each tap which of some bytes holds it, counted from 1; 0: none of them."""
    marked = copy.copy(memory)
    number = np.arange(1, len(places) + 1)
    traced: Integers = np.zeros((), np.int64)
    for bit in range(len(places).bit_length()):
        marked.kernels = np.zeros_like(memory.kernels)
        marked.kernels[tuple(places.T)] = np.where(number // 2**bit % 2, _EVERY_BIT, 0)
        held = layer_kernels(marked, config, binary=False, quad=quad) != 0
        traced = traced + 2**bit * held
    return traced


def _texts(
    pair: tuple[_Kernels | None, _Kernels | None],
    config: LayerConfig | None,
    answer: LayerAnswer | None,
) -> Iterator[str]:
    theirs, ours = pair
    if theirs is None or ours is None or config is None:
        yield f": its kernels can only be read {'here' if theirs is None else 'there'}"
        return
    if theirs.values.shape != ours.values.shape:
        shapes = (" x ".join(map(str, k.values.shape)) for k in (theirs, ours))
        yield (
            ": its kernels differ in number or size (processors x outputs x passes x rows x "
            f"columns): there {next(shapes)}, here {next(shapes)}"
        )
        return
    if np.array_equal(theirs.values, ours.values):
        yield ": the same kernels in other places of the kernel memory"
        return
    wrong = theirs.values != ours.values
    channels = channels_of(config, answer) if answer is not None else {}
    for output, number, processor in np.argwhere(
        wrong.any(axis=(3, 4)).transpose(1, 2, 0)
    ).tolist():
        place = processor, output, number
        row, column = np.argwhere(wrong[place])[0].tolist()
        count = int(wrong[place].sum())
        more = f" and {count - 1} more of {wrong[place].size} taps" if count > 1 else ""
        source = number * len(config.processors) + processor
        if config.kind.sums_channels:
            target = channels.get(output)
            shown = f"unused output {output}" if target is None else f"output channel {target}"
            shown += f", input channel {source}"
        else:
            shown = f"channel {source}"
        there, here = (int(k.values[(*place, row, column)]) for k in (theirs, ours))
        yield f", {shown}, row {row} column {column}: there {there}, here {here}{more}"
