"""Integers with a scale and a zero point: what they stand for is computed with."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ai8xtools.frontends.graph.nodes import Node, constant
from ai8xtools.frontends.graph.operators import Array, Clip, Each, Function
from ai8xtools.frontends.onnx.calls import Call, UnknownError, handles
from ai8xtools.frontends.onnx.handlers.windows import conv, gemm, matmul


@dataclass(frozen=True, slots=True)
class _Scale:
    """Scale and zero point, along an axis or one of each, and the limits of the integers."""

    scale: Array
    zero: Array
    low: float
    high: float

    def integers(self, call: Call, data: Node) -> Node:
        """Return the integers of data: halves to even, limited."""
        divided = call.make(Each(Function.DIV), data, constant(self.scale))
        moved = call.make(Each(Function.ADD), call.make(Each(Function.ROUND), divided),
                          constant(self.zero))  # fmt: skip
        return call.make(Clip(self.low, self.high), moved)

    def values(self, call: Call, data: Node) -> Node:
        """Return the values that integers represent."""
        moved = call.make(Each(Function.SUB), data, constant(self.zero))
        return call.make(Each(Function.MUL), moved, constant(self.scale))


def _scale(call: Call, number: int, rank: int, axis: int = 1) -> _Scale:
    """Return scale and zero point that are inputs `number` and the next, for data of an axis."""
    scale = call.constant(number)
    zero = call.constant(number + 1) if len(call.inputs) > number + 1 else None
    zero = np.zeros(1, np.uint8) if zero is None else zero
    if scale is None or not np.isfinite(scale).all() or (np.asarray(scale) <= 0).any():
        raise UnknownError("its scale is no number above zero", "Quantize the graph again.")
    if zero.dtype.kind not in "iu" or zero.size not in (1, scale.size):
        raise UnknownError("its zero point is no integer for each scale", "Quantize it again.")
    limits, along = np.iinfo(zero.dtype), [1] * rank
    if scale.size > 1:
        along[axis % rank] = -1
    wide = [np.asarray(one, np.float64).reshape(along if scale.size > 1 else ())
            for one in (scale, np.broadcast_to(zero.ravel(), (scale.size,)))]  # fmt: skip
    return _Scale(wide[0], wide[1], float(limits.min), float(limits.max))


@handles("QuantizeLinear", "DequantizeLinear")
def _quantize(call: Call) -> Node:
    scale = _scale(call, 1, len(call.data.shape), call.get("axis", 1))
    if call.name == "QuantizeLinear":
        return scale.integers(call, call.data)
    return scale.values(call, call.data)


@handles("com.microsoft.QGemm")
def _quantized_gemm(call: Call) -> Node:
    data = _scale(call, 1, 2).values(call, call.data)
    second = call.input(3)
    whole = _scale(call, 4, 2, 0 if call.get("transB", 0) else 1)
    inputs = [data, whole.values(call, second)]
    bias = call.constant(6)
    if bias is not None:
        inputs.append(constant(bias * np.asarray(call.constant(1)) * whole.scale.ravel()))
    result = gemm(replace(call, inputs=inputs))
    if len(call.inputs) < 8 or call.inputs[7] is None:
        return result
    return _scale(call, 7, 2).integers(call, result)


@handles("QLinearConv", "QLinearMatMul")
def _quantized_layer(call: Call) -> Node:
    data = _scale(call, 1, len(call.data.shape)).values(call, call.data)
    second = call.input(3)
    whole = _scale(call, 4, len(second.shape), -1 if call.name == "QLinearMatMul" else 0)
    inputs = [data, whole.values(call, second)]
    bias = call.constant(8) if len(call.inputs) > 8 else None
    if bias is not None:
        inputs.append(constant(bias * np.asarray(call.constant(1)) * whole.scale.ravel()))
    plain = replace(call, inputs=inputs)
    result = conv(plain) if call.name == "QLinearConv" else matmul(plain)
    return _scale(call, 6, len(result.shape)).integers(call, result)
