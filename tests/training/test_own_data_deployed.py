"""From a folder of pictures to running firmware with the three commands of README.md."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diagnostics import run
from tests.conftest import ROOT

pytest.importorskip("unicorn", reason="the emulator needs unicorn (requirements-emulator.txt)")

CLASSES = ("disc 100%", "bar", 'zebra "ü"')
SHORT = "--epochs 3 -b 16 --qat-policy qat.yaml --resize 12 -j 0 --deterministic"
Call = Callable[[str], str]


def draw(folder: Path, count: int = 10) -> None:
    """Write pictures of three kinds, of different sizes."""
    rng = np.random.default_rng(0)
    for label, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for n in range(count):
            rows, columns = rng.integers(16, 22, 2)
            y, x = np.mgrid[:rows, :columns]
            marks = ((y - 8) ** 2 + (x - 8) ** 2 < 30, abs(x - 8) < 3, y % 4 < 2)
            level = np.where(marks[label], 220, 40) + rng.integers(0, 30, (rows, columns))
            Image.fromarray(level.astype(np.uint8)).save(folder / name / f"{n}.png")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the three commands of the README have run."""
    place = tmp_path_factory.mktemp("own")
    draw(place / "pictures")
    (place / "qat.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")
    return place


@pytest.fixture
def call(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    monkeypatch.chdir(folder)

    def called(line: str) -> str:
        _, script, *arguments = shlex.split(line)
        monkeypatch.setattr(sys, "argv", [script, *arguments])
        status = run(importlib.import_module(Path(script).stem).main)
        said = capsys.readouterr()
        assert status == 0, f"{line}\n{said.out}{said.err}"
        return said.out

    return called


def commands(page: str) -> list[str]:
    """Return the three commands of a page."""
    blocks = re.findall(r"(?:^ {4}|^)(python train\.py --model auto .*(?:\n.*){2})", page, re.M)
    return [line.strip() for line in blocks[0].splitlines()]


def test_readme_and_manual_have_the_same_commands() -> None:
    pages = [(ROOT / name).read_text() for name in ("README.md", "docs/own-data.md")]
    assert commands(pages[0]) == commands(pages[1]) and len(commands(pages[0])) == 3


def test_three_commands_lead_to_firmware_that_names_classes(call: Call, folder: Path) -> None:
    train, quantize, deploy = commands((ROOT / "README.md").read_text())
    said = call(f"{train} {SHORT}")
    assert "--model auto: sized2d_32, the widest that fits MAX78000" in said
    call(quantize)
    load, _, emulate = deploy.partition(" && ")
    call(f"{load} --verify")
    printed = call(emulate)
    assert "PASS (1 inference)" in printed
    for name in CLASSES:
        assert re.search(rf"\] -> {re.escape(name)}: \d+\.\d%", printed), printed
    described = json.loads((folder / "projects/pictures/dataset.json").read_text())
    assert described["classes"] == sorted(CLASSES)


def test_the_other_tools_know_the_data_from_the_checkpoint(call: Call, folder: Path) -> None:
    data = "--dataset folder:pictures --model auto --exp-load-weights-from pictures-q.pth.tar"
    said = call(f"python train.py {data} --evaluate -8 --save-sample 0 -j 0")
    accuracy = said.partition("Top1: ")[2].split()[0]
    deployed = said.replace(accuracy, "")
    assert float(accuracy) > 40 and "test=6" in deployed
    sample = np.load(folder / "sample_pictures.npy")
    assert sample.shape == (3, 12, 12)
    picture = folder / "pictures" / "bar" / "4.png"
    first = call(f"python emulate.py projects/pictures --input {shlex.quote(str(picture))} --fast")
    named = first.partition("input 0: ")[2].splitlines()[0]
    assert named in CLASSES and "DONE (1 input)" in first
    again = call("python emulate.py projects/pictures --input sample_pictures.npy --fast")
    assert "DONE (1 input)" in again
    best = next(folder.glob("logs/pictures___*/pictures_qat_best.pth.tar"))
    calibrated = call(
        f"python quantize.py {best} c.pth.tar --device MAX78000 --calibrate folder:pictures"
    )
    assert "samples of pictures" in calibrated


def test_other_classes_than_those_of_the_checkpoint_are_refused(
    call: Call, folder: Path, tmp_path: Path
) -> None:
    draw(tmp_path / "others", 2)
    (tmp_path / "others" / "bar").rename(tmp_path / "others" / "rod")
    with pytest.raises(AssertionError, match="bar, rod in one of them only"):
        call(
            f"python train.py --dataset folder:{tmp_path}/others --model auto --evaluate -8 "
            "--exp-load-weights-from pictures-q.pth.tar"
        )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--dataset digits --resize 32", "--resize: only for --dataset folder:"),
        ("--dataset csv:x.csv --augment turn", "--augment: only for --dataset folder: or sounds:"),
        ("--dataset folder:pictures --augment spin", "'spin' is none of mirror"),
        ("--dataset sounds:x --window 100", "is no multiple of 128"),
        ("--dataset folder:pictures --resize 32x", "is not WIDTHxHEIGHT"),
    ],
)
def test_options_that_do_not_fit_the_data_are_refused(
    words: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import train

    monkeypatch.setattr(sys, "argv", ["train.py", "--model", "auto", *words.split()])
    with pytest.raises(SystemExit) as ended:
        run(train.main)
    assert ended.value.code == 2 and message in capsys.readouterr().err


def test_no_network_for_inputs_that_are_too_large(call: Call, folder: Path) -> None:
    with pytest.raises(AssertionError, match="no network of sized2d fits MAX78000"):
        call("python train.py --dataset folder:pictures --model auto --resize 512 --epochs 1")
