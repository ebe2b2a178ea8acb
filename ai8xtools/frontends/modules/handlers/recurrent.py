"""RNN, GRU and LSTM of PyTorch's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ai8xtools.frontends.graph.nodes import Node as Result
from ai8xtools.frontends.graph.operators import Concat, Reshape, Transpose
from ai8xtools.frontends.graph.recurrent import Recurrence
from ai8xtools.frontends.modules.calls import Call, handles, listed, operand

_ORDERS = {"rnn": (0,), "gru": (1, 0, 2), "lstm": (0, 3, 1, 2)}
"""PyTorch's gates in the order of ONNX: it has reset, update, new; input, forget, cell, output."""


@handles("rnn gru lstm")
def _recurrent(call: Call) -> Any:
    """Return all states and the last ones, with those of an LSTM's cells."""
    first = [operand(one) for one in listed(list(call.args[1:]))]
    if any(one.constant is None for one in first):
        return call.foreign(f"{call.shown} whose first states depend on data",
                            "Let it begin with zeros, or with other constants.")  # fmt: skip
    turned, ways = bool(call.get("batch_first")), 1 + bool(call.get("bidirectional"))
    if len(call.data.shape) != 3 or call.get("proj_size", 0):
        return call.foreign(call.shown)
    data = call.make(Transpose((1, 0, 2)), call.data) if turned else call.data
    if data.shape[1] != 1:
        return call.foreign(call.shown)
    settings = (("linear_before_reset", 1), ("relu", int(call.get("nonlinearity") == "relu")))
    ends: list[list[Result]] = [[], []]
    for number in range(call.get("num_layers")):
        layers = slice(number * ways, (number + 1) * ways)
        begun = [np.asarray(one.constant)[layers] for one in first]
        layer = Recurrence(call.place, call.name, _gates(call, number, ways, begun),
                           "bidirectional" if ways == 2 else "forward", settings)  # fmt: skip
        states = layer.states(data)
        ends[0].append(layer.last(states))
        if call.name == "lstm":
            ends[1].append(layer.last(layer.states(data, cell=True)))
        joined = call.make(Transpose((0, 2, 1, 3)), states)
        data = call.make(Reshape((*joined.shape[:2], math.prod(joined.shape[2:]))), joined)
    out = call.make(Transpose((1, 0, 2)), data) if turned else data
    last = [one[0] if len(one) == 1 else call.make(Concat(0), *one) for one in ends if one]
    return [out, last if call.name == "lstm" else last[0]]


def _gates(call: Call, number: int, ways: int, first: list[Any]) -> tuple[Any, ...]:
    """Return the constants of a recurrent layer, which begins with states that are given, else
    with zeros, as `recurrent` takes them."""

    def stacked(*kinds: str) -> Any:
        each = []
        for end in ("", "_reverse")[:ways]:
            parts = [call.get(f"{kind}_l{number}{end}") for kind in kinds]
            whole = [np.asarray(operand(one).constant) for one in parts if one is not None]
            orders = [np.array_split(one, len(_ORDERS[call.name])) for one in whole]
            each.append(np.concatenate([gates[at] for gates in orders for at in
                                        _ORDERS[call.name]]))  # fmt: skip
        return np.stack(each)

    weights, again = stacked("weight_ih"), stacked("weight_hh")
    has_bias = call.get(f"bias_ih_l{number}") is not None
    bias = stacked("bias_ih", "bias_hh") if has_bias else np.zeros((ways, 2 * weights.shape[1]))
    zeros = [np.zeros((ways, 1, again.shape[2]))] * (1 + (call.name == "lstm"))
    return weights, again, bias, *(first or zeros)
