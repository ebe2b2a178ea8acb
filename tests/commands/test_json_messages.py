"""`--diagnostics json` in every tool: standard output is one JSON list, whatever happens."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

from ai8xtools.diagnostics import Diagnostic, Severity, print_diagnostics, print_result, run
from tests.conftest import ROOT

TOOLS = {
    "train": ("--model", "ai85net5", "--dataset", "MNIST", "--compress", "absent"),
    "quantize": ("absent", "out", "--device", "MAX78000"),
    "batchnormfuser": ("-i", "absent", "-o", "out", "-oa", "net"),
    "ai8xize": (
        "--device", "MAX78000", "--config-file", "absent", "--prefix", "p", "--test-dir", "t",
    ),
    "emulate": ("absent",),
    "scripts/nnb": ("info", "absent"),
}  # fmt: skip
SCHEMA = Draft202012Validator(json.loads((ROOT / "docs/messages.schema.json").read_text()))
WARNING = Diagnostic("W755", "a weight is clipped", severity=Severity.WARNING)


def start(tool: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / f"{tool}.py"), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_tell_programs_what_is_wrong(tool: str, tmp_path: Path) -> None:
    ended = start(tool, tmp_path, *TOOLS[tool], "--diagnostics", "json")
    messages = json.loads(ended.stdout)
    assert [*SCHEMA.iter_errors(messages)] == []
    [found] = messages
    assert ended.returncode == 1
    assert found["severity"] == "error" and "absent" in str(found)


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_tell_programs_of_wrong_usage(tool: str, tmp_path: Path) -> None:
    ended = start(tool, tmp_path, *TOOLS[tool], "--nonsense", "--diag=json", "--junit", "j.xml")
    messages = json.loads(ended.stdout)
    codes = {found["code"] for found in messages}
    assert [*SCHEMA.iter_errors(messages)] == []
    [suite] = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert (suite.attrib["errors"], suite.attrib["failures"]) == ("1", "0")
    assert (ended.returncode, ended.stderr, codes) == (2, "", {"E070"})


@pytest.fixture
def told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, Any, str]]:
    """Run a function as a tool that is asked for JSON: status, what it tells, standard error."""
    monkeypatch.setattr(sys, "argv", ["tool", "--diagnostics", "json"])

    def told(main: Callable[[], int | None]) -> tuple[int, Any, str]:
        status = run(main)
        output = capsys.readouterr()
        return status, json.loads(output.out), output.err

    return told


def test_messages_of_a_run_are_one_list(told: Callable[..., tuple[int, Any, str]]) -> None:
    def main() -> int:
        print("on the way")
        print_diagnostics([WARNING])
        print_diagnostics([WARNING])
        raise FileNotFoundError(2, "No such file", "a")

    status, found, beside = told(main)
    assert status == 1 and beside == "on the way\n"
    assert [one["code"] for one in found] == ["W755", "W755", "E002"]


def test_a_run_without_messages_tells_an_empty_list(
    told: Callable[..., tuple[int, Any, str]],
) -> None:
    assert told(lambda: print("done")) == (0, [], "done\n")


def test_a_verdict_that_only_people_can_read_is_an_error_for_programs(
    told: Callable[..., tuple[int, Any, str]],
) -> None:
    status, [found], beside = told(lambda: [print("FAIL"), 1][-1])
    assert (status, found["code"], beside) == (1, "E011", "FAIL\n")


def test_a_result_in_json_takes_the_place_of_no_messages(
    told: Callable[..., tuple[int, Any, str]],
) -> None:
    def main() -> int:
        print_result('{"fits": false}')
        return 1

    assert told(main) == (1, {"fits": False}, "")


def test_messages_take_the_place_of_a_result(
    told: Callable[..., tuple[int, Any, str]],
) -> None:
    def main() -> None:
        print_result("{}")
        print_diagnostics([WARNING])

    _, found, _ = told(main)
    assert [one["code"] for one in found] == ["W755"]


def test_a_list_that_cannot_be_written_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "argv", ["tool", "--diagnostics", "json"])
        monkeypatch.setattr(sys, "stdout", full)
        assert run(lambda: None) == 1
        monkeypatch.undo()
