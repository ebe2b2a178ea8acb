"""--result-json, --junit and --diagnostics sarif: files about a run, for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

import quantize
from ai8xtools.commands.arguments import Parser
from ai8xtools.commands.emulate.arguments import parse as parse_emulation
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.commands.emulate.last_line import tell
from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Edit, Place, note, run
from ai8xtools.values.estimate import Estimate
from tests.conftest import ROOT

SCHEMA = json.loads((ROOT / "docs/messages.schema.json").read_text())
RESULT = Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": "#/$defs/result"}]})
EDIT = Edit(Place("a b.yaml", 3, 5), "max_poll: 2\n  pad", "max_pool: 2\n  pad")
REFUSED = Diagnostic("E105", "unknown key", Place("a b.yaml", 3, 5), "Did you mean it?", edit=EDIT)


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run a function as a tool with these options, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def ran(main: Callable[[], int | None], *words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["tool.py", *words])

        def told() -> int | None:
            Parser().parse_args([*words])
            return main()

        return run(told)

    return ran


def result(file: str = "r.json") -> Any:
    found = json.loads(Path(file).read_text())
    assert [*RESULT.iter_errors(found)] == []
    return found


def suite() -> ElementTree.Element:
    [found] = ElementTree.parse("j.xml").getroot()
    return found


def test_a_result_holds_what_is_known_and_null_for_the_rest(ran: Callable[..., int]) -> None:
    def main() -> None:
        note(accuracy={"measures": {"Top1": 98.5}, "samples": 200})
        note(cycles={"count": 5, "mhz": 50.0, "microseconds": 0.1, "estimated": True})

    assert ran(main, "--result-json", "r.json") == 0
    found = result()
    assert found["status"] == 0 and found["messages"] == [] and found["tool"] == "tool.py"
    assert found["accuracy"]["measures"] == {"Top1": 98.5} and found["cycles"]["count"] == 5
    assert found["energy"] is None and found["verdict"] is None


def refuse() -> None:
    raise DiagnosticError(REFUSED)


def test_a_failed_run_tells_its_messages(ran: Callable[..., int]) -> None:
    assert ran(refuse, "--result-json", "r.json", "--junit", "j.xml") == 1
    found = result()
    [message] = found["messages"]
    assert found["status"] == 1 and message["edit"]["new"] == EDIT.new
    assert suite().attrib["errors"] == "1" and suite().attrib["failures"] == "0"
    [[error]] = suite()
    assert error.tag == "error" and "unknown key [E105]" in str(error.text)


@pytest.mark.parametrize(
    ("line", "verdict", "failures"),
    [("PASS (1 inference)", "passed", 0), ("FAIL", "failed", 1), ("DONE (1 input)", "done", 0),
     ("NOT PASSED: no result", "not passed", 1)],
)  # fmt: skip
def test_verdicts(ran: Callable[..., int], line: str, verdict: str, failures: int) -> None:
    def main() -> int:
        note(subject="<net>")
        tell(line, "A doubt")
        return failures

    assert ran(main, "--result-json=r.json", "--junit=j.xml") == failures
    assert (result()["verdict"], result()["reason"]) == (verdict, f"{line}. A doubt")
    assert suite().attrib["failures"] == str(failures) and suite().attrib["errors"] == "0"
    assert suite()[0].attrib["name"] == "<net>"
    assert str(suite()[0][0].text).startswith(line)


@pytest.mark.parametrize("option", ["--result-json", "--junit"])
def test_only_a_file_of_the_same_kind_is_replaced(ran: Callable[..., int], option: str) -> None:
    Path("own.c").write_text("int x;\n")
    for name in ("own.c", "-"):
        with pytest.raises(SystemExit):
            ran(lambda: None, option, name)
    assert Path("own.c").read_text() == "int x;\n" and not Path("-").exists()
    assert ran(lambda: None, option, "new") == 0
    before = Path("new").read_bytes()
    assert ran(refuse, option, "new") == 1
    assert Path("new").read_bytes() != before


def test_a_file_that_cannot_be_written_fails_the_run(
    ran: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("folder").mkdir()
    assert ran(lambda: None, "--junit", "folder") == 1
    assert "folder: error: Is a directory [E002]" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--unknown"], ["--diagnostics", "xml"], ["--diagnostics"]])
def test_a_command_line_that_is_not_understood_has_a_result(
    ran: Callable[..., int], words: list[str]
) -> None:
    assert ran(lambda: None, "--result-json", "r.json", "--junit", "j.xml") == 0
    Path("own.c").write_text("int x;\n")
    with pytest.raises(SystemExit) as caught:
        ran(lambda: None, *words, "--result-json", "r.json", "--junit", "j.xml")
    found = result()
    assert caught.value.code == found["status"] == 2 and suite().attrib["errors"] == "1"
    assert [message["option"] for message in found["messages"]] == words[:1]
    with pytest.raises(SystemExit):
        ran(lambda: None, *words, "--result-json", "own.c", "--junit", "--version")
    assert Path("own.c").read_text() == "int x;\n" and not Path("--version").exists()


def test_messages_as_sarif(ran: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(refuse, "--diagnostics", "sarif") == 1
    log = json.loads(capsys.readouterr().out)
    [found] = log["runs"]
    [one] = found["results"]
    assert log["version"] == "2.1.0" and found["invocations"][0]["exitCode"] == 1
    assert found["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"] == "E105"
    place = one["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b.yaml"
    assert place["region"] == {"startLine": 3, "startColumn": 5}
    [replacement] = one["fixes"][0]["artifactChanges"][0]["replacements"]
    region = {"startLine": 3, "startColumn": 5, "endLine": 4, "endColumn": 6}
    assert replacement == {"deletedRegion": region, "insertedContent": {"text": EDIT.new}}


def test_loader_quantizer_and_emulator_tell_what_they_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ai8xize.py"])
    words = [
        "--device", "MAX78000", "--config-file", str(ROOT / "networks/digits-chw-ai85.yaml"),
        "--checkpoint-file", str(ROOT / "trained/digits-ai85digitsnet-qat8-q.pth.tar"),
        "--sample-input", str(ROOT / "tests/sample_digits.npy"), "--prefix", "net", "--test-dir",
        ".", "--verify", "--result-json", "l.json",
    ]  # fmt: skip
    assert run(lambda: create_project(parse(words))) == 0
    loaded = result("l.json")
    assert loaded["verdict"] == "passed" and loaded["subject"] == "net"
    assert loaded["energy"]["low"] < loaded["energy"]["value"] < loaded["energy"]["high"]
    assert {"bytes", "columns"} == {memory["unit"] for memory in loaded["memory"]}
    assert run(lambda: emulate(parse_emulation(["net", "--result-json", "e.json"]))) == 0
    emulated = result("e.json")
    assert emulated["cycles"]["count"] == loaded["cycles"]["count"] > 1000
    assert emulated["verdict"] == "passed" and emulated["energy"] is None
    trained = str(ROOT / "trained/digits-ai85digitsnet-qat8.pth.tar")
    words = [trained, "q.pth.tar", "--device", "MAX78000", "--result-json", "q.json"]
    assert run(lambda: quantize.main(words)) == 0
    quantized = result("q.json")
    assert quantized["subject"] == trained and quantized["energy"] is None
    assert "not known (places are open); ai8xize.py --fits --model" in capsys.readouterr().out
    words += ["-c", str(ROOT / "networks/digits-chw-ai85.yaml")]
    assert run(lambda: quantize.main(words)) == 0
    placed = result("q.json")
    assert (placed["energy"], placed["cycles"]) == (loaded["energy"], loaded["cycles"])
    energy = Estimate(*(1e-6 * value for value in placed["energy"].values())).in_units("J")
    assert capsys.readouterr().out.endswith(f" MHz, {energy}\n")
    words[-1] = str(ROOT / "networks/mnist-chw-ai85.yaml")
    assert run(lambda: quantize.main(words)) == 0
    assert "not known ('arch' is" in capsys.readouterr().out and result("q.json")["energy"] is None
