"""Nodes of a graph of operators, with their shapes; what constants alone make is one, too."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from ai8xtools.frontends.graph.execute import value_of
from ai8xtools.frontends.graph.operators import (
    Array,
    BatchNormalization,
    Clip,
    Concat,
    Constant,
    Conv,
    ConvTranspose,
    Dropout,
    Each,
    Foreign,
    Function,
    Gemm,
    Input,
    LpNormalization,
    MatMul,
    MeanVarianceNormalization,
    Operator,
    Pad,
    Pool,
    Reduce,
    Reshape,
    Resize,
    Shape,
    Slice,
    Softmax,
    Transpose,
    name_of,
)

_MOST = 1 << 25
"""No constant that a graph computes has more elements."""


class ShapeError(ValueError):
    """The operands of an operator do not fit; the message says how."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """The result of an operator [N=1, ...]; `place` is the node in the user's file."""

    place: str
    operator: Operator
    inputs: tuple[Node, ...]
    shape: Shape

    @property
    def constant(self) -> Array | None:
        """Its value if that does not depend on samples."""
        return self.operator.value if isinstance(self.operator, Constant) else None

    @property
    def name(self) -> str:
        """What messages call its operator."""
        if self.operator == Each(Function.PRELU) and not self.inputs[1].shape:
            return "LeakyRelu"  # its slope is a number
        return name_of(self.operator)


def constant(value: Array, place: str = "") -> Node:
    """Return a node of a constant."""
    return Node(place, Constant(value), (), value.shape)


