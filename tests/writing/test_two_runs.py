"""Two runs that write to one place at the same time keep apart, at the worst moments too."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ai8xtools.writing.folder
from ai8xtools.checkpoint import pairs
from ai8xtools.checkpoint.atomic import atomic_file, write_bytes
from ai8xtools.checkpoint.pairs import write_pair
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.writing.folder import write_project

Writer = Callable[[Path, bytes], object]


def project(top: Path, content: bytes) -> None:
    write_project({"main.c": content}, top / "net", overwrite=True)


def file(top: Path, content: bytes) -> None:
    write_bytes(top / "net", content)


def pair(top: Path, content: bytes) -> None:
    write_pair(top / "net", content, top / "twin", content)


WAITS, ENDS = 0.2, 30.0
"""Seconds for another run that has to wait for this one, and for one that has not."""
Meanwhile = Callable[..., list[threading.Thread]]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Let another run begin before or after the first call of a function."""

    def arrange(
        owner: object, name: str, act: Callable[[], object], seconds: float, before: bool = False
    ) -> list[threading.Thread]:
        call = getattr(owner, name)
        begun: list[threading.Thread] = []

        def begin() -> None:
            if not begun:
                begun.append(threading.Thread(target=act))
                begun[0].start()
                begun[0].join(seconds)

        def called(*given: Any, **named: Any) -> Any:
            if before:
                begin()
            result = call(*given, **named)
            begin()
            return result

        monkeypatch.setattr(owner, name, called)
        return begun

    return arrange


def refusals(write: Writer, top: Path, content: bytes, found: list[str]) -> Callable[[], None]:
    """Return what writes, and notes if it is refused."""

    def act() -> None:
        try:
            write(top, content)
        except DiagnosticError as exc:
            found.append(exc.diagnostics[0].code)

    return act


@pytest.mark.parametrize(
    ("write", "name"), [(file, "mkstemp"), (project, "mkdtemp"), (pair, "mkdtemp")]
)
def test_what_another_run_has_just_created_is_no_litter(
    write: Writer, name: str, tmp_path: Path, meanwhile: Meanwhile
) -> None:
    refused: list[str] = []
    other = refusals(write, tmp_path, b"other", refused)
    threads = meanwhile(tempfile, name, other, WAITS)
    refusals(write, tmp_path, b"one", refused)()
    threads[0].join()
    assert refused == (["E062"] if write is project else [])
    assert not [path for path in tmp_path.iterdir() if ".writing-" in path.name]


def test_a_file_that_is_being_written_is_no_litter(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "net") as written:
        written.write(b"one")
        file(tmp_path, b"other")
    assert (tmp_path / "net").read_bytes() == b"one"


@pytest.mark.parametrize("exists", [False, True])
def test_a_project_that_is_being_written_is_no_litter(
    exists: bool, tmp_path: Path, meanwhile: Meanwhile
) -> None:
    if exists:
        project(tmp_path, b"old")
    meanwhile(ai8xtools.writing.folder, "_fill", lambda: project(tmp_path, b"other"), ENDS)
    with pytest.raises(DiagnosticError, match="E062"):
        project(tmp_path, b"one")
    assert (tmp_path / "net" / "main.c").read_bytes() == b"other"


def test_a_pair_that_is_being_written_is_no_litter(tmp_path: Path, meanwhile: Meanwhile) -> None:
    meanwhile(pairs, "_write", lambda: pair(tmp_path, b"other"), ENDS)
    pair(tmp_path, b"one")
    assert (tmp_path / "net").read_bytes() == (tmp_path / "twin").read_bytes() == b"one"


def test_of_two_projects_that_change_places_the_second_is_refused(
    tmp_path: Path, meanwhile: Meanwhile
) -> None:
    """Otherwise what the other run has reported as written would be gone."""
    project(tmp_path, b"old")
    refused: list[str] = []
    other = refusals(project, tmp_path, b"other", refused)
    threads = meanwhile(ai8xtools.writing.folder, "exchange", other, WAITS, before=True)
    project(tmp_path, b"one")
    threads[0].join()
    assert (tmp_path / "net" / "main.c").read_bytes() == b"one"
    assert refused == ["E062"]


def test_a_file_of_a_pair_that_changes_places_is_written_after_it(
    tmp_path: Path, meanwhile: Meanwhile
) -> None:
    pair(tmp_path, b"old")
    threads = meanwhile(pairs, "_lead_to_old", lambda: file(tmp_path, b"other"), WAITS)
    pair(tmp_path, b"one")
    threads[0].join()
    assert (tmp_path / "net").read_bytes() == b"other"
    assert (tmp_path / "twin").read_bytes() == b"one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net", "twin"]
