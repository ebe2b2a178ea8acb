"""Projects that the network loader writes run to PASS, on either core and chip, in little time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ai8xtools.emulator import Board
from ai8xtools.emulator.cpu.architecture import CORTEX_M4, RISCV
from ai8xtools.emulator.firmware.compiling import compile_project
from tests.conftest import ROOT
from tests.run_script import run_script


@pytest.mark.parametrize(
    ("chip", "options"),
    [
        ("MAX78000", ["--softmax"]),
        ("MAX78000", ["--softmax", "--fifo"]),
        ("MAX78000", ["--riscv", "--softmax", "--riscv-debug"]),
        ("MAX78000", ["--riscv", "--fast-fifo", "--deepsleep"]),
        ("MAX78002", ["--mlator"]),
        ("MAX78002", ["--riscv", "--stop-start"]),
        ("MAX78002", ["--one-shot", "--zero-sram", "--verify-writes", "--verify-kernels"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_mnist_runs_to_pass(chip: str, options: list[str], tmp_path: Path) -> None:
    done = run_script(
        "ai8xize.py", "--device", chip, "--test-dir", tmp_path,
        "--prefix", "mnist", "--config-file", ROOT / "networks" / "mnist-chw-ai85.yaml",
        "--checkpoint-file", ROOT / "trained" / "mnist-ai85net5-qat8-q.pth.tar",
        "--sample-input", ROOT / "tests" / "sample_mnist.npy", *options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    board = Board.with_project(tmp_path / "mnist")
    start = time.process_time()
    outcome = board.run()
    assert time.process_time() - start < 5
    assert outcome.passed, outcome.console
    assert outcome.exit_code == 0
    assert outcome.run is not None
    assert [finding for finding in outcome.run.findings if not finding.harmless] == []
    riscv = "--riscv" in options
    assert compile_project(tmp_path / "mnist").architecture is (RISCV if riscv else CORTEX_M4)
