"""Recurrent layers step by step, in the form of ONNX's RNN, GRU and LSTM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ai8xtools.frontends.graph.nodes import Node, constant, make
from ai8xtools.frontends.graph.operators import (
    Array,
    Clip,
    Concat,
    Each,
    Foreign,
    Function,
    Gemm,
    Operator,
    Reshape,
    Slice,
)
from ai8xtools.values import frozen

if TYPE_CHECKING:
    from ai8xtools.frontends.graph.compositions import Maker

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
"""Products of each step: GRU has update, reset, new state; LSTM input, output, forget, cell."""
STEP = " step "
"""What follows the place of a layer in those of its steps: nodes with the same places before it and
the same words behind its number do the same."""


def recurrent(m: Maker) -> Node | None:
    """Return all states [T, D, 1, H] of data [T, 1, I], weights [D, G H, I] and [D, G H, H], biases
    [D, 2 G H], and the first states [D, 1, H], of an LSTM those of its cells, too.

    `direction` is that of ONNX; `linear_before_reset` and `relu` are 0 or 1; with `cell` the states
    are those of the cells. None for a layer that a door did not take, which has no weights.
    """
    data, *constants = m.node.inputs
    if not is_recurrence(m.node):
        return None
    steps, _, features = data.shape
    weights, again, bias, *first = (np.asarray(one.constant, np.float64) for one in constants)
    names = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
    flat = m(Reshape((steps, features)), data)
    ways = []
    for way, back in enumerate(names[m.get("direction", "forward")]):
        layer = _Layer(m, weights[way], again[way], bias[way])
        sums = m(Gemm(), flat, layer.weights, layer.bias)
        state = tuple(constant(one[way]) for one in first)
        states = []
        for step in range(steps)[:: -1 if back else 1]:
            state = layer.next(step, sums, state)
            states.append(m(Reshape((1, 1, *state[0].shape)), state[m.get("cell", 0)]))
        ways.append(m(Concat(0), *states[:: -1 if back else 1]))
    return ways[0] if len(ways) == 1 else m(Concat(1), *ways)


class _Layer:
    """One direction of a layer; `bias` is what is added to the products with its data."""

    def __init__(self, m: Maker, weights: Array, again: Array, bias: Array) -> None:
        self._place, self._kind = m.node.place, m.kind
        self._late, self._relu = m.get("linear_before_reset", 0), m.get("relu", 0)
        self._size = size = again.shape[-1]
        self.bias, late = np.array_split(bias, 2)
        self._again = constant(again)
        if self._kind == "gru":
            self._again, self._new = constant(again[: 2 * size]), constant(again[2 * size :])
            self._late_bias = constant(late[2 * size :] * bool(self._late))
            late = np.concatenate((late[: 2 * size], late[2 * size :] * (not self._late)))
        self.bias, self.weights = self.bias + late, weights

    def next(self, step: int, sums: Node, state: tuple[Node, ...]) -> tuple[Node, ...]:
        """Return the states after a step; `sums` are the products with data [T, G H]."""

        def do(what: str, operator: Operator, *inputs: Node) -> Node:
            return make(f"{self._place}{STEP}{step} {what}", operator, *inputs)

        def each(what: str, name: str, *inputs: Node) -> Node:
            return do(what, Each(Function(name)), *inputs)

        def part(what: str, data: Node, start: int, count: int = 1) -> Node:
            row = step if data is sums else 0
            n = self._size
            return do(what, Slice((row, start * n), (1, 1), (1, count * n)), data)

        old = state[0]
        if self._kind == "rnn":
            both = each("sums", "Add", part("data", sums, 0), do("state", Gemm(), old, self._again))
            limits = do("new", Clip(0.0, np.inf), both) if self._relu else each("new", "Tanh", both)
            return (limits,)
        if self._kind == "gru":
            again = do("gates", Gemm(), old, self._again)
            gates = each("gates", "Sigmoid", each("gates", "Add", part("data", sums, 0, 2), again))
            update, reset = part("update", gates, 0), part("reset", gates, 1)
            if self._late:
                late = do("late", Gemm(), old, self._new, self._late_bias)
                late = each("reset", "Mul", reset, late)
            else:
                late = do("late", Gemm(), each("reset", "Mul", reset, old), self._new)
            new = each("new", "Tanh", each("new", "Add", part("data", sums, 2), late))
            kept = each("kept", "Mul", update, each("change", "Sub", old, new))
            return (each("state", "Add", new, kept),)
        again = do("gates", Gemm(), old, self._again)
        both = each("sums", "Add", part("data", sums, 0, 4), again)
        gates = each("gates", "Sigmoid", part("gates", both, 0, 3))
        enter, leave, forget = (part(name, gates, at) for at, name in
                                enumerate(("enter", "leave", "forget")))  # fmt: skip
        new = each("new", "Tanh", part("new", both, 3))
        kept = each("kept", "Mul", forget, state[1])
        cell = each("cell", "Add", kept, each("added", "Mul", enter, new))
        return each("state", "Mul", leave, each("out", "Tanh", cell)), cell


REMEDY = "Use Conv along the time."


def is_recurrence(node: Node) -> bool:
    """Return whether a node is a recurrent layer that `recurrent` computes."""
    operator = node.operator
    known = isinstance(operator, Foreign) and operator.plain_name in GATES
    return known and len(node.inputs) > 3  # data, weights, again, bias


@frozen
class Recurrence:
    """A recurrent layer in the form of ONNX: `kind` rnn, gru or lstm; constants, `direction` and
    further settings as `recurrent` takes them.
    """

    place: str
    kind: str
    constants: tuple[Array, ...]
    direction: str = "forward"
    settings: tuple[tuple[str, int], ...] = ()

    def states(self, data: Node, *, cell: bool = False) -> Node:
        """Return all states [T, D, 1, H] for data [T, 1, I], or those of an LSTM's cells."""
        ways, _, size = self.constants[1].shape
        settings = (("direction", self.direction), ("cell", int(cell)), *self.settings)
        operator = Foreign(self.kind.upper(), (data.shape[0], ways, 1, size), REMEDY, self.kind,
                           settings)  # fmt: skip
        return make(self.place, operator, data, *map(constant, self.constants))

    def last(self, states: Node) -> Node:
        """Return the state that each direction ends with: [D, 1, H] of all states."""
        steps, ways, _, size = states.shape
        ends = []
        for way in range(ways):
            back = self.direction == "reverse" or way == 1
            cut = Slice((0 if back else steps - 1, way, 0, 0), (1,) * 4, (1, 1, 1, size))
            ends.append(make(self.place, Reshape((1, 1, size)), make(self.place, cut, states)))
        return ends[0] if ways == 1 else make(self.place, Concat(0), *ends)
