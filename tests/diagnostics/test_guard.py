"""How a tool ends: what was printed arrives, or the exit status says that it did not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

PROGRAM = "import sys; from ai8xtools.diagnostics import leave, run; leave(run(lambda: {body}))"


def end(body: str, **streams: int) -> subprocess.CompletedProcess[bytes]:
    """Run a tool whose work is an expression; return how it ended."""
    command = [sys.executable, "-c", PROGRAM.format(body=body)]
    return subprocess.run(command, cwd=ROOT, check=False, **{"stdout": -1, "stderr": -1, **streams})


@pytest.mark.parametrize("status", [0, 1])
def test_printed_lines_arrive(status: int) -> None:
    ended = end(f"print('done') or {status}")
    assert (ended.returncode, ended.stdout, ended.stderr) == (status, b"done\n", b"")


@pytest.fixture
def full_device() -> Iterator[int]:
    """A device that is always full."""
    if not Path("/dev/full").exists():
        pytest.skip("the system has no /dev/full")
    with open("/dev/full", "wb") as full:
        yield full.fileno()


def test_full_disk_is_told_in_one_message(full_device: int) -> None:
    ended = end("print('done')", stdout=full_device)
    assert ended.returncode == 1
    assert b"[E002]" in ended.stderr
    assert b"Exception ignored" not in ended.stderr


def test_help_that_does_not_arrive_is_a_failure(full_device: int) -> None:
    """argparse itself drops the error; where nothing is buffered, nobody else would see it."""
    tools = [
        p for p in (*ROOT.glob("*.py"), *ROOT.glob("scripts/*.py")) if "run(main" in p.read_text()
    ]
    assert len(tools) > 4
    cases = [(tool, "1") for tool in tools] + [(tools[0], "")]
    began = {
        (tool.name, unbuffered): subprocess.Popen(
            [sys.executable, tool, "--help"], stdout=full_device, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
        for tool, unbuffered in cases
    }  # fmt: skip
    for which, process in began.items():
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors.count(b"[E002]")) == (1, 1), which


def test_closed_output_is_no_failure() -> None:
    command = f'exec "$0" -c "{PROGRAM.format(body="print(1)")}" >&-'
    ended = subprocess.run(["sh", "-c", command, sys.executable], cwd=ROOT, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_profiler_sees_the_usual_end() -> None:
    ended = end("sys.setprofile(lambda *_: None)")
    assert ended.returncode == 0


@pytest.mark.parametrize(("number", "words"), [("SIGINT", b"interrupted"), ("SIGTERM", b"ended")])
def test_import_that_was_interrupted_is_no_defect(number: str, words: bytes) -> None:
    """A compiled library that a signal stops while it loads tells of it as an ImportError."""
    program = (
        "import os, signal, sys; from ai8xtools.diagnostics import leave, run\n"
        "def main():\n"
        "    try:\n"
        f"        os.kill(os.getpid(), signal.{number})\n"
        "    except KeyboardInterrupt as exc:\n"
        "        raise ImportError('C extensions failed')\n"
        "leave(run(main))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=False
    )
    assert ended.returncode == 1
    assert b"[E001]" in ended.stderr and words in ended.stderr


def test_a_package_that_is_not_installed_is_no_defect() -> None:
    ended = end("__import__('package_of_nobody.part')")
    assert ended.returncode == 1
    assert b"the package package_of_nobody is not installed for" in ended.stderr
