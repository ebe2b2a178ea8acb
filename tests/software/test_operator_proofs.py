"""Programs of graphs of operators are proven, or refuted with an input."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands.proof import counterexample
from ai8xtools.commands.proof.judgement import Judgement
from ai8xtools.commands.proof.operators import Operators
from ai8xtools.commands.proof.software import judge_program, text_without_prefix
from ai8xtools.emulator import EmulatorError
from ai8xtools.emulator.proof.algebra import Algebra, Terms
from ai8xtools.emulator.proof.fingerprints import Mixer
from ai8xtools.emulator.proof.steps import RowOfStep, steps_of
from ai8xtools.frontends.graph.nodes import Graph
from ai8xtools.frontends.graph.operators import Clip, LpNormalization, Reduce, Reduction
from ai8xtools.writing.symbols import prefixed
from tests.software.graphs import GRAPHS, Maker, operator_question, project_of

Change = Callable[[str], str]


def judged(graph: Graph, folder: Path, file: str = "", old: str = "", new: str = "") -> Judgement:
    """Return what is said of the project of a graph, with one text in another's place."""
    files = project_of(graph, scheme="rows")
    if file:
        assert files[file].count(old) >= 1
        files[file] = files[file].replace(old, new, 1)
    for name, text in files.items():
        (folder / name).write_text(text)
    return judge_program(operator_question(folder, "cortex-m4", graph))


@pytest.mark.parametrize("name", ["kernels", "windows", "moves", "roots"])
def test_programs_are_proven(name: str, tmp_path: Path) -> None:
    found = judged(GRAPHS[name](), tmp_path)
    assert found.proven, found.reasons


def test_what_compilers_find_out_about_steps_does_not_matter(tmp_path: Path) -> None:
    """Where rows are is known, so that no cnn_images are left; what zeros make needs no data."""
    m = Maker(4, 3, 3)
    total = m(Reduce(Reduction.SUM, (1,), True), m.given)
    nothing = m(Clip(-128, 127), m.each("Mul", m.given, np.zeros((4, 1, 1))))
    found = judged(m.graph(m.to8(total, 2), nothing), tmp_path)
    assert found.proven, found.reasons


def test_libraries_are_proven(tmp_path: Path) -> None:
    graph = GRAPHS["elements"]()
    for name, text in prefixed(project_of(graph, scheme="rows"), "My_net").items():
        (tmp_path / name).write_text(text)
    question = operator_question(tmp_path, "cortex-m0plus", graph, prefix="My_net_")
    assert question.difference() == ""
    file = tmp_path / "My_net_cnn.c"
    file.write_text(file.read_text() + "static int cnn_images;\n")  # beside My_net_cnn_images
    assert text_without_prefix(tmp_path, "My_net_", "cnn.c") == file.read_text()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [("cnn.c", "t2 + 32", "t2 + 33"), ("weights.h", " 64,  66,", " 65,  66,")],
    ids=["statement", "table"],
)
def test_faults_are_refuted_with_an_input(file: str, old: str, new: str, tmp_path: Path) -> None:
    found = judged(GRAPHS["elements"](), tmp_path, file, old, new)
    assert found.example is not None
    assert "does not compute" in found.reasons[0]


def test_loops_of_steps_are_known_only_as_they_are_generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counterexample, "_SECONDS", 0.1)
    found = judged(GRAPHS["elements"](), tmp_path, "cnn.c", "i < 4; i++", "i < 4; i += 1")
    assert found.example is None
    assert "is written in another way" in found.reasons[0]


@pytest.fixture
def algebra() -> Algebra:
    return Algebra(Mixer())


def leaves(algebra: Algebra, count: int) -> Terms:
    """Return bytes of the input."""
    sums = algebra.mixer.numbered("leaf", count)
    return algebra.leaves(sums, np.full(count, -128.0), np.full(count, 127.0))


def alike(algebra: Algebra, one: Terms, two: Terms) -> bool:
    (first, over), (second, by) = algebra.numerators(one), algebra.numerators(two)
    return bool((first.sums == second.sums).all() and (over == by).all())


