"""After a power cut all is old or new, whole; nothing is lost that was reported as written."""

from __future__ import annotations

import ast
import contextlib
import errno
import functools
import os
import stat
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ai8xtools.checkpoint.atomic import write_bytes
from ai8xtools.checkpoint.pairs import write_pair
from ai8xtools.writing.folder import write_project
from tests.conftest import ROOT
from tests.writing.disk import Disk
from tests.writing.power_cuts import Case, Promise, Work, complaints, syncs

SCHEDULE = ROOT / "policies" / "schedule.yaml"
LOGS = ["logs/*/*.log", "latest_log_file", "copy/*"]
TRAINING = Promise(growing=LOGS)

PROJECTS = (
    {"main.c": "old " * 9, "sub/x.h": "old", "gone.c": "old", "run.py": "old"},
    {"main.c": "new " * 9, "sub/x.h": "new", "more.c": "new", "run.py": "new", "sub2/y.h": "new"},
)


def project(version: int) -> Work:
    return lambda top: write_project(
        PROJECTS[version], top / "a" / "b" / "net", overwrite=True, executables=["run.py"],
        empty_folders=["output"],
    )  # fmt: skip


def used_project(top: Path) -> None:
    """A project in which the user has put something."""
    project(0)(top)
    net = top / "a" / "b" / "net"
    (net / "sub" / "own.h").write_text("mine")
    (net / "own").mkdir()
    (net / "own" / "link").symlink_to("../sub/own.h")


def file(version: int, path: str = "a/b/net.pth.tar") -> Work:
    return lambda top: write_bytes(top / path, b"%d" % version * 30)


def pair(version: int, second: str = "a/b/net.safetensors") -> Work:
    one, other = b"one %d" % version * 30, b"other %d" % version * 30
    return lambda top: write_pair(top / "a/b/net.pth.tar", one, top / second, other)


def linked(top: Path) -> None:
    (top / "elsewhere").mkdir()
    (top / "link").symlink_to("elsewhere/file")


def without(name: str) -> Callable[[], contextlib.AbstractContextManager[object]]:
    """A system or a file system without a call."""

    def refuse(*_given: Any, **_named: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    return lambda: mock.patch(name, refuse)


def without_exchange() -> contextlib.AbstractContextManager[object]:
    return mock.patch("ai8xtools.writing.exchange._renameat2", lambda: None)


def epochs() -> tuple[Work, Work, Work]:
    """A training: the first epoch, another one, and the copy of its results."""
    import torch

    from ai8xtools.training.saving import checkpoints, logs

    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    log: list[logs.Log] = []

    def epoch(_top: Path) -> None:
        if not log:
            log.append(logs.Log("logs", "net"))
            log[0].keep(str(SCHEDULE))
        log[0].say("Epoch")
        log[0].metrics["epochs"].append({})
        with torch.no_grad():
            model.weight += 1
        paths = [log[0].folder / name for name in ("best.pth.tar", "checkpoint.pth.tar")]
        checkpoints.write(paths, 1, "net", model, optimizer, {})
        log[0].save_metrics()

    def copy(_top: Path) -> None:
        log[0].close()
        logs.copy_folder(log[0].folder, "copy")

    return epoch, epoch, copy


PROJECT = Promise(["a/b/net/*"])
PAIR, HALVES = Promise(["a/*/net.*"]), Promise(["a/*/net.*"], halves=True)
CASES = {
    "a new project": lambda: Case(PROJECT, [project(0)]),
    "a project again": lambda: Case(PROJECT, [project(1)], used_project),
    "a project again, without exchange": lambda: Case(
        Promise(), [project(1)], used_project, without_exchange
    ),
    "a project again, without hard links": lambda: Case(
        PROJECT, [project(1)], used_project, without("os.link")
    ),
    "a file": lambda: Case(Promise(), [file(1), file(2)]),
    "a file behind a link": lambda: Case(Promise(), [file(1, "link"), file(2, "link")], linked),
    "a pair": lambda: Case(PAIR, [pair(1), pair(2)]),
    "a pair, without hard links": lambda: Case(PAIR, [pair(2)], pair(1), without("os.link")),
    "a new pair, without links": lambda: Case(HALVES, [pair(1)], around=without("os.symlink")),
    "a pair, without links": lambda: Case(HALVES, [pair(2)], pair(1), without("os.symlink")),
    "a new pair in two folders": lambda: Case(HALVES, [pair(1, "a/c/net.json")]),
    "a pair in two folders": lambda: Case(
        HALVES, [pair(2, "a/c/net.json")], pair(1, "a/c/net.json")
    ),
    "a training": lambda: Case(TRAINING, epochs()),
}


Recorded = Callable[[str], tuple[Case, Disk]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """What each case does on a disk; each is done once."""

    @functools.cache
    def record(name: str) -> tuple[Case, Disk]:
        case, top = CASES[name](), tmp_path_factory.mktemp("case")
        with contextlib.chdir(top):
            return case, case.recorded(top)

    return record


@pytest.mark.parametrize("name", CASES)
def test_old_or_new_after_a_power_cut_at_any_step(recorded: Recorded, name: str) -> None:
    case, disk = recorded(name)
    reported = disk.reported()
    assert len(reported) == 1 + len(case.works)
    assert all(one.tree != other.tree for one, other in pairwise(reported))
    assert not {*complaints(disk, case.promise, disk.prefixes())}
    assert not {*complaints(disk, case.promise, disk.cuts(20))}


def test_no_sync_of_the_source_can_be_left_out(recorded: Recorded) -> None:
    needed = {
        line
        for case, disk in map(recorded, CASES)
        for line, is_needed in syncs(disk, case.promise)
        if is_needed
    }
    assert needed == {*lines_that_sync()}


@pytest.mark.parametrize("name", [name for name in CASES if name != "a training"])
def test_the_next_run_mends_what_a_power_cut_left(
    recorded: Recorded, name: str, tmp_path: Path
) -> None:
    case, disk = recorded(name)
    states = [*disk.cuts(0)]
    for number, state in enumerate(states[:: 1 + len(states) // 12]):
        (tmp_path / str(number)).mkdir()
        assert case.again(state, disk.reported()[-1], tmp_path / str(number)) is None


def lines_that_sync() -> Iterator[str]:
    """Yield the lines of the tools that sync a file or a folder."""
    for path in ROOT.rglob("*.py"):
        inside = path.relative_to(ROOT)
        if inside.parts[0] in ("tests", "tools") or inside.parts[0].startswith("."):
            continue
        text = path.read_text()
        if "sync(" not in text:
            continue
        tree = ast.parse(text)
        itself = {
            call for one in ast.walk(tree)
            if isinstance(one, ast.FunctionDef) and one.name == "sync" for call in ast.walk(one)
        }  # fmt: skip
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and call not in itself:
                named = call.func
                name = named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")
                if name in ("sync", "fsync"):
                    yield f"{inside}:{call.lineno}"


@pytest.mark.parametrize(("number", "told"), [(errno.EIO, True), (errno.EINVAL, False)])
def test_a_folder_that_cannot_be_synced_is_told_unless_its_system_syncs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: bool
) -> None:
    sync = os.fsync

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        sync(handle)

    monkeypatch.setattr(os, "fsync", refuse)
    path = tmp_path / "new" / "net"
    if told:
        with pytest.raises(OSError, match=os.strerror(number)) as caught:
            write_bytes(path, b"new")
        assert caught.value.filename == str(path)
    else:
        write_bytes(path, b"new")
        assert path.read_bytes() == b"new"
