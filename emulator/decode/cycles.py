"""How long a layer takes, estimated from the registers that were executed.

The formula is the vendor's for MAX78000; MAX78002 is faster where it reads ahead. Beside it stand
counts of what the layer did: words that every processor fetches one after the other, and kernels
that are multiplied one after the other. Both together are what no schedule can avoid without
overlapping them.
Source: docs/hardware/execution.md, "Latency".
"""

from __future__ import annotations

from collections.abc import Sequence

from device.chip import KERNEL_COLUMN_BYTES
from emulator.decode.config import LayerConfig
from emulator.state.memory import Memory
from values import frozen

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


def _pools_first(config: LayerConfig) -> bool:
    """Tell whether operands are combined behind the pooling, or there is nothing to choose."""
    inputs = config.input
    return inputs.operands == 1 or not inputs.pooling or inputs.pool_first


def _window(config: LayerConfig) -> int:
    pool = config.input.pool
    return pool[0] * pool[1]


def _passthrough(config: LayerConfig, slots: int) -> int:
    inputs = config.input
    passes = inputs.passes
    if passes > 1 and inputs.pooling:
        passes = 2 * passes - 1
    data, _, _ = _pixel(config, passes)
    return inputs.pooled[0] * inputs.pooled[1] * (data + passes * slots)


def _pixel(config: LayerConfig, passes: int) -> tuple[int, int, int]:
    """Return the cycles of a pixel and of a padding pixel, and how often a row is repeated."""
    inputs = config.input
    if _pools_first(config):
        pad = 2 * passes * inputs.operands
        return passes * inputs.operands * (_window(config) + 1), pad, 1
    return passes * (inputs.operands * _window(config) + 1), 2 * passes, passes


def _convolution(config: LayerConfig) -> int:
    inputs, (tap_rows, tap_columns) = config.input, config.kernels.shape
    stretch = 2 if config.transposed else 1
    rows, columns = stretch * inputs.pooled[0], stretch * inputs.pooled[1]
    pad_rows, pad_columns = inputs.pad
    passes, outputs = inputs.passes, _outputs(config)
    data, pad, repeats = _pixel(config, passes)
    out_columns = config.output_size[1]
    edge = 2 * pad_columns * (pad + 1)
    left, right = pad_columns * (pad + 1), pad_columns * pad
    inner, rest = tap_columns - 1 - pad_columns, out_columns - pad_columns
    row = left + repeats * (inner * (data + 1) + rest * data) + right
    bottom = left + repeats * (inner * (pad + 1) + rest * pad) + right
    single = outputs if outputs == 1 and passes == 1 else 0
    out = passes * out_columns * outputs + single
    above = tap_rows - 1 - pad_rows
    before = 0
    if not _pools_first(config) and (passes > 1 or inputs.operands > 1):
        before = (
            (rows + 2 * pad_rows - tap_columns + 1) * pad_columns
            + (columns + 2 * pad_columns - tap_rows + 1) * pad_rows
            - pad_rows * pad_columns
        ) * (config.kernels.start // KERNEL_COLUMN_BYTES)
    return (
        before
        + pad_rows * (edge + repeats * columns * (pad + 1))
        + above * (edge + repeats * columns * (data + 1))
        + (row + out) * (rows - above)
        + pad_rows * (bottom + out)
    )
