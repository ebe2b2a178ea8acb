"""Reads weights, biases and sample back from the accelerator's memories.

Written from spec/machine.md sections 3 to 5 alone: it shares no code with the loader's placement,
so that a mistake in one of them shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synthesis.network import Layer
from synthesis.place import BiasRange, KernelMemory, KernelRange
from synthesis.program import InputBlock

COLUMN = 9


def processors(mask: int) -> list[int]:
    """Numbers of the processors in a mask."""
    return [p for p in range(64) if mask >> p & 1]


def slots(layer: Layer) -> tuple[list[int], int]:
    """Output slots of a pass, counted from lane 0 of the first instance, and how many there are."""
    outputs = processors(layer.output_processors)
    start = outputs[0] - outputs[0] % 4
    return [p - start for p in outputs], outputs[-1] - start + 1


def columns_of(layer: Layer, place: KernelRange) -> tuple[int, int]:
    """First and one past the last column in which kernels of the layer's outputs stand."""
    per_byte, taps = 8 // abs(layer.weight_bits), layer.kernel[0] * layer.kernel[1]
    passes = layer.in_passes * (layer.in_dim[0] * layer.in_dim[1] if layer.flatten else 1)
    first = slots(layer)[0][0] * passes // per_byte * taps
    end = -(-place.count // per_byte) * taps
    return place.first + first // COLUMN, place.first - (-end // COLUMN)


def read_kernels(layer: Layer, place: KernelRange, memory: KernelMemory) -> NDArray[np.int64]:
    """Return the weights [out, in, rows, columns] that the hardware would use."""
    bits, (rows, columns) = abs(layer.weight_bits), layer.kernel
    per_byte, taps = 8 // bits, rows * columns
    pixels = layer.in_dim[0] * layer.in_dim[1] if layer.flatten else 1
    passes = layer.in_passes * pixels
    inputs = processors(layer.processors)
    places, per_pass = slots(layer)
    streams = memory.data[inputs][:, :, ::-1].reshape(len(inputs), -1)
    found = np.zeros((layer.out_channels, layer.in_channels * pixels, taps), np.int64)
    for out in range(layer.out_channels):
        out_pass, rank = divmod(out, len(places))
        for channel in range(layer.in_channels):
            in_pass, unit = divmod(channel, len(inputs))
            for pixel in range(pixels):
                number = (out_pass * per_pass + places[rank]) * passes
                number += pixel * layer.in_passes + in_pass
                assert number < place.count
                begin = COLUMN * place.first + number // per_byte * taps
                part = streams[unit, begin : begin + taps][::-1].astype(np.int64)
                part = part >> number % per_byte * bits & (1 << bits) - 1
                signed = part - (part >> bits - 1 << bits)
                found[out, channel * pixels + pixel] = signed
    return found.reshape(layer.out_channels, -1, rows, columns)


def read_bias(
    layer: Layer, place: BiasRange, memory: Sequence[NDArray[np.uint8]]
) -> NDArray[np.int64]:
    """Return the bias of an ordinary layer."""
    assert place.group is not None
    offset = place.offsets[place.group]
    assert offset is not None
    places, per_pass = slots(layer)
    index = [
        offset + out // len(places) * per_pass + places[out % len(places)]
        for out in range(layer.out_channels)
    ]
    return memory[place.group][index].view(np.int8).astype(np.int64)


def read_input(layer: Layer, blocks: Sequence[InputBlock]) -> NDArray[np.int64]:
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
