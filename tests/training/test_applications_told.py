"""The commands of docs/applications.md: from folders of recordings to lines on the console."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import ROOT
from tests.emulator.test_applications import write_sound
from tests.training.test_own_data_deployed import LATER, draw, run_here

SHORT = "--epochs 8 -b 16 --epoch-samples 96 --qat-policy qat.yaml -j 0 --deterministic"


def commands() -> dict[str, list[str]]:
    """Return the commands of each story by the name of its data."""
    text = (ROOT / "docs" / "applications.md").read_text()
    blocks = re.findall(r"(?:^ {4}python .*\n)+", text[text.index("## From recordings") :], re.M)
    return {re.search(r"--name (\w+)", block)[1]: block.split("\n")[:-1] for block in blocks}  # type: ignore[index]


def pictures(folder: Path) -> list[str]:
    draw(folder / "pictures")
    (folder / "new" / "pictures").mkdir(parents=True)
    names = sorted(path.name for path in (folder / "pictures").iterdir())
    for number, name in enumerate(names):
        picture = Image.open(folder / "pictures" / name / "3.png").resize((96, 96))
        picture.save(folder / "new" / "pictures" / f"{number}.png")
    return names


def sounds(folder: Path) -> list[str]:
    """Tones of half a second that begin after a quarter of one, as a window holds them."""
    rng = np.random.default_rng(0)
    for name, height in {"low tone": 300, "high tone": 2500}.items():
        for place in (*(Path("sounds", name, f"{n}.wav") for n in range(10)),
                      Path("new", "sounds", f"{name}.wav")):  # fmt: skip
            samples = np.zeros(16384)
            begin = int(rng.integers(3800, 4400))
            phase = 2 * np.pi * height * np.arange(8000) / 16000 + rng.uniform(0, 6)
            samples[begin : begin + 8000] = np.sin(phase) * 12000
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            write_sound(folder / place, np.round(samples))
    return ["high tone", "low tone"]


def moves(folder: Path) -> list[str]:
    """Lying still, and shaken along the first axis."""
    rng = np.random.default_rng(0)
    for name in ("shake", "still"):
        for place in (*(Path("moves", name, f"{n}.csv") for n in range(8)),
                      Path("new", "moves", f"{name}.csv")):  # fmt: skip
            rows = rng.normal([0, 0, 16000], 300, (120, 3))
            if name == "shake":
                rows[:, 0] += 9000 * np.sin(2 * np.pi * (np.arange(120) / 8 + rng.random()))
            lines = [",".join(map(str, row)) for row in np.round(rows).astype(int).tolist()]
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text("\n".join(["x,y,z", *lines]) + "\n")
    return ["shake", "still"]


STORIES = {"pictures": pictures, "sounds": sounds, "moves": moves}


def test_each_sensor_has_its_commands() -> None:
    assert [*commands()] == [*STORIES]
    assert all(len(lines) == 5 for lines in commands().values())


@LATER
@pytest.mark.parametrize("story", STORIES)
def test_recordings_become_decisions(story: str, tmp_path: Path) -> None:
    names = STORIES[story](tmp_path)
    train, *prepare, play, measure = commands()[story]
    (tmp_path / "qat.yaml").write_text("start_epoch: 1\nweight_bits: 8\n")
    with contextlib.chdir(tmp_path):
        run_here(f"{train.strip()} {SHORT}{' --resize 12' if story == 'pictures' else ''}")
        for line in prepare:
            run_here(line.strip())
        text, accuracy = run_here(play.strip()), run_here(measure.strip())
    found = re.findall(r"^(?:picture )?\d+(?: ms)?: (.*) \(-?\d+\)$", text, re.MULTILINE)
    assert set(found) == set(names)
    if story == "moves":  # windows that hold both are either
        assert found[0] == names[0] and found[-1] == names[1]
    else:
        assert found == names
    assert "Accuracy of the firmware: 100.0 %" in accuracy
