"""Element-wise operations, and operations along an axis."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ai8xtools.frontends.graph.compositions import chosen
from ai8xtools.frontends.graph.nodes import Node, constant
from ai8xtools.frontends.graph.operators import (
    Clip,
    Each,
    Foreign,
    Function,
    LpNormalization,
    Reshape,
    Softmax,
)
from ai8xtools.frontends.instead import instead_of
from ai8xtools.frontends.onnx.calls import Call, UnknownError, handles

_FRACTIONS = (1, 10, 11, 16)
_WRAPPING = 2
"""Whole numbers of so many bytes are soon more than their type holds."""
_AXIS_BY_INPUT = 13
"""From this version on Softmax has one axis; before it has all from that on."""
_FUNCTIONS = {
    function.value: function for function in Function if function is not Function.TRUNC
}  # fmt: skip

_GROWING = (Function.ADD, Function.SUB, Function.MUL, Function.POW)


@handles(*_FUNCTIONS)
def _function(call: Call) -> Node:
    function = _FUNCTIONS[call.name]
    if not function.pairs:
        return call.make(Each(function), call.data)
    whole, result = call.kind.kind in "iu", call.data
    if whole and function in _GROWING and call.kind.itemsize <= _WRAPPING:
        raise UnknownError(f"it computes in {call.kind}, where large results wrap around",
                           "Cast its data to float before.")  # fmt: skip
    for number in range(1, len(call.inputs)):
        data, other = result, call.input(number)
        result = call.make(Each(Function.DIV if call.get("fmod", 0) else function), data, other)
        if call.get("fmod", 0):  # the remainder has the sign of the data
            multiple = call.make(Each(Function.MUL), call.make(Each(Function.TRUNC), result), other)
            result = call.make(Each(Function.SUB), data, multiple)
        if whole and function is Function.DIV:
            result = call.make(Each(Function.TRUNC), result)
    return result


@handles("Sum", "Mean")
def _sum(call: Call) -> Node:
    total = call.data
    for number in range(1, len(call.inputs)):
        total = call.make(Each(Function.ADD), total, call.input(number))
    if call.name == "Sum" or len(call.inputs) == 1:
        return total
    return call.make(Each(Function.MUL), total, constant(np.array(1 / len(call.inputs))))


@handles("Reciprocal")
def _reciprocal(call: Call) -> Node:
    return call.make(Each(Function.DIV), constant(np.array(1.0)), call.data)


@handles("Relu")
def _relu(call: Call) -> Node:
    return call.make(Clip(0.0, math.inf), call.data)


@handles("Clip")
def _clip(call: Call) -> Node:
    low, high = call.constant(1, "min"), call.constant(2, "max")
    ends = (-math.inf if low is None else float(low), math.inf if high is None else float(high))
    if any(map(math.isnan, ends)):
        raise UnknownError("a limit is not a number", "Use Relu.")
    return call.make(Clip(*ends), call.data)


@handles("LeakyRelu")
def _leaky(call: Call) -> Node:
    return call.make(Each(Function.PRELU), call.data, constant(np.array(call.get("alpha", 0.01))))


@handles("HardSigmoid", "HardSwish")
def _hard_sigmoid(call: Call) -> Node:
    plain = call.name == "HardSigmoid"
    alpha, beta = (call.get("alpha", 0.2), call.get("beta", 0.5)) if plain else (1 / 6, 0.5)
    scaled = call.make(Each(Function.MUL), call.data, constant(np.array(alpha)))
    moved = call.make(Each(Function.ADD), scaled, constant(np.array(beta)))
    gate = call.make(Clip(0.0, 1.0), moved)
    return gate if plain else call.make(Each(Function.MUL), call.data, gate)


@handles("Identity", "Dropout")
def _same(call: Call) -> Node:
    training = call.constant(2) if call.name == "Dropout" and len(call.inputs) > 2 else None
    if training is not None and training.any():
        raise UnknownError(
            "its result is random: it is that of training",
            "Export the network behind its training.",
        )
    if call.data.constant is not None:  # one value under several names
        return constant(call.data.constant, call.node.outputs[0])
    return call.data


@handles("Where")
def _where(call: Call) -> Node:
    mask = call.constant(0)
    assert mask is not None
    return chosen(call.node.name, mask, call.input(1), call.input(2))


@handles("Cast")
def _cast(call: Call) -> Node:
    if call.get("to", 1) in _FRACTIONS:
        return call.data
    return call.make(Each(Function.TRUNC), call.data)


@handles("Softmax", "LogSoftmax")
def _softmax(call: Call) -> Node:
    shape, log = call.data.shape, call.name == "LogSoftmax"
    if call.opset >= _AXIS_BY_INPUT:
        return call.make(Softmax(call.get("axis", -1) % len(shape), log), call.data)
    axis = call.get("axis", 1) % len(shape)
    flat = (math.prod(shape[:axis]), math.prod(shape[axis:]))
    if flat == (math.prod(shape) // shape[axis], shape[axis]):
        return call.make(Softmax(axis, log), call.data)
    whole = call.make(Softmax(1, log), call.make(Reshape(flat), call.data))
    return call.make(Reshape(shape), whole)


@handles("Elu", "Selu", "Celu", "Softplus", "Softsign", "Mish", "Gelu", "Swish",
          "ThresholdedRelu", "Shrink", "InstanceNormalization", "LayerNormalization",
          "GroupNormalization", "LRN", "Hardmax")  # fmt: skip
def _foreign(call: Call) -> Node:
    settings = tuple((name, value) for name, value in call.node.attributes.items()
                     if isinstance(value, int | float | str))  # fmt: skip
    operator = Foreign(call.name, call.data.shape, plain_name=call.name.lower(), settings=settings)
    remedy = instead_of(call.name)
    operator = operator if remedy is None else replace(operator, remedy=remedy)
    return call.make(operator, call.data, *(one for one in call.inputs[1:] if one is not None))


@handles("LpNormalization")
def _normalization(call: Call) -> Node:
    if call.get("p", 2) != 2:
        return _foreign(call)
    return call.make(LpNormalization(call.get("axis", -1) % len(call.data.shape)), call.data)
