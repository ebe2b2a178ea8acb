"""What the layers of a description take from the weights file, as a table for people.

Source: docs/writing-a-network.md, "Files of samples and weights".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ai8xtools.reading import tables
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Description, LayerDescription, Source, parse_file
from ai8xtools.synthesis.resolve.tensors import BINARY, LayerTensors, takes_weights
from ai8xtools.synthesis.resolve.weights import layer_tensors
from device import Chip

_COLUMNS = (
    "layer", "in", "out", "shape", "bits", "shift", "min", "max", "bytes", "weights",
    "bias min", "bias max", "bias",
)  # fmt: skip
_NAMES = ("weights", "bias")
_ALIGNMENT = ["left" if column in _NAMES else "right" for column in _COLUMNS]


def checkpoint_table(source: Source, chip: Chip, options: ResolveOptions) -> str:
    """Return the table of a description and its weights file, with a line of totals.

    Layers whose tensors do not fit them are left out; synthesis says why. Raises DiagnosticError
    or CheckpointError where a file cannot be read.
    """
    description = parse_file(source)
    return tensor_table(description, layer_tensors(description, chip, options, []))


def tensor_table(description: Description, tensors: Mapping[int, LayerTensors]) -> str:
    """Return one row for each layer with tensors of its own, and a line of totals."""
    own = [
        (layer, tensors[layer.index])
        for layer in description.layers
        if takes_weights(layer) and layer.index in tensors
    ]
    rows = [_row(layer, one) for layer, one in own]
    weights = sum(one.weights.size for _, one in own)
    kernel_bytes = sum(_kernel_bytes(one) for _, one in own)
    biases = sum(one.bias.size for _, one in own if one.bias is not None)
    table = tables.table(rows, _COLUMNS, colalign=_ALIGNMENT)
    return (
        f"{table}\n{len(own)} layers, {weights:,} weights in {kernel_bytes:,} bytes, "
        f"{biases:,} bias bytes"
    )


def _row(layer: LayerDescription, tensors: LayerTensors) -> list[Any]:
    out_channels, in_channels, rows, columns = tensors.weights.shape
    bias = tensors.bias
    return [
        f"{layer.index} ({layer.name})" if layer.name else layer.index,
        in_channels * layer.get("groups", 1),
        out_channels,
        f"{out_channels}x{in_channels}x{rows}x{columns}",
        "binary" if tensors.bits == BINARY else tensors.bits,
        tensors.shift,
        tensors.weights.min(),
        tensors.weights.max(),
        _kernel_bytes(tensors),
        tensors.weight_name,
        *(("", "", "") if bias is None else (bias.min(), bias.max(), tensors.bias_name)),
    ]


def _kernel_bytes(tensors: LayerTensors) -> int:
    """Bytes of the weights, packed."""
    return (tensors.weights.size * abs(tensors.bits) + 7) // 8
