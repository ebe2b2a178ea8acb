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
