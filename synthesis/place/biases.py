"""Bias memory: one byte per output channel, in one group's memory for an ordinary layer.

Source: spec/memory.md section 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device.chip import GROUPS
from diagnostics import Diagnostic
from synthesis.network import Layer, Network
from synthesis.place.kernels import start_lane


@dataclass(frozen=True, slots=True)
class BiasRange:
    """The group that adds a layer's bias and the first byte in its memory."""

    group: int
    offset: int


def place_biases(
    network: Network, deduplicate: bool, problems: list[Diagnostic]
) -> tuple[tuple[BiasRange | None, ...], tuple[NDArray[np.uint8], ...]]:
    """Give each bias to the permitted group with the least in it, long ones first.

    Layers bound to one group go first, then by falling length; on MAX78000 flattened layers go
    before all. Biases that are equal share a place.
    """
    memory = np.zeros((GROUPS, network.chip.bias_bytes), np.uint8)
    fill = [0] * GROUPS
    ranges: dict[int, BiasRange] = {}
    known: dict[bytes, int] = {}
    same: dict[int, int] = {}
    waiting: list[tuple[int, Layer, tuple[int, ...]]] = []
    for layer in network.layers:
        if layer.bias is None:
            continue
        source = known.setdefault(layer.bias.tobytes(), layer.index) if deduplicate else layer.index
        if source != layer.index:
            same[layer.index] = source
            continue
        groups = layer.bias_groups or network.groups_used
        waiting.append((_priority(layer, groups, network), layer, groups))
    for _, layer, groups in sorted(waiting, key=lambda entry: entry[0]):
        lead = start_lane(layer) * layer.out_passes
        length = layer.out_channels + lead
        group = min(groups, key=lambda g: fill[g])
        if fill[group] + length > network.chip.bias_bytes:
            problems.append(
                layer.diagnostic(
                    "E403",
                    f"the bias needs {length} bytes, group {group} has "
                    f"{network.chip.bias_bytes - fill[group]} of {network.chip.bias_bytes} left",
                    ("bias_group", "op"),
                    "Remove the bias of large layers (--no-bias) or permit more groups.",
                )
            )
            continue
        assert layer.bias is not None
        begin = fill[group] + lead
        memory[group, begin : begin + layer.out_channels] = layer.bias & 0xFF
        ranges[layer.index] = BiasRange(group, fill[group])
        fill[group] += length
    for index, source in same.items():
        if source in ranges:
            ranges[index] = ranges[source]
    placed = tuple(ranges.get(i) for i in range(len(network.layers)))
    return placed, tuple(memory[g, : fill[g]] for g in range(GROUPS))


def _priority(layer: Layer, groups: tuple[int, ...], network: Network) -> int:
    """Sort key: smaller is placed earlier; equal keys keep the layers' order."""
    if layer.flatten and not network.chip.has_next_layer:
        return -1
    if len(groups) == 1:
        return 0
    return network.chip.bias_bytes - (layer.out_channels + start_lane(layer) * layer.out_passes)
