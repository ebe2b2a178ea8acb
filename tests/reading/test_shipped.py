"""Files of an installed package are named from anywhere; in a checkout none is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai8xtools.reading import files, open_file, read_bytes
from tests.conftest import ROOT

NAME = "networks/schema.json"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "IS_INSTALLED", True)


def test_a_checkout_replaces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_file(NAME, 1 << 20)


@pytest.mark.usefixtures("installed")
def test_what_the_current_folder_lacks_is_that_of_the_toolchain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_bytes(NAME, 1 << 20) == (ROOT / NAME).read_bytes()
    (tmp_path / "networks").mkdir()
    assert read_bytes(NAME, 1 << 20) == (ROOT / NAME).read_bytes()
    (tmp_path / NAME).write_text("mine")
    assert read_bytes(NAME, 1 << 20) == b"mine"
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).symlink_to("nowhere")
    with pytest.raises(FileNotFoundError):
        open_file(NAME, 1 << 20)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    "name", ["networks", "networks/../train.py", "ai8x.py", "models/ai85net_digits.py", ""]
)
def test_nothing_else_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_file(name, 1 << 20)
