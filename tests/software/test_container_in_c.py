"""The C reader of containers: the same refusals and the same bytes as in Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from software.container.pack import Seal
from tests.software.compiled import compiler
from tests.software.container_answers import variants
from tests.software.container_fuzz import damaged
from tests.software.containers import KINDS, RECIPES, made
from tests.software.nnb_in_c import build_driver, opened, statuses

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler")
KEY = bytes(range(32))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_driver(tmp_path_factory.mktemp("nnb"))


def test_outputs_are_those_of_python(program: Path, tmp_path: Path) -> None:
    blobs = [made(recipe, kind, seed) for recipe in RECIPES for kind in KINDS for seed in (1, 2)]
    assert statuses(program, blobs, tmp_path) == ["ok ok"] * len(blobs)


def test_encrypted_files_are_decrypted_layer_by_layer(program: Path, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    blobs = [made(recipe, kind, 1, Seal(KEY, bytes(range(12)))) for recipe in RECIPES
             for kind in KINDS]  # fmt: skip
    assert statuses(program, blobs, tmp_path, KEY.hex()) == ["ok ok"] * len(blobs)


def test_every_damaged_byte_is_detected(program: Path, tmp_path: Path) -> None:
    blobs = [made("pooling"), made("packed")]
    found = statuses(program, blobs, tmp_path, "bytes", "8")
    assert [line.split()[0] for line in found] == ["0", "0"]


def test_damaged_files_have_the_same_names_in_c(program: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    blobs = [damaged(random, made(recipe)) for recipe in RECIPES for _ in range(150)]
    found = [line.split()[0] for line in statuses(program, blobs, tmp_path)]
    assert found == [opened(blob) for blob in blobs]
    assert len(set(found)) > 8


def test_known_answers(program: Path, tmp_path: Path, shared: Path) -> None:
    for file in sorted((shared / "kat-software" / "container").glob("*.json")):
        case = json.loads(file.read_text())
        blob = file.with_suffix(".nnb").read_bytes()
        assert statuses(program, [blob], tmp_path, case["key"] or "00") == ["ok ok"]
        changed = [(data, error) for _, data, error in variants(case, blob)]
        found = statuses(program, [data for data, _ in changed], tmp_path, case["key"] or "00")
        assert [line.split()[0] for line in found] == [error or "ok" for _, error in changed]


def test_wrong_key_is_told_by_the_test_vectors(program: Path, tmp_path: Path, shared: Path) -> None:
    blob = (shared / "kat-software" / "container" / "encrypted.nnb").read_bytes()
    assert statuses(program, [blob], tmp_path, KEY.hex()) == ["ok vectors"]
