"""How a tool ends: what was printed arrives, or the exit status says that it did not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PROGRAM = "import sys; from diagnostics import leave, run; leave(run(lambda: {body}))"


def end(body: str, **streams: int) -> subprocess.CompletedProcess[bytes]:
    """Run a tool whose work is an expression; return how it ended."""
    command = [sys.executable, "-c", PROGRAM.format(body=body)]
    return subprocess.run(command, cwd=ROOT, check=False, **{"stdout": -1, "stderr": -1, **streams})


@pytest.mark.parametrize("status", [0, 1])
def test_printed_lines_arrive(status: int) -> None:
    ended = end(f"print('done') or {status}")
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, b"done\n", b"")


def test_full_disk_is_told_in_one_message() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("the system has no /dev/full")
    with open("/dev/full", "wb") as full:
        ended = end("print('done')", stdout=full.fileno())
    assert ended.returncode == 1
    assert b"[E002]" in ended.stderr
    assert b"Exception ignored" not in ended.stderr


def test_closed_output_is_no_failure() -> None:
    command = f'exec "$0" -c "{PROGRAM.format(body="print(1)")}" >&-'
    ended = subprocess.run(["sh", "-c", command, sys.executable], cwd=ROOT, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_profiler_sees_the_usual_end() -> None:
    ended = end("sys.setprofile(lambda *_: None)")
    assert ended.returncode == 0
