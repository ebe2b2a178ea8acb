"""What a graph computes from constants alone: shapes of views, powers of two, scaled weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint.onnx_graph import OnnxNode
from ai8xtools.checkpoint.onnx_tensors import MAX_ELEMENTS

Value = NDArray[Any]
_MOST = 1 << 20
_TYPES = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64,
    9: np.bool_, 10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64,
}  # fmt: skip
"""Types of elements by their numbers in onnx.proto; bfloat16 has none in numpy."""


def computed(node: OnnxNode, values: Sequence[Value]) -> Value | None:
    """Return the value of a node from those of its inputs, None for operators not known here.

    So is one whose result would have more than `MAX_ELEMENTS` elements.
    """
    a = node.attributes
    if _elements(node, values) > MAX_ELEMENTS:
        return None
    match node.operator:
        case "Constant":
            found = a.get("value", a.get("value_float", a.get("value_int", a.get("value_ints"))))
            return None if found is None else np.asarray(found)
        case "Identity":
            return values[0]
        case "Pow":
            return np.power(values[0], values[1])
        case "Mul":
            return values[0] * values[1]
        case "Div":
            whole = values[0].dtype.kind in "iu" and values[1].dtype.kind in "iu"
            return values[0] // values[1] if whole else values[0] / values[1]
        case "Add":
            return values[0] + values[1]
        case "Sub":
            return values[0] - values[1]
        case "Mod":
            return np.mod(values[0], values[1])
        case "Neg":
            return -values[0]
        case "Floor":
            return np.floor(values[0])
        case "Round":
            return np.round(values[0])
        case "Clip":
            low, high = bounds(node, [None, *values[1:]])
            return np.clip(values[0], low, high)
        case "Cast":
            return values[0].astype(_TYPES[a.get("to", 1)])
        case "Reshape":
            return values[0].reshape(tuple(map(int, values[1])))
        case "Transpose":
            return values[0].transpose(a.get("perm"))
        case "Unsqueeze" | "Squeeze":
            return _squeezed(node, values)
        case "Concat":
            return np.concatenate([np.atleast_1d(v) for v in values], a.get("axis", 0))
        case "Gather":
            return np.take(values[0], values[1].astype(int), a.get("axis", 0))
        case "ConstantOfShape":
            filling = np.asarray(a.get("value", np.zeros(1, np.float32))).ravel()
            if math.prod(map(int, values[0])) <= _MOST:
                return np.full(tuple(map(int, values[0])), filling[0])
        case "Slice" if len(values) >= 3:
            return _sliced(values)
    return None


def _sliced(values: Sequence[Value]) -> Value:
    data, starts, ends = values[:3]
    axes = values[3] if len(values) > 3 else np.arange(len(starts))
    steps = values[4] if len(values) > 4 else np.ones(len(starts), np.int64)
    cut: list[slice] = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        stop = None if step < 0 and end < -data.shape[axis] else int(end)
        cut[int(axis)] = slice(int(start), stop, int(step))
    return data[tuple(cut)]


def _elements(node: OnnxNode, values: Sequence[Value]) -> int:
    """Return how many elements a result has at most."""
    sizes = [value.size for value in values]
    if node.operator == "Concat":
        return sum(sizes)
    if node.operator == "Gather":
        return math.prod(sizes)
    if node.operator in ("Pow", "Mul", "Div", "Add", "Sub", "Mod", "Clip"):
        return math.prod(np.broadcast_shapes(*(value.shape for value in values)))
    return max(sizes, default=0)


def _squeezed(node: OnnxNode, values: Sequence[Value]) -> Value:
    axes = values[1] if len(values) > 1 else node.attributes.get("axes")
    if node.operator == "Squeeze":
        return np.squeeze(values[0], None if axes is None else tuple(map(int, axes)))
    return np.expand_dims(values[0], tuple(map(int, axes if axes is not None else (0,))))


def bounds(node: OnnxNode, values: Sequence[Value | None]) -> tuple[float, float]:
    """Return what a Clip limits its data to; `values` are those of its inputs."""
    given = [*values[1:], None, None][:2]
    low = node.attributes.get("min", -np.inf) if given[0] is None else float(given[0])
    high = node.attributes.get("max", np.inf) if given[1] is None else float(given[1])
    return float(low), float(high)
