"""Kernels and biases of a layer, read from the memories.

Source: docs/hardware/memory.md, "Order of the bytes", "Bias memory" and "Four outputs at a time".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.bits import signed_parts
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.state.memory import Memory
from device.chip import KERNEL_COLUMN_BYTES, PROCESSORS_PER_GROUP

Integers = NDArray[np.int64]

_PARTS = 4  # memory parts that work side by side in four-at-once and quad mode


def layer_kernels(memory: Memory, config: LayerConfig, *, binary: bool, quad: bool) -> Integers:
    """Return the kernels as int64 [processor, output, pass, kernel rows, kernel columns].

    `processor` counts the layer's processors; `output` counts output passes times slots, or is 1
    for a depth-wise layer. Raises EmulatorError (E832) if kernels lie behind the memory, or are
    more than it could hold.
    """
    rows, columns = config.kernels.shape
    outputs = _outputs(config) if config.kind.sums_channels else 1
    shape = (len(config.processors), outputs, config.input.passes, rows, columns)
    if outputs * config.input.passes > (most := memory.kernels[0].size * 8):  # of 1x1, 1 bit
        raise EmulatorError(
            "E832",
            f"layer {config.layer}: its registers make no sense: {outputs} outputs of "
            f"{config.input.passes} passes, the memory has at most {most} kernels of a processor",
        )
    if config.kernels.bypass:
        return np.ones(shape, np.int64)
    kernels = config.kernels
    needed = outputs * config.input.passes
    skipped = 0  # kernels of slots before the first used lane
    if not config.kind.sums_channels:
        skipped = max(kernels.count - needed, 0)
    stored = needed + skipped
    if kernels.four_at_once:
        values = _unpacked(_four_at_once(memory, config, stored), config, 0, stored, binary)
    elif quad:
        values = _unpacked(_quad_streams(memory, config), config, 0, stored, binary)
    else:
        # behind the last kernel that is counted stand other layers', or the memory ends
        present = max(min(stored, kernels.count), 0)
        values = np.zeros((len(config.processors), stored, rows * columns), np.int64)
        stream = _streams(memory, config)
        values[:, :present] = _unpacked(stream, config, kernels.start, present, binary)
    return values[:, skipped:].reshape(shape)[:, _stored_order(config, outputs, quad)]


def columns_of(config: LayerConfig) -> slice:
    """Return the columns of an ordinary layer, the same in all its processors."""
    kernels = config.kernels
    per_byte = 8 // kernels.bits
    size = -(-kernels.count // per_byte) * kernels.shape[0] * kernels.shape[1]
    first = kernels.start // KERNEL_COLUMN_BYTES
    return slice(first, -(-(kernels.start + size) // KERNEL_COLUMN_BYTES))


def bias_values(memory: Memory, group: Integers, index: Integers) -> Integers:
    """Return the biases at these places, zero where the index is -1 or behind the memory."""
    size = memory.chip.bias_bytes
    inside = (index >= 0) & (index < size)
    return np.where(inside, memory.bias[group, index % size], 0).astype(np.int64)


def layer_bias(
    config: LayerConfig, gaps: Integers, *, skip_first: bool, quad: bool
) -> tuple[Integers, Integers]:
    """Return where the bias of each output is: group and index, int64 [output passes, slots].

    The index is -1 where there is none.

    `gaps` [output passes, slots] counts the empty slots before each slot: they have no bias byte.
    `skip_first`: one byte stands in front of the biases.
    """
    shape = (config.output.passes, config.output.slots)
    number = np.arange(shape[0] * shape[1]).reshape(shape)
    users = [group for group, offset in enumerate(config.output.bias_offsets) if offset is not None]
    if not users:
        return np.zeros(shape, np.int64), np.full(shape, -1)
    if quad:
        group = number % _PARTS
        offsets = np.array([offset or 0 for offset in config.output.bias_offsets])[group]
        return group, offsets + number // _PARTS
    offset = config.output.bias_offsets[users[0]]
    assert offset is not None
    index = offset + number - gaps + int(skip_first)
    return np.full(shape, users[0]), index


def depthwise_bias(config: LayerConfig) -> tuple[Integers, Integers]:
    """Return where the biases of a depth-wise layer are: group and index, [pass, processor].

    The index is -1 where there is none.
    """
    processors = np.array(config.processors)
    group = processors // PROCESSORS_PER_GROUP
    passes = np.arange(config.input.passes)[:, None]
    offsets = np.array([-1 if o is None else o for o in config.output.bias_offsets])[group]
    unit = processors % PROCESSORS_PER_GROUP
    if config.broadcast:
        index = offsets + 16 * passes + unit % 4 * 4 + unit // 4
    else:
        base, span = depthwise_bases(config), _depthwise_spans(config)
        index = offsets + span[group] * passes + processors - base[group]
    group = np.broadcast_to(group, index.shape)
    return group, np.where(offsets >= 0, index, -1)


def depthwise_bases(config: LayerConfig) -> Integers:
    """Return for each group the processor that counts as its first: int64 [group]."""
    bases = np.arange(len(config.enabled), dtype=np.int64) * PROCESSORS_PER_GROUP
    bases[config.groups[0]] = config.processors[0]
    return bases


def _depthwise_spans(config: LayerConfig) -> Integers:
    """Bias bytes of one pass in each group."""
    spans = np.full(len(config.enabled), PROCESSORS_PER_GROUP, np.int64)
    last = config.processors[-1]
    spans[config.groups[-1]] = (
        last - config.processors[0] if len(config.groups) == 1 else last % PROCESSORS_PER_GROUP
    ) + 1
    return spans


def _outputs(config: LayerConfig) -> int:
    return config.output.passes * config.output.slots


def _streams(memory: Memory, config: LayerConfig) -> NDArray[np.uint8]:
    """Kernel bytes of each processor in stream order; columns fill from byte 8 down."""
    columns = memory.kernels[list(config.processors), :, ::-1]
    return columns.reshape(len(config.processors), -1)


def _unpacked(
    stream: NDArray[np.uint8], config: LayerConfig, start: int, count: int, binary: bool
) -> Integers:
    """Cut `count` kernels per processor out of the streams: int64 [processor, kernel, tap]."""
    bits = config.kernels.bits
    taps = config.kernels.shape[0] * config.kernels.shape[1]
    per_byte = 8 // bits
    blocks = -(-count // per_byte)
    if start + blocks * taps > stream.shape[1]:
        raise EmulatorError(
            "E832",
            f"layer {config.layer}: kernels reach to byte {start + blocks * taps} of processor "
            f"{config.processors[0]}, the memory ends at {stream.shape[1]}",
            remedy="Check the kernel address and count registers of the layer.",
        )
    packed = stream[:, start : start + blocks * taps].reshape(len(stream), blocks, taps)
    values = signed_parts(packed[..., ::-1], bits)
    if binary and bits == 1:
        values = 1 + 2 * values  # the bit 0 means +1, 1 (read as -1) means -1
    return values.reshape(len(stream), blocks * per_byte, taps)[:, :count]


def _four_at_once(memory: Memory, config: LayerConfig, count: int) -> NDArray[np.uint8]:
    """Join the four parts among which the columns of a four-at-once layer are spread."""
    kernels = config.kernels
    taps = kernels.shape[0] * kernels.shape[1]
    columns = count * KERNEL_COLUMN_BYTES * kernels.bits // (taps * 8)
    per_part = max(-(-columns // _PARTS), 1)
    part_columns = memory.chip.kernel_part_columns
    first = kernels.start // KERNEL_COLUMN_BYTES % part_columns
    parts = [
        memory.kernels[list(config.processors), start : start + per_part, ::-1]
        for start in range(first, first + _PARTS * part_columns, part_columns)
    ]
    return np.concatenate(parts, axis=1).reshape(len(config.processors), -1)


def _quad_streams(memory: Memory, config: LayerConfig) -> NDArray[np.uint8]:
    """Join the columns of a quad layer: they rotate over the processors of the four groups."""
    first = config.kernels.start // KERNEL_COLUMN_BYTES
    processors = np.array(config.processors)[:, None]
    groups = processors + PROCESSORS_PER_GROUP * np.arange(_PARTS)
    columns = memory.kernels[groups, first:, ::-1].swapaxes(
        1, 2
    )  # [processor, column, group, byte]
    return columns.reshape(len(config.processors), -1)


def _stored_order(config: LayerConfig, outputs: int, quad: bool) -> Integers:
    """Return at which position of the kernel list each output stands.

    Four at once: 0, 4, 8, ..., 1, 5, ...; quad: bytes that hold several kernels go to one group.
    """
    number: Integers = np.arange(outputs)
    if config.kernels.four_at_once:
        return number % _PARTS * (outputs // _PARTS) + number // _PARTS
    if quad:
        per_byte = 8 // config.kernels.bits
        block, group = np.divmod(number, _PARTS)
        number = (block // per_byte * _PARTS + group) * per_byte + block % per_byte
    return number
