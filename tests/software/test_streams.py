"""Windows that slide: results, products and memory of streams, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.software.cores import CORES
from ai8xtools.software.graph import (
    Arithmetic,
    Combine,
    Convolution,
    Insert,
    Load,
    Number,
    Pair,
    StepGraph,
    Tensor,
    Windows,
)
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.sliding import sliding_plan
from ai8xtools.synthesis.network import Combination
from tests.software.compiled import SANITIZED, compiler, passed, run_project
from tests.software.networks import random_network
from tests.software.streams import MOST, changed_products, judge, random_stream
from tests.software.test_command import create, refusal
from tests.software.test_rings import plain_convolution

CORE = CORES["cortex-m4"]


def chain(*layers: tuple[int, int, int], rows: int = 32) -> StepGraph:
    """Return one-dimensional convolutions: kernel, padding and stride of each."""
    steps, tensors, channels = [], [Tensor(0, "input", rows, 1, 2)], 2
    for target, (kernel, pad, stride) in enumerate(layers, 1):
        made = (rows + 2 * pad - kernel) // stride + 1
        weights = np.ones((3, channels, kernel, 1), np.int8)
        steps.append(
            replace(plain_convolution(), source=target - 1, target=target, name=f"layer {target}",
                    weights=weights, start=np.zeros(3, np.int64), groups=1, dilation=1,
                    pad=(pad, 0), stride=(stride, 1), in_size=(rows, 1), out_size=(made, 1))
        )  # fmt: skip
        tensors.append(Tensor(target, f"output {target}", made, 1, 3))
        rows, channels = made, 3
    return StepGraph(name="chain", tensors=tuple(tensors), steps=tuple(steps), input=0,
                     outputs=(len(layers),))  # fmt: skip


def slides_of(plan: Plan) -> list[tuple[int, int, int]]:
    assert plan.sliding is not None
    return [(one.first, one.end, one.ring) for one in plan.sliding.slides]


def said(graph: StepGraph, hop: int) -> str:
    with pytest.raises(DiagnosticError) as caught:
        sliding_plan(graph, CORE, hop, None)
    return str(caught.value)


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
@pytest.mark.parametrize("seed", [6, 14, 66])
def test_every_hop_gives_what_the_whole_window_gives(seed: int, tmp_path: Path) -> None:
    assert judge(seed, tmp_path, 200, ("-O0",)) is None


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_project_with_a_stream_passes_its_known_answer(tmp_path: Path) -> None:
    assert create(tmp_path, "--mcu", "rp2040", "--stream", "2") == 0
    files = {path.name: path.read_text() for path in (tmp_path / "net").iterdir()}
    assert "#define CNN_HOPS 4" in files["cnn.h"] and "cnn_stream" in files["README.md"]
    result = run_project(files, tmp_path / "built", SANITIZED)
    assert passed(result), result.stderr + result.stdout
    moves = "nn_slide_move(&cnn_slides[n],"
    wrong = files | {"cnn.c": files["cnn.c"].replace(moves, f"if (n) {moves}")}
    assert "!!! FAIL !!!" in run_project(wrong, tmp_path / "wrong").stdout


def test_products_are_those_of_which_an_operand_changed() -> None:
    tried = 0
    for seed in range(60):
        made = random_stream(seed)
        if made is None:
            continue
        _, graph, hop = made
        tried += 1
        assert sliding_plan(graph, CORE, hop, None).macs <= changed_products(graph, hop) * MOST
    assert tried > 30


def test_without_padding_only_what_the_next_rows_need_stays() -> None:
    plan = sliding_plan(chain((3, 0, 1), (5, 0, 1), (1, 0, 1)), CORE, 2, None)
    assert slides_of(plan) == [(0, 32, 3), (0, 30, 5), (0, 26, 1), (0, 26, 26)]
    per_row = 3 * (2 * 3 + 3 * 5 + 3)
    assert plan.macs == 2 * per_row


def test_rows_that_padding_reaches_are_computed_for_each_window() -> None:
    plan = sliding_plan(chain((3, 1, 1), (3, 1, 1)), CORE, 2, None)
    assert [one[:2] for one in slides_of(plan)] == [(0, 32), (1, 31), (2, 30)]
    assert plan.macs == 3 * 3 * (2 * (2 + 1 + 1) + 3 * (2 + 2 + 2))


def test_strides_tell_which_hops_suit() -> None:
    graph = chain((3, 1, 2), (3, 1, 2))
    message = said(graph, 2)
    assert "[E914]" in message and "layer 2: its rows are 4 rows of the input apart" in message
    assert "Hops that suit: 4, 8, 16." in message
    assert sliding_plan(graph, CORE, 4, None).sliding is not None


@pytest.mark.parametrize("hop", [5, 32, 64])
def test_a_window_has_to_be_a_multiple_of_the_hop(hop: int) -> None:
    assert "[E914]" in said(chain((3, 1, 1)), hop)


def test_windows_longer_than_counters_are_refused() -> None:
    assert "a window of 40,000 rows" in said(chain((3, 1, 1), rows=40000), 1)


def test_layers_that_cannot_slide_are_named() -> None:
    graph = chain((3, 1, 1), (1, 0, 1))
    first, last = graph.steps
    assert isinstance(last, Convolution)
    stretched = replace(last, spread=(2, 1), out_size=(63, 1))
    tensors = (*graph.tensors[:2], replace(graph.tensors[2], rows=63))
    message = said(replace(graph, steps=(first, stretched), tensors=tensors), 1)
    assert "layer 2 cannot be computed from a stream: it makes several rows of each" in message
    recounted = replace(last, in_size=(16, 2), out_size=(16, 2))
    message = said(replace(graph, steps=(first, recounted)), 1)
    assert "[E915]" in message and "it reads its data in other rows" in message
    insert = Insert(source=1, target=2, layer=2, name="layer 2")
    kept = replace(graph, steps=(first, insert), kept=2)
    assert "it keeps data from one inference to the next" in said(kept, 1)


@pytest.mark.parametrize(
    ("by_row", "slides"),
    [([2] * 32, True), ([1] + [2] * 30 + [1], True), ([2] * 31 + [1], True), ([1, 2] * 16, False)],
)
def test_windows_with_constants_of_their_rows_are_the_tail(by_row: list[int], slides: bool) -> None:
    """Those of edges, which are computed for each window, may differ: shares of a mean."""
    numbers = Number(np.array(by_row, np.int64).reshape(32, 1, 1))
    step = Windows(source=0, target=1, layer=0, name="mean", channels=2, in_size=(32, 1),
                   out_size=(32, 1), sums=True, window=(3, 1), stride=(1, 1), pad=(1, 0),
                   dilation=(1, 1), element=Pair(Arithmetic.ADD, Load(0), numbers),
                   bits=32)  # fmt: skip
    tensors = (Tensor(0, "input", 32, 1, 2), Tensor(1, "output", 32, 1, 2))
    graph = StepGraph(name="mean", tensors=tensors, steps=(step,), input=0, outputs=(1,))
    assert len(slides_of(sliding_plan(graph, CORE, 2, None))) == 1 + slides


def test_operands_of_other_strides_are_refused() -> None:
    graph = chain((3, 1, 1), (17, 0, 1), (1, 0, 2))
    one, two, three = graph.steps
    assert isinstance(three, Convolution)
    strided = replace(three, source=1, target=3, in_size=(32, 1), out_size=(16, 1))
    join = Combine(sources=(2, 3), target=4, layer=4, name="layer 4", channels=3, size=(16, 1),
                   join=Combination.ADD)  # fmt: skip
    tensors = (*graph.tensors[:3], Tensor(3, "", 16, 1, 3), Tensor(4, "", 16, 1, 3))
    graph = replace(graph, steps=(one, two, strided, join), tensors=tensors, outputs=(4,))
    assert "layer 4 cannot be computed from a stream: its operands have strides" in said(graph, 2)


def test_what_depends_on_all_rows_is_the_tail() -> None:
    for seed in range(40):
        graph = lower(random_network(seed, rows=24))
        try:
            plan = sliding_plan(graph, CORE, 12, None)
        except DiagnosticError:
            continue
        plan.validate()
        assert plan.sliding is not None
        assert len(plan.graph.steps) >= len(plan.sliding.slides) - 1


@pytest.mark.parametrize(
    "words",
    [
        ("--stateful",),
        ("--stream", "0"),
        ("--stream", "2", "--scheme", "rows"),
        ("--stream", "2", "--l2", "1M"),
        ("--stream", "2", "--application", "series", "--symbol-prefix", "net"),
    ],
)
def test_wrong_usage_of_streams(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        create(tmp_path, "--mcu", "rp2040", *words)
    assert ended.value.code == 2
    blamed = next((word for word in words[2:] if word.startswith("--")), words[0])
    assert f"argument {blamed}: " in capsys.readouterr().err


def test_refusals_reach_the_command_line(tmp_path: Path) -> None:
    assert "Hops that suit: 2, 4." in refusal(tmp_path, "--mcu", "rp2040", "--stream", "1")
    told = refusal(tmp_path, "--mcu", "rp2040", "--stream", "2", "--stateful")
    assert "[E915]" in told and "no recurrent layer" in told
    told = refusal(tmp_path, "--mcu", "rp2040", "--stream", "2", "--l1", "4K")
    assert "[E905]" in told and "stream" in told
