"""What terminals show besides plain text: progress in one line, and tables that fit."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from ai8xtools.diagnostics.conclusion import conclusion
from ai8xtools.diagnostics.outcome import Outcome
from ai8xtools.reading import progress, tables
from tests.conftest import ROOT

HEADS = ["layer", "columns", "data", "more columns", "more data"]
ROWS = [["conv1", "11", "222", "3", "4"], ["a longer name", "5", "6", "7", "8"]]
WORK = """
import sys, time
from ai8xtools.diagnostics import run
from ai8xtools.reading import progress
progress._FIRST_SECONDS = progress._EVERY_SECONDS = 0.0

def main():
    for number in progress.tracked("Work", range(4)):
        if number == 2:
            print("halfway")
    print("over")

run(main)
"""


def in_terminal(code: str, columns: int, both: bool = True, **variables: str) -> str:
    """Run Python in a terminal (with `both` its output too) and return all that arrives there."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "TERM")}
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=environment | {"TERM": "xterm"} | variables,
        stdout=slave if both else subprocess.DEVNULL, stderr=slave,
    )  # fmt: skip
    os.close(slave)
    text = b""
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        text += part
    os.close(master)
    assert process.wait() == 0, text.decode()
    return text.decode().replace("\r\n", "\n")


def left(text: str) -> list[str]:
    """Return the lines that stay on a terminal."""
    return [re.split(r"\r\x1b\[K", line)[-1] for line in text.split("\n")]


def test_progress_is_one_line_that_output_replaces() -> None:
    text = in_terminal(WORK, 80)
    assert re.search(r"Work: 25 %, 0:00 left", text) and "Work: 100 %" in text
    assert left(text)[:2] == ["halfway", "over"]


@pytest.mark.parametrize("columns", [24, 80])
def test_progress_is_never_wider_than_the_terminal(columns: int) -> None:
    text = in_terminal(WORK.replace('"Work"', '"W" + 200 * "x"'), columns, both=False)
    shown = [line for line in re.split(r"[\r\n]", text) if "xxx" in line]
    assert shown and max(len(line.removeprefix("\x1b[K")) for line in shown) == columns - 1


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colours_are_left_out_on_request(no_color: str, coloured: bool) -> None:
    code = "from ai8xtools.diagnostics import *\nprint_diagnostics([Diagnostic('E001', 'no')])"
    text = in_terminal(code, 80, NO_COLOR=no_color)
    assert "error: " in text and ("\x1b" in text) == coloured


def test_pipes_get_no_progress() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORK], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("halfway\nover\n", "")


def test_time_that_is_left_follows_from_the_pace() -> None:
    line = progress.Progress("Work", 8)
    line.advance(2)
    assert line.text(30.0) == "Work: 25 %, 1:30 left"
    line.reach(8, "Rest")
    assert line.text(30.0) == "Rest: 100 %, 0:00 left"
    assert progress.Progress("Work", None).text(3725) == "Work: 1:02:05"
    assert progress.Progress("Work", 8).text(5) == "Work: 0 %"


def parts(width: int | None, monkeypatch: pytest.MonkeyPatch, **settings: object) -> list[str]:
    monkeypatch.setattr(tables, "terminal_columns", lambda: width)
    return tables.table(ROWS, HEADS, **settings).split("\n\n")  # type: ignore[arg-type]


def test_wide_tables_continue_below(monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = parts(None, monkeypatch)
    for width in (30, 44, len(whole.splitlines()[1]) - 1):
        some = parts(width, monkeypatch)
        assert len(some) > 1 and max(map(len, "\n".join(some).splitlines())) <= width
        assert all("a longer name" in part for part in some)
        heads = " ".join(part.splitlines()[0] for part in some).split()
        assert heads.count("layer") == len(some)
        assert [h for h in heads if h != "layer"] == [
            "columns",
            "data",
            "more",
            "columns",
            "more",
            "data",
        ]
    assert parts(len(whole.splitlines()[1]), monkeypatch) == [whole]
    assert parts(30, monkeypatch, whole=True) == [whole]
    assert len(parts(None, monkeypatch, most=44)) > 1


def test_columns_that_belong_together_are_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = ["left", *["right"] * 4]
    first, second = parts(48, monkeypatch, together=2, colalign=sides)
    assert first.splitlines()[0].split() == ["layer", "columns", "data"]
    assert second.splitlines()[2].split() == ["conv1", "3", "4"]


@pytest.mark.parametrize(
    ("called", "following"),
    [
        ("../emulate.py", "python ../emulate.py 'a b'"),
        ("quantize.py", "python emulate.py 'a b'"),
        ("/opt/bin/ai8xize", "ai8x-emulate 'a b'"),
    ],
)
def test_last_line_names_result_and_next_command(called: str, following: str) -> None:
    outcome = Outcome((called,), following=("emulate.py", "a b"))
    outcome.facts |= {
        "subject": "net",
        "verdict": "passed",
        "accuracy": {"measures": {"top1": 98.6111}, "samples": 360},
        "cycles": {"count": 3733},
    }
    result = "net: passed, top1 98.61 on 360 samples, 3,733 cycles."
    assert conclusion(outcome, 200) == f"{result} Next: {following}"
    assert conclusion(outcome, 70) == f"{result}\nNext: {following}"
    outcome.facts["reason"] = "fits MAX78000"
    assert conclusion(outcome, 200).startswith("net: fits MAX78000, top1")
    outcome.facts["reason"] = 50 * "x"
    outcome.following = ()
    assert conclusion(outcome, 80) == result.removesuffix(".")
    assert conclusion(Outcome((called,), following=("make", "-C", "x")), 80).endswith("make -C x")
    assert conclusion(Outcome(), 80) == ""
