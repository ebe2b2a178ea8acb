"""The demo's own work, with small stand-ins for the tools: order, reuse, failures, table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ai8xtools.diagnostics import DiagnosticError
from tests.conftest import ROOT
from tools import demo

HEAD = """
import json, pathlib, sys, time
options = dict(zip(sys.argv[1:], sys.argv[2:]))
"""
TRAIN = (
    HEAD
    + """
folder = pathlib.Path(options["--out-dir"]) / (options.get("--name", "") + str(time.time_ns()))
folder.mkdir(parents=True)
top1 = 97.0 if "-8" in sys.argv else 97.5 if "qat" in str(sys.argv) else 98.5
if "--evaluate" in sys.argv:
    (folder / "metrics.json").write_text(json.dumps({"test": {"top1": top1}}))
else:
    for name in ("digits_best.pth.tar", "digits_qat_best.pth.tar"):
        (folder / name).write_text(name)
"""
)
QUANTIZE = HEAD + "pathlib.Path(sys.argv[2]).touch()"
LOG = """\
ESTIMATED LATENCY
  Startup         1
  Layer 0     4,999
  =====
  Total       5,000 cycles
RESOURCE USAGE
Weight memory: 1,234 bytes out of 442,368 bytes total (0.3%)
Bias memory:   10 bytes out of 2,048 bytes total (0.5%)
"""
LOADER = (
    HEAD
    + f"""
folder = pathlib.Path(options["--test-dir"]) / options["--prefix"]
folder.mkdir(exist_ok=True)
(folder / "log.txt").write_text({LOG!r})
print("verified 4,321 accelerator words")
"""
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose tools do next to nothing, the current folder."""
    root = tmp_path / "a repository"
    (root / "scripts").mkdir(parents=True)
    monkeypatch.chdir(root)
    for name, text in (("train", TRAIN), ("quantize", QUANTIZE), ("gen", LOADER)):
        (root / f"{name}.py").write_text(text)
        script = root / "scripts" / f"{name}_digits.sh"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {name}.py "$@"\n')
        script.chmod(0o755)
    (root / "emulate.py").write_text("")
    (root / "ai8xize.py").write_text('import runpy; runpy.run_path("gen.py")')
    return root


@pytest.fixture
def output(root: Path) -> Path:
    output = root / "demo-output"
    output.mkdir()
    return output


def run_demo(root: Path, output: Path, retrain: bool = False) -> demo.Result:
    return demo.collect(demo.Runner(root, output), retrain)


def trained(output: Path) -> bool:
    """Whether the last demo in `output` trained; forgets it."""
    log = output / "stages" / "train.txt"
    was_there = log.exists()
    log.unlink(missing_ok=True)
    return was_there


def contents(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_table_shows_what_the_stages_found(root: Path, output: Path) -> None:
    result = run_demo(root, output)
    lines = [" ".join(line.split()) for line in demo.table(result).splitlines()]
    assert lines == [
        "accuracy, float 98.50 %",
        "accuracy, QAT 97.50 %",
        "accuracy, quantized (8-bit simulation) 97.00 %",
        "weight memory 1,234 bytes out of 442,368 bytes total (0.3%)",
        "bias memory 10 bytes out of 2,048 bytes total (0.5%)",
        "estimated latency 5,000 cycles (0.10 ms at 50 MHz)",
        "accelerator words verified 4,321",
    ]


def test_command_lines_are_shown_as_a_user_would_type_them(
    root: Path, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_demo(root, output)
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("$ ")]
    assert len(shown) == 7
    assert not any(str(root) in line for line in shown)


def test_second_run_uses_the_training_again(root: Path, output: Path) -> None:
    first = run_demo(root, output)
    assert trained(output)
    assert run_demo(root, output) == first
    assert not trained(output)


def test_retrain_and_changed_sources_train_again(root: Path, output: Path) -> None:
    run_demo(root, output)
    trained(output)
    run_demo(root, output, retrain=True)
    assert trained(output)
    (root / "models").mkdir()
    (root / "models" / "new.py").touch()
    run_demo(root, output)
    assert trained(output)


def test_failed_training_is_named_and_leaves_the_finished_one(root: Path, output: Path) -> None:
    run_demo(root, output)
    before = contents(output / "training")
    (root / "train.py").write_text(TRAIN + "\nsys.exit('no learning today')")
    with pytest.raises(DiagnosticError) as caught:
        run_demo(root, output)
    assert "ended with status 1" in str(caught.value) and "E010" in str(caught.value)
    assert "no learning today" in (output / "stages" / "train.txt").read_text()
    assert contents(output / "training") == before


def test_half_a_training_is_never_used(root: Path, output: Path) -> None:
    (root / "train.py").write_text(TRAIN + "\nsys.exit(1)")
    with pytest.raises(DiagnosticError):
        run_demo(root, output)
    (root / "train.py").write_text(TRAIN)
    trained(output)
    run_demo(root, output)
    assert trained(output)


@pytest.mark.parametrize(
    ("tool", "stage"),
    [
        ("quantize.py", "quantize"),
        ("gen.py", "synthesize and verify"),
        ("emulate.py", "run the firmware"),
    ],
)
def test_failing_stage_is_named(root: Path, output: Path, tool: str, stage: str) -> None:
    (root / tool).write_text("import sys; sys.exit(3)")
    with pytest.raises(DiagnosticError, match=f"stage '{stage}' ended with status 3"):
        run_demo(root, output)


def test_loader_without_verification_does_not_pass(root: Path, output: Path) -> None:
    (root / "gen.py").write_text(LOADER.replace("verified", "wrote"))
    with pytest.raises(DiagnosticError, match="accelerator words"):
        run_demo(root, output)


def test_two_demos_in_one_folder_are_refused(output: Path) -> None:
    with demo.alone(output):
        result = subprocess.run(
            [sys.executable, ROOT / "tools" / "demo.py", "--output", output],
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode == 1
    assert "is writing to" in result.stderr and "E062" in result.stderr
    assert "Traceback" not in result.stderr
