"""Activations, functions of elements, softmax and normalization."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from ai8xtools.frontends.graph.compositions import chosen
from ai8xtools.frontends.graph.nodes import Node as Result
from ai8xtools.frontends.graph.nodes import constant
from ai8xtools.frontends.graph.operators import Clip, Each, Function, LpNormalization, Softmax
from ai8xtools.frontends.modules.calls import Call, handles, operand

_EACH = {
    "abs": Function.ABS, "absolute": Function.ABS, "ceil": Function.CEIL, "erf": Function.ERF,
    "exp": Function.EXP, "floor": Function.FLOOR, "log": Function.LOG, "neg": Function.NEG,
    "round": Function.ROUND, "sigmoid": Function.SIGMOID, "sign": Function.SIGN,
    "sqrt": Function.SQRT, "tanh": Function.TANH, "trunc": Function.TRUNC,
    "add": Function.ADD, "iadd": Function.ADD, "sub": Function.SUB, "isub": Function.SUB,
    "subtract": Function.SUB, "mul": Function.MUL, "imul": Function.MUL, "multiply": Function.MUL,
    "div": Function.DIV, "truediv": Function.DIV, "itruediv": Function.DIV, "pow": Function.POW,
    "maximum": Function.MAX, "minimum": Function.MIN,
}  # fmt: skip
"""Functions of elements; `sub` of PyTorch's has a factor, which is settled in its handler."""


@handles("relu")
def _relu(call: Call) -> Result:
    return call.make(Clip(0.0, math.inf), call.data)


@handles("relu6")
def _relu6(call: Call) -> Result:
    return call.make(Clip(0.0, 6.0), call.data)


@handles("hardtanh", "min_val max_val")
def _hardtanh(call: Call) -> Result:
    low, high = float(call.get("min_val", -1)), float(call.get("max_val", 1))
    return call.make(Clip(low, high), call.data)


@handles("clamp clip", "min max")
def _clamp(call: Call) -> Result:
    ends = call.get("min", -math.inf), call.get("max", math.inf)
    if any(isinstance(end, Result | Tensor) for end in ends):
        return call.foreign("limits by values")
    return call.make(Clip(float(ends[0]), float(ends[1])), call.data)


@handles("clampmin", "min")
def _clamp_min(call: Call) -> Result:
    return _clamp(call)


@handles("leakyrelu", "negative_slope")
def _leaky(call: Call) -> Result:
    slope = operand(float(call.get("negative_slope", 0.01)))
    return call.make(Each(Function.PRELU), call.data, slope)


@handles("prelu", "weight")
def _prelu(call: Call) -> Result:
    slope = np.asarray(operand(call.get("weight")).constant)
    axes = (1,) * (len(call.shape) - 2)
    return call.make(Each(Function.PRELU), call.data, constant(slope.reshape(-1, *axes)))


@handles("normalize", "p dim eps")
def _normalize(call: Call) -> Result:
    if call.get("p", 2) != 2:
        return call.foreign(call.shown)
    return call.make(LpNormalization(int(call.get("dim", 1)) % len(call.shape)), call.data)


@handles("hardsigmoid hardswish silu")
def _gated(call: Call) -> Result:
    if call.name == "silu":
        gate = call.make(Each(Function.SIGMOID), call.data)
    else:
        scaled = call.make(Each(Function.MUL), call.data, operand(1 / 6))
        gate = call.make(Clip(0.0, 1.0), call.make(Each(Function.ADD), scaled, operand(0.5)))
    if call.name == "hardsigmoid":
        return gate
    return call.make(Each(Function.MUL), call.data, gate)


@handles("softmax logsoftmax", "dim")
def _softmax(call: Call) -> Result:
    axes = len(call.shape)
    axis = call.get("dim", 0 if axes in (1, 3) else 1)
    return call.make(Softmax(int(axis) % axes, call.name == "logsoftmax"), call.data)


@handles(" ".join(_EACH), "other")
def _each(call: Call) -> Result:
    function = _EACH[call.name]
    if not function.pairs:
        return call.make(Each(function), call.data)
    operands = [call.data, operand(call.args[1] if len(call.args) > 1 else call.get("other"))]
    factor = call.get("alpha", 1)
    if factor != 1:
        operands[1] = call.make(Each(Function.MUL), operands[1], operand(factor))
    if call.get("rounding_mode") is not None:
        return call.foreign(f"division with rounding_mode {call.get('rounding_mode')}")
    return call.make(Each(function), *operands)


@handles("where maskedfill", "mask value")
def _where(call: Call) -> Result:
    """Return what a mask that does not depend on data chooses."""
    if call.name == "where":
        mask, a, b = map(operand, call.args)
    else:
        b, mask, a = map(operand, (call.data, call.get("mask"), call.get("value")))
    if mask.constant is None:
        return call.foreign(f"{call.shown} by data")
    return chosen(call.place, mask.constant, a, b)


@handles("rsub")
def _rsub(call: Call) -> Result:
    return call.make(Each(Function.SUB), operand(call.args[1]), call.data)
