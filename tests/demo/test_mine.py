"""make mine: which steps run, with small stand-ins for the tools, and options of the real ones."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.targets.arguments import select
from ai8xtools.diagnostics import DiagnosticError
from tools import mine
from tools.demo import Runner

HEAD = """
import json, pathlib, sys, time
options = dict(zip(sys.argv[1:], sys.argv[2:]))
print("took", sys.argv[1:])
"""
TOOLS = {
    "train": """
folder = pathlib.Path(options["--out-dir"]) / f"{options['--name']}___{time.time_ns()}"
folder.mkdir(parents=True)
(folder / f"{options['--name']}_qat_best.pth.tar").touch()
part = int(options.get("--test-part", 0))
told = {"right": 9 - part, "count": 10, "chance": 0.5}
(folder / "metrics.json").write_text(json.dumps({"accuracy": {"float": {}, "integers": told}}))
""",
    "quantize": "pathlib.Path(sys.argv[2]).touch()",
    "ai8xize": """
folder = pathlib.Path(options["--test-dir"]) / options["--prefix"]
folder.mkdir(exist_ok=True)
(folder / "main.c").touch()
pathlib.Path(options["--report"]).touch()
""",
    "emulate": "print('Accuracy of the firmware: 93.3 % (14 of 15)\\nDONE (15 inputs)')",
}
STEPS = ["train", "quantize", "generate", "emulate"]
Make = Callable[..., tuple[list[str], str]]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for tool, text in TOOLS.items():
        (tmp_path / f"{tool}.py").write_text(HEAD + text)
    (tmp_path / "my data" / "cat").mkdir(parents=True)
    (tmp_path / "my data" / "cat" / "1.png").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "my data" / "dog").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "round").symlink_to(tmp_path / "my data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def make(root: Path, capsys: pytest.CaptureFixture[str]) -> Make:
    """Return what makes firmware, and tells which steps ran, and what was found."""

    def call(*words: str) -> tuple[list[str], str]:
        options = mine.parse(["folder:my data", *words])
        capsys.readouterr()
        found = mine.make(mine.Steps(Runner(root, options.output), root), options)
        parts = capsys.readouterr().out.split("== ")[1:]
        return [part.split("\n")[0] for part in parts if "took" in part], found

    return call


def replace_by_older(path: Path) -> None:
    """Write other contents with an older time into a file: the folder does not change."""
    path.write_text("older")
    os.utime(path, (1, 1))


def test_everything_is_made_once(make: Make) -> None:
    ran, found = make()
    assert ran == STEPS
    assert "Accuracy of the firmware: 93.3 % (14 of 15)" in found
    assert "project: mine/my_data/my_data" in found.replace("\\", "/")
    assert make() == ([], found)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda root: (root / "my data" / "cat" / "2.png").touch(), STEPS),
        (lambda root: (root / "my data" / "cat" / "1.png").unlink(), STEPS),
        (lambda root: (root / "my data" / "cat" / "1.png").write_text("other"), STEPS),
        (lambda root: (root / "mine/my_data/my_data-q.pth.tar").touch(), STEPS[2:]),
        (lambda root: (root / "mine/my_data/my_data-q.pth.tar").unlink(), STEPS[1:]),
        (lambda root: (root / "mine/my_data/report.html").unlink(), STEPS[2:]),
        (lambda root: (root / "mine/my_data/my_data/main.c").write_text("edited"), STEPS[3:]),
        (lambda root: replace_by_older(root / "my data" / "cat" / "1.png"), STEPS),
        (lambda root: (root / "elsewhere" / "3.png").touch(), STEPS),
        (lambda root: (root / "README").touch(), []),
    ],
)
def test_steps_run_again_from_the_first_whose_input_has_changed(
    make: Make, root: Path, change: Callable[[Path], None], expected: list[str]
) -> None:
    make()
    change(root)
    assert make()[0] == expected
    assert make()[0] == []


def test_another_command_line_is_another_result(make: Make) -> None:
    make()
    assert make("--epochs", "3")[0] == STEPS
    assert make("--epochs", "3", "--device", "max78002")[0] == STEPS
    assert make("--epochs", "3", "--device", "MCU", "--mcu", "rp2040")[0] == STEPS
    assert make("--epochs", "3", "--device", "MCU", "--mcu", "stm32l4r5")[0] == STEPS[2:]


@pytest.mark.parametrize("step", range(4))
def test_a_step_that_fails_is_run_again(make: Make, root: Path, step: int) -> None:
    path = root / f"{[*TOOLS][step]}.py"
    text = path.read_text()
    make()
    path.write_text(f"{text}\nsys.exit('no luck today')")
    (root / "my data" / "cat" / "2.png").touch()
    with pytest.raises(DiagnosticError, match=f"stage '{STEPS[step]}' ended with status 1"):
        make()
    path.write_text(text)
    assert make()[0] == STEPS[step:]


def test_data_that_changes_during_a_training_is_trained_on_again(make: Make, root: Path) -> None:
    path = root / "train.py"
    text = path.read_text()
    path.write_text(f"{text}\npathlib.Path('my data/cat/3.png').touch()")
    make()
    path.write_text(text)
    assert make()[0] == STEPS


def test_each_part_of_the_data_is_tested_once(make: Make) -> None:
    assert "10 test samples tell little: --folds 5" in make()[1]
    ran, found = make("--folds", "3")
    assert ran == ["fold-1-of-3", "fold-2-of-3", "fold-3-of-3"]
    assert "Cross-validation: 80.0 % (24 of 30; " in found and "70.0 to 90.0 %" in found
    assert "tell little" not in found
    assert make("--folds", "3") == ([], found)


@pytest.mark.parametrize("device", ["MAX78000", "MAX78002", "MCU"])
def test_tools_know_their_options(
    root: Path, device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mcu = ["--mcu", "rp2040"] if device == "MCU" else []
    options = mine.parse(["folder:my data", "--device", device, *mcu, "--lr", "0.1",
                          "--folds", "2"])  # fmt: skip
    mine.make(mine.Steps(Runner(root, options.output), root), options)
    shown = [line[2:] for line in capsys.readouterr().out.splitlines() if line.startswith("$ ")]
    lines = {Path(words[1]).name: words[2:] for words in map(shlex.split, shown)}
    taken = {}
    for tool in ("train.py", "quantize.py", "ai8xize.py"):
        parser = select(tool, lines[tool]).parser(tool)
        assert all(parser.knows(word) for word in lines[tool] if word.startswith("--"))
        taken[tool] = parser.parse_args(lines[tool])
    assert taken["train.py"].resize == (32, 32) and taken["train.py"].lr == 0.1
    assert str(parse(lines["emulate.py"]).input) == "folder:my data"


@pytest.mark.parametrize("words", [[], ["pictures"], ["folder:"], ["--resize", "32", "folder:x"],
                                   ["folder:x", "--folds", "1"]])  # fmt: skip
def test_data_is_named_first(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        mine.parse(words)
    assert ended.value.code == 2
