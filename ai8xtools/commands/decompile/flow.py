"""Who writes what a layer reads: every byte of data memory with the layer that wrote it last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.locations import (
    input_bytes,
    output_bytes,
    output_locations,
)
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen

Integers = NDArray[np.int64]

INPUT = -1
"""In place of a layer: what stands in memory before the first, or comes through the FIFOs."""
UNKNOWN = -2
"""In place of a layer: nobody is known to write it."""


@frozen
class Read:
    """What a layer reads for its first pixel: int64 [operand, channel], passes outside.

    `writers` are positions in the order of execution, INPUT or UNKNOWN; `outputs` count the
    writer's outputs as it computes them, `pixels` tell of which pixel they are. Those of the
    input are byte offsets in a memory instance.
    """

    writers: Integers
    outputs: Integers
    pixels: Integers


class _Owners:
    """Who wrote each byte of data memory last."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.writer = np.full(shape, UNKNOWN, np.int64)
        self.output = np.zeros(shape, np.int64)
        self.output[:] = np.arange(shape[1])
        self.pixel = np.zeros(shape, np.int64)

    def load(self, config: LayerConfig) -> None:
        """The input is loaded, as the first layer reads it."""
        self.writer[input_bytes(config, self.writer.shape[1])] = INPUT

    def write(self, position: int, config: LayerConfig) -> None:
        """A layer writes its output; offsets wrap."""
        rows, columns = config.output_size
        instance, offset = output_bytes(config, output_locations(config), rows * columns)
        number, pixel, *_ = np.ogrid[tuple(slice(n) for n in offset.shape)]
        place = instance, offset % self.writer.shape[1]
        self.writer[place] = position
        self.output[place] = number + 0 * offset
        self.pixel[place] = pixel + 0 * offset

    def read(self, instance: Integers, offset: Integers) -> Read:
        """Return who wrote these bytes [processor, operand, pass]."""
        place = instance, offset % self.writer.shape[1]
        parts = (self.writer[place], self.output[place], self.pixel[place])
        return Read(*map(_by_operand, parts))


def _by_operand(values: Integers) -> Integers:
    """Turn [processor, operand, pass] into [operand, channel]."""
    return values.transpose(1, 2, 0).reshape(values.shape[1], -1)


def reads(memory: Memory, layers: Sequence[LayerConfig]) -> tuple[list[LayerConfig], list[Read]]:
    """Return the layers, in the order of execution, and what each of them reads.

    Where MAX78000 takes the passes of combined operands for more rows, they are passes again.
    """
    owners, all_reads, whole = _Owners(memory.data_bytes.shape), list[Read](), list[LayerConfig]()
    for position, config in enumerate(layers):
        instance, offset = (part[..., 0] for part in input_bytes(config, 1 << 30))
        if position == 0 and not memory.pushes:
            owners.load(config)
        if position == 0 and memory.pushes:
            count = np.arange(len(config.processors))[None]
            all_reads.append(Read(0 * count + INPUT, count, 0 * count))
        elif position and config.stream_start:
            all_reads.append(_streamed(position - 1, whole[-1], instance, offset))
        else:
            writer = int(owners.read(instance, offset).writers[0, 0])
            passes = whole[writer].output.passes if writer >= 0 else 1
            config = _with_passes(memory, config, passes)
            instance, offset = (part[..., 0] for part in input_bytes(config, 1 << 30))
            all_reads.append(owners.read(instance, offset))
        whole.append(config)
        following = layers[position + 1] if position + 1 < len(layers) else None
        if following is None or not following.stream_start:
            owners.write(position, config)
    return whole, all_reads


def _with_passes(memory: Memory, config: LayerConfig, passes: int) -> LayerConfig:
    """Return a layer whose rows are in fact the passes of those that it combines."""
    inputs = config.input
    as_rows = memory.chip.combines_passes_as_rows and not config.kind.has_kernels
    combines = inputs.operands > 1 and inputs.passes == 1
    if not as_rows or not combines or passes == 1 or inputs.size[0] % passes:
        return config
    size = inputs.size[0] // passes, inputs.size[1]
    return replace(
        config,
        input=replace(inputs, size=size, pooled=size, passes=passes),
        output=replace(config.output, passes=passes),
    )


def _streamed(
    position: int, writer: LayerConfig, instance: Integers, offset: Integers
) -> Read:  # fmt: skip
    """Return which outputs of a layer that streams are the first that the next one reads."""
    instances, offsets = output_bytes(writer, output_locations(writer), 1)
    numbers = {
        place: number
        for number, place in enumerate(
            zip(instances[:, 0].tolist(), offsets[:, 0].tolist(), strict=True)
        )
    }
    places = zip(instance.reshape(-1).tolist(), offset.reshape(-1).tolist(), strict=True)
    outputs = _by_operand(np.array([numbers.get(p, UNKNOWN) for p in places]).reshape(offset.shape))
    return Read(np.where(outputs == UNKNOWN, UNKNOWN, position), outputs, 0 * outputs)
