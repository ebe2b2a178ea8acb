"""A graph of operators in floating point becomes one in whole numbers of 8 bits.

Each result that is stored has a power of two of its own: a value is an integer times 2^-k. What is
done with elements is computed exactly and rounded once. Source: docs/software.md, "Graphs".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.compositions import compositions
from ai8xtools.frontends.graph.execute import value_of
from ai8xtools.frontends.graph.matrices import products_of_constants
from ai8xtools.frontends.graph.nodes import Graph, Node, constant, graph_of, make
from ai8xtools.frontends.graph.operators import (
    Array,
    Clip,
    Concat,
    Conv,
    ConvTranspose,
    Dropout,
    Each,
    Foreign,
    Function,
    Gemm,
    Input,
    MatMul,
    MeanVarianceNormalization,
    Pad,
    Pool,
    Reduce,
    Reduction,
    Reshape,
    Resize,
    Slice,
    Softmax,
    Transpose,
)
from ai8xtools.quantization.formats import (
    Float64s,
    largest,
    power_of_two_fraction,
    to_fixed,
)
from ai8xtools.quantization.integers import (
    BITS,
    DEEPEST,
    MOVES,
    WIDE,
    Integers,
    Ranges,
    rounded,
    scaled,
)
from ai8xtools.values import frozen

PASSES = (
    compositions, passes.normalizations, products_of_constants, passes.constants_second,
    passes.limits, passes.sections, passes.padding, passes.reductions, passes.transposes,
    passes.into_weights, passes.before_weights,
)  # fmt: skip
"""What is done with a graph before; into_weights behind what makes factors and offsets."""

_INPUT_FRACTION, _SUM_BITS, _LIMIT_BITS = 7, 31, 16
_WEIGHTED = Conv | ConvTranspose | Gemm
_SUMS = Conv | ConvTranspose | Gemm | MeanVarianceNormalization | MatMul
_DEGREE = 2
_OF_ELEMENTS = Each | Clip | Dropout
_TABLES = frozenset({
    Function.ERF, Function.EXP, Function.LOG, Function.POW, Function.SIGMOID, Function.SQRT,
    Function.TANH,
})  # fmt: skip
"""Functions that take 8 bits."""


@frozen
class Whole:
    """A graph in whole numbers: the k of its input and of its results."""

    graph: Graph
    fraction: int
    fractions: tuple[int, ...]


def quantized(graph: Graph, ranges: Ranges, bits: int = BITS) -> Whole:
    """Return a graph, to which `PASSES` were applied, in whole numbers: data and weights have
    `bits`, BITS or WIDE.
    """
    return _Quantizer(graph, ranges, bits).whole()


def costliest(graph: Graph, ranges: Ranges, samples: Sequence[Float64s]) -> str:
    """Return the place of the layer that changes results most if it alone has 8 bits."""
    weighted = (node for node in graph.nodes if isinstance(node.operator, _WEIGHTED))
    layers = [node for node in weighted if node.inputs[1].constant is not None]
    expected = [_results(graph, sample) for sample in samples]

    def error(layer: Node) -> float:
        k = power_of_two_fraction(ranges.largest[layer], BITS)
        actual = (_results(graph, sample, layer, k) for sample in samples)
        return sum(float(((a - b) ** 2).sum()) for a, b in zip(expected, actual, strict=True))

    return max(layers, key=error).place if layers else "what is done with elements"


def _results(graph: Graph, sample: Float64s, alone: Node | None = None, k: int = 0) -> Float64s:
    """Return all results for a sample, in one line; weights and results of a layer have 8 bits."""
    values: dict[Node, Array] = {graph.input: sample}
    for node in graph.nodes:
        if node in values:
            continue
        inputs = [values[one] for one in node.inputs]
        if node is alone:
            fraction = power_of_two_fraction(largest(inputs[1]), BITS)
            inputs[1] = np.ldexp(to_fixed(inputs[1], fraction, BITS), -fraction)
        value = value_of(node.operator, inputs)
        assert value is not None
        values[node] = np.ldexp(to_fixed(value, k, BITS), -k) if node is alone else value
    return np.concatenate([np.ravel(values[node]) for node in graph.outputs])


class _Quantizer(Integers):
    """Goes through a graph."""

    def __init__(self, graph: Graph, ranges: Ranges, bits: int) -> None:
        super().__init__(graph, ranges, bits)
        for node in reversed(graph.nodes):
            self._ask(node)
        for node in graph.nodes:
            if node.constant is None:
                self._visit(node)

    def whole(self) -> Whole:
        """Return the graph that was made."""
        results = [self._stored[node] for node in self._graph.outputs]
        data, fraction = self._stored[self._graph.input]
        nodes = [one for one, _ in self._stored.values()]
        outputs = [one for one, _ in results]
        return Whole(graph_of(data, nodes, outputs), fraction, tuple(k for _, k in results))

    def _ask(self, node: Node) -> None:
        """Note the k that results should have which only move from here on."""
        if not isinstance(node.operator, MOVES):
            return
        for one in node.inputs:
            if len(self._readers[one]) == 1 and one.constant is None:
                self._reader_fractions[one] = self._fraction(node)

    def _visit(self, node: Node) -> None:
        place, operator = node.place, node.operator
        match operator:
            case Input():
                fraction = min(_INPUT_FRACTION, power_of_two_fraction(self._ranges[node], BITS))
                self._stored[node] = node, fraction
            case Conv() | ConvTranspose() | Gemm() if self._is_weighted(node):
                self._real[node] = self._weighted(node)
                self._finish(node)
            case Each(function=Function.POW) if _falls(node.inputs[1]):
                self._real[node] = self._steep(node)
                self._finish(node)
            case MeanVarianceNormalization():
                self._real[node] = self._normalized(node, operator)
                self._finish(node)
            case MatMul():
                self._real[node] = self._product(node)
                self._finish(node)
            case Softmax(log=False):
                self._real[node] = self._shares(node, operator.axis)
                self._store(node)
            case Each(function=function) if function in _TABLES and self._is_wide(node):
                inputs = [one if one.constant is not None else self._in_8_bits(one)
                          for one in node.inputs]  # fmt: skip
                self._real[node] = make(place, operator, *inputs)
                self._store(node)
            case Each() if (over := self._over_root(node)) is not None:
                self._real[node] = over
                self._finish(node)
            case Each() | Clip() | Dropout():
                for one in node.inputs if operator == Each(Function.MUL) else ():
                    if self._degree(one) > 1 and self._degree(node) > _DEGREE:
                        self._store(one)  # products of more need too many bits
                inputs = [self._value(one) for one in node.inputs]
                if isinstance(operator, Clip):
                    operator = Clip(_in_steps(operator.low), _in_steps(operator.high))
                self._real[node] = make(place, operator, *inputs)
                self._finish(node)
            case Reshape() | Transpose() | Slice() | Concat() | Resize() | Pad():
                self._stored[node] = self._moved(node)
            case Pool(average=False) | Reduce(reduction=Reduction.MAX | Reduction.MIN):
                data, fraction = self._integer(node.inputs[0])
                self._stored[node] = make(place, operator, data), fraction
                self._wide |= {node} if node.inputs[0] in self._wide else set()
            case Pool() | Reduce():
                self._real[node] = make(place, operator, self._value(node.inputs[0]))
                self._store(node)
            case _:
                data, fraction = self._integer(node.inputs[0])
                foreign = (
                    operator if isinstance(operator, Foreign) else Foreign(node.name, node.shape)
                )
                self._stored[node] = make(place, foreign, data), fraction

    def _is_weighted(self, node: Node) -> bool:
        return all(one.constant is not None for one in node.inputs[1:])

    # Results

    def _finish(self, node: Node) -> None:
        """Store a result unless what reads it computes further at once."""
        readers = self._readers[node]
        if len(readers) > 1 or node in self._graph.outputs or not readers:
            self._store(node)
            return
        (reader,) = readers
        if not isinstance(reader.operator, _OF_ELEMENTS) or self._is_table(reader):
            self._store(node)
        elif self._follows_sums(node):
            if not _is_simple(reader):
                self._store(node)
        elif len(self._leaves(reader)) > 1:
            self._store(node)

    def _follows_sums(self, node: Node) -> bool:
        """Whether a result is sums with what is done with them at once."""
        while node not in self._stored and _is_simple(node):
            node = node.inputs[0]
        return node not in self._stored and isinstance(node.operator, _SUMS)

    def _leaves(self, node: Node) -> set[Node]:
        """Return the stored results, and constants by channel, that elements are computed of."""
        leaves: set[Node] = set()
        for one in node.inputs:
            if one.constant is not None:
                leaves |= {one} if one.constant.size > 1 else set()
                continue
            inner = isinstance(one.operator, _OF_ELEMENTS) and len(self._readers[one]) == 1
            plain = inner and not self._ends_sums(one)
            leaves |= self._leaves(one) if plain else {one}
        return leaves

    def _ends_sums(self, node: Node) -> bool:
        """Whether a result is one of sums, with simple operations."""
        while _is_simple(node):
            node = node.inputs[0]
            if len(self._readers[node]) > 1:
                return False
        return isinstance(node.operator, _SUMS)

    def _is_table(self, node: Node) -> bool:
        """Whether a table of 8 bits stands for a node among wide results."""
        each = node.operator
        return self._bits > BITS and isinstance(each, Each) and each.function in _TABLES

    def _degree(self, node: Node) -> int:
        """Return how many wide results are multiplied with each other at most."""
        if node in self._stored or node.constant is not None:
            return int(node.constant is None and self._bits > BITS)
        degrees = [self._degree(one) for one in node.inputs]
        return (sum if node.operator == Each(Function.MUL) else max)(degrees)

    # Operators

    def _weighted(self, node: Node) -> Node:
        """Return sums of integers, scaled to what they stand for."""
        if self._bits > BITS:
            return self._weighted_by_parts(node)
        data, kx = self._integer_of_8_bits(node.inputs[0])
        weights = np.asarray(node.inputs[1].constant, np.float64)
        kw = power_of_two_fraction(largest(weights), BITS)
        bias = [np.asarray(one.constant, np.float64).ravel() for one in node.inputs[2:]]
        count = weights.size // len(weights)
        while max([count * 2.0 ** (2 * BITS - 2), *(largest(b) * 2.0 ** (kx + kw) for b in bias)],
                  default=0) >= 2.0 ** (_SUM_BITS - 1) and kw > -DEEPEST:  # fmt: skip
            kw, count = kw - 1, count // 2
        integers = to_fixed(weights, kw, BITS).astype(np.float64)
        starts = [constant(np.rint(np.ldexp(b, kx + kw))) for b in bias]
        name = node.inputs[1].place
        sums = make(node.place, node.operator, data, constant(integers, name), *starts)
        return scaled(node.place, sums, -(kx + kw))

    def _steep(self, node: Node) -> Node:
        """Return a negative power of a result; what integers do not tell from zero counts as half
        of their last place.
        """
        data, fraction = self._integer_of_8_bits(node.inputs[0])
        least = math.ldexp(0.5, -fraction)
        most = float(np.power(least, np.asarray(node.inputs[1].constant)).max())
        self._ranges[node] = min(self._ranges[node], most)
        whole = make(node.place, Clip(least, np.inf), scaled(node.place, data, -fraction))
        return make(node.place, node.operator, whole, node.inputs[1])

    def _moved(self, node: Node) -> tuple[Node, int]:
        integers = [self._integer(one) for one in node.inputs]
        fraction = min(fraction for _, fraction in integers)
        bits = WIDE if self._wide & {*node.inputs} else BITS
        self._wide |= {node} if bits > BITS else set()
        if len(integers) > 1:
            fraction = min(fraction, self._fraction(node))
        inputs = [
            one if k == fraction
            else rounded(node.place, scaled(node.place, one, -k), fraction, bits)
            for one, k in integers
        ]  # fmt: skip
        operator = node.operator
        if isinstance(operator, Pad) and operator.value:
            value = float(to_fixed(operator.value, fraction, bits))
            if bits > BITS:  # what is copied in words is filled with 0
                inputs = [make(node.place, Each(Function.ADD), *inputs, constant(np.array(-value)))]
                padded = make(node.place, replace(operator, value=0.0), *inputs)
                more = constant(np.array(value))
                return make(node.place, Each(Function.ADD), padded, more), fraction
            operator = replace(operator, value=value)
        return make(node.place, operator, *inputs), fraction


def _in_steps(limit: float) -> float:
    """Return a limit as a multiple of a step far below those of results."""
    return math.ldexp(round(math.ldexp(limit, _LIMIT_BITS)), -_LIMIT_BITS) if (
        math.isfinite(limit)) else limit  # fmt: skip


def _falls(exponent: Node) -> bool:
    """Whether a power is a constant below zero."""
    return exponent.constant is not None and bool((np.asarray(exponent.constant) < 0).all())


def _is_simple(node: Node) -> bool:
    """Whether a node limits elements, adds or multiplies constants, or takes their sign."""
    match node.operator:
        case Clip() | Dropout():
            return True
        case Each(function=Function.ADD | Function.MUL):
            return node.inputs[1].constant is not None
        case Each(function=Function.SIGN):
            return True
        case _:
            return False
