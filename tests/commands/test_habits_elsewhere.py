"""Habits of the tools for low-bit networks and for microcontrollers without the accelerator."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

LOWBIT = ROOT / "trained" / "mnist-lowbit-dense"
COMMANDS = {
    "quantize low-bit": "quantize.py low.pth.tar out.h --device BITNET",
    "loader low-bit": "ai8xize.py --device BITNET --checkpoint-file low.h --sample-input low.npy "
    "--prefix net --test-dir out",
    "loader MCU": "ai8xize.py --device MCU --mcu stm32l4r5 --config-file net.yaml "
    "--checkpoint-file net.pth.tar --sample-input sample.npy --prefix net --test-dir out",
}
MADE = {"quantize low-bit": "out.h", "loader low-bit": "out/net", "loader MCU": "out/net"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with what the commands name, under a name that is not ASCII."""
    here = tmp_path / "größe"
    here.mkdir()
    for source, name in (
        (LOWBIT.with_suffix(".pth.tar"), "low.pth.tar"),
        (LOWBIT.with_suffix(".h"), "low.h"),
        (ROOT / "tests" / "sample_lowbit.npy", "low.npy"),
        (ROOT / "networks" / "digits-chw-ai85.yaml", "net.yaml"),
        (ROOT / "trained" / "digits-ai85digitsnet-qat8-q.pth.tar", "net.pth.tar"),
        (ROOT / "tests" / "sample_digits.npy", "sample.npy"),
    ):
        shutil.copy(source, here / name)
    return here


def ran(
    folder: Path, command: str, more: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command line in a shell."""
    tool, _, options = command.partition(" ")
    line = f"'{sys.executable}' '{ROOT / tool}' {options} {more}"
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, capture_output=True, text=True, errors="replace",
        env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_unusual_surroundings(folder: Path, name: str) -> None:
    """No home, no room for temporary files, a terminal of ASCII, nobody who reads messages."""
    unusual = {"LC_ALL": "C", "PYTHONUTF8": "0", "HOME": "/nonexistent", "TMPDIR": "/proc"}
    ended = ran(folder, COMMANDS[name], "2>/dev/full <&-", **unusual)
    assert (ended.returncode, (folder / MADE[name]).exists()) == (0, True), ended.stdout
    assert "Wrote" in ended.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_reader_that_leaves_early_sees_no_traceback(folder: Path, name: str) -> None:
    ended = ran(folder, COMMANDS[name], "| head -n 1")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_full_disk_is_told_and_leaves_nothing(folder: Path, name: str) -> None:
    """A limit of one block for files stands for the disk."""
    before = sorted(folder.rglob("*"))
    tool, _, options = COMMANDS[name].partition(" ")
    line = f"ulimit -f 1; '{sys.executable}' -B '{ROOT / tool}' {options}"
    ended = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 1 and "[E002]" in ended.stderr, ended.stderr
    assert "Traceback" not in ended.stderr
    assert [path for path in folder.rglob("*") if path not in before and path.is_file()] == []


def test_output_of_the_quantizer_never_replaces_its_input(folder: Path) -> None:
    (folder / "link.h").symlink_to("low.pth.tar")
    before = (folder / "low.pth.tar").read_bytes()
    ended = ran(folder, "quantize.py low.pth.tar link.h --device BITNET")
    assert ended.returncode == 1 and "[E704]" in ended.stderr
    assert (folder / "low.pth.tar").read_bytes() == before
