"""The import rules as pyproject.toml states them."""

from __future__ import annotations

import tomllib
from typing import Any

from tests.conftest import ROOT

_RULES: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
    "importlinter"
]

ROOMS: list[str] = _RULES["root_packages"]
CONTRACTS: list[dict[str, Any]] = _RULES["contracts"]
