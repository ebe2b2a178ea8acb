"""What GitHub runs is valid, and runs the demo on each system with each Python."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from ai8xtools.commands.train import recipe
from tests.conftest import ROOT
from tools.manual.options import parsers

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FOR_USERS = ROOT / "templates/ci/workflow.yml"


def content(path: Path) -> Any:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {"on" if key is True else key: value for key, value in found.items()}  # as YAML 1.2


@pytest.fixture(scope="module")
def complaints() -> Any:
    found = importlib.util.find_spec("check_jsonschema")
    if found is None or found.origin is None:
        pytest.skip("the schema of workflows comes with check-jsonschema, which is not installed")
    from jsonschema import Draft7Validator

    vendor = Path(found.origin).parent / "builtin_schemas/vendor"
    schema = json.loads((vendor / "github-workflows.json").read_text(encoding="utf-8"))
    return lambda workflow: list(Draft7Validator(schema).iter_errors(workflow))


@pytest.mark.parametrize("path", [*WORKFLOWS, FOR_USERS], ids=lambda path: path.name)
def test_workflows_are_valid(path: Path, complaints: Any) -> None:
    workflow = content(path)
    assert complaints(workflow) == []
    for job in workflow["jobs"].values():
        job["stepps"] = job.pop("steps")
    assert complaints(workflow) != []


def test_the_demo_runs_on_each_system_with_each_python() -> None:
    jobs = content(ROOT / ".github/workflows/systems.yml")["jobs"]
    matrix = jobs["demo"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in matrix["system"]} == {"ubuntu", "macos", "windows"}
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]


def test_workflows_call_what_is_there() -> None:
    called = [
        word
        for path in WORKFLOWS
        for job in content(path)["jobs"].values()
        for step in job["steps"]
        for word in shlex.split(step.get("run", ""))
    ]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "tools/demo.py" in called
    assert all((ROOT / word).is_file() for word in called if word.endswith((".py", ".txt")))
    targets = [after for word, after in pairwise(called) if word == "make"]
    assert targets
    assert all(f"\n{target}:" in makefile for target in targets)


def test_commands_of_the_manual_for_windows_are_those_of_make_and_of_the_scripts() -> None:
    """They are written twice, since neither make nor a shell is there."""
    from tools.demo import command_of

    page = (ROOT / "docs/other-systems.md").read_text(encoding="utf-8")
    shown = [
        shlex.split(line.replace("\\", "/")) for line in page.splitlines() if line[:4] == "    "
    ]
    words = {word for line in shown for word in line}
    assert {".[emulator]", "tools/precompile.py", "tools/demo.py"} <= words
    for name in ("train", "quantize", "evaluate", "gen"):
        command = command_of(ROOT / f"scripts/{name}_digits.sh")
        assert any(set(command) <= set(line) for line in shown), name


SCRIPTS = {"ai8x-train": "train", "ai8x-quantize": "quantize", "ai8xize": "ai8xize",
           "ai8x-emulate": "emulate"}  # fmt: skip


def test_the_workflow_for_users_calls_each_tool_with_options_that_it_has() -> None:
    [job] = content(FOR_USERS)["jobs"].values()
    called = [shlex.split(step["run"]) for step in job["steps"] if "run" in step]
    called = [words for words in called if words[0] in SCRIPTS]
    assert [words[0] for words in called] == [*SCRIPTS]
    for script, *words in called:
        parser = parsers()[f"{SCRIPTS[script]}.py"]()
        options = [word for word in words if word.startswith("--")]
        assert options and all(parser.knows(option) for option in options)
        made = [b for a, b in pairwise(words) if a in ("--result-json", "--junit")]
        assert made and all(file.startswith("results/") for file in made)


def test_quantization_aware_training_begins_before_the_workflow_for_users_ends() -> None:
    text = FOR_USERS.read_text(encoding="utf-8")
    assert "net_qat_best.pth.tar" in text
    named = re.findall(r"--epochs (\d+)", text)
    policy = yaml.safe_load((ROOT / "policies/qat_policy.yaml").read_text(encoding="utf-8"))
    assert policy["start_epoch"] < (int(named[0]) if named else recipe._EPOCHS)


def test_the_dockerfile_has_known_instructions_and_copies_what_is_there() -> None:
    text = (ROOT / "templates/ci/Dockerfile").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
    known = {"FROM", "ENV", "COPY", "RUN", "WORKDIR", "CMD"}
    assert lines[0][0] == "FROM" and {name for name, _ in lines} <= known
    for name, value in lines:
        if name == "COPY":
            assert all((ROOT / source).exists() for source in value.split()[:-1])
        if name == "CMD":
            assert json.loads(value)[0] in SCRIPTS
