"""Where the inputs of a layer are in data memory, and where its outputs go.

Source: docs/hardware/memory.md, "Data memory"; docs/hardware/streaming.md, "FIFOs";
docs/hardware/execution.md, "Write pointers"; docs/hardware/arithmetic.md, "Shift, rounding,
clipping"; docs/emulator.md, "Properties that registers do not contain".
"""

from __future__ import annotations

from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.config import LayerConfig, LayerKind
from ai8xtools.emulator.decode.weights import depthwise_bases
from ai8xtools.emulator.state.memory import INSTANCES
from ai8xtools.values import frozen
from device.chip import PROCESSORS_PER_GROUP, PROCESSORS_PER_INSTANCE

Integers = NDArray[np.int64]

_LANES = PROCESSORS_PER_INSTANCE


@frozen
class OutputLocations:
    """Where outputs go: int64 arrays [output] of data memory instance, lane and first word."""

    instance: Integers
    lane: Integers
    word: Integers


def input_bytes(config: LayerConfig, instance_bytes: int) -> tuple[Integers, Integers]:
    """Return the data memory instances and byte offsets of what a layer reads.

    Both are [processor, operand, pass, pixel]; offsets wrap at the end of the instance.
    """
    inputs = config.input
    pixels = np.arange(inputs.size[0] * inputs.size[1])
    processors = np.array(config.processors, np.intp).reshape(-1, 1, 1, 1)
    if inputs.chw:
        offset = 4 * inputs.read_word + pixels + 0 * processors
    else:
        steps = pixels * inputs.passes + np.arange(inputs.passes)[:, None]
        words = (
            inputs.read_word
            + steps * inputs.operands * (inputs.read_gap + 1)
            + np.arange(inputs.operands)[:, None, None]
        )
        offset = 4 * words + processors % _LANES
    offset = offset % instance_bytes
    return np.broadcast_to(processors // _LANES, offset.shape), offset


def output_locations(config: LayerConfig) -> OutputLocations:
    """Return where the outputs of a layer go, in the order in which the layer computes them."""
    match config.kind:
        case LayerKind.CONVOLUTION:
            return _convolution_place(config)
        case LayerKind.DEPTHWISE:
            return _depthwise_place(config)
        case LayerKind.PASSTHROUGH:
            return _passthrough_place(config)
        case _:
            assert_never(config.kind)


def words_of(config: LayerConfig, place: OutputLocations, pixels: int) -> Integers:
    """Return the words of the outputs' pixels, [output, pixel]; those of 32 bits come first.

    The word counts from the start of the data memory instance and may lie behind its end.
    """
    step = config.output.step * config.output.passes
    words: Integers = place.word[:, None] + np.arange(pixels) * step
    return words + place.lane[:, None] if config.output.wide else words


def output_bytes(
    config: LayerConfig, place: OutputLocations, pixels: int
) -> tuple[Integers, Integers]:
    """Return the data memory instances and byte offsets of what a layer writes.

    Both are [output, pixel], with 32-bit output [output, pixel, byte]. Offsets may lie behind the
    end of the instance.
    """
    words = words_of(config, place, pixels)
    if config.output.wide:
        offset = 4 * words[..., None] + np.arange(4)
        return np.broadcast_to(place.instance[:, None, None], offset.shape), offset
    return np.broadcast_to(place.instance[:, None], words.shape), 4 * words + place.lane[:, None]


def _convolution_place(config: LayerConfig) -> OutputLocations:
    """Place of the outputs of a convolution: pass by pass, slot by slot."""
    output = config.output
    slot = np.tile(np.arange(output.slots), output.passes)
    number = np.repeat(np.arange(output.passes), output.slots)
    start = config.start
    return OutputLocations(
        (start.instance + slot // _LANES) % INSTANCES,
        slot % _LANES,
        start.word + number * output.step,
    )


def _depthwise_place(config: LayerConfig) -> OutputLocations:
    """Place of the channels of a depth-wise layer, each group with its own write pointer."""
    output, processors = config.output, np.array(config.processors)
    group = processors // PROCESSORS_PER_GROUP
    start = np.array([pointer.instance for pointer in output.pointers])[group]
    word = np.array([pointer.word for pointer in output.pointers])[group]
    if config.broadcast:
        instance, lane = processors // _LANES, processors % _LANES
    else:
        first_lane = max(config.kernels.count // config.input.passes - 1, 0)
        slot = processors - depthwise_bases(config)[group] + first_lane
        instance, lane = (start + slot // _LANES) % INSTANCES, slot % _LANES
    return _repeated(config, instance, lane, word)


def _passthrough_place(config: LayerConfig) -> OutputLocations:
    """Place of the channels of a pass-through layer: the used processors close up."""
    slots, instances, words = [], [], []
    for group in config.groups:
        pointer = config.output.pointers[group]
        units = [p for p in config.processors if p // PROCESSORS_PER_GROUP == group]
        slots += [n + units[0] % _LANES for n in range(len(units))]
        instances += [pointer.instance] * len(units)
        words += [pointer.word] * len(units)
    slot = np.array(slots)
    instance = (np.array(instances) + slot // _LANES) % INSTANCES
    return _repeated(config, instance, slot % _LANES, np.array(words))


def _repeated(
    config: LayerConfig, instance: Integers, lane: Integers, word: Integers
) -> OutputLocations:
    """Repeat the place of each processor for every pass: [pass, processor] in one axis."""
    passes = config.input.passes
    number = np.repeat(np.arange(passes), len(lane))
    return OutputLocations(
        np.tile(instance, passes),
        np.tile(lane, passes),
        np.tile(word, passes) + number * config.output.step,
    )


def unread_slots(config: LayerConfig, following: LayerConfig | None) -> NDArray[np.bool_]:
    """Tell of each slot whether the next layer reads this output, but not its lane."""
    output, start = config.output, config.start
    if following is None or following.input.read_word != start.word:
        return np.zeros(output.slots, np.bool_)
    processors = (start.instance * _LANES + np.arange(output.slots)) % (INSTANCES * _LANES)
    return ~np.isin(processors, following.processors)


def unused_lanes(config: LayerConfig, weights: Integers, following: LayerConfig | None) -> Integers:
    """Count for each slot the unused lanes before it, [output passes, slots]: biases skip them.

    A lane is unused if all its kernels are zero and the next layer, reading this output, does not
    enable its processor.
    Source: docs/emulator.md, "Properties that registers do not contain".
    """
    output = config.output
    empty = ~weights.any(axis=(1, 2, 3)).reshape(output.passes, output.slots)
    unread = unread_slots(config, following)
    gaps = empty & unread
    if output.passes == 1:
        # Lanes before the first output have bias bytes of their own. Their kernels are not loaded;
        # those of another layer may stand there.
        read = np.flatnonzero(~unread)
        gaps[0, : read[0] if len(read) else output.slots] = False
    flat = gaps.reshape(-1)
    counted: Integers = np.cumsum(flat) - flat
    return counted.reshape(empty.shape)
