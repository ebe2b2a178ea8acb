"""Reads weights, biases and sample back from the accelerator's memories.

Written from docs/hardware/memory.md, "Data memory", "Order of the bytes" and "Bias memory";
docs/hardware/streaming.md, "FIFOs" alone: it shares no code with the loader's placement, so that a
mistake in one of them shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.mapping import MappedLayer
from ai8xtools.synthesis.place import BiasRange, KernelMemory, KernelRange
from ai8xtools.synthesis.program import FifoStream, InputBlock, Program
from ai8xtools.synthesis.words import phase_words

COLUMN = 9


def processors(mask: int) -> list[int]:
    """Numbers of the processors in a mask."""
    return [p for p in range(64) if mask >> p & 1]


def slots(layer: MappedLayer) -> tuple[list[int], int]:
    """Output slots of a pass, counted from lane 0 of the first instance, and how many there are."""
    outputs = processors(layer.output_processors)
    start = outputs[0] - outputs[0] % 4
    return [p - start for p in outputs], outputs[-1] - start + 1


def taps_of(layer: MappedLayer) -> int:
    """Weights of one kernel as the hardware has it."""
    return layer.hardware.kernel[0] * layer.hardware.kernel[1]


def passes_of(layer: MappedLayer) -> int:
    """Kernels of one output in a processor: one for each input pass and flattened pixel."""
    return layer.in_passes * (layer.in_dim[0] * layer.in_dim[1] if layer.flatten else 1)


def columns_of(layer: MappedLayer, place: KernelRange) -> tuple[int, int]:
    """First and one past the last column in which kernels of the layer's outputs stand."""
    per_byte, taps = 8 // abs(layer.weight_bits), taps_of(layer)
    first = slots(layer)[0][0] * passes_of(layer) // per_byte * taps
    end = -(-place.count // per_byte) * taps
    return place.first + first // COLUMN, place.first - (-end // COLUMN)


def read_kernels(layer: MappedLayer, place: KernelRange, memory: KernelMemory) -> NDArray[np.int64]:
    """Return the weights [out, in/groups, rows, columns] that the hardware would use."""
    if layer.depthwise:
        return _read_depthwise(layer, place, memory)
    pixels, inputs = passes_of(layer) // layer.in_passes, processors(layer.processors)
    places, per_pass = slots(layer)
    out_pass, rank = np.divmod(np.arange(layer.out_channels), len(places))
    first = (out_pass * per_pass + np.array(places)[rank]) * passes_of(layer)
    in_pass, unit = np.divmod(np.arange(layer.in_channels), len(inputs))
    pass_of_pixel = np.arange(pixels) * layer.in_passes
    # [output, channel, pixel]
    number = first[:, None, None] + in_pass[:, None] + pass_of_pixel
    assert number.max() < place.count
    found = _kernels(layer, place, memory, np.broadcast_to(unit[:, None], number.shape), number)
    return found.reshape(layer.out_channels, -1, *layer.hardware.kernel)


def _read_depthwise(
    layer: MappedLayer, place: KernelRange, memory: KernelMemory
) -> NDArray[np.int64]:
    """Return [channel, 1, rows, columns]; each processor has one kernel for each pass."""
    in_pass, unit = np.divmod(np.arange(layer.in_channels), len(processors(layer.processors)))
    empty = place.count // layer.in_passes - 1
    found = _kernels(layer, place, memory, unit, empty * layer.in_passes + in_pass)
    return found.reshape(-1, 1, *layer.hardware.kernel)


def _kernels(
    layer: MappedLayer,
    place: KernelRange,
    memory: KernelMemory,
    unit: NDArray[np.int64],
    number: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the taps [..., tap] of kernels: `number` within the stream of processor `unit`."""
    bits, taps = abs(layer.weight_bits), taps_of(layer)
    inputs = processors(layer.processors)
    streams = memory.data[inputs][:, :, ::-1].reshape(len(inputs), -1)
    begin = COLUMN * place.first + number // (8 // bits) * taps
    position = begin[..., None] + np.arange(taps)[::-1]
    part = streams[unit[..., None], position].astype(np.int64)
    part = part >> (number % (8 // bits) * bits)[..., None] & (1 << bits) - 1
    signed: NDArray[np.int64] = part - (part >> bits - 1 << bits)
    return 2 * signed + 1 if layer.weight_bits < 0 else signed


def read_bias(
    layer: MappedLayer, place: BiasRange, memory: Sequence[NDArray[np.uint8]], *, skipped: int = 0
) -> NDArray[np.int64]:
    """Return the bias of a layer; `skipped` bytes stand in front of it."""
    if layer.depthwise:
        return _read_depthwise_bias(layer, place, memory)
    assert place.group is not None
    offset = place.offsets[place.group]
    assert offset is not None
    places, per_pass = slots(layer)
    out_pass, rank = np.divmod(np.arange(layer.out_channels), len(places))
    index = offset + skipped + out_pass * per_pass + np.array(places)[rank]
    values: NDArray[np.int64] = memory[place.group][index].view(np.int8).astype(np.int64)
    return values


def _read_depthwise_bias(
    layer: MappedLayer, place: BiasRange, memory: Sequence[NDArray[np.uint8]]
) -> NDArray[np.int64]:
    """Return the bias of a layer whose channels are in the groups of their processors."""
    inputs = processors(layer.processors)
    first, last = inputs[0], inputs[-1]
    found = []
    for channel in range(layer.out_channels):
        out_pass, unit = divmod(channel, len(inputs))
        processor = inputs[unit]
        group, inside = divmod(processor, 16)
        offset = place.offsets[group]
        assert offset is not None
        if layer.processors == layer.output_processors:
            index = 16 * out_pass + inside % 4 * 4 + inside // 4
        elif first // 16 == last // 16:
            index = (last - first + 1) * out_pass + processor - first
        else:
            span = last % 16 + 1 if group == last // 16 else 16
            index = span * out_pass + processor - (first if group == first // 16 else 16 * group)
        found.append(memory[group][offset + index])
    return np.array(found, np.uint8).view(np.int8).astype(np.int64)


def read_input(layer: MappedLayer, blocks: Sequence[InputBlock]) -> NDArray[np.int64]:
    """Return the sample [channel, row, column] of the words in the data memories."""
    rows, columns = layer.in_dim
    pixels, passes, operands = rows * columns, layer.in_passes, layer.operands
    inputs = processors(layer.processors)
    memory = {block.number // 4: block.words for block in blocks}
    found = np.zeros((operands, layer.in_channels, pixels), np.int64)
    for channel in range(layer.in_channels):
        in_pass, unit = divmod(channel, len(inputs))
        words = memory[inputs[unit] // 4]
        for operand in range(operands):
            if layer.channels_first:
                data = words.astype("<u4").view(np.int8)[:pixels]
            else:
                at = (np.arange(pixels) * passes + in_pass) * operands + operand
                lane = 8 * (inputs[unit] % 4)
                data = (words[at] >> lane & 0xFF).astype(np.uint8).view(np.int8)
            found[operand, channel] = data
    return found.reshape(-1, rows, columns)


def read_fifos(layer: MappedLayer, streams: Sequence[FifoStream]) -> NDArray[np.int64]:
    """Return the sample [channel, row, column] of the words that go through FIFOs."""
    pixels = layer.in_dim[0] * layer.in_dim[1]
    words = {stream.number: stream.words.astype("<u4").view(np.int8) for stream in streams}
    found = [
        words[p // 16][:pixels] if layer.channels_first else words[p // 16][p % 16 :: 4][:pixels]
        for p in processors(layer.processors)
    ]
    return np.array(found, np.int64).reshape(-1, *layer.in_dim)


def kernel_memory(program: Program) -> KernelMemory:
    """Return the kernel memories that the words of a program leave behind; owners are unknown."""
    chip, memory = program.chip, KernelMemory.empty(program.chip)
    bases = {chip.kernel_address(p) + program.apb_base: p for p in range(64)}
    for address, word in phase_words(program)["cnn_load_weights"].words.items():
        base = address - address % chip.kernel_stride
        column, part = divmod(address - base, 16)
        first = (0, 1, 5)[part // 4]
        raw = word.to_bytes(4, "big")[-1:] if part == 0 else word.to_bytes(4, "big")
        memory.data[bases[base], column, first : first + len(raw)] = list(raw)
    return memory


def bias_memory(program: Program) -> list[NDArray[np.uint8]]:
    """Return the bias bytes of each group."""
    found = {block.group: block.values for block in program.biases}
    return [found.get(group, np.zeros(0, np.uint8)) for group in range(4)]
