"""What is known not to work is said last, stands in the program, and is refused with --strict."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.answer import FILE_NAME, read_answer
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.diagnostics import run
from tests.synthesis.networks import describe, sample, save, weights

GAP: dict[str, Any] = {
    "processors": 7,
    "op": "Conv2d",
    "kernel_size": "1x1",
    "pad": 0,
    "quantization": 8,
    "activate": "none",
    "output_processors": 0x15,
}
SENTENCE = (
    "layer 0: unused processors between the outputs, and kernels that do not take one column each; "
    "the chip is not expected to compute the known answer [W371]. Use output processors "
    "('output_map' for the last layer) without gaps, for example 0x0000.0000.0000.0007."
)
LAST = f"Warning: not expected to work as it is: {SENTENCE}\n"


def load(
    folder: Path, *options: str, layer: dict[str, Any] = GAP, zeros: bool = False
) -> tuple[int, Path]:
    """Run the loader on one layer; return the exit status and the project's folder."""
    data = sample(3, 4, 4) * (not zeros)
    np.save(folder / "sample.npy", data)
    (folder / "net.yaml").write_text(describe(layer))
    words = ["--device", "MAX78000", "--config-file", str(folder / "net.yaml")]
    words += ["--sample-input", str(folder / "sample.npy")]
    words += ["--weight-input", save(folder / "weights.npy", [weights(3, 3, 1, 1)])]
    words += ["--test-dir", str(folder), "--prefix", "made", *options]
    return run(lambda: create_project(parse(words))), folder / "made"


def test_the_last_line_says_what_is_not_expected_to_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, made = load(tmp_path)
    assert status == 0
    assert capsys.readouterr().out.endswith(f"files to {made}\n{LAST}")
    assert f"// WARNING: {SENTENCE}\n" in (made / "main.c").read_text()


def test_nothing_is_said_of_a_layer_without_a_gap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, made = load(tmp_path, "--strict", layer={**GAP, "output_processors": 7})
    assert status == 0
    assert capsys.readouterr().out.endswith(f"files to {made}\n")
    assert "WARNING" not in (made / "main.c").read_text()


@pytest.mark.parametrize("more", [(), ("--check-only",), ("--rtl",)])
def test_strict_refuses_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    status, made = load(tmp_path, "--strict", *more)
    assert status == 1
    assert not made.exists()
    output = capsys.readouterr()
    assert output.out == ""
    assert ": error: layer 0: unused processors between" in output.err


def test_the_line_does_not_claim_more_than_the_emulated_chip_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _ = load(tmp_path, "--verify", zeros=True)
    assert status == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "Warning: the emulated chip computes the known answer of this sample, but: " + SENTENCE
    )


def test_an_emulated_chip_that_departs_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _ = load(tmp_path, "--verify")
    assert status == 1
    assert "does not compute the expected output" in capsys.readouterr().err


def test_the_line_does_not_stand_between_messages_for_an_editor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ai8xize.py", "--diagnostics", "json"])
    load(tmp_path, "--diagnostics", "json")
    output = capsys.readouterr()
    assert [found["code"] for found in json.loads(output.out)].count("W371") == 1
    assert output.err.endswith(LAST)


def test_a_network_without_room_for_its_self_test_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "sample.npy", sample(64, 90, 90))
    layer = {
        "processors": 2**64 - 1, "op": "Conv2d", "kernel_size": "3x3", "pad": 1, "max_pool": 2,
        "pool_stride": 2, "activate": "none", "quantization": 8,
    }  # fmt: skip
    (tmp_path / "net.yaml").write_text(describe(layer))
    words = ["--device", "MAX78000", "--config-file", str(tmp_path / "net.yaml")]
    words += ["--sample-input", str(tmp_path / "sample.npy"), "--strict", "--overlap-data"]
    words += ["--weight-input", save(tmp_path / "weights.npy", [weights(64, 64, 3, 3)])]
    words += ["--test-dir", str(tmp_path), "--prefix", "made"]
    assert run(lambda: create_project(parse(words))) == 0
    assert "[W414]" in capsys.readouterr().err
    assert "[W414]" in (tmp_path / "made" / "main.c").read_text()
    answer = read_answer(tmp_path / "made" / FILE_NAME)
    assert len(answer.layers) == 1 and not answer.left_out
