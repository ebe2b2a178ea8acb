"""Whether a program computes a graph of operators for every input.

Source: docs/proof.md, "Graphs of operators".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.proof.comparison import differing, keys_of
from ai8xtools.commands.proof.reference import Expected
from ai8xtools.commands.proof.software import (
    Comparing,
    ProgramQuestion,
    compare_inferences,
    order_of,
)
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.proof.algebra import Algebra, Terms, joined
from ai8xtools.emulator.proof.fingerprints import LANES, Fingerprints, Mixer
from ai8xtools.emulator.proof.kernels import departure
from ai8xtools.emulator.proof.operators import OperatorProgram, OperatorValues
from ai8xtools.emulator.proof.steps import Step, steps_of
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.execute import value_of
from ai8xtools.frontends.graph.nodes import Graph, Node
from ai8xtools.frontends.graph.operators import (
    Array,
    Clip,
    Concat,
    Conv,
    ConvTranspose,
    Dropout,
    Each,
    Function,
    Gemm,
    Input,
    MatMul,
    Pad,
    Pool,
    Reduce,
    Reduction,
    Reshape,
    Resize,
    Slice,
    Transpose,
)
from ai8xtools.reading import source_text
from ai8xtools.reading.progress import tracked
from ai8xtools.values import frozen
from ai8xtools.writing.templates import TEMPLATES

Integers = NDArray[np.int64]
_TEMPLATE = TEMPLATES / "software" / "cnn.c.j2"
_MOVING = Reshape | Transpose | Slice | Concat | Resize | Pad | Dropout
_OF_PAIRS = (Function.ADD, Function.SUB, Function.MUL, Function.MAX, Function.MIN)


def apart(prefix: str = "") -> str:
    """Return the flag that keeps the functions of steps as they are; names begin with a prefix."""
    return f"-D{prefix.upper()}CNN_STEP=__attribute__((noinline,weak))"


def in_memory(values: Array) -> Array:
    """Return values of a result [1, ...] as they are delivered: [row, column, channel]."""
    if values.shape[:1] != (1,) or values.ndim not in (2, 3, 4):
        return values.reshape(1, 1, -1)
    return values.reshape(*values.shape[1:], *(1,) * (4 - values.ndim)).transpose(1, 2, 0)


@frozen
class OperatorOutput:
    """A result of a graph of operators."""

    index: int
    output_width: int
    out_channels: int
    out_dim: tuple[int, int]
    place: str

    def __str__(self) -> str:
        return f"output {self.index} ({self.place})"


@frozen(slots=False)
class OperatorReference(Expected):
    """A graph of operators, with a sample [1, ...]; its results have so many bytes a value."""

    name: str
    graph: Graph
    given: Integers
    widths: tuple[int, ...]

    @property
    def certainty(self) -> str:
        """How improbable it is that a proof errs, for people."""
        return f"{super().certainty} if no more than two results are multiplied"

    @property
    def sample(self) -> Integers:
        """The sample, [channel, row, column]."""
        return np.asarray(in_memory(self.given).transpose(2, 0, 1))

    @property
    def size(self) -> str:
        """How much it is, for people."""
        return f"{sum(bool(node.inputs) for node in self.graph.nodes)} operators"

    @cached_property
    def outputs(self) -> Sequence[OperatorOutput]:
        """The results, in this order."""
        shapes = [in_memory(np.broadcast_to(np.int8(0), node.shape)).shape
                  for node in self.graph.outputs]  # fmt: skip
        return [OperatorOutput(n, 8 * width, shape[2], (shape[0], shape[1]), node.place)
                for n, (shape, node, width) in enumerate(
                    zip(shapes, self.graph.outputs, self.widths, strict=True))]  # fmt: skip

    @property
    def inner(self) -> Sequence[OperatorOutput]:
        """All results of which `outputs_for` tells."""
        return self.outputs

    def outputs_for(self, image: Integers) -> Mapping[int, Integers]:
        """Return the results, by index, for an input [channel, row, column]."""
        sample = np.empty(image.size)
        sample[self.places] = image.transpose(1, 2, 0).ravel()
        results = passes.results(self.graph, sample.reshape(self.given.shape))
        values = [np.asarray(one).astype(np.int64) for one in results]
        return {n: in_memory(one).transpose(2, 0, 1) for n, one in enumerate(values)}

    @property
    def places(self) -> Integers:
        """Where each value of the input, as it is delivered, is in the input of the graph."""
        return in_memory(np.arange(self.given.size).reshape(self.given.shape)).ravel()


@frozen(slots=False)
class OperatorQuestion(ProgramQuestion):
    """A graph of operators, and a program: the texts of cnn.c and weights.h."""

    reference: OperatorReference
    code: str = ""
    weights: str = ""

    def difference(self) -> str:
        """Return what differs for some input, empty if nothing does; raises EmulatorError if that
        is not known.
        """
        text = source_text(_TEMPLATE)
        helpers = [text.replace("{{ type }}", f"int{bits}_t") for bits in (32, 64)]
        steps, tables = steps_of(self.code, self.weights, "".join(helpers))
        return compare_inferences(_Comparing(self, steps, tables))


class _Comparing(Comparing):
    """Compares one inference of a program after the other with those of a graph."""

    def __init__(
        self, question: OperatorQuestion, steps: Mapping[str, Step], tables: Mapping[str, Integers]
    ) -> None:
        self._reference = reference = question.reference
        sizes = [one.output_width // 8 * len(order_of(one)) for one in reference.outputs]
        self.program = OperatorProgram(
            question.image, reference.given.size, sum(sizes), question.time_limit, steps, tables
        )
        self._mixer = Mixer()
        self._algebra = Algebra(self._mixer)
        self._values = OperatorValues(self.program.flow, self._mixer, self._algebra)

    def difference(self, given: Fingerprints) -> str:
        """Return how an inference with this input, as it is delivered, differs; empty if it does
        not.
        """
        values, reference = self._values, self._reference
        produced = values.compute()
        graph = Operators(self._algebra, reference.graph, given[np.argsort(reference.places)])
        offset = 0
        for output, node in zip(reference.outputs, reference.graph.outputs, strict=True):
            expected, over = self._algebra.numerators(graph.values[node])
            if (over != 1).any():
                raise departure(f"{output} is not in whole numbers")
            order = in_memory(np.arange(len(expected)).reshape(node.shape)).ravel()
            width = output.output_width // 8
            delivered = self.program.result(offset, len(expected), width)
            values.compute()
            wrong = differing(expected.sums[order], values.of(delivered))
            if len(wrong):
                return graph.first_missing([given, produced]) or (
                    f"the program delivers another value as byte {offset + width * int(wrong[0])}"
                )
            offset += width * len(expected)
        return ""


@frozen
class _Ratio:
    """Values divided by values that are above 0."""

    top: Terms
    bottom: Terms


@frozen
class _Root:
    """Square roots of values."""

    of: Terms


class Operators:
    """The values of all nodes of a graph, in the order of their shapes; `given` are the expressions
    of its input.
    """

    def __init__(self, algebra: Algebra, graph: Graph, given: Fingerprints) -> None:
        self._algebra = algebra
        self.values: dict[Node, Any] = {}
        self._stored: list[Node] = []
        n = len(given)
        self._input = algebra.leaves(given, np.full(n, -128.0), np.full(n, 127.0))
        for node in tracked("Operators of the graph", graph.nodes):
            if node.constant is not None:
                continue
            try:
                self.values[node] = self._of(node)
            except EmulatorError as error:
                raise departure(f"{node.name} ({node.place}): {error.message}") from None
        self._stored += graph.outputs

    def first_missing(self, produced: Sequence[Fingerprints]) -> str:
        """Say of which result of the graph some values are not among those of the program."""
        keys = np.unique(np.concatenate([keys_of(one.reshape(-1, LANES)) for one in produced]))
        for node in dict.fromkeys(self._stored):
            values, _ = self._algebra.numerators(self.values[node])
            fixed = values.norm == 0
            lacks = ~np.isin(keys_of(values.sums), keys) & ~fixed
            if lacks.any():
                return (
                    f"the program does not compute {node.name} ({node.place}) as the network does: "
                    f"{int(lacks.sum())} of {len(lacks)} values depart, from number "
                    f"{int(np.argmax(lacks))} on"
                )
        return ""

    def _operand(self, node: Node) -> Any:
        if node.constant is not None:
            return self._algebra.constants(np.asarray(node.constant, np.float64))
        return self.values[node]

    def _terms(self, node: Node) -> Terms:
        found = self._operand(node)
        if not isinstance(found, Terms):
            raise departure("fractions, or roots, are not followed this far")
        return found

    def _of(self, node: Node) -> Any:
        operator = node.operator
        match operator:
            case Input():
                return self._input
            case Clip():
                return self._limited(operator, self._terms(node.inputs[0]))
            case Each():
                return self._each(node, operator.function)
            case Conv() | ConvTranspose() | Gemm():
                return self._weighted(node)
            case MatMul():
                return self._multiplied(node)
            case Pool():
                return self._pooled(node, operator)
            case Reduce():
                return self._reduced(node, operator)
            case _ if isinstance(operator, _MOVING):
                return self._moved(node)
            case _:
                raise departure("there are no expressions for it")

    def _moved(self, node: Node) -> Terms:
        operator, parts = node.operator, [self._terms(one) for one in node.inputs]
        ends = np.cumsum([0, *map(len, parts)])
        places = [np.arange(begin, begin + len(part)).reshape(one.shape)
                  for begin, part, one in zip(ends, parts, node.inputs, strict=False)]  # fmt: skip
        if isinstance(operator, Pad) and operator.mode == "constant":
            parts.append(self._algebra.constants(np.array([operator.value])))
            operator = replace(operator, value=int(ends[-1]))
        moved = value_of(operator, places)
        assert moved is not None
        return joined(parts).take(moved.astype(np.int64).ravel())

    def _limited(self, clip: Clip, values: Terms) -> Terms:
        algebra = self._algebra
        for end, pick in ((clip.low, algebra.largest), (clip.high, algebra.smallest)):
            if np.isfinite(end):
                values = pick(values, algebra.constants(np.full(len(values), end)))
        return values

    def _spread(self, node: Node, one: Node, values: Terms) -> Terms:
        """Return the values of an operand, one for each of the result."""
        places = np.arange(len(values)).reshape(one.shape)
        return values.take(np.broadcast_to(places, node.shape).ravel())

    def _each(self, node: Node, function: Function) -> Any:
        algebra, first = self._algebra, node.inputs[0]
        if function.pairs:
            return self._pairs(node, function)
        given = self._operand(first)
        if isinstance(given, _Root) and function is Function.FLOOR:
            return algebra.root(given.of)
        if isinstance(given, _Ratio):
            if function is Function.FLOOR:
                return algebra.quotient(given.top, given.bottom)
            if function is Function.NEG:
                return _Ratio(algebra.negative(given.top), given.bottom)
        x = self._terms(first)
        zero = algebra.constants(np.zeros(len(x)))
        match function:
            case Function.FLOOR:
                return algebra.floor(x)
            case Function.CEIL:
                return algebra.negative(algebra.floor(algebra.negative(x)))
            case Function.TRUNC:
                down = algebra.largest(algebra.floor(x), zero)
                up = algebra.negative(algebra.floor(algebra.negative(x)))
                return algebra.added(down, algebra.smallest(up, zero))
            case Function.NEG:
                return algebra.negative(x)
            case Function.ABS:
                return algebra.largest(x, algebra.negative(x))
            case Function.SIGN:
                return algebra.sign(x)
            case Function.SQRT if not algebra.is_small(x):
                return _Root(x)
            case _:
                return algebra.called(function.value, _in_floats(function), x)

    def _pairs(self, node: Node, function: Function) -> Any:
        algebra, (first, second) = self._algebra, node.inputs
        exact = function in (*_OF_PAIRS, Function.PRELU, Function.DIV)
        fixed = second if second.constant is not None else first
        if fixed.constant is not None and not (exact and _is_exact(fixed.constant)):
            return self._with_number(node, function, np.asarray(fixed.constant, np.float64))
        if not exact:
            raise departure(f"there are no expressions for {function.value} of two results")
        one, two = self._operand(first), self._operand(second)
        if isinstance(one, _Ratio) or isinstance(two, _Ratio):
            return self._of_ratios(node, function, one, two)
        x, y = (self._spread(node, each, self._terms(each)) for each in (first, second))
        match function:
            case Function.ADD:
                return algebra.added(x, y)
            case Function.SUB:
                return algebra.added(x, algebra.negative(y))
            case Function.MUL:
                return algebra.times(x, y)
            case Function.MAX:
                return algebra.largest(x, y)
            case Function.MIN:
                return algebra.smallest(x, y)
            case Function.PRELU:
                zero = algebra.constants(np.zeros(len(x)))
                below = algebra.times(algebra.smallest(x, zero), y)
                return algebra.added(algebra.largest(x, zero), below)
            case _ if second.constant is not None:
                return algebra.over(x, np.broadcast_to(second.constant, node.shape).ravel())
            case _:
                return _Ratio(x, y)

    def _of_ratios(self, node: Node, function: Function, one: Any, two: Any) -> _Ratio:
        """Return sums with ratios, or products of them."""
        algebra = self._algebra
        parts: list[Any] = []
        for value, each in zip((one, two), node.inputs, strict=True):
            if isinstance(value, _Ratio):
                parts.append(_Ratio(*(self._spread(node, each, part)
                                      for part in (value.top, value.bottom))))  # fmt: skip
            else:
                parts.append(self._spread(node, each, self._terms(each)))
        ratio, other = parts if isinstance(parts[0], _Ratio) else parts[::-1]
        if isinstance(other, _Ratio) or function not in (Function.ADD, Function.SUB, Function.MUL):
            raise departure("fractions are not followed this far")
        if function is Function.MUL:
            return _Ratio(algebra.times(ratio.top, other), ratio.bottom)
        if function is Function.SUB:
            if parts[0] is ratio:
                other = algebra.negative(other)
            else:
                ratio = _Ratio(algebra.negative(ratio.top), ratio.bottom)
        return _Ratio(algebra.added(ratio.top, algebra.times(other, ratio.bottom)), ratio.bottom)

    def _with_number(self, node: Node, function: Function, value: Array) -> Terms:
        """Return what a function of floating point makes of values and one number."""
        if value.size != 1:
            raise departure("its constants differ between values")
        number, behind = float(value.item()), node.inputs[1].constant is not None
        (data,) = (one for one in node.inputs if one.constant is None)
        compute = _in_floats(function)

        def of(x: Array) -> Array:
            return compute(x, np.float64(number)) if behind else compute(np.float64(number), x)

        name = f"{function.value} {number!r} {behind}"
        return self._algebra.called(name, of, self._spread(node, data, self._terms(data)))

    def _weighted(self, node: Node) -> Terms:
        operator, data = node.operator, node.inputs[0]
        if any(one.constant is None for one in node.inputs[1:]):
            raise departure("its weights are no constants")
        values = self._terms(data)
        self._stored.append(data)
        weights = np.asarray(node.inputs[1].constant, np.float64)
        axis = len(node.shape) - 1 if isinstance(operator, Gemm) else 1
        shape = weights.shape
        if isinstance(operator, ConvTranspose):  # [input, filter of the group] by filters
            groups = operator.groups
            weights = weights.reshape(groups, shape[0] // groups, *shape[1:]).swapaxes(1, 2)
            apart = weights.shape
            weights = weights.reshape(-1, *apart[2:])

        def compute(numbers: Array, kernels: Array) -> Array:
            if isinstance(operator, ConvTranspose):
                kernels = kernels.reshape(apart).swapaxes(1, 2).reshape(shape)
            found = value_of(operator, [numbers.reshape(data.shape), kernels])
            assert found is not None
            return np.asarray(found.ravel())

        along = [1] * len(node.shape)
        along[axis] = -1
        filters = np.arange(node.shape[axis]).reshape(along)
        filters = np.broadcast_to(filters, node.shape).ravel()
        bias = np.zeros(node.shape[axis])
        if len(node.inputs) > 2:
            bias = bias + np.asarray(node.inputs[2].constant, np.float64).ravel()
        return self._algebra.weighted(compute, values, weights, bias[filters], filters)

    def _multiplied(self, node: Node) -> Terms:
        """Return the sums of the products of two results."""
        self._stored += node.inputs
        parts = [self._terms(one) for one in node.inputs]
        first, second = (np.arange(len(part)).reshape(one.shape)
                         for part, one in zip(parts, node.inputs, strict=True))  # fmt: skip
        pairs = np.broadcast_arrays(
            first[..., None, :], np.swapaxes(second, -1, -2)[..., None, :, :]
        )
        products = self._algebra.times(
            *(part.take(places.ravel()) for part, places in zip(parts, pairs, strict=True))
        )
        places = np.arange(len(products)).reshape(-1, pairs[0].shape[-1])
        return self._algebra.totals(products, places)

    def _pooled(self, node: Node, pool: Pool) -> Terms:
        data = node.inputs[0]
        values = self._terms(data)
        self._stored.append(data)
        places: Integers = np.arange(len(values)).reshape(data.shape[1:])
        used, counts = np.ones((1,) * (2 * len(pool.window) + 1), np.bool_), np.ones((), np.int64)
        for axis, (n, window, stride, (begin, end), step) in enumerate(zip(
            data.shape[2:], pool.window, pool.strides, pool.pads, pool.dilations, strict=True
        )):  # fmt: skip
            taps = np.arange(node.shape[axis + 2])[:, None] * stride - begin + (
                np.arange(window) * step)  # fmt: skip
            inside = (taps >= 0) & (taps < n)
            places = np.take(places, np.clip(taps, 0, n - 1), axis=1 + 2 * axis)
            beside = [1] * (2 * len(pool.window) + 1)
            beside[1 + 2 * axis : 3 + 2 * axis] = taps.shape
            used = used & inside.reshape(beside)
            counted = (taps >= -begin) & (taps < n + end) if pool.counted else inside
            counts = counts[..., None] * counted.sum(axis=1)
        axes = len(pool.window)
        order = (0, *range(1, 2 * axes, 2), *range(2, 2 * axes + 1, 2))
        places = np.where(used, places, -1).transpose(order)
        places = places.reshape(math.prod(node.shape), -1)
        if not pool.average:
            return self._algebra.maxima(values, places)
        total = self._algebra.totals(values, places)
        return self._algebra.over(total, np.broadcast_to(counts, node.shape).ravel())

    def _reduced(self, node: Node, reduction: Reduce) -> Terms:
        algebra, data = self._algebra, node.inputs[0]
        values = self._terms(data)
        self._stored.append(data)
        left = [axis for axis in range(len(data.shape)) if axis not in reduction.axes]
        count = math.prod(data.shape[axis] for axis in reduction.axes)
        places = np.arange(len(values)).reshape(data.shape).transpose((*left, *reduction.axes))
        places = places.reshape(-1, count)
        match reduction.reduction:
            case Reduction.MAX:
                return algebra.maxima(values, places)
            case Reduction.MIN:
                return algebra.negative(algebra.maxima(algebra.negative(values), places))
            case Reduction.SUM:
                return algebra.totals(values, places)
            case Reduction.MEAN:
                total = algebra.totals(values, places)
                return algebra.over(total, np.full(len(total), float(count)))
            case _:
                raise departure("there are no expressions for it")


def _is_exact(values: Array) -> bool:
    """Whether values are multiples of 2^-29."""
    scaled = np.ldexp(np.asarray(values, np.float64), 29)
    return bool((scaled == np.floor(scaled)).all() and (abs(scaled) < 2.0**62).all())


def _in_floats(function: Function) -> Callable[..., Array]:
    def compute(*operands: Array) -> Array:
        found = value_of(Each(function), operands)
        assert found is not None
        return np.asarray(found, np.float64)

    return compute
