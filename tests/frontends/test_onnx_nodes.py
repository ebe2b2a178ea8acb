"""All node tests of the installed onnx: taken and proven, or refused with one message.

Those of the installed onnx are a part of `make properties`.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ai8xize
from ai8xtools.checkpoint.onnx_graph import OnnxGraph, OnnxNode
from ai8xtools.diagnostics import run
from ai8xtools.frontends.graph import maps, passes
from ai8xtools.frontends.graph.execute import value_of
from ai8xtools.frontends.graph.nodes import graph_of, make
from ai8xtools.frontends.graph.operators import Each, Function, Input
from ai8xtools.frontends.onnx.door import read_fractions, read_operators
from tests.frontends.onnx_nodes import LARGE, RIGHT, WRONG, cases, judged, verdict

pytest.importorskip("onnx", reason="needs the node tests of the package onnx")

FLOAT, INT8, INT32, UINT32 = 1, 3, 6, 12  # data types of onnx.proto


@pytest.mark.skipif("AI8X_PROPERTIES" not in os.environ, reason="1,884 graphs: make properties")
@pytest.mark.parametrize(
    "target", [("MAX78000",), ("MAX78002",), ("MCU", "--mcu", "stm32h743")], ids=lambda t: t[0]
)
def test_no_graph_is_taken_for_another_one(
    target: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    tests = cases()
    assert len(tests) > 1000
    taken = set()
    for case in tests:
        data = case.model.SerializeToString()
        if len(data) > LARGE:
            continue
        (tmp_path / "net.onnx").write_bytes(data)
        monkeypatch.setattr(sys, "argv", [
            "ai8xize.py", "--model", str(tmp_path / "net.onnx"), "--device", *target,
            "--prefix", "net", "--test-dir", str(tmp_path / "out"), "--overwrite",
        ])  # fmt: skip
        status = run(ai8xize.main)
        told = "".join(capsys.readouterr())
        assert status in (0, 1) and "[E009]" not in told and "[N669]" not in told, case.name
        assert status == 0 or re.search(r"error: .*\[E\d+\]", told), case.name
        taken |= {case.name} if status == 0 else set()
    assert taken >= {"test_relu", "test_maxpool_2d_default", "test_globalmaxpool"}


@pytest.mark.skipif("AI8X_PROPERTIES" not in os.environ, reason="1,884 graphs: make properties")
def test_operators_compute_what_the_node_tests_say(tmp_path: Path) -> None:
    """Whatever the door takes gives the results that come with the tests."""
    results = Counter(verdict(list(judged(case, tmp_path))) for case in cases())
    assert results[WRONG] == 0
    assert results[RIGHT] > 450


def one_node(operator: str, kind: int, data: Any, other: Any, *, first: bool = True) -> Any:
    """Return what a graph of one node gives for data of a type, or why it is refused."""
    inputs = ("x", "w") if first else ("w", "x")
    node = OnnxNode("n", operator, inputs, ("y",), {})
    constants = {"w": np.asarray(other)}
    file = OnnxGraph((node,), constants, "x", np.shape(data), ("y",), 17, kind)
    graph, refusals = read_operators(file, np.shape(data)[1:], len(data))
    if refusals:
        return refusals[0].why
    (result,) = passes.results(passes.improved(graph, maps.PASSES), np.asarray(data, np.float64))
    assert result is not None
    return result.tolist()


def test_quotients_of_whole_numbers_are_cut() -> None:
    assert one_node("Div", INT32, [[-3, 3, 7]], np.int32([2])) == [[-1, 1, 3]]
    assert one_node("Div", INT32, [[-3, 3, 7]], np.int32([7]), first=False) == [[-2, 2, 1]]
    assert one_node("Div", FLOAT, [[-3, 3, 7]], np.float32([2])) == [[-1.5, 1.5, 3.5]]
    assert value_of(Each(Function.DIV), [np.int64([-3, 3]), np.int64([2])]).tolist() == [-1, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize(("fmod", "result"), [(0, [2, -1.5]), (1, [-1, 1.5])])
def test_remainders_have_the_sign_that_is_asked_for(fmod: int, result: list[float]) -> None:
    (exact, _) = several(node("Mod", "x", "w", fmod=fmod), data=[[-7, 4.5]], w=np.float32([3, -3]))
    assert exact.tolist() == [result]


def test_small_whole_numbers_that_wrap_around_are_refused() -> None:
    assert "in int8, where large results wrap" in one_node("Add", INT8, [[100]], np.int8([100]))
    assert one_node("Add", INT32, [[100]], np.int32([100])) == [[200]]
    assert one_node("Sub", UINT32, [[1]], np.uint32([2])) == [[-1]]


def test_results_that_are_no_numbers_are_equal() -> None:
    node = make("n", Each(Function.LOG), source := make("x", Input((1, 4))))
    graph = graph_of(source, [node], [node])
    assert passes.improved(graph, maps.PASSES).outputs[0].operator == Each(Function.LOG)


def several(*nodes: OnnxNode, data: Any, **constants: Any) -> Any:
    """Return the last result of nodes on data `x` as the file has it, and in fractions."""
    file = OnnxGraph(nodes, constants, "x", np.shape(data), nodes[-1].outputs, 21, FLOAT)
    shape = np.shape(data)[1:]
    graphs = read_operators(file, shape)[0], read_fractions(file, shape)[0]
    return [passes.results(one, np.asarray(data, np.float64))[0] for one in graphs]


def node(operator: str, *inputs: str, to: str = "y", **attributes: Any) -> OnnxNode:
    return OnnxNode(to, operator, inputs, (to,), attributes)


def test_quantized_values_are_what_onnx_says() -> None:
    """Halves are rounded to even numbers; pooling and shapes see values, scales stay with them."""
    data = [[[0.26, 0.75, -3.0, 70.0]]]
    names = {"s": np.float32([0.5]), "z": np.int8([-128]), "o": np.float32([2.0])}
    quantized = node("QuantizeLinear", "x", "s", "z", to="q")
    exact, fractions = several(quantized, data=data, **names)
    assert exact.tolist() == [[[-127, -126, -128, 12]]]
    pooled = node("MaxPool", "q", to="p", kernel_shape=(2,), strides=(2,))
    back = node("DequantizeLinear", "p", "s", "z")
    exact, fractions = several(quantized, pooled, back, data=data, **names)
    assert exact.tolist() == [[[1, 70]]] and fractions.tolist() == [[[0.75, 70]]]
    exact, _ = several(quantized, node("DequantizeLinear", "q", "o", "z"), data=data, **names)
    assert exact.tolist() == [[[2, 4, 0, 280]]]
    assert several(quantized, node("Neg", "q"), data=data, **names)[0].tolist() == [
        [[127, 126, 128, -12]]
    ]  # fmt: skip
    high, low = ([[[1000.0, -1.0]]], dict(names, z=np.int8([0])))
    assert several(quantized, node("DequantizeLinear", "q", "s", "z"), data=high, **low)[
        0
    ].tolist() == [[[63.5, -1]]]


def test_operators_of_quantized_values_are_those_of_fractions_rounded() -> None:
    data, weights = np.float32([[[1, -2, 3]]]), np.int8([[[2]], [[-4]]])
    scales = {"s": np.float32([0.5]), "z": np.int8([1]), "ws": np.float32([0.5, 0.25]),
                  "wz": np.int8([0, 0]), "w": weights, "b": np.int32([4, 8])}  # fmt: skip
    made = [node("QuantizeLinear", "x", "s", "z", to="q"),
            node("QLinearConv", "q", "s", "z", "w", "ws", "wz", "s", "z", "b", to="c"),
            node("DequantizeLinear", "c", "s", "z")]  # fmt: skip
    exact, _ = several(*made, data=data, **scales)
    assert exact.tolist() == [[[2, -1, 4], [0, 3, -2]]]
