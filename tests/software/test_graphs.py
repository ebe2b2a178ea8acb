"""Graphs of operators become steps that compute the same, in Python, in C, and on every core."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.frontends.graph import passes
from ai8xtools.frontends.graph.nodes import Graph, Node, graph_of, make
from ai8xtools.frontends.graph.operators import (
    Clip,
    Concat,
    Conv,
    Input,
    MeanVarianceNormalization,
    Reshape,
    Slice,
    Softmax,
    Transpose,
)
from ai8xtools.frontends.graph.recurrent import Recurrence
from ai8xtools.frontends.graph.stored import UnsoundError, from_data, to_data
from ai8xtools.quantization.integers import BITS, WIDE, measured
from ai8xtools.quantization.operators import PASSES, costliest, quantized
from ai8xtools.software.graph import Convolution, Elements
from ai8xtools.software.operators.execute import execute
from ai8xtools.software.operators.lower import Lowering
from ai8xtools.software.operators.storage import laid
from tests.software.compiled import SANITIZED, compiler, local_compiler, passed, run_project
from tests.software.graphs import (
    GRAPHS,
    Array,
    Maker,
    all_of_them,
    built_of,
    project_of,
    results_of,
    samples_of,
)
from tests.software.same_on_cores import CORES


@pytest.mark.parametrize("name", GRAPHS)
def test_steps_compute_what_the_graph_does(name: str) -> None:
    graph = GRAPHS[name]()
    steps = Lowering(graph, "net").graph()
    for sample in samples_of(graph):
        found = execute(steps, laid(sample))
        wanted = results_of(graph, sample)
        assert all(np.array_equal(a.ravel(), b) for a, b in zip(wanted, found, strict=True))


def test_sums_that_are_rounded_need_no_step_of_their_own() -> None:
    m = Maker(3, 8, 8)
    a = m(Conv((1, 1), ((1, 1), (1, 1)), (1, 1)), m.given, m.numbers(4, 3, 3, 3))
    halved = m.each("Floor", m.each("Mul", a, 0.5))
    b = m.to8(m.each("Add", halved, m.numbers(1, 4, 1, 1, most=999)), 7, 0)
    (step,) = Lowering(m.graph(b), "net").graph().steps
    assert isinstance(step, Convolution)
    assert (step.right, step.low, step.wide) == (8, 0, False)


def test_limited_sums_with_constants_by_channel_are_stored_before_functions() -> None:
    m = Maker(3, 6, 6)
    sums = m(Conv((1, 1), ((1, 1), (1, 1)), (1, 1), 1), m.given, m.numbers(4, 3, 3, 3) / 300)
    moved = m.each("Add", m(Clip(0.0, 6.0), sums), m.numbers(1, 4, 1, 1) / 90)
    made = m.graph(m.each("Tanh", m.each("Sigmoid", moved)))
    graph = passes.improved(made, PASSES)
    samples = [np.random.default_rng(n).uniform(-1, 1, (1, 3, 6, 6)) for n in range(4)]
    steps = Lowering(quantized(graph, measured(graph, samples)).graph, "net").graph().steps
    assert [type(step) for step in steps] == [Convolution, Elements, Elements]


@pytest.mark.parametrize("bits", [BITS, WIDE])
def test_normalized_and_wide_results_are_near_and_those_of_steps(bits: int) -> None:
    m = Maker(3, 6, 6)
    a = m(Conv((1, 1), ((1, 1), (1, 1)), (1, 1), 1), m.given, m.numbers(4, 3, 3, 3) / 300)
    b = m(Clip(0.0, np.inf), m(MeanVarianceNormalization((1,), 1e-3), a))
    c = m(Concat(1), m.each("Mul", b, m.numbers(4, 1, 1) / 50), m.given, m.each("Exp", a))
    d = m(Conv((1, 1), ((0, 0), (0, 0)), (1, 1), 1), c, m.numbers(4, 11, 2, 2) / 300, np.ones(4))
    graph = passes.improved(m.graph(m.each("Sign" if bits == WIDE else "Abs", d)), PASSES)
    samples = [np.random.default_rng(n).uniform(-1, 1, (1, 3, 6, 6)) for n in range(4)]
    whole = quantized(graph, measured(graph, samples), bits)
    steps = Lowering(whole.graph, "net").graph()
    wanted, found = [], []
    for sample in samples:
        integers = np.rint(sample * 2**whole.fraction).clip(-128, 127)
        made = results_of(whole.graph, integers)[0].ravel()
        assert np.array_equal(made, execute(steps, laid(integers).astype(np.int64))[0])
        found.append(made)
        wanted.append(results_in_fractions(graph, integers / 2**whole.fraction))
    assert np.corrcoef(np.ravel(wanted), np.ravel(found))[0, 1] > 0.999


def test_the_layer_that_costs_most_is_found() -> None:
    m = Maker(3, 6, 6)
    small = m.numbers(4, 3, 3, 3) / 300
    uneven = np.where(np.arange(4).reshape(-1, 1, 1, 1) % 2, 1.0, 1 / 300) * m.numbers(4, 4, 1, 1)
    a = m(Conv((1, 1), ((1, 1), (1, 1)), (1, 1), 1), m.given, small)
    b = m(Conv((1, 1), ((0, 0), (0, 0)), (1, 1), 1), m(Clip(0.0, np.inf), a), uneven)
    c = m(Conv((1, 1), ((0, 0), (0, 0)), (1, 1), 1), b, [[[[900.0]], [[1.0]], [[900.0]], [[1.0]]]])
    graph = passes.improved(m.graph(c), PASSES)
    samples = [np.random.default_rng(n).uniform(-1, 1, (1, 3, 6, 6)) for n in range(4)]
    assert costliest(graph, measured(graph, samples), samples) == b.place


def results_in_fractions(graph: Graph, sample: Array) -> Array:
    """Return what a graph of one result computes, as it stands in memory."""
    (found,) = passes.results(graph, sample)
    return laid(np.asarray(found)).ravel()


def test_a_table_takes_the_place_of_many_operations() -> None:
    m = Maker(2, 3, 3)
    gate = m.each("Sigmoid", m.each("Mul", m.given, 1 / 32))
    a = m.to8(m.each("Mul", m.given, gate), 0)
    (step,) = Lowering(m.graph(a), "net").graph().steps
    assert isinstance(step, Elements)
    assert step.bits <= 8


@pytest.mark.parametrize("scheme", ["resident", "rows"])
def test_projects_pass_their_test(scheme: str, tmp_path: Path) -> None:
    """With sanitizers, on whole maps and by rows."""
    if local_compiler() is None:
        pytest.skip("no compiler with sanitizers is installed")
    result = run_project(project_of(all_of_them(), scheme=scheme), tmp_path, SANITIZED)
    assert passed(result), result.stdout + result.stderr


def test_steps_of_recurrent_layers_share_weights_and_are_computed(tmp_path: Path) -> None:
    """Also where the compiler joins functions that are equal."""
    random, steps = np.random.default_rng(1), 4
    shapes = ((1, 48, 3), (1, 48, 12), (1, 96), (1, 1, 12), (1, 1, 12))
    weights = [random.normal(0, 0.5, one) for one in shapes[:3]] + [np.zeros(shapes[3])] * 2
    given = make("in", Input((1, steps, 3)))
    series = make("in", Transpose((1, 0, 2)), given)
    states = Recurrence("lstm", "lstm", tuple(weights)).states(series)
    graph = passes.improved(graph_of(given, [states], [states]), PASSES)
    samples = [random.uniform(-1, 1, given.shape) for _ in range(4)]
    project = project_of(quantized(graph, measured(graph, samples)).graph)
    assert project["cnn.c"].count("] NN_ALIGNED = WEIGHTS_") == 2
    if compiler() is not None:
        result = run_project(project, tmp_path, ("-O2",))
        assert passed(result), result.stdout + result.stderr


def test_levels_of_memory_are_refused() -> None:
    with pytest.raises(DiagnosticError, match="levels of memory") as raised:
        project_of(GRAPHS["windows"](), "stm32h743", "planes")
    assert [one.code for one in raised.value.diagnostics] == ["E908"]


@pytest.mark.slow
@pytest.mark.parametrize("core", CORES)
def test_results_are_the_same_on_every_core(core: str, tmp_path: Path) -> None:
    """Their code takes about as much flash as is told."""
    built = built_of(all_of_them(), CORES[core])
    for file, text in built.files.items():
        (tmp_path / file).write_text(text)
    run = run_plain(compile_plain(tmp_path, ARCHITECTURES[core]))
    assert run.passed and 0.5 < built.need.code / run.code_bytes < 2, run.code_bytes


def outputs_of(graph: Graph) -> list[int]:
    """Return the numbers of the results."""
    return [graph.nodes.index(one) for one in graph.outputs]


def test_graphs_are_stored() -> None:
    graph = GRAPHS["moves"]()
    entries, arrays = to_data(graph)
    again = from_data(entries, outputs_of(graph), arrays)
    sample = samples_of(graph)[0]
    assert all(map(np.array_equal, results_of(graph, sample), results_of(again, sample)))


@pytest.mark.parametrize(
    ("key", "value"),
    [("inputs", [99]), ("inputs", "x"), ("kind", "Nothing"), ("place", 3), ("values", {}),
     ("values", {"function": "Nothing"}), ("values", None)],
)  # fmt: skip
def test_unsound_data_are_refused(key: str, value: object) -> None:
    graph = GRAPHS["series"]()
    entries, arrays = to_data(graph)
    next(one for one in entries if one["kind"] == "Each")[key] = value
    with pytest.raises(UnsoundError):
        from_data(entries, outputs_of(graph), arrays)


def test_data_of_no_size_are_refused() -> None:
    graph = GRAPHS["series"]()
    entries, arrays = to_data(graph)
    entries[0]["values"] = {"shape": [1, 3, 1 << 40]}
    with pytest.raises(UnsoundError, match="values"):
        from_data(entries, outputs_of(graph), arrays)


PLAIN = Conv((1,), ((0, 0),), (1,))


def _sums(m: Maker) -> Node:
    return m.conv(m.given, 2, (1, 1))


@pytest.mark.parametrize(
    ("said", "make"),
    [
        ("its results are fractions", lambda m: m.each("Mul", m.given, 0.5)),
        ("its result has no batch", lambda m: m(Reshape((2, 16)), m.given)),
        ("it takes 8 bits", lambda m: m.conv(_sums(m), 2, (1, 1))),
        ("do not fit 8 bits", lambda m: m(PLAIN, m.given, np.full((1, 2, 1), 999))),
        ("it divides by what can be", lambda m: m.each("Floor", m.each("Div", m.given, _sums(m)))),
        ("no kernel for Softmax", lambda m: m.conv(m(Softmax(1), m.given), 2, (1, 1))),
        ("its bias is a fraction", lambda m: m(PLAIN, m.given, np.ones((1, 2, 1)), [0.5])),
        ("reach", lambda m: m.each("Mul", _sums(m), 2.0**24)),
        ("its result of 1x2x0x4 is empty",
         lambda m: m.conv(m(Slice((0,) * 4, (1,) * 4, (1, 2, 0, 4)), m.given), 2, (1, 1),
                          pads=((1, 1), (0, 0)))),
    ],
)  # fmt: skip
def test_what_no_step_computes_is_named(said: str, make: Callable[[Maker], Node]) -> None:
    m = Maker(2, 4) if "bias" in said or "fit" in said else Maker(2, 4, 4)
    (refusal,) = Lowering(m.graph(make(m)), "net").refusals
    assert said in refusal.why