def test_what_is_equal_for_all_values_looks_alike(algebra: Algebra) -> None:
    x = leaves(algebra, 3)
    four, half = (algebra.constants(np.full(3, one)) for one in (4.0, 0.5))
    rounded = algebra.floor(algebra.added(algebra.scaled(x, 1, 8), half))
    again = algebra.floor(algebra.scaled(algebra.added(x, four), 1, 8))
    table = (np.roll(np.arange(-128, 128), 128) + 4) >> 3
    assert alike(algebra, rounded, again)
    assert alike(algebra, rounded, algebra.looked_up(x, table))
    assert not alike(algebra, rounded, algebra.floor(algebra.scaled(x, 1, 8)))


def test_one_entry_of_a_table_makes_a_difference(algebra: Algebra) -> None:
    x = leaves(algebra, 1)
    table = np.roll(np.arange(-128, 128), 128)
    assert alike(algebra, x, algebra.looked_up(x, table))
    for place in (0, 77, 127, 128, 255):
        other = table.copy()
        other[place] ^= 1
        assert not alike(algebra, x, algebra.looked_up(x, other))


def test_maxima_and_products_do_not_depend_on_the_order_of_their_operands(
    algebra: Algebra,
) -> None:
    a, b = (leaves(algebra, 6).take(np.arange(n, n + 3)) for n in (0, 3))
    for join in (algebra.largest, algebra.smallest, algebra.times, algebra.added):
        assert alike(algebra, join(a, b), join(b, a))
        assert not alike(algebra, join(a, b), join(a, a))
    assert not alike(algebra, algebra.largest(a, b), algebra.smallest(a, b))


STEP = """#define CNN_STEP
#undef CNN_STEP
CNN_STEP void step_1(const int8_t *a0, int32_t *out)
{
    uint32_t i;

    {
        for (i = 0; i < 1; i++) {
            const int64_t t0 = a0[i];
            const int64_t t1 = t0 * 16777300;
            const int64_t t2 = cnn_floor_int64_t(t1, 3);
            const int32_t t3 = t0 > 0 ? t0 : 0;
            const int32_t t4 = (int32_t)cnn_root((uint64_t)t3);

            out[i] = (int32_t)t4;
        }
    }
}
""".replace("int32_t *out", "nn_word *out")


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("int64_t t0", "int32_t t0", "may leave 32 bits"),
        ("int64_t(t1", "int32_t(t1", "may leave 32 bits"),
        ("? t0 : 0", "? t0 : (-3)", "is written|computes"),
        ("t0 > 0 ? t0 : 0", "t0 > (-3) ? t0 : (-3)", "root of what may be negative"),
        ("cnn_floor_int64_t(t1, 3)", "t0 >> 64", "shifts by 64 bits"),
        ("t0 * 16777300", "t0 + 1", ""),
    ],
)
def test_values_of_a_step_are_computed_with_as_many_bits_as_in_c(
    old: str, new: str, refused: str, algebra: Algebra
) -> None:
    """The product of -128 needs more than 32 bits, that of -127 does not."""

    def computed(code: str) -> Terms:
        step = steps_of(code, "", "")[0]["step_1"]
        return RowOfStep(step, {}, {}).value(algebra, {("a0", "i"): leaves(algebra, 1)}, 1)

    assert STEP.count(old) == 1 and len(computed(STEP)) == 1
    with pytest.raises(EmulatorError, match=refused) if refused else nullcontext():
        computed(STEP.replace(old, new))


@pytest.mark.parametrize("begin", ["static", "static inline", "inline", "extern inline"])
def test_functions_that_divide_are_those_of_this_version(begin: str) -> None:
    code = f"{begin} int32_t cnn_floor_int32_t(int32_t a, int32_t b)\n{{\n    return a / b;\n}}\n"
    assert steps_of(code, "", code) == ({}, {})
    with pytest.raises(EmulatorError, match="divides, or takes roots, in another way"):
        steps_of(code, "", code.replace("a / b", "b"))


def test_operators_without_expressions_are_named() -> None:
    m = Maker(2, 4, 4)
    mixer = Mixer()
    graph = m.graph(m(LpNormalization(1), m.given))
    with pytest.raises(
        EmulatorError, match=r"LpNormalization \(n1\): there are no expressions for it"
    ):
        Operators(Algebra(mixer), graph, mixer.numbered("input", 32))
