"""Recurrent layers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ai8xtools.frontends.graph.nodes import Node
from ai8xtools.frontends.graph.operators import Array
from ai8xtools.frontends.graph.recurrent import REMEDY, Recurrence
from ai8xtools.frontends.onnx.calls import Call, UnknownError, handles

_ACTIVATIONS: Mapping[str, list[tuple[str, ...]]] = {
    "rnn": [("Tanh",), ("Relu",)],
    "gru": [("Sigmoid", "Tanh")],
    "lstm": [("Sigmoid", "Tanh", "Tanh")],
}


@handles("RNN", "GRU", "LSTM")
def _recurrent(call: Call) -> list[Node]:
    """Return all states, the last ones, and those of an LSTM's cells."""
    kind, steps = call.name.lower(), call.data.shape[0]
    weights, again = (_whole(call, number) for number in (1, 2))
    ways, size = again.shape[0], again.shape[2]
    optional = [
        call.constant(number) if len(call.inputs) > number else None for number in range(3, 8)
    ]
    bias, lengths, *first = optional[: 4 if kind == "lstm" else 3]
    usual = _ACTIVATIONS[kind]
    functions = tuple(call.get("activations", usual[0] * ways))
    odd = [name for name in ("clip", "layout", "input_forget") if call.get(name, 0)]
    odd += ["activations"] if functions not in [one * ways for one in usual] else []
    odd += ["sequence_lens"] if lengths is not None and (lengths != steps).any() else []
    odd += ["P"] if optional[4] is not None else []
    if odd or call.data.shape[1] != 1:
        raise UnknownError(f"its {odd[0] if odd else 'batch'} has no form that is known here",
                           REMEDY)  # fmt: skip
    firsts = [*first, *[None] * (1 + (kind == "lstm") - len(first))]
    constants = (
        weights, again, np.zeros((ways, 2 * weights.shape[1])) if bias is None else bias,
        *(np.zeros((ways, 1, size)) if one is None else one for one in firsts),
    )  # fmt: skip
    settings = (("linear_before_reset", int(call.get("linear_before_reset", 0))),
                ("relu", int(functions[0] == "Relu")))  # fmt: skip
    layer = Recurrence(call.node.name, kind, constants, call.get("direction", "forward"), settings)
    states = layer.states(call.data)
    results = [states, layer.last(states)]
    if kind == "lstm":
        results.append(layer.last(layer.states(call.data, cell=True)))
    return results


def _whole(call: Call, number: int) -> Array:
    """Return a constant that has to be there."""
    value = call.constant(number)
    if value is None:
        raise UnknownError(f"its input {number + 1} is missing", "Export the graph again.")
    return value
