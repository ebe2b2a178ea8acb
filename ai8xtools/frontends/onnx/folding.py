"""Nodes that compute nothing of their own: they become part of the layer in front of them."""

from __future__ import annotations

import math
from dataclasses import replace

from ai8xtools.frontends.graph.nodes import Node
from ai8xtools.frontends.graph.operators import Array, Clip, Function
from ai8xtools.frontends.graph.passes import along
from ai8xtools.frontends.layers import DescribedLayer, Refusal
from ai8xtools.frontends.onnx.values import Tensors, Value
from ai8xtools.values import frozen

_WIDE = 2.0**20
"""Results that are limited to more than this have 32 bits."""


@frozen
class Before:
    """The layer in front of a node, with its tensors; what follows changes both."""

    layer: DescribedLayer
    tensors: Tensors


def clipped(node: Node, value: Value, clip: Clip, before: Before | None) -> Value | Refusal:
    """Return a result limited as the chip does by itself."""
    low, high = clip.low, clip.high
    wide = before is not None and high > _WIDE and (low < -_WIDE or low == 0.0)
    if not wide and (high not in (127.0, 127 / 128) or low not in (-128.0, -1.0, 0.0)):
        return Refusal(
            node.place, f"it limits data to {low:g}..{high:g}, the chip to -128..127",
            "Use Relu: the chip limits results by itself.",
        )  # fmt: skip
    if low == 0.0 and not value.positive:
        if before is None or before.layer.keys["activate"] != "None":
            return Refusal(node.place, f"it limits to {low:g}..{high:g}", "Use Relu.")
        before.layer.keys["activate"] = "ReLU"
        value = replace(value, positive=True)
    if before is not None:
        before.tensors.rounded = True
        before.layer.keys |= {"output_width": 32} if wide else {}
    return value


def scaled(
    node: Node, function: Function, value: Value, constant: Array, before: Before
) -> Value | Refusal | None:
    """Return a result times a power of two, rounded, or with a bias added; None for others."""
    if function is Function.ADD:
        return _shifted(node, value, constant, before)
    if function is not Function.MUL or constant.size != 1:
        return None
    tensors, factor = before.tensors, float(constant.ravel()[0])
    if factor < 0 and not tensors.rounded and not value.positive:
        tensors.weights, factor = -tensors.weights, -factor
        tensors.bias = None if tensors.bias is None else -tensors.bias
    exponent = math.log2(factor) if factor > 0 else 0.5
    if exponent != int(exponent) or tensors.rounded:
        why = f"it multiplies by {factor:g}, the chip by powers of two"
        return Refusal(node.place, why, "Fold the factor into the weights.")
    if exponent == -7:
        tensors.rounded = True
    else:
        tensors.shift += int(exponent)
    return value


def _shifted(node: Node, value: Value, constant: Array, before: Before) -> Value | None:
    """Return a result with half a unit added before it is rounded, or a bias; None for others."""
    tensors = before.tensors
    if constant.size == 1 and float(constant.ravel()[0]) == 0.5 and tensors.rounded:
        return value
    shape = node.inputs[0].shape
    bias = along(constant, shape, 1 if len(shape) > 2 else len(shape) - 1)
    if bias is None or value.positive or tensors.rounded:
        return None
    bias = bias * 2.0**-tensors.shift
    tensors.bias = bias if tensors.bias is None else tensors.bias + bias
    return value