def make(place: str, operator: Operator, *inputs: Node) -> Node:
    """Return a node; one that takes constants alone is a constant itself.

    Raises ShapeError for operands that do not fit.
    """
    shape = shape_of(operator, [one.shape for one in inputs])
    if inputs and all(one.constant is not None for one in inputs):
        if math.prod(shape) > _MOST:
            raise ShapeError(f"it makes {math.prod(shape)} values of constants")
        value = value_of(operator, [one.constant for one in inputs if one.constant is not None])
        if value is not None:
            return constant(value, place)
    return Node(place, operator, tuple(inputs), shape)


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in an order in which they can be computed, their input, and the results."""

    input: Node
    nodes: tuple[Node, ...]
    outputs: tuple[Node, ...]

    def readers(self) -> Mapping[Node, list[Node]]:
        """Return who reads a result; the graph itself counts, too, as the result."""
        readers: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        for node in self.nodes:
            for one in dict.fromkeys(node.inputs):
                readers[one].append(node)
        for node in self.outputs:
            readers[node].append(node)
        return readers


def graph_of(source: Node, nodes: Sequence[Node], outputs: Sequence[Node]) -> Graph:
    """Return the graph of all that outputs need; `nodes` are in the order of the file."""
    needed = set(_needed(outputs)) | {source}
    order = dict.fromkeys([source, *(node for node in _needed(nodes) if node in needed)])
    order |= dict.fromkeys(_needed(outputs))
    return Graph(source, tuple(order), tuple(outputs))


def _needed(nodes: Sequence[Node]) -> Iterator[Node]:
    """Yield nodes with all that they take, what is taken first."""
    done: set[Node] = set()
    for node in nodes:
        stack = [(node, iter(node.inputs))]
        while stack:
            one, rest = stack[-1]
            following = next((n for n in rest if n not in done), None)
            if following is not None:
                stack.append((following, iter(following.inputs)))
                continue
            stack.pop()
            if one not in done:
                done.add(one)
                yield one


Rule = Callable[[Node, Mapping[Node, list[Node]]], Node]


def rewritten(graph: Graph, rule: Rule) -> Graph:
    """Return a graph in which a rule stands for each node.

    It gets the node, with what it takes rewritten already, and the readers of all nodes.
    """
    readers: dict[Node, list[Node]] = dict(graph.readers())
    results: dict[Node, Node] = {graph.input: graph.input}
    for node in graph.nodes:
        if not node.inputs:
            results[node] = node
            continue
        inputs = tuple(results[one] for one in node.inputs)
        fresh = node if inputs == node.inputs else make(node.place, node.operator, *inputs)
        readers[fresh] = readers[node]
        result = rule(fresh, readers)
        readers.setdefault(result, readers[node])
        results[node] = result
    if all(results[node] is node for node in graph.nodes):
        return graph
    nodes = [results[node] for node in graph.nodes]
    return graph_of(graph.input, nodes, [results[node] for node in graph.outputs])


def check(graph: Graph) -> None:
    """Raise ShapeError for a graph whose nodes have other shapes than their operators give, or
    stand before what they take."""
    before: set[Node] = set()
    for node in graph.nodes:
        if any(one not in before for one in node.inputs):
            raise ShapeError(f"{node.place} stands before what it takes")
        before.add(node)
        if shape_of(node.operator, [one.shape for one in node.inputs]) != node.shape:
            raise ShapeError(f"{node.place} has another shape than {node.name} gives")
    if not before.issuperset(graph.outputs):
        raise ShapeError("a result is computed by no node")


def shape_of(operator: Operator, shapes: Sequence[Shape]) -> Shape:
    """Return the shape of a result [N, ...] from those of what is taken."""
    match operator:
        case Input() | Foreign():
            return operator.shape
        case Constant():
            return operator.value.shape
        case Each():
            try:
                return np.broadcast_shapes(*shapes)
            except ValueError:
                raise ShapeError(f"its operands have the shapes {_listed(shapes)}") from None
        case Clip() | Softmax() | LpNormalization() | MeanVarianceNormalization() | Dropout():
            return shapes[0]
        case BatchNormalization():
            if any(one != shapes[0][1:2] for one in shapes[1:]):
                raise ShapeError(f"its factors are {_listed(shapes[1:])} for {_listed(shapes[:1])}")
            return shapes[0]
        case Conv() | ConvTranspose():
            shape = _convolved(operator, *shapes[:2])
            if any(one != shape[1:2] for one in shapes[2:]):
                raise ShapeError(f"its bias is {_listed(shapes[2:])} for {_listed([shape])}")
            return shape
        case Gemm():
            data, weights = shapes[:2]
            if len(weights) != 2:
                raise ShapeError(f"its weights have {len(weights)} axes")
            if not data or data[-1] != weights[1]:
                raise ShapeError(f"it works on the last axis of {_listed([data[1:]])}")
            if any(math.prod(one) not in (1, weights[0]) for one in shapes[2:]):
                raise ShapeError(f"its bias is {_listed(shapes[2:])} for {weights[0]} results")
            return (*data[:-1], weights[0])
        case MatMul():
            if min(map(len, shapes)) < 2 or shapes[0][-1] != shapes[1][-2]:
                raise ShapeError(f"it multiplies {_listed(shapes)}")
            return (
                *np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2]),
                shapes[0][-2],
                shapes[1][-1],
            )
        case Pool():
            return _pooled(operator, shapes[0])
        case Reduce():
            return tuple(1 if axis in operator.axes else n for axis, n in enumerate(shapes[0])
                         if axis not in operator.axes or operator.keep)  # fmt: skip
        case Reshape():
            if math.prod(operator.shape) != math.prod(shapes[0]):
                raise ShapeError(f"it makes {_listed([operator.shape])} of {_listed(shapes)}")
            return operator.shape
        case Transpose():
            if sorted(operator.order) != list(range(len(shapes[0]))):
                raise ShapeError(f"it orders the axes {operator.order} of {_listed(shapes)}")
            return tuple(shapes[0][axis] for axis in operator.order)
        case Slice():
            return operator.count
        case Pad():
            return tuple(n + sum(p) for n, p in zip(shapes[0], operator.pads, strict=True))
        case Concat():
            axis = operator.axis
            if axis >= len(shapes[0]) or len({(*s[:axis], *s[axis + 1 :]) for s in shapes}) > 1:
                raise ShapeError(f"it joins {_listed(shapes)} along axis {axis}")
            return (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])
        case Resize():
            return tuple(map(len, operator.places))
        case _:
            assert_never(operator)


def _convolved(operator: Conv | ConvTranspose, data: Shape, weights: Shape) -> Shape:
    kernel, back = weights[2:], isinstance(operator, ConvTranspose)
    channels = weights[0] if back else weights[1] * operator.groups
    if len(weights) < 3:
        raise ShapeError(f"its weights have {len(weights)} axes")
    if len(data) != len(weights) or data[1] != channels:
        raise ShapeError(f"its weights are {_listed([weights])} for {_listed([data])}")
    extra = operator.output_padding if isinstance(operator, ConvTranspose) else (0,) * len(kernel)
    sizes = []
    for n, k, s, p, d, e in zip(data[2:], kernel, operator.strides, operator.pads,
                                operator.dilations, extra, strict=True):  # fmt: skip
        reach = d * (k - 1) + 1
        sizes.append(s * (n - 1) + reach + e - sum(p) if back else (n + sum(p) - reach) // s + 1)
    filters = weights[1] * operator.groups if back else weights[0]
    if min(sizes) < 1 or filters % operator.groups:
        raise ShapeError(f"its weights are {_listed([weights])} for {_listed([data])}")
    return (data[0], filters, *sizes)


def _pooled(operator: Pool, data: Shape) -> Shape:
    sizes = []
    for n, w, s, p, d in zip(data[2:], operator.window, operator.strides, operator.pads,
                             operator.dilations, strict=True):  # fmt: skip
        way = n + sum(p) - d * (w - 1) - 1
        count = -(-way // s) if operator.ceil else way // s
        if operator.ceil and count * s >= n + p[0]:
            count -= 1  # the last window must begin within the data
        sizes.append(count + 1)
    if min(sizes, default=1) < 1:
        raise ShapeError(f"its window is {_listed([operator.window])} for {_listed([data])}")
    return (*data[:2], *sizes)


def _listed(shapes: Sequence[Shape]) -> str:
    return " and ".join("x".join(map(str, shape)) or "1" for shape in shapes)
