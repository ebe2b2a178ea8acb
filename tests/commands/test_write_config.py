"""`ai8xize.py --write-config`: the complete description, as a file that loads alone."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ai8xtools.commands.loader.arguments import parse
from ai8xtools.commands.loader.create import create_project
from ai8xtools.diagnostics import DiagnosticError
from tests.synthesis.arranged import CONV, kernels_of
from tests.synthesis.networks import describe, files, sample

LAYER = {**CONV, "out_offset": None}


def run(folder: Path, config: str, *words: str, flash: int | None = None) -> int:
    """Run the loader on a description of two layers; `flash` are the bytes that the chip has."""
    options = parse([
        "--device", "MAX78000", "--config-file", str(folder / config), "--prefix", "net",
        "--test-dir", str(folder / "out"), "--sample-input", str(folder / "sample.npy"),
        "--weight-input", str(folder / "weights.npy"), "--overwrite", *words,
    ])  # fmt: skip
    if flash is not None:
        options = replace(options, chip=replace(options.chip, flash_bytes=flash))
    return create_project(options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files(tmp_path, sample(3, 6, 6), kernels_of((8, 3, 3, 3), (4, 8, 3, 3)))
    (tmp_path / "net.yaml").write_text(describe(LAYER, LAYER))
    return tmp_path


def test_description_is_written_and_gives_the_same_project(folder: Path) -> None:
    assert run(folder, "net.yaml", "--write-config", str(folder / "full.yaml")) == 0
    first = (folder / "out/net/cnn.c").read_text()
    assert run(folder, "full.yaml") == 0
    assert (folder / "out/net/cnn.c").read_text().replace("full", "net") == first.replace(
        f" --write-config {folder}/full.yaml", ""
    )


def test_checking_writes_the_description_alone(folder: Path) -> None:
    assert run(folder, "net.yaml", "--check-only", "--write-config", str(folder / "a.yaml")) == 0
    assert "processors: 0x" in (folder / "a.yaml").read_text()
    assert not (folder / "out").exists()


def test_a_refused_network_writes_nothing(folder: Path) -> None:
    (folder / "net.yaml").write_text(describe(LAYER, {**LAYER, "pad": 3}))
    with pytest.raises(DiagnosticError):
        run(folder, "net.yaml", "--write-config", str(folder / "a.yaml"))
    assert not (folder / "a.yaml").exists()


def test_a_project_that_does_not_fit_the_flash_writes_nothing(folder: Path) -> None:
    with pytest.raises(DiagnosticError) as caught:
        run(folder, "net.yaml", "--write-config", str(folder / "a.yaml"), flash=4000)
    assert "E444" in [d.code for d in caught.value.diagnostics]
    assert not (folder / "a.yaml").exists() and not (folder / "out").exists()


def test_a_folder_in_place_of_the_file_is_refused(folder: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        run(folder, "net.yaml", "--write-config", str(folder))
    assert caught.value.filename == os.fspath(folder)
