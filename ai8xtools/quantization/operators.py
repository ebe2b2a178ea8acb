"""A graph of operators in floating point becomes one in whole numbers of 8 bits.

Each result that is stored has a power of two of its own: a value is an integer times 2^-k. What is
done with elements is computed exactly and rounded once. Source: docs/software.md, "Graphs".
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.compositions import compositions
from ai8xtools.frontends.graph.execute import value_of
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
    Pad,
    Pool,
    Reduce,
    Reduction,
    Reshape,
    Resize,
    Slice,
    Transpose,
)
from ai8xtools.frontends.graph.recurrent import STEP
from ai8xtools.quantization.formats import (
    Float64s,
    largest,
    limits,
    power_of_two_fraction,
    to_fixed,
)
from ai8xtools.values import frozen

PASSES = (
    compositions, passes.normalizations, passes.constants_second, passes.limits, passes.sections,
    passes.padding,
    passes.reductions, passes.transposes, passes.into_weights, passes.before_weights,
)  # fmt: skip
"""What is done with a graph before; into_weights behind what makes factors and offsets."""

BITS, _INPUT_FRACTION = 8, 7
_CONSTANT_BITS = 12
"""Significant bits of constants that elements are computed with."""
_FEWEST = 64
"""Steps that the results of a network should have between their ends; else they have more bits."""
_SUM_BITS, _DEEPEST = 31, 30
_MOVES = Reshape | Transpose | Slice | Concat | Resize | Pad
_WEIGHTED = Conv | ConvTranspose | Gemm
_OF_ELEMENTS = Each | Clip | Dropout


@frozen
class Whole:
    """A graph in whole numbers: the k of its input and of its results."""

    graph: Graph
    fraction: int
    fractions: tuple[int, ...]


@frozen
class Ranges:
    """Of each result for samples: the largest magnitude, and of those of the graph the spread."""

    largest: dict[Node, float]
    spread: dict[Node, float]


def measured(graph: Graph, samples: Sequence[Float64s]) -> Ranges:
    """Return the ranges of results for samples [1, ...]."""
    found = dict.fromkeys(graph.nodes, 0.0)
    ends = dict.fromkeys(graph.outputs, (np.inf, -np.inf))
    for sample in samples:
        known: dict[Node, Array] = {graph.input: sample}
        for node in graph.nodes:
            if node not in known:
                given = [known[one] for one in node.inputs if one in known]
                value = value_of(node.operator, given) if len(given) == len(node.inputs) else None
                if value is None:
                    continue
                known[node] = value
            found[node] = max(found[node], largest(known[node]))
            if node in ends:
                low, high = ends[node]
                ends[node] = min(low, float(known[node].min())), max(high, float(known[node].max()))
    return Ranges(_alike(found), {node: high - low for node, (low, high) in ends.items()})


def _alike(found: dict[Node, float]) -> dict[Node, float]:
    """Return ranges in which the steps of a recurrent layer have those of all of them: they share
    weights and tables.
    """
    keys, most = {}, defaultdict[tuple[str, str, str], float](float)
    for node, value in found.items():
        place, step, words = node.place.partition(STEP)
        if step:
            keys[node] = key = place, words.partition(" ")[2], node.name
            most[key] = max(most[key], value)
    return found | {node: most[key] for node, key in keys.items()}


def quantized(graph: Graph, ranges: Ranges) -> Whole:
    """Return a graph, to which `PASSES` were applied, in whole numbers."""
    return _Quantizer(graph, ranges).whole()


class _Quantizer:
    """`stored` are results as integers, with their k; `real` the expressions of all others."""

    def __init__(self, graph: Graph, ranges: Ranges) -> None:
        self._graph, self._ranges, self._spread = graph, dict(ranges.largest), ranges.spread
        self._readers = graph.readers()
        self._wanted: dict[Node, int] = {}
        self._stored: dict[Node, tuple[Node, int]] = {}
        self._real: dict[Node, Node] = {}
        for node in reversed(graph.nodes):
            self._ask(node)
        for node in graph.nodes:
            if node.constant is None:
                self._visit(node)

    def whole(self) -> Whole:
        """Return the graph that was made."""
        made = [self._stored[node] for node in self._graph.outputs]
        given, fraction = self._stored[self._graph.input]
        nodes = [one for one, _ in self._stored.values()]
        outputs = [one for one, _ in made]
        return Whole(graph_of(given, nodes, outputs), fraction, tuple(k for _, k in made))

    def _ask(self, node: Node) -> None:
        """Note the k that results should have which only move from here on."""
        if not isinstance(node.operator, _MOVES):
            return
        for one in node.inputs:
            if len(self._readers[one]) == 1 and one.constant is None:
                self._wanted[one] = self._fraction(node)

    def _fraction(self, node: Node) -> int:
        """Return the k of a result."""
        own = power_of_two_fraction(self._ranges[node], BITS)
        return max(min(self._wanted.get(node, own), _DEEPEST), -_DEEPEST)

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
            case Each() | Clip() | Dropout():
                given = [self._value(one) for one in node.inputs]
                self._real[node] = make(place, operator, *given)
                self._finish(node)
            case Reshape() | Transpose() | Slice() | Concat() | Resize() | Pad():
                self._stored[node] = self._moved(node)
            case Pool(average=False) | Reduce(reduction=Reduction.MAX | Reduction.MIN):
                data, fraction = self._integer(node.inputs[0])
                self._stored[node] = make(place, operator, data), fraction
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

    def _integer(self, node: Node) -> tuple[Node, int]:
        if node not in self._stored:
            self._store(node)
        return self._stored[node]

    def _value(self, node: Node) -> Node:
        """Return an expression of what a result stands for; constants have few bits."""
        if node.constant is not None:
            return constant(_shortened(np.asarray(node.constant, np.float64)), node.place)
        if node not in self._stored:
            return self._real[node]
        data, fraction = self._stored[node]
        return _scaled(node.place, data, -fraction)

    def _store(self, node: Node) -> None:
        """Round a result to integers."""
        fraction, bits = self._fraction(node), BITS
        spread = self._spread.get(node, 0.0)
        if self._readers[node] == [node] and 0 < spread < math.ldexp(_FEWEST, -fraction):
            more = min(math.ceil(math.log2(math.ldexp(_FEWEST, -fraction) / spread)), BITS)
            fraction, bits = fraction + more, BITS + more
        self._stored[node] = _rounded(node.place, self._real[node], fraction, bits), fraction

    def _finish(self, node: Node) -> None:
        """Store a result unless what reads it computes further at once."""
        readers = self._readers[node]
        if len(readers) > 1 or node in self._graph.outputs or not readers:
            self._store(node)
            return
        (reader,) = readers
        if not isinstance(reader.operator, _OF_ELEMENTS):
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
        return node not in self._stored and isinstance(node.operator, _WEIGHTED)

    def _leaves(self, node: Node) -> set[Node]:
        """Return the stored results, and constants by channel, that elements are computed of."""
        found: set[Node] = set()
        for one in node.inputs:
            if one.constant is not None:
                found |= {one} if one.constant.size > 1 else set()
                continue
            inner = isinstance(one.operator, _OF_ELEMENTS) and len(self._readers[one]) == 1
            plain = inner and not self._ends_sums(one)
            found |= self._leaves(one) if plain else {one}
        return found

    def _ends_sums(self, node: Node) -> bool:
        """Whether a result is one of sums, with simple operations."""
        while _is_simple(node):
            node = node.inputs[0]
            if len(self._readers[node]) > 1:
                return False
        return isinstance(node.operator, _WEIGHTED)

    # Operators

    def _weighted(self, node: Node) -> Node:
        """Return sums of integers, scaled to what they stand for."""
        data, kx = self._integer(node.inputs[0])
        weights = np.asarray(node.inputs[1].constant, np.float64)
        kw = power_of_two_fraction(largest(weights), BITS)
        bias = [np.asarray(one.constant, np.float64).ravel() for one in node.inputs[2:]]
        count = weights.size // len(weights)
        while max([count * 2.0 ** (2 * BITS - 2), *(largest(b) * 2.0 ** (kx + kw) for b in bias)],
                  default=0) >= 2.0 ** (_SUM_BITS - 1) and kw > -_DEEPEST:  # fmt: skip
            kw, count = kw - 1, count // 2
        integers = to_fixed(weights, kw, BITS).astype(np.float64)
        starts = [constant(np.rint(np.ldexp(b, kx + kw))) for b in bias]
        name = node.inputs[1].place
        sums = make(node.place, node.operator, data, constant(integers, name), *starts)
        return _scaled(node.place, sums, -(kx + kw))

    def _steep(self, node: Node) -> Node:
        """Return a negative power of a result; what integers do not tell from zero counts as half
        of their last place.
        """
        data, fraction = self._integer(node.inputs[0])
        least = math.ldexp(0.5, -fraction)
        most = float(np.power(least, np.asarray(node.inputs[1].constant)).max())
        self._ranges[node] = min(self._ranges[node], most)
        whole = make(node.place, Clip(least, np.inf), _scaled(node.place, data, -fraction))
        return make(node.place, node.operator, whole, node.inputs[1])

    def _moved(self, node: Node) -> tuple[Node, int]:
        given = [self._integer(one) for one in node.inputs]
        fraction = min(fraction for _, fraction in given)
        if len(given) > 1:
            fraction = min(fraction, self._fraction(node))
        inputs = [
            one if k == fraction else _rounded(node.place, _scaled(node.place, one, -k), fraction)
            for one, k in given
        ]
        operator = node.operator
        if isinstance(operator, Pad) and operator.value:
            value = float(to_fixed(operator.value, fraction, BITS))
            operator = replace(operator, value=value)
        return make(node.place, operator, *inputs), fraction


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


def _scaled(place: str, data: Node, exponent: int) -> Node:
    """Return data times 2^exponent."""
    if not exponent:
        return data
    return make(place, Each(Function.MUL), data, constant(np.array(math.ldexp(1, exponent))))


def _rounded(place: str, value: Node, fraction: int, bits: int = BITS) -> Node:
    """Return the integers of a value with k = `fraction`: halves up, limited."""
    half = constant(np.array(0.5))
    moved = make(place, Each(Function.ADD), _scaled(place, value, fraction), half)
    low, high = limits(bits)
    return make(place, Clip(low, high), make(place, Each(Function.FLOOR), moved))


def _shortened(values: Array) -> Array:
    """Return constants of few significant bits."""
    mantissas, exponents = np.frexp(values)
    whole = np.rint(np.ldexp(mantissas, _CONSTANT_BITS))
    shortened: Array = np.ldexp(whole, exponents - _CONSTANT_BITS)
    return shortened
