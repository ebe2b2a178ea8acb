"""Nodes that compute nothing of their own: they become part of the layer in front of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint.onnx_graph import OnnxNode
from ai8xtools.frontends.layers import DescribedLayer, Refusal
from ai8xtools.frontends.onnx.values import Tensors, Value
from ai8xtools.values import frozen

Array = NDArray[Any]
_WIDE = 2.0**20
"""Results that are limited to more than this have 32 bits."""


@frozen
class Before:
    """The layer in front of a node, with its tensors; what follows changes both."""

    layer: DescribedLayer
    tensors: Tensors


def clipped(
    node: OnnxNode, value: Value, limits: tuple[float, float], before: Before | None
) -> Value | Refusal:
    """Return a result limited as the chip does by itself."""
    low, high = limits
    if before is not None and high > _WIDE and low < -_WIDE:
        before.layer.keys["output_width"] = 32
        before.tensors.rounded = True
        return value
    if high in (127.0, 127 / 128) and low in (-128.0, -1.0, 0.0):
        if low == 0.0 and not value.positive:
            if before is None or before.layer.keys["activate"] != "None":
                return Refusal(node.name, f"it limits to {low:g}..{high:g}", "Use Relu.")
            before.layer.keys["activate"] = "ReLU"
            value = replace(value, positive=True)
        if before is not None:
            before.tensors.rounded = True
        return value
    return Refusal(
        node.name, f"it limits data to {low:g}..{high:g}, the chip to -128..127",
        "Use Relu: the chip limits results by itself.",
    )  # fmt: skip


def scaled(node: OnnxNode, value: Value, constant: Array, before: Before) -> Value | Refusal | None:
    """Return a result times a power of two, rounded, or with a bias added; None for others."""
    if node.operator in ("Add", "Sub"):
        return _shifted(node, value, constant, before)
    if constant.size != 1:
        return None
    tensors = before.tensors
    factor = float(constant.ravel()[0])
    factor = 1 / factor if node.operator == "Div" and factor else factor
    exponent = math.log2(factor) if factor > 0 else 0.5
    if exponent != int(exponent) or tensors.rounded:
        why = f"it multiplies by {factor:g}, the chip by powers of two"
        return Refusal(node.name, why, "Fold the factor into the weights.")
    if exponent == -7:
        tensors.rounded = True
    else:
        tensors.shift += int(exponent)
    return value


def _shifted(node: OnnxNode, value: Value, constant: Array, before: Before) -> Value | None:
    """Return a result with half a unit added before it is rounded, or a bias; None for others."""
    tensors = before.tensors
    if constant.size == 1 and float(constant.ravel()[0]) == 0.5 and tensors.rounded:
        return value
    sizes = [n for n in constant.shape if n != 1]
    if sizes != [before.layer.given[0]] or value.positive or tensors.rounded:
        return None
    sign = 1 if node.operator == "Add" else -1
    bias = sign * constant.astype(np.float64).ravel()
    tensors.bias = bias if tensors.bias is None else tensors.bias + bias
    return value


def normalized(
    node: OnnxNode, value: Value, constants: Sequence[Array | None], before: Before
) -> Value | Refusal:
    """Fold batch normalization into the layer in front of it.

    `constants` are its factor, offset, mean and variance.
    """
    if any(one is None for one in constants):
        return Refusal(node.name, "its factors are not constants")
    factor, offset = factors(node, constants)
    tensors, transposed = before.tensors, "Transpose" in before.layer.keys["op"]
    shape = [1] * tensors.weights.ndim
    shape[1 if transposed else 0] = -1
    bias = np.zeros(len(factor)) if tensors.bias is None else tensors.bias
    tensors.weights = tensors.weights * factor.reshape(shape)
    tensors.bias = bias * factor + offset
    return value


def factors(node: OnnxNode, constants: Sequence[Array | None]) -> tuple[Array, Array]:
    """Return by what batch normalization multiplies each channel, and what it adds then."""
    gamma, beta, mean, variance = (np.asarray(one, np.float64) for one in constants)
    factor = gamma / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
    return factor, beta - mean * factor
