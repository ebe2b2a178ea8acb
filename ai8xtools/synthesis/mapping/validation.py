"""Invariants of a complete layout.

Source: docs/network-description.md, "What follows from other keys"; docs/hardware/execution.md,
"Quantities of a layer".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ai8xtools.synthesis.invariants import InvariantError, Invariants

if TYPE_CHECKING:  # the mapped network asks for its validation
    from ai8xtools.synthesis.mapping.mapped import MappedLayer, MappedNetwork

_of_layer: Invariants[[MappedLayer, MappedNetwork]] = Invariants()

_PER_PASS = 64


def violations(network: MappedNetwork) -> Iterator[str]:
    """Yield everything in a layout that contradicts the network."""
    for layer in network.layers:
        yield from (f"{layer}: {text}" for text in _of_layer.violations(layer, network))


def validate_mapped(network: MappedNetwork) -> None:
    """Raise InvariantError with everything in a layout that contradicts the network."""
    contradictions = list(violations(network))
    if contradictions:
        raise InvariantError("\n".join(contradictions))


@_of_layer
def processors_are_as_many_as_channels(layer: MappedLayer, network: MappedNetwork) -> Iterator[str]:
    """Channels are split into passes of equal shares, one processor for each of a share."""
    inputs = network.input_processors if layer is network.first else layer.processors
    for what, channels, mask in (
        ("in", layer.in_channels, inputs),
        ("out", layer.out_channels, layer.output_processors),
    ):
        passes = -(-channels // _PER_PASS)
        share = -(-channels // max(passes, 1))
        if passes > 1:
            share = min(-(-share // 4) * 4, _PER_PASS)
        if channels < 1 or mask.bit_count() != share or mask >> _PER_PASS:
            yield f"{channels} {what}put channels on the processors 0x{mask:x}, expected {share}"


@_of_layer
def offsets_are_not_negative(layer: MappedLayer, _: MappedNetwork) -> Iterator[str]:
    """Data stands behind the beginning of an instance."""
    if min(layer.in_offset, layer.out_offset, layer.write_gap, layer.read_gap) < 0:
        yield f"reads from {layer.in_offset}, writes to {layer.out_offset}"


@_of_layer
def hardware_has_the_same_weights(layer: MappedLayer, _: MappedNetwork) -> Iterator[str]:
    """The hardware's kernels hold the same numbers, only zeros and the order may differ."""
    stored, expected = layer.hardware.weights, layer.weights
    if (stored is None) != (expected is None):
        yield f"the hardware has {'no' if stored is None else 'surplus'} weights"
    elif stored is not None and expected is not None:
        same = np.array_equal(np.sort(stored[stored != 0]), np.sort(expected[expected != 0]))
        if not same or stored.shape[:2] != expected.shape[:2]:
            yield "the hardware has other weights"
        if stored.shape[2:] != layer.hardware.kernel:
            yield f"hardware weights {list(stored.shape)} for a {layer.hardware.kernel} kernel"
