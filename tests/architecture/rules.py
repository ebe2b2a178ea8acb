"""The import rules as pyproject.toml states them."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from tests.conftest import ROOT

_RULES: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
    "importlinter"
]

ROOMS: list[str] = _RULES["root_packages"]
CONTRACTS: list[dict[str, Any]] = _RULES["contracts"]
FORBIDDING = [contract for contract in CONTRACTS if contract["type"] == "forbidden"]
LAYERED = [contract for contract in CONTRACTS if contract["type"] == "layers"]


def layers_of(contract: dict[str, Any]) -> list[list[str]]:
    """The packages of a contract on layers, those that import the others first."""
    return [re.split(r" [|:] ", layer) for layer in contract["layers"]]


def _named(contract: dict[str, Any]) -> set[str]:
    """Everything that a contract names."""
    if contract["type"] == "layers":
        return {package for layer in layers_of(contract) for package in layer}
    return {*contract["source_modules"], *contract["forbidden_modules"]}


_NAMES = {name for contract in CONTRACTS for name in _named(contract)}
PACKAGES = {
    ".".join(parts[: i + 1])
    for parts in (name.split(".") for name in _NAMES if name.split(".")[0] in ROOMS)
    for i in range(1, len(parts))
}
"""Packages and modules inside the rooms that contracts name, with those that they stand in."""
