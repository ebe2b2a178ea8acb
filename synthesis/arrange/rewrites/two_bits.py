"""Binary kernels that the chip fills up with zeros get two bits.

A binary weight is -1 or +1: the zeros between the taps of a spread kernel would become +1.
Source: docs/placement.md, "Layers that are added or merged".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from diagnostics import Diagnostic, Severity
from synthesis.mapping.hardware import hardware_for
from synthesis.network import Layer, Network
from synthesis.zeros import BINARY

_BITS = 2


def with_zeros(network: Network) -> tuple[Network, tuple[Diagnostic, ...]]:
    """Return the network in which kernels with zeros have bits for them, with a notice of each.

    Layers that share such weights get the same width; shifts count in bits of the sum and stay.
    """
    filled = {_owner(layer) for layer in network.executed() if _is_filled(layer)}
    layers = tuple(
        replace(x, weight_bits=_BITS) if x.has_weights and _owner(x) in filled else x
        for x in network.layers
    )
    return replace(network, layers=layers), tuple(_notices(network, filled))


def _owner(layer: Layer) -> int:
    """Return the index of the layer whose weights a layer uses."""
    return layer.index if layer.weight_source is None else layer.weight_source


def _is_filled(layer: Layer) -> bool:
    stored = hardware_for(layer, layer.weights).weights
    return layer.weight_bits == BINARY and stored is not None and not np.all(stored)


def _notices(network: Network, filled: set[int]) -> Iterator[Diagnostic]:
    for index in sorted(filled):
        yield network.layer(index).diagnostic(
            "N431",
            "its binary weights are stored with 2 bits: the chip fills the kernel up with zeros",
            ("quantization", "dilation", "op"),
            severity=Severity.NOTICE,
        )
