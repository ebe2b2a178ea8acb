"""train.py --firmware: a project is measured in place of the model, and compared with it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import train
from ai8xtools.commands.train.arguments import FirmwareChoice, parse
from ai8xtools.diagnostics import run
from tests.conftest import ROOT
from tests.emulator.trees import c_files, change, generate

pytest.importorskip("unicorn", reason="the emulator needs unicorn (extra `emulator`)")

DIGITS = ("--model", "ai85digitsnet", "--dataset", "digits", "--evaluate", "-8", "--confusion")
WEIGHTS = str(ROOT / "trained" / "digits-ai85digitsnet-qat8-q.pth.tar")
Train = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("generated") / "digits")


@pytest.fixture
def measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Train:
    """Run train.py on the digits; return its status and what it says on both channels."""

    def call(*options: str | Path) -> tuple[int, str]:
        words = ["train.py", *DIGITS, *map(str, options), "-o", str(tmp_path / "logs")]
        monkeypatch.setattr(sys, "argv", words)
        monkeypatch.chdir(tmp_path)
        status = run(train.main)
        said = capsys.readouterr()
        return status, said.out + said.err

    return call


def result(text: str) -> tuple[str, str]:
    """Return the accuracy, and the confusion matrix with one blank between numbers."""
    top = re.search(r"Top1: ([\d.]+)", text)
    matrix = text.split("==> Confusion:\n")[1].split("]]")[0]
    assert top
    return top[1], " ".join(matrix.split())


def test_firmware_measures_what_the_model_does(measure: Train, digits: Path) -> None:
    status, wanted = measure("--exp-load-weights-from", WEIGHTS)
    assert status == 0
    status, found = measure(
        "--exp-load-weights-from", WEIGHTS, "--firmware", digits, "--firmware-fast"
    )
    assert (status, result(found)) == (0, result(wanted))
    assert re.search(r"As the model: \d{3} samples on the firmware in ", found)


def test_firmware_needs_no_weights_of_a_model(measure: Train, digits: Path) -> None:
    status, wanted = measure("--exp-load-weights-from", WEIGHTS)
    status, found = measure("--firmware", digits, "--truncate-testset")
    assert status == 0
    assert "Measured on the firmware in " in found
    assert "weights are random" not in found
    assert result(found)[0] in ("0.000", "100.000")
    assert result(wanted)[0] not in ("0.000", "100.000")


def test_firmware_that_computes_something_else_fails(
    measure: Train, digits: Path, tmp_path: Path
) -> None:
    project = c_files(digits, tmp_path / "wrong")
    word = (project / "weights.h").read_text().split("0x")[30][:8]
    change(project / "weights.h", (f"0x{word}", f"0x{int(word, 16) ^ 0x7F000000:08x}"))
    status, text = measure(
        "--exp-load-weights-from", WEIGHTS, "--firmware", project, "--firmware-fast"
    )
    assert status == 1
    assert re.search(r"\d+ of \d+ samples depart from the model, the first: \d+", text)


def test_firmware_of_another_data_set_is_refused(measure: Train, tmp_path: Path) -> None:
    project = ROOT / "tests" / "emulator" / "project"
    status, text = measure("--firmware", project, "--firmware-fast")
    assert status == 1
    assert "the firmware takes inputs of " in text
    assert "E864" in text


@pytest.mark.parametrize(
    "options",
    [
        ("--firmware", "p"),
        ("--evaluate", "--firmware", "p"),
        ("--evaluate", "-8", "--firmware-fast"),
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_status_2(options: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as end:
        parse(["--model", "ai85net5", "--dataset", "MNIST", *options])
    assert end.value.code == 2


def test_the_command_line_tells_project_and_way() -> None:
    words = ["--model", "ai85net5", "--dataset", "MNIST", "--evaluate", "-8"]
    assert parse(words)[1] is None
    assert parse([*words, "--firmware", "p"])[1] == FirmwareChoice("p", fast=False)
    assert parse([*words, "--firmware", "p", "--firmware-fast"])[1] == FirmwareChoice(
        "p", fast=True
    )
