"""How long ai8xize.py takes on MNIST, against importing numpy in the same run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.conftest import ROOT

LIMIT = 2.2
"""Processor time, in imports of numpy as a user would time them; once it was 3.5.

On several cores the threads of numpy's BLAS library are part of it; ai8xize.py starts none of them.
With one thread on both sides the ratio is 2.2 to 2.4.
"""
LEAST, MOST = 5, 40
"""Pairs of both in turn: clocks change and other programs disturb, which the median leaves out."""


def processor_seconds(command: list[str], variables: dict[str, str]) -> float:
    """Run a command in the repository; return its user and system time."""
    process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def ratios(folder: Path) -> Iterator[float]:
    """Yield the ratio of each run to the import of numpy just before it."""
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    for name in ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"):
        variables.pop(name, None)  # as a user's
    numpy = [sys.executable, "-c", "import numpy"]
    loader = [
        sys.executable, "ai8xize.py", "--device", "MAX78000", "--prefix", "mnist",
        "--config-file", "networks/mnist-chw-ai85.yaml",
        "--checkpoint-file", "trained/mnist-ai85net5-qat8-q.pth.tar",
        "--sample-input", "tests/sample_mnist.npy", "--softmax", "--timer", "0", "--verbose",
    ]  # fmt: skip
    for number in range(MOST + 1):
        imported = processor_seconds(numpy, variables)
        run = processor_seconds([*loader, "--test-dir", str(folder / str(number))], variables)
        if number:  # the first ones may compile modules
            yield run / imported


def test_loader_needs_little_more_than_its_libraries(tmp_path: Path) -> None:
    pairs = []
    for number, ratio in enumerate(ratios(tmp_path), 1):
        pairs.append(ratio)
        if number >= LEAST and median(pairs) <= LIMIT:
            return
    raise AssertionError(f"{median(pairs):.2f} times the processor time of importing numpy")
