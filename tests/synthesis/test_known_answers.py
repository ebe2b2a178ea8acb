"""The words of the reference tool, compared without compiling anything; and what must be refused.

The whole way through C and an emulated core, with every case, is `make kat`; this is the part of it
that is fast: a selection by feature, and every twelfth of the others.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands.loader.arguments import parse
from ai8xtools.synthesis.pipeline import synthesize
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.words import phase_words
from tests.synthesis.golden import PHASES, Case, Phase, names, phases

SCRIPT = Path(__file__).resolve().parents[2] / "ai8xize.py"
SHOWN = 10


def program_of(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Run the stages on a case's inputs."""
    case.unpack(folder)
    monkeypatch.chdir(folder)
    options = parse(["--test-dir", "out", "--prefix", "net", *case.args])
    return synthesize(options.config_file, options.chip, options.resolve, options.encode).program


def differences(program: Program, wanted: dict[str, Phase]) -> list[str]:
    """List the words in which a program differs from a recorded trace."""
    found = []
    written = phase_words(program)
    for name in PHASES:
        golden, ours = wanted[name], written[name]
        for address in sorted({*golden.words, *ours.words}):
            pair = golden.words.get(address), ours.words.get(address)
            if pair[0] != pair[1]:
                texts = ["nothing" if v is None else f"0x{v:08x}" for v in pair]
                found.append(f"{name}: 0x{address:08x}: golden {texts[0]}, ours {texts[1]}")
        if golden.control != list(ours.control):
            found.append(f"{name}: control {golden.control} / {list(ours.control)}")
        if golden.pushes != {a: list(words) for a, words in ours.pushes.items()}:
            found.append(f"{name}: pushes to a FIFO differ")
    return found


def compare(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare every word and the expected output of a case."""
    case = Case.load(name)
    program = program_of(case, folder, monkeypatch)
    golden = case.golden()
    found = differences(program, phases(golden, case.chip))
    assert not found, "\n".join([f"{len(found)} differences", *found[:SHOWN]])
    if "--no-kat" in case.args:
        return
    expected = program.expected
    # With --max-checklines the recorded firmware compares only the first words.
    count = len(golden["expected_addr"])
    assert len(expected) == count or "--max-checklines" in case.args
    for theirs, ours in (
        ("expected_addr", expected.addresses),
        ("expected_mask", expected.masks),
        ("expected_value", expected.values),
    ):
        np.testing.assert_array_equal(ours[:count], golden[theirs], err_msg=theirs)


SELECTION = [
    "max78000-mnist",
    "max78000-cifar-10",
    "opt-no-mexpress-mnist",
    "opt-no-bias-list-mnist",
    "opt-stop-after-mnist",
    "opt-avg-pool-rounding-mnist",
    "opt-zero-sram-mnist",
    "opt-powerdown-ai87-mnist",
    "opt-write-zero-registers-mnist",
    "opt-weight-start-mnist",
    "opt-repeat-layers-mnist",
    "pooling2x3s2",
    "pooling16x16s7-II",
    "pooling-strideonly",
    "mlp12to2",
    "mlpflatten768to100-quant2",
    "mlpflattennopool12to2",
    "burnin_16x64x64",
    "conv1x1",
    "nonsquare-nonsquarepool",
    "own-chw-3channels",
    "own-mixed-bits-q1248",
    "own-multipass-in",
    "own-wide-output-multipass",
    "own-bias-many-groups",
    "wide512in",
    "widein-q4",
    "flatten-fc-quant4-fc",
    "eltwiseadd-avgpool",
    "max78002-mnist",
]


@pytest.mark.parametrize("name", SELECTION)
def test_words_and_expected_output_are_those_of_the_reference(
    shared: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(name, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in names("image") if n not in SELECTION][::12])
def test_words_of_other_cases_are_those_of_the_reference(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compare(name, tmp_path, monkeypatch)


REJECTS = [
    "reject-checkpoint-kernel",
    "reject-checkpoint-nan",
    "reject-checkpoint-truncated",
    "reject-eltwise-dims",
    "reject-flatten-large",
    "reject-layers-33",
    "reject-memory-data-input",
    "reject-option-boost",
    "reject-option-unknown",
    "reject-output-exists",
    "reject-overlap",
    "reject-pad-3",
    "reject-pickle-exec",
    "reject-pickle-legacy",
    "reject-processor-count-low",
    "reject-sample-pickle",
    "reject-sample-shape",
    "reject-shift-16",
    "reject-weights-pickle",
    "reject-yaml-python-tag",
    "reject-yaml-recursive",
    "reject-yaml-unknown-layer-key",
]


def refuse(name: str, folder: Path) -> None:
    """Run the script on illegal input: a message, a status, no traceback, nothing written."""
    case = Case.load(name)
    case.unpack(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    command = [sys.executable, str(SCRIPT), "--test-dir", "out", "--prefix", "net", *case.args]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False
    )
    said = done.stderr.decode()
    assert done.returncode in (1, 2), said
    assert "error: " in said and "Traceback" not in said and "[E009]" not in said
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert not any((folder / forbidden).exists() for forbidden in case.forbidden)
    assert bool(case.setup) == (folder / "out" / "net").exists()


@pytest.mark.parametrize("name", REJECTS)
def test_illegal_input_is_refused_politely(shared: Path, name: str, tmp_path: Path) -> None:
    refuse(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in names("reject") if n not in REJECTS][::12])
def test_other_illegal_inputs_are_refused_politely(name: str, tmp_path: Path) -> None:
    refuse(name, tmp_path)
