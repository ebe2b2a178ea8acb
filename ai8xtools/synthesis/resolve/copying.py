"""Layers that copy a map to another place, and for which a trained network has no weights.

Descriptions for the vendor's tool copy a skipped map by a 1x1 convolution whose weights are an
identity; a step after quantization adds these to the checkpoint ("fake passthrough").
Source: docs/coming-from-the-vendors-tools.md, "Layers that copy".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.parse import LayerDescription
from ai8xtools.synthesis.parse.rules import kernel, operation
from ai8xtools.synthesis.resolve.tensors import DEFAULT_BITS, LayerTensors

_MOST_CHOICES = 1000
_SHIFT = 1
_FRACTION_BITS = 7  # of the weights: what is shifted by _SHIFT is one half

Weights = NDArray[np.int8]


def copying_layers(
    layers: Sequence[LayerDescription], shapes: Sequence[tuple[int, ...]]
) -> frozenset[int]:
    """Return the indices of the layers that copy, if weights for so many layers are missing.

    `shapes` are those of the file's weights, in its order. Empty if the others do not fit the file,
    or if several choices of layers would.
    """
    missing = len(layers) - len(shapes)
    candidates = [layer for layer in layers if _may_copy(layer)]
    if not 0 < missing <= len(candidates) or any("weights" in layer for layer in layers):
        return frozenset()
    choices = (
        frozenset(layer.index for layer in chosen) for chosen in combinations(candidates, missing)
    )
    fitting = [choice for choice in islice(choices, _MOST_CHOICES) if _fit(layers, choice, shapes)]
    return fitting[0] if len(fitting) == 1 else frozenset()


def added_copies(
    layers: Sequence[LayerDescription], weights: Sequence[NDArray[Any]]
) -> frozenset[int]:
    """Return the positions of weights that only copy, if the layers fit those of a file without
    them, and not with them.
    """
    copies = frozenset(number for number, values in enumerate(weights) if _is_identity(values))
    shapes = [values.shape for values in weights]
    rest = [shape for number, shape in enumerate(shapes) if number not in copies]
    if len(rest) != len(layers) or any("weights" in layer for layer in layers):
        return frozenset()
    only_rest = _fit(layers, frozenset(), rest) and not _fit(layers, frozenset(), shapes)
    return copies if only_rest else frozenset()


def _is_identity(values: NDArray[Any]) -> bool:
    """Whether weights of 2, 4 or 8 bits are those of `identity`."""
    if values.ndim != 4 or values.shape != (len(values), len(values), 1, 1) or len(values) < 2:
        return False
    scale = values[0, 0, 0, 0]
    return scale in (1, 4, 64) and bool((values[:, :, 0, 0] == scale * np.eye(len(values))).all())


def identity(layer: LayerDescription) -> LayerTensors:
    """Return weights with which a layer that copies delivers what it reads."""
    bits = layer.get("quantization", DEFAULT_BITS)
    channels = layer.get("processors").bit_count()
    weights: Weights = np.eye(channels, dtype=np.int8) * np.int8(2 ** (bits - 1 - _SHIFT))
    return LayerTensors(weights[:, :, None, None], None, bits, _SHIFT)


def _may_copy(layer: LayerDescription) -> bool:
    """Whether a layer reads another one than the last, and can be a copy of it."""
    operator, combination = operation(layer)
    return (
        operator.two_dimensional
        and not operator.transposed
        and combination is None
        and kernel(layer) == (1, 1)
        and layer.get("activate") is None
        and len(layer.get("in_sequences", ())) == 1
        and layer.get("groups", 1) == 1
        and layer.get("quantization", DEFAULT_BITS) > 1
        and not any(key in layer for key in ("max_pool", "avg_pool", "output_shift", "flatten"))
        and not any(layer.get("pad", (0,)))
        and "processors" in layer
        and "output_processors" in layer
        and layer.get("processors").bit_count() == layer.get("output_processors").bit_count()
    )


def _fit(
    layers: Sequence[LayerDescription],
    copying: frozenset[int],
    shapes: Sequence[tuple[int, ...]],
) -> bool:
    """Whether the file's weights have kernels and channels of the layers that do not copy."""
    others = [layer for layer in layers if layer.index not in copying]
    return all(_fits(layer, shape) for layer, shape in zip(others, shapes, strict=False))


def _fits(layer: LayerDescription, shape: tuple[int, ...]) -> bool:
    operator, _ = operation(layer)
    rows, columns = kernel(layer)
    if (*shape, 1, 1)[2:4] != (rows, columns) or len(shape) < 2:
        return False
    inputs, outputs = (shape[0], shape[1]) if operator.transposed else (shape[1], shape[0])
    return layer.get("groups", 1) > 1 or (
        _holds(layer, "processors", inputs) and _holds(layer, "output_processors", outputs)
    )


def _holds(layer: LayerDescription, key: str, channels: int) -> bool:
    """Whether processors can hold that many channels, each the same number of them."""
    return key not in layer or channels % layer.get(key).bit_count() == 0
