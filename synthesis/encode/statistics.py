"""Operation counts, memory use and the latency estimate.

Source: spec/numerics.md section 10, spec/registers.md section 7, spec/memory.md section 1.10.
"""

from __future__ import annotations

from collections.abc import Iterator

from device.chip import GROUPS, PROCESSORS_PER_INSTANCE
from synthesis.network import Combination, Layer, Network, Operator, group_slice
from synthesis.options import EncodeOptions
from synthesis.place import KernelRange, Placement
from synthesis.place.kernels import identity
from synthesis.program import LayerStatistics, Operations, Statistics

STARTUP_CYCLES = 1


def statistics(network: Network, placement: Placement, options: EncodeOptions) -> Statistics:
    """Return the cost of a placed network."""
    return Statistics(
        layers=tuple(_layers(network, placement)),
        repeat=options.repeat_layers,
        weight_bytes=weight_bytes(network, options.deduplicate),
        weight_bytes_total=network.chip.kernel_bytes,
        bias_bytes=sum(memory.size for memory in placement.bias_memory),
        bias_bytes_total=GROUPS * network.chip.bias_bytes,
        startup_cycles=STARTUP_CYCLES,
    )


def _layers(network: Network, placement: Placement) -> Iterator[LayerStatistics]:
    for layer in map(network.layer, network.simulated):
        cycles = None
        if network.chip.estimates_latency:
            cycles = layer_cycles(layer, placement.kernels[layer.index])
            if layer.streaming:  # half as much again, rounded up to a tenth
                cycles = (15 * cycles + 9) // 10
        operations = layer_operations(layer)
        yield LayerStatistics(layer.index, layer.name, operations, cycles, layer.streaming)


def weight_bytes(network: Network, deduplicate: bool) -> int:
    """Return the bytes of all weights; weights that layers share count once."""
    total = 0
    seen: set[tuple[object, ...]] = set()
    for layer in network.layers:
        weights = layer.hardware.weights
        if weights is None:
            continue
        key = identity(layer)
        if deduplicate and key in seen:
            continue
        seen.add(key)
        total += weights.size * abs(layer.weight_bits) // 8
    return total


def layer_operations(layer: Layer) -> Operations:
    """Count multiply-accumulates, comparisons, additions and bitwise operations of a layer."""
    rows, columns = layer.pooled_dim
    pooled = layer.in_channels * rows * columns
    outputs = layer.out_channels * layer.out_dim[0] * layer.out_dim[1]
    macc = comp = add = bitwise = 0
    if layer.pooling.active:
        taps = layer.pooling.window[0] * layer.pooling.window[1] * pooled * layer.operands
        add, comp = (taps, 0) if layer.pooling.average else (0, taps)
    if layer.combination:
        count = (layer.operands - 1) * pooled
        if layer.combination in (Combination.ADD, Combination.SUB):
            add += count
        else:
            bitwise += count
    if layer.has_weights:
        taps = layer.kernel[0] * layer.kernel[1]
        macc = layer.flat_channels // layer.groups * taps * outputs
        comp += outputs if layer.activation else 0
    return Operations(macc, comp, add, 0, bitwise)


def _time_slots(layer: Layer) -> int:
    """Steps in which a group delivers the values of a pixel that passes through."""
    most = max(group_slice(layer.processors, g).bit_count() for g in range(GROUPS))
    return -(-most * layer.output_words_per_value // PROCESSORS_PER_INSTANCE)


def layer_cycles(layer: Layer, kernels: KernelRange) -> int:
    """Estimate the clock cycles of a layer."""
    hardware = layer.hardware
    rows, columns = hardware.pooled_dim
    if hardware.operator is Operator.CONVTRANSPOSE2D:
        rows, columns = 2 * rows, 2 * columns
    out_columns = hardware.out_dim[1]
    flat = 1
    if layer.flatten:
        flat = rows * columns
        out_columns = columns
    passes = layer.in_passes
    if not layer.has_weights and layer.out_passes > 1 and layer.pooling.active:
        passes = 2 * passes - 1
    window = layer.pooling.window[0] * layer.pooling.window[1]
    if layer.pool_first:
        pad_cycles = 2 * passes * layer.operands
        data_cycles = passes * layer.operands * (window + 1)
        repeats = 1
    else:
        pad_cycles = 2 * passes
        data_cycles = passes * (layer.operands * window + 1)
        repeats = passes
    if not layer.has_weights:
        return rows * columns * (data_cycles + passes * _time_slots(layer))
    outputs = kernels.count // (layer.in_passes * flat)
    (pad_rows, pad_columns), (tap_rows, tap_columns) = hardware.pad, hardware.kernel
    before = 0
    if not layer.pool_first and (passes > 1 or layer.operands > 1):
        before = (
            (rows + 2 * pad_rows - tap_columns + 1) * pad_columns
            + (columns + 2 * pad_columns - tap_rows + 1) * pad_rows
            - pad_rows * pad_columns
        ) * kernels.first
    edge = 2 * pad_columns * (pad_cycles + 1)
    pad_row = edge + repeats * columns * (pad_cycles + 1)
    data_row = edge + repeats * columns * (data_cycles + 1)
    left, right = pad_columns * (pad_cycles + 1), pad_cycles * pad_columns
    inner, rest = tap_columns - 1 - pad_columns, out_columns - pad_columns
    row = left + repeats * (inner * (data_cycles + 1) + rest * data_cycles) + right
    bottom = left + repeats * (inner * (pad_cycles + 1) + rest * pad_cycles) + right
    single = outputs if outputs == 1 and passes == 1 else 0
    out = passes * out_columns * outputs + single
    above = tap_rows - 1 - pad_rows
    long_flatten = int(layer.flat_passes >= 16)
    return (
        long_flatten
        + before
        + pad_rows * pad_row
        + above * data_row
        + (row + out) * (rows - above)
        + pad_rows * (bottom + out)
    )
