"""The installed package, from a wheel: the demo's steps outside the repository."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
from pip._vendor.packaging.requirements import Requirement

import ai8xtools
from tests.conftest import ROOT

pytest.importorskip("unicorn", reason="needs the emulator (extra `emulator`)")
EVERYDAY = ("datasets", "device", "models", "tests", "tools")
NETWORK = ("--device", "MAX78000", "--model", "ai85digitsnet", "--dataset", "digits")


def _pip(*words: str | Path, cwd: Path) -> None:
    subprocess.run([sys.executable, "-m", "pip", *words, "-q", "--no-deps"], cwd=cwd, check=True)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with the wheel, and packages of a user that must not be imported."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling builds the wheel (extra `dev`)")
    _pip("wheel", "--no-build-isolation", "-w", tmp_path, ROOT, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    _pip("install", "--no-compile", "--no-index", "--target", site, wheel, cwd=tmp_path)
    names = {path.name for path in site.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"ai8xtools", "bin"}
    (installed,) = distributions(path=[str(site)])
    needed = {str(Requirement(line)) for line in installed.requires or () if "extra" not in line}
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    assert needed == {str(Requirement(line.lower())) for line in lines if line and line[0] != "#"}
    assert installed.version == ai8xtools.__version__
    for name in EVERYDAY:
        (site / name).mkdir()
        (site / name / "__init__.py").write_text("raise SystemExit('a package of the user')\n")
    return site


def test_installed_commands_do_the_steps_of_the_demo_in_an_empty_folder(
    site: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    for name in ("device", "models"):
        (empty / name).mkdir(parents=True)
        (empty / name / "__init__.py").write_text("raise SystemExit('a package of the user')\n")
    (empty / "models" / "mine.py").write_text("class Mine: ...\n")

    def run(command: str, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, site / "bin" / command, *words],
            cwd=empty,
            env={**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    folders = ("--out-dir", "logs")
    if "AI8X_PROPERTIES" in os.environ:
        policies = ("--compress", "policies/schedule-digits.yaml")
        run("ai8x-train", *NETWORK, *policies, "--epochs", "1", *folders)
    trained = "trained/digits-ai85digitsnet-qat8"
    run("ai8x-quantize", f"{trained}.pth.tar", "q.pth.tar", "--device", "MAX78000")
    assert (empty / "q.pth.tar").read_bytes() == (ROOT / f"{trained}-q.pth.tar").read_bytes()
    weights = ("--exp-load-weights-from", "q.pth.tar")
    evaluated = run(
        "ai8x-train", *NETWORK, "--evaluate", "-8", *weights, "--save-sample", "0", *folders
    )
    assert "Top1: 98" in evaluated
    inputs = ("--checkpoint-file", "q.pth.tar", "--sample-input", "sample_digits.npy")
    description = ("--device", "MAX78000", "--config-file", "networks/digits-chw-ai85.yaml")
    outputs = ("--test-dir", ".", "--prefix", "digits", "--verify")
    run("ai8xize", *description, *inputs, "--softmax", "--timer", "0", *outputs)
    assert "PASS" in run("ai8x-emulate", "digits")
    assert "--help" in run("ai8x-fuse", "--help")
