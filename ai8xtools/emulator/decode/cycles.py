"""How long a layer takes, estimated from the registers that were executed.

The formula is the vendor's for MAX78000; MAX78002 is faster where it reads ahead. Beside it stand
counts of what the layer did: words that every processor fetches one after the other, and kernels
that are multiplied one after the other. Together they are a lower bound for any schedule that does
not overlap them. Source: docs/hardware/execution.md, "Latency".
"""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.emulator.decode.config import LayerConfig, Pair
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen
from device.chip import KERNEL_COLUMN_BYTES

STARTUP_CYCLES = 1


@frozen
class Cycles:
    """Of one layer: the estimate, words fetched and kernel steps; streams are `uncertain`."""

    layer: int
    estimate: int
    fetches: int
    steps: int
    uncertain: bool


def network_cycles(memory: Memory, layers: Sequence[LayerConfig]) -> list[Cycles]:
    """Estimate the cycles of executed layers whose registers are in `memory`."""
    # The start layer has a stream start with every FIFO, but a ring only if it streams
    streams = [bool(config.stream_start) for config in layers]
    streams[:1] = [bool(layers[0].ring_words)]
    return [_layer(memory, *pair) for pair in zip(layers, streams, strict=True)]


def _layer(memory: Memory, config: LayerConfig, streams: bool) -> Cycles:
    inputs = config.input
    if not config.kind.has_kernels:
        total = _passthrough(config, memory.register(config.layer, "ONED")["time_slots"] + 1)
    else:
        long = memory.register(config.layer, "POST")["flatten"]
        total = int(bool(long)) + _convolution(config)
    window = inputs.pool[0] * inputs.pool[1] if inputs.pooling else 1
    rows, columns = config.output_size
    steps = rows * columns * inputs.passes * _outputs(config)
    return Cycles(
        layer=config.layer,
        estimate=(15 * total + 9) // 10 if streams else total,
        fetches=inputs.pooled[0] * inputs.pooled[1] * inputs.passes * inputs.operands * window,
        steps=steps if config.kind.has_kernels else 0,
        uncertain=streams,
    )


def _outputs(config: LayerConfig) -> int:
    """Kernels that a processor multiplies for one pass of one pixel."""
    return config.kernels.count // config.input.passes


@frozen
class _Pace:
    """Cycles of a pixel, and of one of the border; how often the pixels of a row are read.

    `pools_last`: the operands are combined first.
    """

    pixel: int
    border: int
    repeats: int
    pools_last: bool


def _pace(config: LayerConfig, passes: int) -> _Pace:
    """Return the pace of a layer: windows are pooled one by one, with a step after each."""
    inputs = config.input
    window = inputs.pool[0] * inputs.pool[1]
    if inputs.operands == 1 or not inputs.pooling or inputs.pool_first:
        windows = passes * inputs.operands
        return _Pace(windows * (window + 1), 2 * windows, 1, False)
    # Combined first, the values under a window are those of all operands
    return _Pace(passes * (inputs.operands * window + 1), 2 * passes, passes, True)


def _passthrough(config: LayerConfig, slots: int) -> int:
    inputs = config.input
    passes = inputs.passes
    if passes > 1 and inputs.pooling:
        passes += passes - 1
    rows, columns = inputs.pooled
    return rows * columns * (_pace(config, passes).pixel + passes * slots)


def _convolution(config: LayerConfig) -> int:
    """Rows that fill the line buffers, then rows that end with a row of outputs."""
    inputs, (tap_rows, tap_columns) = config.input, config.kernels.shape
    stretch = 2 if config.transposed else 1
    size = stretch * inputs.pooled[0], stretch * inputs.pooled[1]
    top, side = inputs.pad
    pace = _pace(config, inputs.passes)
    out_columns = config.output_size[1]
    kernels = inputs.passes * _outputs(config)
    outputs = out_columns * kernels + (kernels == 1)
    early = tap_columns - 1 - side  # pixels before the first output of a row

    def filling(cost: int) -> int:
        """A row of such pixels, each with a step after it, and the border at both sides."""
        return pace.repeats * size[1] * (cost + 1) + 2 * side * (pace.border + 1)

    def finishing(cost: int) -> int:
        """A row of such pixels in which outputs become complete, and these."""
        pixels = early + out_columns - side
        return side * (2 * pace.border + 1) + pace.repeats * (pixels * cost + early) + outputs

    ahead = tap_rows - 1 - top
    return (
        _fetched_again(config, size, pace)
        + top * (filling(pace.border) + finishing(pace.border))
        + ahead * filling(pace.pixel)
        + (size[0] - ahead) * finishing(pace.pixel)
    )


def _fetched_again(config: LayerConfig, size: Pair, pace: _Pace) -> int:
    """Cycles that the kernels in front of the layer's own cost, if operands are pooled last."""
    if not pace.pools_last:
        return 0
    (top, side), (tap_rows, tap_columns) = config.input.pad, config.kernels.shape
    high, wide = size[0] + 2 * top - tap_columns + 1, size[1] + 2 * side - tap_rows + 1
    at_the_border = high * wide - (high - top) * (wide - side)
    return at_the_border * (config.kernels.start // KERNEL_COLUMN_BYTES)
