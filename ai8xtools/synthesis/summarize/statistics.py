"""Operation counts, memory use and the latency estimate.

Source: docs/hardware/arithmetic.md, "Operation counts"; docs/placement.md, "Memory use in numbers".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import Combination
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import Placement
from ai8xtools.synthesis.place.kernels import identity
from ai8xtools.synthesis.summarize.latency import latency_terms, layer_cycles
from ai8xtools.synthesis.summary import LayerStatistics, Operations, Statistics
from device.chip import GROUPS

STARTUP_CYCLES = 1


def statistics(network: MappedNetwork, placement: Placement, options: EncodeOptions) -> Statistics:
    """Return the cost of a placed network."""
    return Statistics(
        layers=tuple(_layers(network, placement, options)),
        repeat=options.place.repeat_layers,
        weight_bytes=weight_bytes(network, options.place.deduplicate),
        weight_bytes_total=network.chip.kernel_bytes,
        bias_bytes=sum(memory.size for memory in placement.bias_memory),
        bias_bytes_total=GROUPS * network.chip.bias_bytes,
        startup_cycles=STARTUP_CYCLES,
    )


def _layers(
    network: MappedNetwork, placement: Placement, options: EncodeOptions
) -> Iterator[LayerStatistics]:
    for layer in map(network.layer, network.simulated):
        products = None
        terms = latency_terms(layer, placement.kernels[layer.index])
        cycles = layer_cycles(layer, terms)
        is_known = network.chip.estimates_latency
        if options.telling.cross_check:
            from ai8xtools.synthesis.summarize.products import needed_products  # only for debugging

            products = needed_products(layer)
        yield LayerStatistics(
            layer.index,
            layer.name,
            layer_operations(layer),
            cycles if is_known else None,
            layer.streaming,
            terms if is_known and options.telling.latency_terms else None,
            products,
            layer.place,
            cycles,
            layer.processors.bit_count(),
        )


def weight_bytes(network: MappedNetwork, deduplicate: bool) -> int:
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


def layer_operations(layer: MappedLayer) -> Operations:
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
        match layer.combination:
            case Combination.ADD | Combination.SUB:
                add += count
            case Combination.OR | Combination.XOR:
                bitwise += count
            case _:
                assert_never(layer.combination)
    if layer.has_weights:
        taps = layer.kernel[0] * layer.kernel[1]
        macc = layer.flat_channels // layer.groups * taps * outputs
        comp += outputs if layer.activation else 0
    return Operations(macc, comp, add, 0, bitwise)


def wide_share(network: MappedNetwork) -> float:
    """Return which part of the bytes of all weights belongs to weights of 8 bits."""
    sizes = [
        (layer.weight_bits == 8, layer.hardware.weights.size * abs(layer.weight_bits))
        for layer in network.layers
        if layer.hardware.weights is not None
    ]
    return sum(size for wide, size in sizes if wide) / max(sum(size for _, size in sizes), 1)
