"""Recurrent networks on streams: their states go on from one hop to the next.

A recurrent layer is unrolled, so that a window of it has all its steps. Of a stream only the steps
of the newest hop are computed; what they take from the step before them is the state, which the
program keeps. Results are those of a window that begins with the stream and never ends.
Source: docs/software.md, "Streams of recurrent networks".
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place
from ai8xtools.frontends.graph.nodes import Graph, Node, constant, graph_of, make
from ai8xtools.frontends.graph.operators import (
    Clip,
    Concat,
    Conv,
    Each,
    Foreign,
    Gemm,
    Input,
    Pool,
    Reshape,
    Shape,
    Slice,
    Transpose,
)
from ai8xtools.frontends.graph.recurrent import STEP
from ai8xtools.software.graph import Int64
from ai8xtools.values import frozen

_ROWS = 2
"""The axis of nodes whose elements are rows in memory."""
_LEAST_HOPS = 3
"""Of a window: its steps have those before the newest, and the first, which differs from others."""


@frozen
class State(Foreign):
    """What recurrent layers keep from one run to the next, in a line, each value `low` to `high`:
    zero at first."""

    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()


@frozen
class Stateful:
    """A graph for windows of a stream; its last output is what its node `state` then gives.

    `axis` is that of the time in samples of the original graph, in which `early` are the nodes of
    the states after two hops.
    """

    graph: Graph
    hop: int
    state: Node
    axis: int
    early: tuple[Node, ...]

    def sample(self, sample: Int64) -> Int64:
        """Return a sample [1, ...] of the original graph with the rows of the stream."""
        shape = self.graph.input.shape
        moved = np.moveaxis(sample, self.axis, _ROWS) if sample.ndim == len(shape) else sample
        if self.axis != _ROWS:
            moved = np.moveaxis(sample, self.axis, -1)
        return moved.reshape(*shape[:_ROWS], -1, *shape[_ROWS + 1 :])


def stateful(graph: Graph, hop: int) -> Stateful:
    """Return the graph that takes `hop` rows at a time.

    Raises DiagnosticError E914 for a hop that does not suit, E915 for a graph without such a form.
    """
    for axis, size in enumerate(graph.input.shape):
        times = _times(graph, axis, None) if size > 1 else {}
        steps = [
            times[node.inputs[0]] for node in graph.nodes
            if isinstance(node.operator, Slice) and step_of(node) and node.inputs[0] in times
            and node.operator.count[times[node.inputs[0]].axis] == 1
        ]  # fmt: skip
        if steps:
            stride = steps[0].stride
            return _Cut(graph, hop, axis, _times(graph, axis, stride), stride).whole()
    raise no_recurrence()


def no_recurrence() -> DiagnosticError:
    """Return the refusal of a network without steps in time."""
    return _refusal("E915", "the network has no recurrent layer that takes the input step by step, "
                    "forward in time, without padding in front of it",
                    "Leave --stateful out.")  # fmt: skip


def step_of(node: Node) -> tuple[str, int] | None:
    """Return the recurrent layer and the number of the step that a node belongs to."""
    layer, found, words = node.place.partition(STEP)
    number = words.partition(" ")[0]
    return (layer, int(number)) if found and number.isdigit() else None


def _refusal(code: str, message: str, remedy: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, Place(option="--stateful"), remedy)])


def _cannot(node: Node, why: str) -> DiagnosticError:
    return _refusal("E915", f"{node.place} has no form that goes on with a stream: {why}",
                    "Use the state of the last step alone, or leave --stateful out.")  # fmt: skip


@frozen
class _Time:
    """The axis of a node that is the time; its elements are `stride` rows of the input apart."""

    axis: int
    stride: int


def _times(graph: Graph, axis: int, stride: int | None) -> Mapping[Node, _Time]:
    """Return the nodes that have an element for each step in time, if that is an input's axis.

    With the `stride` of the steps, nodes that join the states of all of them are among these.
    """
    times = {graph.input: _Time(axis, 1)}
    for node in graph.nodes:
        known = [times[one] for one in node.inputs if one in times]
        if known:
            found = _after(node, known[0])
            if found is not None and node.shape[found.axis] > 1:
                times[node] = found
        elif stride is not None and isinstance(node.operator, Concat):
            steps = [(_origin(one) or ("", -1))[1] for one in node.inputs]
            if len(steps) > 1 and steps == [*range(len(steps))]:
                times[node] = _Time(node.operator.axis, stride)
    return times


def _origin(node: Node) -> tuple[str, int] | None:
    """Return the step whose state a node is, perhaps in another shape or of another scale."""
    while step_of(node) is None and isinstance(node.operator, Reshape | Each | Clip):
        data = [one for one in node.inputs if one.constant is None]
        if len(data) != 1:
            break
        (node,) = data
    return step_of(node)


def _after(node: Node, time: _Time) -> _Time | None:
    """Return where the time of what a node reads is in its result; None if it takes it together."""
    operator, axis, data = node.operator, time.axis, node.inputs[0].shape
    match operator:
        case Each() | Clip():
            back = max(one.shape for one in node.inputs if one.constant is None)
            return _Time(axis + len(node.shape) - len(back), time.stride)
        case Gemm():
            return time if axis < len(data) - 1 else None
        case Transpose():
            return _Time(operator.order.index(axis), time.stride)
        case Concat():
            return time if axis != operator.axis else None
        case Reshape():
            before = math.prod(data[:axis])
            fits = [n for n, size in enumerate(node.shape)
                    if size == data[axis] and math.prod(node.shape[:n]) == before]  # fmt: skip
            return _Time(fits[-1], time.stride) if fits else None
        case Slice():
            whole = operator.count[axis] == data[axis]
            return time if whole else None
        case Conv() | Pool():
            if axis < _ROWS or operator.pads[axis - _ROWS] != (0, 0):
                return None
            return _Time(axis, time.stride * operator.strides[axis - _ROWS])
        case _:
            return None


class _Cut:
    """Builds the graph of the newest steps; `stride` rows of the input are between two steps."""

    def __init__(
        self, graph: Graph, hop: int, axis: int, times: Mapping[Node, _Time], stride: int
    ) -> None:
        self._graph, self._hop, self._axis = graph, hop, axis
        self._times, self._stride = times, stride
        self._steps: dict[tuple[str, int], list[Node]] = {}
        for node in graph.nodes:
            step = step_of(node)
            if step is not None and node.constant is None:
                self._steps.setdefault(step, []).append(node)
        self._last = dict(sorted(self._steps))  # of a layer the greatest number remains
        self._first: dict[str, int] = {}
        self._works: dict[Node, int] = {}
        self._states: list[Node] = []
        """What the step before the newest ones leaves."""
        self._state: Node | None = None

    def whole(self) -> Stateful:
        """Return the graph."""
        window, hop, stride = self._graph.input.shape[self._axis], self._hop, self._stride
        if hop % stride or window % hop or window < _LEAST_HOPS * hop:
            good = [n for n in range(stride, window // _LEAST_HOPS + 1, stride) if window % n == 0]
            raise _refusal(
                "E914", f"a hop of {hop:,} does not suit a window of {window:,} rows and steps "
                f"that are {stride:,} apart", f"Hops that suit: {_listed(good)}.",
            )  # fmt: skip
        count = hop // stride
        self._first = {layer: last + 1 - count for layer, last in self._last.items()}
        self._lay(self._graph.input, 0)
        self._results()
        rows = window - self._lowest
        if rows % hop:
            good = [n for n in range(stride, hop, stride)
                    if (rows - hop) % n == 0 and window % n == 0]  # fmt: skip
            raise _refusal(
                "E914", f"the layers in front of the recurrent one need {rows - hop:,} rows "
                f"before those of a hop, which are no multiple of {hop:,}",
                f"Hops that suit: {_listed(good)}.",
            )  # fmt: skip
        source, data = self._input(rows)
        self._state = self._one_state()
        self._lay(data, window - rows)
        outputs = self._results()
        early = [self._counterpart(node, 2 * count - 1) for node in self._states]
        graph = graph_of(source, [source], outputs)
        if None in early:
            raise no_recurrence()
        return Stateful(graph, hop, self._state, self._axis, tuple(filter(None, early)))

    def _lay(self, data: Node, offset: int) -> None:
        """Begin with data that have the rows of the input from `offset` on."""
        self._data, self._offset, self._lowest = data, offset, 1 << 30
        self._built: dict[Node, Node] = {}
        self._cuts: dict[tuple[Node, int, int], Node] = {}

    def _input(self, rows: int) -> tuple[Node, Node]:
        """Return a new input, and as what the graph reads it."""
        shape, place = self._graph.input.shape, self._graph.input.place
        cut = tuple(rows if n == self._axis else size for n, size in enumerate(shape))
        if self._axis == _ROWS:
            source = make(place, Input(cut))
            return source, source
        source = make(place, Input((1, math.prod(cut) // rows, rows)))
        if math.prod(shape[self._axis + 1 :]) == 1:
            return source, make(place, Reshape(cut), source)
        if math.prod(shape[: self._axis]) > 1:
            raise _cannot(self._graph.input, f"its time is between its axes, the {self._axis}th")
        return source, make(place, Reshape(cut), make(place, Transpose((0, 2, 1)), source))

    def _one_state(self) -> Node:
        """Return the node of all states."""
        limits = [(node.operator, math.prod(node.shape)) for node in self._states]
        low = [int(one.low) for one, n in limits if isinstance(one, Clip) for _ in range(n)]
        high = [int(one.high) for one, n in limits if isinstance(one, Clip) for _ in range(n)]
        return make("state", State("a state", (1, len(low)), low=tuple(low), high=tuple(high)))

    def _results(self) -> list[Node]:
        """Return the results, and behind them all states."""
        outputs = [self._build(node) for node in self._graph.outputs]
        lines: list[Node] = []
        while len(lines) < len(self._states):  # those of a layer may need others
            node = self._states[len(lines)]
            last = self._last[(step_of(node) or ("", 0))[0]]
            line = make(node.place, Reshape((1, math.prod(node.shape))), self._again(node, last))
            lines.append(line)
        if not lines:
            raise no_recurrence()
        return [*outputs, lines[0] if len(lines) == 1 else make("state", Concat(1), *lines)]

    def _build(self, node: Node) -> Node:
        """Return the node of the new graph that gives what a node gives."""
        if node not in self._built:
            self._built[node] = self._new(node)
        return self._built[node]

    def _new(self, node: Node) -> Node:
        step, operator = step_of(node), node.operator
        if node.constant is not None:
            return node
        if step is not None and step[1] < self._first[step[0]]:
            return self._remembered(node, *step)
        if node in self._times:
            raise _cannot(node, "it is needed for all steps of the window")
        if isinstance(operator, Slice) and node.inputs[0] in self._times:
            (source,) = node.inputs
            axis, size = self._times[source].axis, source.shape[self._times[source].axis]
            count = self._hop // self._times[source].stride
            if operator.start[axis] < size - count:
                raise _cannot(node, "it is needed for earlier steps than those of a hop")
            start = tuple(one - (size - count) * (n == axis) for n, one in
                          enumerate(operator.start))  # fmt: skip
            rows = self._rows(source, size - count, count)
            return make(node.place, Slice(start, operator.step, operator.count), rows)
        return make(node.place, operator, *map(self._build, node.inputs))

    def _remembered(self, node: Node, layer: str, number: int) -> Node:
        """Return what the step before the newest ones has left, or what is made of it at once."""
        if number != self._first[layer] - 1:
            raise _cannot(node, "it is needed for earlier steps than those of a hop")
        data = [one for one in node.inputs if one.constant is None]
        if isinstance(node.operator, Each) and len(data) == 1:
            return make(node.place, node.operator, *map(self._build, node.inputs))
        limited = isinstance(node.operator, Clip) and math.isfinite(
            node.operator.high - node.operator.low
        )
        if not limited:
            raise _cannot(node, "its state is not limited")
        if node not in self._states:
            self._states.append(node)
        if self._state is None:
            return node
        before = self._states[: self._states.index(node)]
        start = sum(math.prod(one.shape) for one in before)
        cut = Slice((0, start), (1, 1), (1, math.prod(node.shape)))
        return make("state", Reshape(node.shape), make("state", cut, self._state))

    def _counterpart(self, node: Node, number: int) -> Node | None:
        """Return the node of another step that does what a node does, if there is one."""
        layer, own = step_of(node) or ("", 0)
        wanted = self._work(node, own)
        nodes = (one for one in self._steps.get((layer, number), ()) if one.shape == node.shape)
        return next((one for one in nodes if self._work(one, number) == wanted), None)

    def _work(self, node: Node, step: int) -> int:
        """Return a number that nodes share which do the same in their steps, with the same
        weights."""
        own = step_of(node)
        if node.constant is not None:
            return hash((node.shape, node.constant.tobytes()))
        if own is None or own[1] != step:
            return 0
        if node not in self._works:
            operator = None if isinstance(node.operator, Slice) else node.operator
            taken = (self._work(one, step) for one in node.inputs)
            self._works[node] = hash((type(node.operator), operator, node.shape, *taken))
        return self._works[node]

    def _again(self, node: Node, number: int) -> Node:
        """Return what a node of an earlier step would be in another one."""
        if node.constant is not None:
            return node
        other = self._counterpart(node, number)
        if other is not None:
            return self._build(other)
        if not isinstance(node.operator, Each | Clip):
            raise _cannot(node, "its steps differ")
        return make(node.place, node.operator, *(self._again(one, number) for one in node.inputs))

    def _rows(self, node: Node, first: int, count: int) -> Node:
        """Return rows in time of a node: `count` from `first` on."""
        key = node, first, count
        if key not in self._cuts:
            self._cuts[key] = self._new_rows(*key)
        return self._cuts[key]

    def _new_rows(self, node: Node, first: int, count: int) -> Node:
        operator = node.operator
        if node.constant is not None:
            return node
        if node not in self._times:
            return self._build(node)
        axis = self._times[node].axis
        inputs = node.inputs
        match operator:
            case Input():
                self._lowest = min(self._lowest, first)
                return _cut(self._data, axis, first - self._offset, count)
            case Concat() if operator.axis == axis:
                built = [self._build(one) for one in inputs[first : first + count]]
                return built[0] if count == 1 else make(node.place, operator, *built)
            case Conv() | Pool():
                stride, spread = (one[axis - _ROWS] for one in
                                  (operator.strides, operator.dilations))  # fmt: skip
                size = (
                    inputs[1].shape[axis]
                    if isinstance(operator, Conv)
                    else operator.window[axis - _ROWS]
                )
                reach = (count - 1) * stride + (size - 1) * spread + 1
                data = self._rows(inputs[0], first * stride, reach)
                return make(node.place, operator, data, *inputs[1:])
            case Reshape():
                shape = tuple(count if n == axis else size for n, size in enumerate(node.shape))
                return make(node.place, Reshape(shape), self._rows(inputs[0], first, count))
            case Slice():
                counts = tuple(count if n == axis else c for n, c in enumerate(operator.count))
                cut = Slice(operator.start, operator.step, counts)
                return make(node.place, cut, self._rows(inputs[0], first, count))
            case _:
                operands = [self._operand(node, one, axis, first, count) for one in inputs]
                return make(node.place, operator, *operands)

    def _operand(self, node: Node, one: Node, axis: int, first: int, count: int) -> Node:
        """Return what an operator takes of an operand for some rows of its result."""
        own = axis - len(node.shape) + len(one.shape)
        by_rows = (
            isinstance(node.operator, Each) and own >= 0 and one.shape[own] == node.shape[axis]
        )
        if one.constant is not None and by_rows and node.shape[axis] > 1:
            return constant(one.constant.take(range(first, first + count), own), one.place)
        return self._rows(one, first, count)


def _cut(node: Node, axis: int, first: int, count: int) -> Node:
    shape = node.shape
    if count == shape[axis]:
        return node
    start: Shape = tuple(first * (n == axis) for n in range(len(shape)))
    counts: Shape = tuple(count if n == axis else size for n, size in enumerate(shape))
    return make(node.place, Slice(start, (1,) * len(shape), counts), node)


def _listed(hops: list[int]) -> str:
    return ", ".join(f"{n:,}" for n in hops) or "none"
