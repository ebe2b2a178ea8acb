"""The weights of a network as a table, for the console.

Source: spec/generated-project.md section 8.3.
"""

from __future__ import annotations

from collections.abc import Iterator

from synthesis.network import Layer, Network

_HEADINGS = ("layer", "name", "operator", "weights", "bits", "shift", "smallest", "largest", "bias")
_LEFT = 4
"""Columns of text; the rest are numbers."""


def weight_table(network: Network) -> Iterator[str]:
    """Yield the lines of a table of all layers that have weights, as the network uses them."""
    rows = [_HEADINGS, *(_row(layer) for layer in network.layers if layer.weights is not None)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if i < _LEFT else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _row(layer: Layer) -> tuple[str, ...]:
    assert layer.weights is not None
    return (
        str(layer.index),
        layer.name or "",
        layer.operator.value,
        "x".join(map(str, layer.weights.shape)),
        str(abs(layer.weight_bits)),
        str(layer.shift),
        str(layer.weights.min()),
        str(layer.weights.max()),
        "-" if layer.bias is None else str(len(layer.bias)),
    )
