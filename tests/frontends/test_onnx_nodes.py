"""All node tests of the installed onnx: taken and proven, or refused with one message.

This is a part of `make properties`.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import ai8xize
from ai8xtools.diagnostics import run

pytest.importorskip("onnx", reason="needs the node tests of the package onnx")

LARGE = 1 << 20


@pytest.mark.skipif("AI8X_PROPERTIES" not in os.environ, reason="1,884 graphs: make properties")
@pytest.mark.parametrize(
    "target", [("MAX78000",), ("MAX78002",), ("MCU", "--mcu", "stm32h743")], ids=lambda t: t[0]
)
def test_no_graph_is_taken_for_another_one(
    target: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    assert len(cases) > 1000
    taken = set()
    for case in cases:
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
    import numpy as np
    from onnx.backend.test.case.node import collect_testcases

    from ai8xtools.checkpoint.errors import CheckpointError
    from ai8xtools.checkpoint.onnx_graph import read_graph
    from ai8xtools.frontends.graph.passes import results
    from ai8xtools.frontends.onnx.door import read_operators

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    taken = set()
    for case in cases:
        inputs, outputs = case.data_sets[0] if case.data_sets else ([], [])
        if not len(inputs) or not isinstance(inputs[0], np.ndarray):
            continue
        if inputs[0].shape[:1] != (1,) or inputs[0].dtype.kind not in "fiu":
            continue
        file = tmp_path / "net.onnx"
        file.write_bytes(_with_constants(case.model, inputs[1:]))
        try:
            graph, refusals = read_operators(read_graph(file), inputs[0].shape[1:])
        except CheckpointError:
            continue
        if refusals:
            continue
        for ours, theirs in zip(results(graph, inputs[0].astype(np.float64)), outputs, strict=True):
            if ours is not None:
                np.testing.assert_allclose(ours, theirs, 1e-3, 1e-4, err_msg=case.name)
                taken.add(case.name)
    assert len(taken) > 75


def _with_constants(model: Any, values: Any) -> bytes:
    """Return a model whose inputs behind the first are constants."""
    import numpy as np
    from onnx import numpy_helper

    made = type(model).FromString(model.SerializeToString())
    named = [one.name for one in made.graph.input][1:]
    for name, value in zip(named, values, strict=True):
        made.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return bytes(made.SerializeToString())
