"""What a wrong word means to the network: kernel, bias or pixel, and of which layer.

The registers say which kernels and biases a layer reads. A kernel memory that is zero but for the
wrong bits is decoded as the layer would; what is not zero then is what the wrong bits belong to.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np

from ai8xtools.answer import Answer, LayerAnswer
from ai8xtools.emulator.comparison.wrong import Kind, WrongWord
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.layer import decode_layer
from ai8xtools.emulator.decode.locations import input_bytes, output_locations, unused_lanes
from ai8xtools.emulator.decode.weights import depthwise_bias, layer_bias, layer_kernels
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.state.memory import Memory


def describe_wrong(memory: Memory, answer: Answer, word: WrongWord) -> str:
    """Return a line: where a word is, what it belongs to, what was expected and what found."""
    what = ", ".join(dict.fromkeys(_meanings(memory, answer, word)))
    if word.kind.has_fields:
        place, values = memory.addresses.describe(word.address), _fields(memory, word)
    elif word.expected is None or word.actual is None:
        place, values = f"several words of {_memory_place(memory, word)}", ""
    else:
        place = _memory_place(memory, word)
        if word.surplus:
            return f"{word.phase}: 0x{word.address:08x}, {place}: expected nothing, found a kernel"
        digits = word.kind.digits
        values = f"expected 0x{word.expected:0{digits}x}, found 0x{word.actual:0{digits}x}"
    parts = [part for part in (place, what) if part]
    text = f"{word.phase}: 0x{word.address:08x}, {', '.join(parts)}"
    return f"{text}: {values}" if values else text


def _memory_place(memory: Memory, word: WrongWord) -> str:
    place = memory.addresses.describe(word.address)
    match word.kind:
        case Kind.PUSH:
            return f"{place}, word {word.number}"
        case Kind.KERNEL if word.changes:
            columns = sorted({change.place for change in word.changes})
            return f"processor {word.changes[0].unit} {_numbers('kernel column', columns)}"
        case Kind.REGISTER | Kind.KERNEL | Kind.BIAS | Kind.INPUT:
            return place
        case _:
            assert_never(word.kind)


def _fields(memory: Memory, word: WrongWord) -> str:
    """Name the fields of a register that differ, with both values."""
    assert word.expected is not None and word.actual is not None
    if word.surplus:
        return f"expected nothing, found 0x{word.actual:08x}"
    words = f"expected 0x{word.expected:08x}, found 0x{word.actual:08x}"
    register = memory.addresses.registers.get(word.address)
    if register is None:
        return words
    expected, actual = register.unpack(word.expected), register.unpack(word.actual)
    named = [
        f"{name} {expected[name]} became {actual[name]}"
        for name in expected
        if expected[name] != actual[name]
    ]
    return f"{words} ({', '.join(named)})" if named else words


def _meanings(memory: Memory, answer: Answer, word: WrongWord) -> Iterator[str]:
    match word.kind:
        case Kind.KERNEL:
            yield from _kernels(memory, answer, word)
        case Kind.BIAS:
            yield from _biases(memory, answer, word)
        case Kind.INPUT:
            yield from _pixels(memory, answer, word)
        case Kind.REGISTER | Kind.PUSH:
            return
        case _:
            assert_never(word.kind)


def _configurations(memory: Memory, answer: Answer) -> Iterator[tuple[LayerConfig, LayerAnswer]]:
    """Yield the layers of the file as the registers describe them."""
    for layer in answer.layers:
        config = decoded(memory, layer.number)
        if config.processors:
            yield config, layer


def decoded(memory: Memory, layer: int) -> LayerConfig:
    """Decode a layer; of one in quad mode, whose groups share the outputs, the first group."""
    config = decode_layer(memory, layer)
    if is_quad(memory, config):
        config = replace(config, enabled=(config.enabled[0], 0, 0, 0))
    return config


def is_quad(memory: Memory, config: LayerConfig) -> bool:
    """Whether a layer shares its outputs among the groups (quad mode)."""
    first = memory.control_register("LCNT_MAX")["first"]
    return config.layer == first and bool(memory.control_register("CTL")["fifo_quad"])


def channels_of(config: LayerConfig, layer: LayerAnswer) -> dict[int, int]:
    """Return the channel of each output of a layer that has one, by where they are written."""
    place = output_locations(config)
    rows = zip(place.instance.tolist(), place.lane.tolist(), place.word.tolist(), strict=True)
    channels = {tuple(row): number for number, row in enumerate(layer.places.tolist())}
    return {output: channels[row] for output, row in enumerate(rows) if row in channels}


def _output_channels(config: LayerConfig, layer: LayerAnswer, outputs: Sequence[int]) -> str:
    """Name the channels that outputs of a layer are; the number of the output if it has none."""
    channels = channels_of(config, layer)
    matches = sorted({channels[o] for o in outputs if o in channels})
    return (
        _numbers("output channel", matches) if matches else _numbers("output", sorted(set(outputs)))
    )


def _kernels(memory: Memory, answer: Answer, word: WrongWord) -> Iterator[str]:
    marked = copy.copy(memory)
    marked.kernels = np.zeros_like(memory.kernels)
    for change in word.changes:
        marked.kernels[change.unit, change.place, change.byte] = change.mask
    for config, layer in _configurations(memory, answer):
        quad = is_quad(memory, config)
        if config.kernels.bypass or not config.kind.has_kernels:
            continue
        try:
            kernels = layer_kernels(marked, config, binary=False, quad=quad)
        except (EmulatorError, ValueError, IndexError):
            continue
        processor, output, number, row, column = np.nonzero(kernels)
        if not len(processor):
            continue
        inputs = sorted(set((number * len(config.processors) + processor).tolist()))
        if config.kind.sums_channels:
            outputs = _output_channels(config, layer, output.tolist())
        else:
            outputs = _numbers("channel", inputs)
        taps = sorted(set(zip(row.tolist(), column.tolist(), strict=True)))
        tap = f"row {taps[0][0]} column {taps[0][1]}" if len(taps) == 1 else f"{len(taps)} taps"
        summed = f", {_numbers('input channel', inputs)}" if config.kind.sums_channels else ""
        yield f"kernel of layer {layer.number}, {outputs}{summed}, {tap}"


def _biases(memory: Memory, answer: Answer, word: WrongWord) -> Iterator[str]:
    layers = list(_configurations(memory, answer))
    change = word.changes[0]
    for number, (config, layer) in enumerate(layers):
        following = layers[number + 1][0] if number + 1 < len(layers) else None
        try:
            group, index = layer_bias_places(memory, config, following)
        except (EmulatorError, ValueError, IndexError):
            continue
        outputs = np.flatnonzero(
            ((group == change.unit) & (index == change.place)).reshape(-1)
        ).tolist()
        if outputs:
            yield f"bias of layer {layer.number}, {_output_channels(config, layer, outputs)}"


def layer_bias_places(
    memory: Memory, config: LayerConfig, following: LayerConfig | None
) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], ...]:
    """Return group and index of the bias of each output; -1 where there is none.

    `following` is the layer that is executed next. Raises EmulatorError (E832) as `layer_kernels`.
    """
    if not config.kind.has_kernels:
        nowhere = np.full(1, -1)
        return nowhere, nowhere
    if not config.kind.sums_channels:
        return depthwise_bias(config)
    quad = is_quad(memory, config)
    kernels = layer_kernels(memory, config, binary=False, quad=quad).transpose(1, 2, 0, 3, 4)
    weights = kernels.reshape(len(kernels), -1, *config.kernels.shape)
    first = config.layer == memory.control_register("LCNT_MAX")["first"]
    skip = first and bool(config.ring_words) and memory.chip.skips_stream_bias
    gaps = unused_lanes(config, weights, following)
    return layer_bias(config, gaps, skip_first=skip, quad=quad)


def _pixels(memory: Memory, answer: Answer, word: WrongWord) -> Iterator[str]:
    chip = memory.chip
    base = memory.addresses.apb_base
    for config, layer in _configurations(memory, answer):
        instance, offset = input_bytes(config, memory.data_bytes.shape[1])
        addresses = np.array([base + chip.data_address(i) for i in range(16)])
        held = addresses[instance] + offset // 4 * 4 == word.address
        positions = np.argwhere(held)
        if not len(positions):
            continue
        # [processor, operand, pass, pixel]
        passes, processors = config.input.passes, len(config.processors)
        channels = sorted({(o * passes + n) * processors + p for p, o, n, _ in positions.tolist()})
        row, column = divmod(int(positions[0][3]), config.input.size[1])
        yield (
            f"input of layer {layer.number}, {_numbers('channel', channels)}, row {row}, "
            f"column {column}"
        )
        return


def _numbers(name: str, numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"{name} {numbers[0]}"
    return f"{name}s {numbers[0]} to {numbers[-1]}"
