"""No sum of a low-bit network can leave 32 bits: proven from the weights before C is written."""

from __future__ import annotations

import numpy as np

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.software.lowbit.engine import integers
from ai8xtools.software.lowbit.network import Dense, DepthwiseChain, LowBitNetwork, Windows

_LIMIT = 2**31 - 1


def prove_sums(network: LowBitNetwork) -> None:
    """Raise DiagnosticError (E901) if a layer has a sum, or a sum of one code, beyond 32 bits."""
    inputs = 128
    stem = network.stem
    if isinstance(stem, DepthwiseChain):
        _prove_chain(stem)
        inputs = network.rule.limit
    elif isinstance(stem, Windows):
        for row in stem.layers:
            for layer in row:
                _prove(layer, inputs, network.fine)
            inputs = network.window_rule.limit
        inputs = network.rule.limit
    for layer in network.layers:
        _prove(layer, inputs, network.fine)
        inputs = network.rule.limit


def _prove(layer: Dense, greatest: int, fine: bool) -> None:
    """Bound the final sum, and on the way each code's activations times its largest factor."""
    weights = np.abs(integers(layer, fine))
    most = int(weights.sum(axis=1).max()) * greatest
    _refuse_beyond(f"L{layer.identifier}", max(most, 16 * layer.inputs * greatest))


def _prove_chain(chain: DepthwiseChain) -> None:
    most = 128
    for number, kernels in zip(chain.identifiers, chain.kernels, strict=True):
        most *= int(np.abs(kernels.astype(np.int64)).sum(axis=(1, 2)).max())
        _refuse_beyond(f"L{number}", most)
        most >>= chain.shift


def first_plane_bits(chain: DepthwiseChain) -> int:
    """Return the bits, with sign, that the results of the first convolution take."""
    most = 128 * int(np.abs(chain.kernels[0].astype(np.int64)).sum(axis=(1, 2)).max())
    return (most >> chain.shift).bit_length() + 1


def _refuse_beyond(name: str, most: int) -> None:
    if most > _LIMIT:
        raise DiagnosticError(
            Diagnostic(
                "E901",
                f"{name}: a sum can reach {most}; accumulators hold {_LIMIT}",
                remedy="use narrower weights or fewer inputs in this layer",
            )
        )
