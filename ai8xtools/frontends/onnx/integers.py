"""Which tensors of a checkpoint are the weights of a graph: those of the same name or values.

Exporters give the weights of a convolution that they fuse with its normalization names of their
own; its node is then named after the module. Source: docs/checkpoints.md, "ONNX graphs".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.frontends.accelerator.lowering import Parts
from ai8xtools.frontends.layers import DescribedLayer

Array = NDArray[Any]
_SUFFIX = ".op.weight"
_ALIKE = 0.9
"""Cosine of the angle between a layer's weights and the integers that were made of them."""


def names_of(
    layers: Sequence[DescribedLayer], tensors: Mapping[int, Parts], state: Mapping[str, Array]
) -> dict[int, str]:
    """Return what a checkpoint with the tensors `state` calls layers of a graph, by layer.

    Layers that it does not have are left out.
    """
    theirs = {
        name.removesuffix(_SUFFIX): value for name, value in state.items() if name.endswith(_SUFFIX)
    }
    names: dict[int, str] = {}
    for index, own in tensors.items():
        layer = layers[index]
        named = (str(layer.weights), module_path(layer.node))
        alike = {
            n: v
            for n, v in theirs.items()
            if v.size == own.weights.size and (not own.constant or is_of_ones(state, n))
        }
        name = next((name for name in named if name in alike), None)
        names |= {} if name is None else {index: name}
        if name is None and alike:
            pairs = ((n, own.weights, value) for n, value in alike.items())
            if own.adds:  # the factors of operands are the checkpoint's
                signs = np.sign(own.weights)
                pairs = ((n, np.maximum(signs * value.reshape(signs.shape), 0), abs(value))
                         for n, _, value in pairs)  # fmt: skip
            scores = {n: _likeness(mine, value) for n, mine, value in pairs}
            best = max(scores, key=lambda name: scores[name])
            names |= {index: best} if scores[best] >= _ALIKE else {}
    return names


def is_of_ones(state: Mapping[str, Array], name: str) -> bool:
    """Return whether the kernels of a layer have one value beside zeros, and no bias."""
    weights, bias = state[f"{name}.op.weight"], state.get(f"{name}.op.bias")
    return len(np.unique(weights[weights != 0])) == 1 and (bias is None or not bias.any())


def module_path(node: str) -> str:
    """Return the path of the module that an exporter named a node after: of /a/a.0/conv/Conv it is
    a.0.conv.
    """
    path: list[str] = []
    for part in node.strip("/").split("/")[:-1]:
        if path and part.startswith(f"{path[-1]}."):
            path.pop()
        path.append(part)
    return ".".join(path)


def _likeness(a: Array, b: Array) -> float:
    """Return the cosine of the angle between two tensors of as many values."""
    a, b = a.ravel().astype(np.float64), b.ravel().astype(np.float64)
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths else 0.0
