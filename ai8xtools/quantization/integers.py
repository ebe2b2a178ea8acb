"""Results of a graph as integers of 8 bits, or of more where 8 lose too much.

A value is an integer times 2^-k. Products and squares of wide integers are those of their parts of
8 bits. Source: docs/software.md, "Graphs".
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import partial, reduce

import numpy as np

from ai8xtools.frontends.graph.execute import value_of
from ai8xtools.frontends.graph.nodes import Graph, Node, constant, make
from ai8xtools.frontends.graph.operators import (
    Array,
    Clip,
    Concat,
    Each,
    Function,
    Gemm,
    MeanVarianceNormalization,
    Pad,
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

MOVES = Reshape | Transpose | Slice | Concat | Resize | Pad
"""What only moves values."""
BITS, WIDE = 8, 15
"""Bits of results; wide ones are two parts of 8 bits where they are multiplied."""
_CONSTANT_BITS = 12
"""Significant bits of constants that elements are computed with."""
_FEWEST = 64
"""Steps that the results of a network should have between their ends; else they have more bits."""
DEEPEST = 30
"""The largest k."""
_EXACT_BITS = 50
"""Of what a root is taken of: float64 and integers of 64 bits compute it exactly."""
_NOTHING = 32
"""By so much more than data differ a mask lowers what it hides: exponentials are 0 next to 1."""
_MOST_NORMALIZED = 1 << 11
"""Values whose variance is exact where each is wide; of more, each has 8 bits."""


@frozen
class Ranges:
    """Of each result for samples: the largest magnitude, and of those of the graph the spread."""

    largest: dict[Node, float]
    spread: dict[Node, float]


def measured(graph: Graph, samples: Sequence[Float64s]) -> Ranges:
    """Return the ranges of results for samples [1, ...]."""
    magnitudes = dict.fromkeys(graph.nodes, 0.0)
    ends = dict.fromkeys(graph.outputs, (np.inf, -np.inf))
    for sample in samples:
        values: dict[Node, Array] = {graph.input: sample}
        for node in graph.nodes:
            if node not in values:
                inputs = [values[one] for one in node.inputs if one in values]
                value = value_of(node.operator, inputs) if len(inputs) == len(node.inputs) else None
                if value is None:
                    continue
                values[node] = value
            magnitudes[node] = max(magnitudes[node], largest(values[node]))
            if node in ends:
                low, high = ends[node]
                ends[node] = (
                    min(low, float(values[node].min())),
                    max(high, float(values[node].max())),
                )
    return Ranges(_alike(magnitudes), {node: high - low for node, (low, high) in ends.items()})


def _alike(magnitudes: dict[Node, float]) -> dict[Node, float]:
    """Return ranges in which the steps of a recurrent layer have those of all of them: they share
    weights and tables.
    """
    keys, most = {}, defaultdict[tuple[str, str, str], float](float)
    for node, value in magnitudes.items():
        place, step, words = node.place.partition(STEP)
        if step:
            keys[node] = key = place, words.partition(" ")[2], node.name
            most[key] = max(most[key], value)
    return magnitudes | {node: most[key] for node, key in keys.items()}


class Integers:
    """`stored` are results as integers, with their k; `real` the expressions of all others.

    `wide` are results of more than 8 bits, `narrow` the same in 8 bits, `parts` the same as sums of
    integers of 8 bits times 2^n.
    """

    def __init__(self, graph: Graph, ranges: Ranges, bits: int) -> None:
        self._ranges, self._spread = dict(ranges.largest), ranges.spread
        self._graph, self._bits, self._readers = graph, bits, dict(graph.readers())
        self._reader_fractions: dict[Node, int] = {}
        self._stored: dict[Node, tuple[Node, int]] = {}
        self._real: dict[Node, Node] = {}
        self._wide: set[Node] = set()
        self._narrow: dict[Node, tuple[Node, int]] = {}
        self._parts: dict[Node, list[tuple[Node, int]]] = {}

    def _fraction(self, node: Node) -> int:
        """Return the k of a result."""
        own = power_of_two_fraction(self._ranges[node], self._bits_of(node))
        return max(min(self._reader_fractions.get(node, own), DEEPEST), -DEEPEST)

    def _bits_of(self, node: Node) -> int:
        """Return the bits that a result is stored with: what is normalized, perhaps in another
        place, needs more.
        """
        precise = any(
            self._bits_of(one) > BITS if isinstance(one.operator, MOVES) and one is not node
            else isinstance(one.operator, MeanVarianceNormalization)
            and _count(one) <= _MOST_NORMALIZED
            for one in self._readers[node]
        )  # fmt: skip
        return WIDE if precise else self._bits

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
        return scaled(node.place, data, -fraction)

    def _store(self, node: Node) -> None:
        """Round a result to integers."""
        fraction, bits = self._fraction(node), self._bits_of(node)
        self._wide |= {node} if bits > BITS else set()
        spread = self._spread.get(node, 0.0)
        if (
            bits == BITS
            and self._readers[node] == [node]
            and 0 < spread < math.ldexp(_FEWEST, -fraction)
        ):
            more = min(math.ceil(math.log2(math.ldexp(_FEWEST, -fraction) / spread)), BITS)
            fraction, bits = fraction + more, BITS + more
        self._stored[node] = rounded(node.place, self._real[node], fraction, bits), fraction

    def _is_wide(self, node: Node) -> bool:
        """Whether elements are computed of wide results."""
        return any(one in self._wide or (one not in self._stored and self._is_wide(one))
                   for one in node.inputs)  # fmt: skip

    def _integer_of_8_bits(self, node: Node) -> tuple[Node, int]:
        """Return the integers of a result in 8 bits, and their k."""
        data, fraction = self._integer(node)
        if node not in self._wide:
            return data, fraction
        if node not in self._narrow:
            less = power_of_two_fraction(self._ranges[node], BITS)
            value = scaled(node.place, data, -fraction)
            self._narrow[node] = rounded(node.place, value, less), less
        return self._narrow[node]

    def _in_8_bits(self, node: Node) -> Node:
        """Return what a result stands for in 8 bits."""
        data, fraction = self._integer_of_8_bits(node)
        return scaled(node.place, data, -fraction)

    def _parts_of(self, node: Node) -> tuple[list[tuple[Node, int]], int]:
        """Return integers of 8 bits, each with the power of two that it counts; and the k of all.

        The sum of the parts are the integers of a result.
        """
        data, fraction = self._integer(node)
        if node not in self._wide:
            return [(data, 0)], fraction
        if node not in self._parts:
            place, low, high = node.place, *limits(BITS)
            moved = make(place, Each(Function.ADD), data, constant(np.array(-float(low))))
            upper = make(place, Each(Function.FLOOR), scaled(place, moved, -BITS))
            less = make(place, Each(Function.SUB), data, scaled(place, upper, BITS))
            self._parts[node] = [(make(place, Clip(low, high), less), 0), (upper, BITS)]
        return self._parts[node], fraction

    def _weighted_by_parts(self, node: Node) -> Node:
        """Return sums of wide integers: those of products of parts, less those of the last ones."""
        place, (data, *constants) = node.place, node.inputs
        parts, kx = self._parts_of(data)
        weights = np.asarray(constants[0].constant, np.float64)
        kw = min(power_of_two_fraction(largest(weights), WIDE), DEEPEST)
        integers = to_fixed(weights, kw, WIDE).astype(np.float64)
        upper = np.floor((integers + (1 << BITS - 1)) / (1 << BITS))
        both = [(integers - upper * (1 << BITS), 0), (upper, BITS)]
        axes = (-1,) if isinstance(node.operator, Gemm) else (-1, *(1,) * (len(node.shape) - 2))
        terms = []
        for part, one in parts:
            for values, other in both:
                if values.any() and (one + other or len(parts) == 1 or not upper.any()):
                    factors = constant(values, constants[0].place)
                    sums = make(place, node.operator, part, factors)
                    terms.append(scaled(place, sums, one + other))
        for bias in constants[1:]:
            values = np.asarray(bias.constant, np.float64).reshape(axes)
            terms.append(constant(np.rint(np.ldexp(values, kx + kw))))
        if not terms:  # all weights are 0
            terms = [make(place, node.operator, parts[0][0], constant(integers))]
        return scaled(place, _summed(place, terms), -(kx + kw))

    def _product(self, node: Node) -> Node:
        """Return the product of two results: sums of the products of their parts."""
        (left, ka), (right, kb) = map(self._parts_of, node.inputs)
        terms = [scaled(node.place, make(node.place, node.operator, a, b), one + other)
                 for a, one in left for b, other in right]  # fmt: skip
        return scaled(node.place, _summed(node.place, terms), -(ka + kb))

    def _shares(self, node: Node, axis: int) -> Node:
        """Return exponentials over their sum; those of differences to the largest are tables, of
        wide data products of two. What a mask makes far less than all others counts nothing.
        """
        place, low = node.place, limits(BITS)[0]
        data, seen = self._masked(node.inputs[0])
        whole, k = self._integer(data)
        most = whole
        if seen is not None:  # the least there is
            bits = WIDE if data in self._wide else BITS
            hidden = constant((1.0 - seen) * limits(bits)[0])
            most = _each(place, Function.ADD, _each(place, Function.MUL, whole, seen), hidden)
        most = make(place, Reduce(Reduction.MAX, (axis,), True), most)
        less = _each(place, Function.SUB, whole, most)  # 0 or below
        parts = [(less, 0)]
        if data in self._wide:
            upper = make(place, Each(Function.CEIL), scaled(place, less, -BITS))
            rest = _each(place, Function.SUB, less, scaled(place, upper, BITS))
            parts = [(upper, BITS), (rest, 0)]
        powers = []
        for part, exponent in parts:
            moved = rounded(place, _each(place, Function.SUB, part, low + 1), 0)
            exact = scaled(place, _each(place, Function.ADD, moved, low + 1), exponent - k)
            power = make(place, Each(Function.EXP), exact)
            powers.append(rounded(place, power, WIDE - 1, WIDE))
        power = powers[0]
        if len(powers) > 1:
            both = scaled(place, _each(place, Function.MUL, *powers), 1 - WIDE)
            power = rounded(place, both, 0, WIDE)
        if seen is not None:
            power = _each(place, Function.MUL, power, seen)
        total = make(place, Reduce(Reduction.SUM, (axis,), True), power)
        return _each(place, Function.DIV, power, make(place, Clip(1.0, np.inf), total))

    def _masked(self, node: Node) -> tuple[Node, Array | None]:
        """Return data without what a mask adds to them, and which of them it leaves as they are:
        1, else 0; None without a mask.
        """
        added = node.inputs[-1].constant if node.operator == Each(Function.ADD) else None
        if added is None:
            return node, None
        data = node.inputs[0]
        hidden = added < -2 * self._ranges[data] - _NOTHING
        rest = np.where(hidden, 0.0, added)
        if not hidden.any() or data.shape != node.shape:
            return node, None
        if rest.any():
            data = make(node.place, Each(Function.ADD), data, constant(rest))
            self._ranges[data] = self._ranges[node.inputs[0]] + largest(rest)
            self._readers[data] = [node]
            self._real[data] = _each(
                node.place, Function.ADD, self._value(node.inputs[0]), _shortened(rest)
            )
        return data, np.where(hidden, 0.0, 1.0)

    def _normalized(self, node: Node, operator: MeanVarianceNormalization) -> Node:
        """Return data less their mean over the root of their variance, n times both: from sums and
        sums of squares, exactly but for the root.
        """
        place, n = node.place, _count(node)
        each = partial(_each, place)
        add, sub, mul = Function.ADD, Function.SUB, Function.MUL
        total = Reduce(Reduction.SUM, operator.axes, True)
        data = node.inputs[0]
        if data in self._wide and n > _MOST_NORMALIZED:
            whole, k = self._integer_of_8_bits(data)
            parts, bits = [(whole, 0)], BITS
        else:
            whole, (parts, k) = self._integer(data)[0], self._parts_of(data)
            bits = WIDE if data in self._wide else BITS
        squares = [
            scaled(place, make(place, total, each(mul, a, b)), one + other + (i != j))
            for i, (a, one) in enumerate(parts) for j, (b, other) in enumerate(parts) if i <= j
        ]  # fmt: skip
        summed = _summed(place, squares)
        mean = make(place, total, whole)
        variance = each(sub, each(mul, summed, n), each(mul, mean, mean))
        epsilon = operator.epsilon * n**2 * 4.0**k
        most = math.ceil(math.log2(n**2 * 4.0 ** (bits - 1) + epsilon))
        more = max(min((_EXACT_BITS - most) // 2, WIDE), 0)
        positive = make(place, Clip(0.0, np.inf), scaled(place, variance, 2 * more))
        wide = each(add, positive, np.rint(epsilon * 4.0**more))
        root = make(place, Each(Function.FLOOR), make(place, Each(Function.SQRT), wide))
        less = scaled(place, each(sub, each(mul, whole, n), mean), more)
        return each(Function.DIV, less, make(place, Clip(1.0, np.inf), root))

    def _over_root(self, node: Node) -> Node | None:
        """Return a constant times, or behind, what is divided by a root, divided by it at the end:
        so results are exact in floating point, too.
        """
        ratio = self._real.get(node.inputs[0])
        if ratio is None or node.inputs[0] in self._stored or ratio.operator != Each(Function.DIV):
            return None
        (top, root), value = ratio.inputs, node.inputs[-1].constant
        if root.constant is not None or value is None:
            return None
        factor, function = self._value(node.inputs[1]), node.operator
        match function:
            case Each(function=Function.MUL):
                top = make(node.place, function, top, factor)
            case Each(function=Function.ADD):
                top = make(node.place, function, top,
                           make(node.place, Each(Function.MUL), root, factor))  # fmt: skip
            case _:
                return None
        return make(node.place, Each(Function.DIV), top, root)


def _count(node: Node) -> int:
    """Return how many values are normalized together."""
    assert isinstance(node.operator, MeanVarianceNormalization)
    return math.prod(node.inputs[0].shape[axis] for axis in node.operator.axes)


def _each(place: str, function: Function, a: Node, b: Node | float | Array) -> Node:
    """Return what a function makes of pairs of elements."""
    return make(place, Each(function), a,
                b if isinstance(b, Node) else constant(np.asarray(b, np.float64)))  # fmt: skip


def _summed(place: str, terms: Sequence[Node]) -> Node:
    """Return the sum of results."""
    return reduce(partial(_each, place, Function.ADD), terms)


def scaled(place: str, data: Node, exponent: int) -> Node:
    """Return data times 2^exponent."""
    if not exponent:
        return data
    return make(place, Each(Function.MUL), data, constant(np.array(math.ldexp(1, exponent))))


def rounded(place: str, value: Node, fraction: int, bits: int = BITS) -> Node:
    """Return the integers of a value with k = `fraction`: halves up, limited."""
    half = constant(np.array(0.5))
    moved = make(place, Each(Function.ADD), scaled(place, value, fraction), half)
    low, high = limits(bits)
    return make(place, Clip(low, high), make(place, Each(Function.FLOOR), moved))


def _shortened(values: Array) -> Array:
    """Return constants of few significant bits."""
    mantissas, exponents = np.frexp(values)
    whole = np.rint(np.ldexp(mantissas, _CONSTANT_BITS))
    shortened: Array = np.ldexp(whole, exponents - _CONSTANT_BITS)
    return shortened
