"""Graphs of operators in whole numbers that together need every step, and their projects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ai8xtools.commands.proof.operators import OperatorQuestion, OperatorReference, apart
from ai8xtools.commands.proof.software import text_without_prefix, without_prefix
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.nodes import Graph, Node, constant, graph_of, make
from ai8xtools.frontends.graph.operators import (
    Clip,
    Concat,
    Conv,
    ConvTranspose,
    Each,
    Function,
    Gemm,
    Input,
    Operator,
    Pad,
    Pool,
    Reduce,
    Reduction,
    Reshape,
    Resize,
    Slice,
    Transpose,
)
from ai8xtools.software import build
from ai8xtools.software.emit.built import Built
from ai8xtools.software.emit.project import Sample
from ai8xtools.software.fuse import fuse
from ai8xtools.software.operators.lower import Lowering
from ai8xtools.software.operators.storage import laid
from ai8xtools.software.profile import read_profile

Array = np.ndarray[Any, Any]


class Maker:
    """Makes nodes with random weights of an input, or of the first values of a larger one."""

    def __init__(self, *shape: int, of: Node | None = None) -> None:
        self.random = np.random.default_rng(5)
        self.given = self._source = make("in", Input((1, *shape))) if of is None else of
        self._count = 0
        if of is not None:
            part = shape if len(shape) == 3 else (shape[0], 4, shape[1] // 4)
            cut = self(Slice((0,) * 4, (1,) * 4, (1, *part)), of)
            self.given = cut if len(shape) == 3 else self(Reshape((1, *shape)), cut)

    def __call__(self, operator: Operator, *inputs: Node | float | Array) -> Node:
        self._count += 1
        nodes = [one if isinstance(one, Node) else constant(np.asarray(one, np.float64))
                 for one in inputs]  # fmt: skip
        return make(f"n{self._count}", operator, *nodes)

    def each(self, name: str, *inputs: Node | float | Array) -> Node:
        """Return what a function makes of each element."""
        return self(Each(Function(name)), *inputs)

    def numbers(self, *shape: int, most: int = 90) -> Array:
        """Return random whole numbers."""
        return self.random.integers(-most, most + 1, shape).astype(float)

    def conv(self, data: Node, filters: int, kernel: tuple[int, int], **more: Any) -> Node:
        """Return sums of a convolution, with a bias."""
        settings: dict[str, Any] = {
            "strides": (1, 1), "pads": ((0, 0), (0, 0)), "dilations": (1, 1), "groups": 1, **more,
        }  # fmt: skip
        weights = self.numbers(filters, data.shape[1] // settings["groups"], *kernel)
        return self(Conv(**settings), data, weights, self.numbers(filters, most=3000))

    def to8(self, data: Node, bits: int = 9, low: float = -128, high: float = 127) -> Node:
        """Return values divided by 2^bits, rounded and limited."""
        half = self.each("Add", self.each("Mul", data, 2.0**-bits), 0.5)
        return self(Clip(low, high), self.each("Floor", half))

    def graph(self, *outputs: Node) -> Graph:
        """Return the graph of results."""
        return graph_of(self._source, outputs, outputs)


def kernels(of: Node | None = None) -> Graph:
    """Kernels of odd sizes, strides and paddings, groups, dilation by axis, transposed."""
    m = Maker(3, 11, 9, of=of)
    a = m.to8(m.conv(m.given, 6, (5, 3), pads=((4, 0), (0, 2)), strides=(1, 2)))
    b = m.to8(m.conv(a, 6, (5, 5), groups=6, strides=(2, 2), pads=((2, 2), (2, 2))), 8, 0)
    c = m.to8(m.conv(b, 4, (2, 2), groups=2, dilations=(2, 1)), 8, -1, 100)
    back = ConvTranspose((2, 3), ((0, 1), (1, 0)), (1, 1), (1, 0))
    return m.graph(m.to8(m(back, c, m.numbers(4, 5, 3, 2))))


def elements(of: Node | None = None) -> Graph:
    """Functions of elements: tables, broadcast operands and constants, kinks, 64 bits."""
    m = Maker(4, 6, 5, of=of)
    a = m.to8(m.conv(m.given, 4, (1, 1)), 7)
    gate = m(Reduce(Reduction.MEAN, (2, 3), True), a)
    gate = m.each("Sigmoid", m.each("Mul", m.to8(gate, 0), 1 / 16))
    gate = m.to8(m.each("Mul", gate, 2.0**14), 7)
    b = m.to8(m.each("Mul", a, gate), 6)
    kink = m.each("PRelu", b, m.numbers(4, 1, 1, most=9) / 8)
    c = m(Clip(-128, 127), m.each("Floor", kink))
    d = m.to8(m.each("Mul", m.each("Mul", b, c), m.each("Abs", a)), 14)
    e = m.each("Max", m.each("Sub", m.numbers(1, 1, 6, 5), d), m.numbers(5))
    return m.graph(m.to8(m.each("Div", m.each("Mul", m.each("Mul", e, e), e), 3.0), 12), c)


def windows(of: Node | None = None) -> Graph:
    """Pooling over borders, with and without what is outside, of sums, and of whole axes."""
    m = Maker(3, 9, 8, of=of)
    sums = m.conv(m.given, 5, (3, 3))
    a = m.to8(m(Pool(False, (3, 2), (2, 2), ((1, 1), (0, 1)), (1, 1)), sums), 9)
    around = ((1, 0), (1, 1))
    b = m.each("Floor", m(Pool(True, (2, 3), (1, 2), around, (1, 1)), a))
    c = m.each("Floor", m(Pool(True, (2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1), ceil=True), a))
    d = m(Reduce(Reduction.MAX, (1,), True), a)
    e = m(Reduce(Reduction.SUM, (2,), False), b)
    alone = m.each("Neg", m(Reduce(Reduction.MAX, (0, 1, 2, 3), False), m(Clip(-127, 127), a)))
    return m.graph(b, c, d, e, alone)


def moves(of: Node | None = None) -> Graph:
    """Values in other places: joined, cut, padded, turned, repeated, flattened."""
    m = Maker(4, 6, 6, of=of)
    a = m.to8(m.conv(m.given, 4, (3, 3), pads=((1, 1), (1, 1))))
    apart = m(Reshape((1, 2, 2, 6, 6)), a)
    b = m(Reshape((1, 4, 6, 6)), m(Transpose((0, 2, 1, 3, 4)), apart))
    b = m(Pad(((0, 0), (1, 0), (0, 1), (2, 0)), -7.0), b)
    b = m(Slice((0, 1, 6, 0), (1, 1, -1, 2), (1, 4, 6, 4)), b)
    c = m.to8(m.conv(b, 3, (1, 1)), 8)
    places = ((0,), (0, 1, 2), (0, 0, 1, 1, 2, 5), (3, 2, 2, 0))
    c = m(Concat(1), m(Resize(places), c), m.each("Neg", m(Clip(-127, 127), b)))
    flat = m(Reshape((1, 7 * 24)), m(Transpose((0, 2, 3, 1)), c))
    return m.graph(m(Gemm(), flat, m.numbers(9, 7 * 24), m.numbers(9)), c)


def series(of: Node | None = None) -> Graph:
    """A series with causal padding, whose sums are results, and features of a matrix."""
    m = Maker(3, 20, of=of)
    a = m(Conv((2,), ((6, 0),), (3,)), m.given, m.numbers(6, 3, 3))
    b = m.to8(m(Conv((1,), ((0, 0),), (1,), 6), m.to8(a, 7, 0), m.numbers(6, 1, 4)), 7)
    c = m(Gemm(), b, m.numbers(5, 7))
    return m.graph(c, m.to8(c, 8))


def roots(of: Node | None = None) -> Graph:
    """What is divided by roots of sums of squares, and values of 8 and 32 bits side by side."""
    m = Maker(4, 6, 6, of=of)
    a = m.to8(m.conv(m.given, 4, (1, 1)), 7)
    whole = Reduce(Reduction.SUM, (1,), True)
    total, squares = m(whole, a), m(whole, m.each("Mul", a, a))
    spread = m.each("Sub", m.each("Mul", squares, 4.0), m.each("Mul", total, total))
    inside = m.each("Add", m.each("Mul", m(Clip(0.0, np.inf), spread), 64.0), 5.0)
    root = m(Clip(1.0, np.inf), m.each("Floor", m.each("Sqrt", inside)))
    less = m.each("Mul", m.each("Sub", m.each("Mul", a, 4.0), total), m.numbers(4, 1, 1, most=999))
    ratio = m.each("Add", m.each("Div", less, root), m.numbers(4, 1, 1))
    joined = m(Concat(1), a, m(Reduce(Reduction.MIN, (1,), True), squares))
    return m.graph(m.to8(ratio, 3), m.each("Floor", m.each("Div", total, root)), joined)


GRAPHS: dict[str, Callable[..., Graph]] = {
    "kernels": kernels, "elements": elements, "windows": windows, "moves": moves,
    "series": series, "roots": roots,
}  # fmt: skip


def all_of_them() -> Graph:
    """Return all graphs in one, of whose input each takes a part: it is compiled once."""
    given = make("in", Input((1, 4, 11, 9)))
    outputs = [one for make_graph in GRAPHS.values() for one in make_graph(given).outputs]
    return graph_of(given, outputs, outputs)


def samples_of(graph: Graph) -> list[Array]:
    """Return inputs: random ones, and the extremes."""
    shape = graph.input.shape
    random = np.random.default_rng(7)
    drawn = [random.integers(-128, 128, shape) for _ in range(3)]
    return [*drawn, np.full(shape, -128), np.full(shape, 127)]


def results_of(graph: Graph, sample: Array) -> list[Array]:
    """Return what a graph computes, as it stands in memory: [row, column, channel]."""
    found = passes.results(graph, sample.astype(float))
    return [laid(np.asarray(one)).astype(np.int64) for one in found]


def operator_question(
    folder: Path, core: str, graph: Graph, seconds: float = 60.0, prefix: str = ""
) -> OperatorQuestion:
    """Compile a project of a graph in a folder, whose names begin with a prefix; return whether it
    computes that.
    """
    steps = Lowering(graph, "net").graph()
    widths = tuple(steps.tensors[one].bytes_per_value for one in steps.outputs)
    reference = OperatorReference("net", graph, samples_of(graph)[0].astype(np.int64), widths)
    image = compile_plain(folder, ARCHITECTURES[core], flags=[apart(prefix)]).image
    code, weights = (text_without_prefix(folder, prefix, one) for one in ("cnn.c", "weights.h"))
    return OperatorQuestion(reference, without_prefix(image, prefix), seconds, code=code,
                            weights=weights)  # fmt: skip


def project_of(graph: Graph, mcu: str = "stm32l4r5", scheme: str = "resident") -> dict[str, str]:
    """Return the files of the project of a graph with a known answer."""
    return built_of(graph, mcu, scheme).files


def built_of(graph: Graph, mcu: str = "stm32l4r5", scheme: str = "resident") -> Built:
    """Return the project of a graph with a known answer."""
    lowering = Lowering(graph, "net")
    assert lowering.refusals == []
    profile = read_profile(mcu).resized({"l1": 1 << 20, "flash": 1 << 24})
    built = build.planned(fuse(lowering.graph()), profile, scheme)
    built.plan.validate()
    sample = samples_of(graph)[0]
    outputs = tuple(one.transpose(2, 0, 1) for one in results_of(graph, sample))
    known = Sample(laid(sample).transpose(2, 0, 1), outputs)
    return build.emitted(built, known, "net", "")
