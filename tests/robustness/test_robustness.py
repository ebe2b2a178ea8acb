"""A selection of the cases of `make fuzz`, and whether the judge notices what it must notice."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

import ai8xize
from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place
from ai8xtools.synthesis.network import Operator
from ai8xtools.synthesis.parse import parse
from ai8xtools.synthesis.parse.keys import GLOBAL_KEYS, LAYER_KEYS, NESTED_KEYS
from ai8xtools.synthesis.parse.rules import operation
from tests.robustness import runner
from tests.robustness.cases import KEPT, Case, case_of
from tests.robustness.networks import NETWORKS
from tests.robustness.starts import TARGETS, Start, Target, own_starts, starts_of_suite

SEED = 2
DESCRIPTIONS, OTHERS = 48, 8
"""The first of thousands that `make fuzz` tries."""
SELECTION = [
    (target, number)
    for target in TARGETS
    for number in range(DESCRIPTIONS if target == "description" else OTHERS)
]


@cache
def starts() -> list[Start]:
    return list(own_starts())


def legal(start: Start, *, kept: bool = False) -> Case:
    files = {**start.files, **(KEPT if kept else {})}
    return Case(0, "description", "none", start, start.description, files, kept)


@pytest.mark.parametrize(("target", "number"), SELECTION)
def test_damaged_input_ends_in_success_or_in_diagnostics(target: Target, number: int) -> None:
    outcome = runner.run_case(case_of(starts(), target, SEED, number))
    assert outcome.failure() is None, f"{outcome.case}\n{outcome.output}{outcome.errors}"


def test_damaged_input_of_the_known_answers(shared: Path) -> None:
    able = list(islice(starts_of_suite(shared / "kat" / "cases"), 8))
    for number in range(16):
        outcome = runner.run_case(case_of(able, "description", SEED, number))
        assert outcome.failure() is None, f"{outcome.case}\n{outcome.output}{outcome.errors}"


@pytest.mark.parametrize("start", starts(), ids=lambda start: start.name)
def test_starts_are_legal(start: Start) -> None:
    outcome = runner.run_case(legal(start, kept=start.name == "residual"))
    assert outcome.accepted and outcome.failure() is None, outcome.output + outcome.errors


def test_starts_use_every_key_and_operator() -> None:
    described = [parse(network.text) for network in NETWORKS]
    layers = [layer for text in described for layer in text.layers]
    used = {key for layer in layers for key in layer.entries}
    tensors = {"weights"}  # names what only a checkpoint has; these networks have `arch: test`
    added = {"zero_outputs", "copy_channels"}  # the loader writes them for layers that it adds
    assert used == {key.name for key in LAYER_KEYS} - tensors - added
    assert {operation(layer)[0] for layer in layers} == set(Operator)
    assert {key for text in described for key in text.entries} == {
        *(key.name for key in GLOBAL_KEYS),
        *NESTED_KEYS,
    }


def test_case_follows_from_seed_and_number() -> None:
    for target in TARGETS:
        one, again, other = (case_of(starts(), target, SEED, n) for n in (5, 5, 6))
        assert one == again and one.files != other.files


# -- the judge -----------------------------------------------------------------------------------


def refuse(*lines: int | None) -> Callable[[], int]:
    """Return a loader that complains of some lines of the description, and refuses."""

    def main() -> int:
        if lines:
            raise DiagnosticError(
                [Diagnostic("E100", "bad", Place("net.yaml", line, 1)) for line in lines]
            )
        print("no")
        return 1

    return main


def defect() -> int:
    raise ZeroDivisionError("twelve")


def endless() -> int:
    while True:
        pass


def greedy() -> int:
    return len(bytearray(2 * runner.MEMORY_LIMIT_BYTES))


def crash() -> int:
    os.kill(os.getpid(), signal.SIGSEGV)
    return 0


def leave_a_file() -> int:
    Path("left.txt").touch()
    return refuse(1)()


def leave_a_folder() -> int:
    Path("out/net").mkdir(parents=True)
    print("[]")
    return 0


BAD_LOADERS: dict[str, tuple[Callable[[], int], str]] = {
    "defect": (defect, "exception: ZeroDivisionError: twelve"),
    "endless": (endless, "no end within 1 s"),
    "greedy": (greedy, "out of memory"),
    "wrong usage": (lambda: sys.exit(2), "exit status 2"),
    "crash": (crash, "signal 11"),
    "a file is left": (leave_a_file, "files changed: left.txt"),
    "an empty project": (leave_a_folder, "an incomplete project of 0 files"),
    "no message": (refuse(), "refused without an error"),
    "no line": (refuse(None), "no line"),
    "a line beyond the end": (refuse(999), "no line"),
}


@pytest.mark.defect  # one of them ends so on purpose
@pytest.mark.parametrize("name", BAD_LOADERS)
def test_judge_notices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    main, said = BAD_LOADERS[name]
    monkeypatch.setattr(ai8xize, "main", main)
    monkeypatch.setattr(runner, "TIME_LIMIT_S", 1)
    failure = runner.run_case(legal(starts()[2])).failure()
    assert failure is not None and failure.startswith(said)


def test_judge_notices_changes_of_a_project_that_exists() -> None:
    outcome = runner.run_case(legal(starts()[2], kept=True))
    gone = {path: data for path, data in outcome.files.items() if not path.endswith("notes.txt")}
    assert outcome.failure() is None
    assert replace(outcome, files=gone).failure() == "files changed: out/net/notes.txt"
