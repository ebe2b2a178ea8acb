"""What the loader says on the console, and the files that debugging options add."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.diagnostics import run
from ai8xtools.writing.manifest import MANIFEST
from tests.conftest import ROOT

RESOURCES = """\
Weight memory: 23,584 bytes out of 442,368 bytes total (5.3%)
Bias memory:   10 bytes out of 2,048 bytes total (0.5%)
Flash memory:  35,324 bytes out of 524,288 bytes total (6.7%): weights 24,036, code 11,134, \
known answer 80, sample 64, biases 10; with GCC 29,899
SRAM:          832 bytes out of 131,072 bytes total (0.6%): variables 792, result 40
"""


def load(folder: Path, *options: str) -> Path:
    """Make a project of the digits network; return its folder."""
    named = {
        "--device": "MAX78000",
        "--config-file": ROOT / "networks" / "digits-chw-ai85.yaml",
        "--checkpoint-file": ROOT / "trained" / "digits-ai85digitsnet-qat8-q.pth.tar",
        "--sample-input": ROOT / "tests" / "sample_digits.npy",
        "--test-dir": folder,
        "--prefix": "digits",
    }
    words = [str(word) for pair in named.items() for word in pair]
    assert run(lambda: create_project(parse([*words, *options]))) == 0
    return folder / "digits"


def test_verbose_run_ends_with_memory_use_and_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = load(tmp_path, "--verbose")
    lines = capsys.readouterr().out
    assert RESOURCES in lines
    assert lines.endswith(
        "Data memory:   2,816 bytes out of 524,288 bytes total (0.5%), most at layer 1\n"
        f"Kernel map, data memory map, registers and data: {made / 'log.txt'}\n"
    )


def test_table_of_the_weights_is_not_among_the_messages_for_an_editor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ai8xize.py", "--diagnostics", "json"])
    load(tmp_path, "--display-checkpoint", "--check-only", "--diagnostics", "json")
    output = capsys.readouterr()
    assert isinstance(json.loads(output.out), list)
    assert "layers, " in output.err


def test_verbose_log_is_printed_if_there_is_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = load(tmp_path, "--verbose", "--no-log")
    lines = capsys.readouterr().out
    assert "\nKernel map:\n" in lines
    resources, energy = lines[:-1].rsplit("\n", 1)
    assert f"{resources}\n".endswith(RESOURCES)
    joules = r"\d[\d.]* uJ \([\d.]+ to [\d.]+\)"
    assert re.fullmatch(
        f"Energy: +{joules} for an inference, {joules} for its input, {joules} to load weights "
        "once, published constants; docs/energy.md",
        energy,
    )
    assert not (made / "log.txt").exists()


def test_sections_of_the_verbose_log(tmp_path: Path) -> None:
    log = (load(tmp_path, "--verbose", "--timer", "0", "--energy") / "log.txt").read_text()
    headings = [
        "Messages:\n", "Kernel map:\n", "Data memory (", "Global registers:\n",
        "Global configuration:\n", "Per-quadrant configuration:\n", "Per-layer configuration:\n",
        "Layer register configuration:\n", "Global registers:\n", "LAYER 0 (CONV2D)...\n",
        "LAYER 3 (LINEAR)...\n", "ESTIMATED LATENCY\n", "SUMMARY OF OPS\n", "RESOURCE USAGE\n",
    ]  # fmt: skip
    position = 0
    for heading in headings:
        position = log.index(f"\n{heading}", position) + 1


def test_quiet_run_says_only_where_the_files_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = load(tmp_path)
    assert capsys.readouterr().out == f"Wrote {len(list(_files(made)))} files to {made}\n"


def test_all_debugging_options_together(tmp_path: Path) -> None:
    plain = set(map(str, _files(load(tmp_path / "plain"))))
    made = load(
        tmp_path, "-v", "--debug", "--debug-latency", "--debug-computation", "--log-pooling",
        "--log-intermediate", "--output-pass-filename", "pass", "--sample-numpy-filename", "r.npy",
    )  # fmt: skip
    added = set(map(str, _files(made))) - plain
    tables = {"output.csv", "pass.csv", "config.csv", "data.npy", "weights.npy", "bias.npy"}
    computed = {f"compute-{layer}.csv" for layer in range(4)}
    pooled = {f"{x}pooled-0-L1-ch{c}.csv" for x in ("", "un") for c in range(32)}
    assert added == tables | computed | pooled | {"r.npy"}
    log = (made / "log.txt").read_text()
    assert "\nTrue MACs: 248,448\n" in log and "\n    padding row " in log


def _files(folder: Path) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return [path.relative_to(folder) for path in found if path.name != MANIFEST]
