"""A kill, a full disk or a broken one at any step leaves the old or the new, whole; no litter."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.checkpoint import Checkpoint, write_checkpoint, write_with_twin
from ai8xtools.checkpoint.atomic import remove_litter, temporary_prefix, write_bytes
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.writing.folder import write_project
from ai8xtools.writing.manifest import MANIFEST
from tests.writing.faults import KINDS, outcomes

LATER = pytest.mark.skipif("AI8X_PROPERTIES" not in os.environ, reason="all: make properties")
BRIEFLY = [pytest.param(kind, marks=LATER if kind != "ENOSPC" else ()) for kind in KINDS]
"""A broken disk is told by the same call as a full one; what a kill leaves at any step is among
what a power cut leaves, and test_power_cuts.py lets the next run mend it."""
OLD = {f"file{n}.c": f"old {n}\n" * 10 for n in range(2)} | {"sub/x.h": "old\n", "gone.c": "old"}
NEW = {f"file{n}.c": f"new {n}\n" * 10 for n in range(2)} | {"sub/x.h": "new\n", "more.c": "new"}


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }


def litter(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if ".writing-" in path.name)


@pytest.mark.parametrize("kind", BRIEFLY)
@pytest.mark.parametrize("exists", [False, True])
def test_project_is_old_or_new_after_a_fault_at_any_step(
    tmp_path: Path, kind: str, exists: bool
) -> None:
    target = tmp_path / "top" / "project"
    user = {"project.mk": "mine\n", "notes/own.txt": "mine\n"} if exists else {}

    start = tmp_path / "start"
    start.mkdir()
    if exists:
        write_project(OLD, start / "project")
        for name, text in user.items():
            (start / "project" / name).parent.mkdir(exist_ok=True)
            (start / "project" / name).write_text(text)

    def prepare() -> None:
        shutil.rmtree(tmp_path / "top", ignore_errors=True)
        shutil.copytree(start, tmp_path / "top")

    steps = 0
    for number, ended in outcomes(
        lambda: write_project(NEW, target, overwrite=True), kind, prepare
    ):
        found = contents(target) if target.exists() else {}
        before = OLD | user if exists else {}
        assert found in (before, NEW | user), (number, ended, sorted(found))
        assert ended not in ("done", "survived") or found == NEW | user
        if ended == "refused":
            assert litter(tmp_path / "top") == []
        write_project(NEW, target, overwrite=True)
        assert contents(target) == NEW | user
        assert litter(tmp_path / "top") == []
        steps = number
    assert steps > (20 if exists else 12)


@pytest.mark.parametrize("kind", BRIEFLY)
@pytest.mark.parametrize("exists", [False, True])
def test_file_is_old_or_new_after_a_fault_at_any_step(
    tmp_path: Path, kind: str, exists: bool
) -> None:
    path = tmp_path / "top" / "net.pth.tar"
    one, two = (Checkpoint({"state_dict": {"w": np.full(9000, n, "f4")}}) for n in (1, 2))

    def prepare() -> None:
        shutil.rmtree(tmp_path / "top", ignore_errors=True)
        (tmp_path / "top").mkdir()
        if exists:
            write_checkpoint(path, one)

    write_checkpoint(tmp_path / "old", one)
    write_checkpoint(tmp_path / "new", two)
    old, new = (tmp_path / "old").read_bytes(), (tmp_path / "new").read_bytes()
    steps = 0
    for number, ended in outcomes(lambda: write_checkpoint(path, two), kind, prepare):
        found = path.read_bytes() if path.exists() else None
        assert found in ((old if exists else None), new), (number, ended)
        write_checkpoint(path, two)
        assert sorted(p.name for p in path.parent.iterdir()) == ["net.pth.tar"]
        steps = number
    assert steps > 3


@pytest.mark.parametrize("kind", BRIEFLY)
@pytest.mark.parametrize("exists", [False, True])
def test_pair_matches_after_a_fault_at_any_step(tmp_path: Path, kind: str, exists: bool) -> None:
    path = tmp_path / "top" / "net.pth.tar"
    one, two = (Checkpoint({"state_dict": {"w": np.full(9000, n, "f4")}}) for n in (1, 2))

    def prepare() -> None:
        shutil.rmtree(tmp_path / "top", ignore_errors=True)
        (tmp_path / "top").mkdir()
        if exists:
            write_with_twin(path, one)

    prepare()
    write_with_twin(path, one)
    old = named(path.parent)
    write_with_twin(path, two)
    new = named(path.parent)
    steps = 0
    for number, ended in outcomes(lambda: write_with_twin(path, two), kind, prepare):
        assert named(path.parent) in ((old if exists else {}), new), (number, ended)
        if ended == "refused":
            assert litter(path.parent) == []
        write_with_twin(path, two)
        assert named(path.parent) == new and litter(path.parent) == []
        assert not any(p.is_symlink() for p in path.parent.iterdir())
        steps = number
    assert steps > 20


def named(folder: Path) -> dict[str, bytes]:
    """What the names in a folder lead to."""
    return {
        p.name: p.read_bytes()
        for p in folder.iterdir()
        if ".writing-" not in p.name and p.is_file()
    }


def test_whoever_writes_one_half_of_a_killed_pair_settles_both(tmp_path: Path) -> None:
    path = tmp_path / "top" / "net.pth.tar"
    path.parent.mkdir()
    versions = [Checkpoint({"state_dict": {"w": np.full(90, n, "f4")}}) for n in (1, 2)]
    write_with_twin(path, versions[0])
    old = named(path.parent)
    shutil.copytree(path.parent, tmp_path / "start")

    def prepare() -> None:
        shutil.rmtree(path.parent)
        shutil.copytree(tmp_path / "start", path.parent)

    linked = 0
    twin = path.parent / "net.safetensors"
    for number, _ in outcomes(lambda: write_with_twin(path, versions[1]), "kill", prepare):
        found = named(path.parent)
        linked += twin.is_symlink()
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(twin)
        write_bytes(tmp_path / "link", b"mine")
        assert not twin.is_symlink() and (tmp_path / "link").is_symlink(), number
        assert named(path.parent) == found | {"net.safetensors": b"mine"}
    assert linked > 3 and old


def test_pair_without_links_of_the_file_system_is_old_or_new_or_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    path = tmp_path / "net.pth.tar"
    versions = [Checkpoint({"state_dict": {"w": np.full(90, n, "f4")}}) for n in (1, 2)]
    write_with_twin(path, versions[0])
    old = named(tmp_path)
    monkeypatch.setattr(os, "symlink", refuse)
    write_with_twin(path, versions[1])
    new = named(tmp_path)
    assert old != new and litter(tmp_path) == []

    def prepare() -> None:
        write_with_twin(path, versions[1])

    for _, ended in outcomes(lambda: write_with_twin(path, versions[0]), "kill", prepare):
        found = named(tmp_path)
        halves = [{name: whole[name]} for whole in (old, new) for name in whole]
        assert found in (old, new, *halves), ended


def test_files_of_somebody_who_still_writes_stay(tmp_path: Path) -> None:
    import fcntl

    path = tmp_path / f"{temporary_prefix('x')}abcdefgh"
    path.write_bytes(b"half")
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        remove_litter(tmp_path, "x")
        assert path.exists()
    remove_litter(tmp_path, "x")
    assert not path.exists()


def test_names_that_only_look_alike_stay(tmp_path: Path) -> None:
    for name in (".x.abcdefgh", ".y.writing-abcdefgh", "x.writing-abcdefgh", ".x.writing-"):
        (tmp_path / name).write_text("mine")
    write_bytes(tmp_path / "x", b"new")
    assert len(list(tmp_path.iterdir())) == 5


def test_of_two_runs_at_once_one_wins_whole_and_the_other_says_so(tmp_path: Path) -> None:
    versions = [{f"{n}.c": f"{version}" for n in range(30)} for version in range(6)]
    refused: list[str] = []
    wrote: list[int] = []
    barrier = threading.Barrier(len(versions))

    def write(number: int) -> None:
        barrier.wait()
        try:
            write_project(versions[number], tmp_path / "project", overwrite=True)
            wrote.append(number)
        except DiagnosticError as exc:
            refused.append(exc.diagnostics[0].code)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(len(versions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrote and len(wrote) + len(refused) == len(versions)
    assert set(refused) <= {"E062"}
    assert contents(tmp_path / "project") in [versions[number] for number in wrote]
    assert os.listdir(tmp_path) == ["project"]


def test_open_files_of_the_user_stay_the_same(tmp_path: Path) -> None:
    write_project(OLD, tmp_path / "project")
    own = tmp_path / "project" / "own.c"
    own.write_text("mine")
    number = own.stat().st_ino
    (tmp_path / "project" / "link").symlink_to("own.c")
    write_project(NEW, tmp_path / "project", overwrite=True)
    assert own.stat().st_ino == number
    assert (tmp_path / "project" / "link").readlink() == Path("own.c")


def test_project_that_does_not_change_is_left_alone(tmp_path: Path) -> None:
    write_project(OLD, tmp_path / "project")
    before = (tmp_path / "project").stat()
    write_project(OLD, tmp_path / "project", overwrite=True)
    assert (tmp_path / "project").stat() == before
