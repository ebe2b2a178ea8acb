"""Weights get more bits where the chip or the vendor's order of kernels has no right place for few.

A binary weight is -1 or +1: zeros between the taps of a spread kernel would become +1. Narrow
weights of passes that cannot be filled would stand out of step.
Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.check.misplaced import leaves_out_kernels
from ai8xtools.synthesis.mapping.hardware import hardware_for
from ai8xtools.synthesis.network import Layer, Network
from ai8xtools.synthesis.zeros import BINARY


def with_wider_weights(network: Network) -> tuple[Network, tuple[Diagnostic, ...]]:
    """Return the network in which all weights have a right place, with a notice of each change.

    Layers that share weights get the same width; shifts count in bits of the sum and stay.
    """
    widths: dict[int, int] = {}
    for layer in network.executed():
        bits = _bits_needed(layer)
        if bits != layer.weight_bits:
            widths[_owner(layer)] = max(bits, widths.get(_owner(layer), bits))
    layers = tuple(
        replace(x, weight_bits=widths[_owner(x)]) if x.has_weights and _owner(x) in widths else x
        for x in network.layers
    )
    notices = tuple(
        network.layer(index).diagnostic(
            "N431",
            f"the weights are stored with {bits} bits: fewer have no right place here",
            ("quantization", "dilation", "op"),
            severity=Severity.NOTICE,
        )
        for index, bits in sorted(widths.items())
    )
    return replace(network, layers=layers), notices


def _owner(layer: Layer) -> int:
    """Return the index of the layer whose weights a layer uses."""
    return layer.index if layer.weight_source is None else layer.weight_source


def _bits_needed(layer: Layer) -> int:
    bits = layer.weight_bits
    stored = hardware_for(layer, layer.weights).weights
    if bits == BINARY and stored is not None and not np.all(stored):
        bits = 2
    return 8 if leaves_out_kernels(replace(layer, weight_bits=bits)) else bits
