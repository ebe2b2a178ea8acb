"""Nodes that compute only from constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ai8xtools.checkpoint.onnx_tensors import MAX_ELEMENTS
from ai8xtools.frontends.graph.nodes import Node, constant
from ai8xtools.frontends.graph.operators import Array, Shape
from ai8xtools.frontends.onnx.calls import Call, UnknownError, handles

TYPES: dict[int, Any] = {
    1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64,
    9: np.bool_, 10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64,
}  # fmt: skip
"""Types of elements by their numbers in onnx.proto; bfloat16 has none in numpy."""


def _filled(call: Call, values: Sequence[Array]) -> Array:
    filling = np.asarray(call.get("value", np.zeros(1, np.float32))).ravel()
    return np.full(_bounded(tuple(map(int, values[0]))), filling[0])


def _bounded(shape: Shape) -> Shape:
    if math.prod(shape) > MAX_ELEMENTS:
        raise UnknownError(f"it makes {math.prod(shape)} values of constants")
    return shape


def _taken(call: Call, values: Sequence[Array]) -> Array:
    _bounded((values[0].size, values[1].size))
    return np.take(values[0], values[1].astype(int), call.get("axis", 0))


def _expanded(_call: Call, values: Sequence[Array]) -> Array:
    shape = np.broadcast_shapes(values[0].shape, tuple(map(int, values[1])))
    return np.broadcast_to(values[0], _bounded(shape))


def _dequantized(call: Call, values: Sequence[Array]) -> Array:
    axes = [1] * values[0].ndim
    if values[1].size > 1:
        axes[call.get("axis", 1)] = -1
    zero = values[2].astype(np.float64).reshape(axes) if len(values) > 2 else 0.0
    return (values[0].astype(np.float64) - zero) * values[1].astype(np.float64).reshape(axes)


CONSTANTS: Mapping[str, Callable[[Call, Sequence[Array]], Array]] = {
    "Cast": lambda call, values: values[0].astype(TYPES[call.get("to", 1)]),
    "ConstantOfShape": _filled,
    "Gather": _taken,
    "Expand": _expanded,
    "DequantizeLinear": _dequantized,
    "Range": lambda _call, values: np.arange(*(one.item() for one in values)),
    "Where": lambda _call, values: np.where(*values),
    "Equal": lambda _call, values: np.equal(*values),
    "Not": lambda _call, values: np.logical_not(*values),
    "Size": lambda _call, values: np.asarray(values[0].size),
}


@handles("Constant")
def _constant(call: Call) -> Node:
    names = ("value", "value_float", "value_int", "value_ints", "value_floats")
    value = next((call.get(name) for name in names if call.get(name) is not None), None)
    if value is None:
        raise UnknownError("its value is not known here")
    return constant(np.asarray(value), call.node.name)


@handles("Shape")
def _shape_of(call: Call) -> Node:
    sizes = call.data.shape[slice(call.get("start", 0), call.get("end"))]
    return constant(np.asarray(sizes, np.int64), call.node.name)
