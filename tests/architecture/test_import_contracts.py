"""The import rules of pyproject.toml hold, and every one of them would notice a violation."""

from __future__ import annotations

import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.rules import CONTRACTS, FORBIDDING, LAYERED, PACKAGES, ROOMS, layers_of
from tests.conftest import ROOT


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the packages of `folder` with the pyproject.toml that stands there."""
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"],
        cwd=folder,
        env={"COLUMNS": "200", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def empty_project(tmp_path: Path) -> Path:
    """A project under our rules whose rooms are there but empty."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for room in ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").touch()
    for package in sorted(PACKAGES):  # those above come first
        folder = tmp_path.joinpath(*package.split("."))
        folder.mkdir()
        (folder / "__init__.py").touch()
    return tmp_path


def verdict(output: str, contract: dict[str, Any]) -> str:
    """What the line of `contract` in import-linter's summary ends with: KEPT or BROKEN."""
    line = next(line for line in output.splitlines() if line.startswith(contract["name"]))
    return line.removeprefix(contract["name"]).split()[0]


def test_repository_keeps_every_contract() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_empty_rooms_keep_every_contract(empty_project: Path) -> None:
    result = lint_imports(empty_project)
    assert {verdict(result.stdout, contract) for contract in CONTRACTS} == {"KEPT"}


@pytest.mark.parametrize("contract", FORBIDDING, ids=lambda contract: contract["name"])
def test_contract_notices_a_forbidden_import(contract: dict[str, Any], empty_project: Path) -> None:
    imports = "".join(f"import {name}\n" for name in contract["forbidden_modules"])
    for room in contract["source_modules"]:
        empty_project.joinpath(*room.split("."), "offender.py").write_text(imports)
    result = lint_imports(empty_project)
    assert result.returncode == 1
    assert verdict(result.stdout, contract) == "BROKEN"
    for room in contract["source_modules"]:
        for name in contract["forbidden_modules"]:
            assert f"{room}.offender -> {name}" in result.stdout


@pytest.mark.parametrize("contract", LAYERED, ids=lambda contract: contract["name"])
def test_contract_notices_an_import_from_above(
    contract: dict[str, Any], empty_project: Path
) -> None:
    layers = layers_of(contract)
    for above, layer in pairwise(layers):
        for package in layer:
            offender = empty_project.joinpath(*package.split("."), "offender.py")
            offender.write_text(f"import {above[0]}\n")
    result = lint_imports(empty_project)
    assert verdict(result.stdout, contract) == "BROKEN"
    for above, layer in pairwise(layers):
        for package in layer:
            assert f"{package}.offender -> {above[0]}" in result.stdout


def test_every_package_of_the_repository_is_under_the_rules() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages - {"tests", "tools", "ai8xtools"} == set(ROOMS)


def test_every_stage_of_the_network_loader_is_under_the_rules() -> None:
    packages = {f"synthesis.{path.parent.name}" for path in ROOT.glob("synthesis/*/__init__.py")}
    named = {name for contract in FORBIDDING for name in contract["source_modules"]}
    assert packages <= named
