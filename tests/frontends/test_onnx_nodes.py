"""All node tests of the installed onnx: taken and proven, or refused with one message.

This is a part of `make properties`.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path

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
