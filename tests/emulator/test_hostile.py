"""Projects that mean harm: they end soon, refused or run, and leave everything as it was."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.diagnostics import diagnostics_of
from ai8xtools.diagnostics.errors import ToolError
from tests.emulator.test_workshop import BOMB, temporary

__all__ = ["temporary"]
MAIN = "int main(void) { return 0; }\n"
LIMIT = 1.0
SECONDS = 15.0
"""The limit for reading and compiling, for running, and time for a busy machine."""


def files(**contents: str) -> Callable[[Path], None]:
    """Make files; two underscores in a name stand for a dot."""

    def make(folder: Path) -> None:
        for name, text in contents.items():
            (folder / name.replace("__", ".")).write_text(text)

    return make


def big_source(folder: Path) -> None:
    with (folder / "main.c").open("w") as file:
        file.truncate(100 << 30)


def many_big_sources(folder: Path) -> None:
    for number in range(5):
        with (folder / f"main{number}.c").open("w") as file:
            file.truncate(60 << 20)


def pipe(name: str, text: str = MAIN) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "main.c").write_text(text)
        os.mkfifo(folder / name)

    return make


def deep(folder: Path) -> None:
    (folder / "main.c").write_text('#include "nowhere.h"\n' + MAIN)
    place = os.open(folder, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=place)
        below = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)


def links(folder: Path) -> None:
    (folder / "main.c").write_text(MAIN)
    (folder / "root").symlink_to("/")
    (folder / "loop").symlink_to("loop")
    (folder / "up").symlink_to("..")
    text = "SRCS := $(wildcard */*/*/*/*/*.c) $(wildcard root/*/*/*/*.c) $(wildcard ../../../*/*)\n"
    (folder / "Makefile").write_text(text)


def many_files(folder: Path) -> None:
    for number in range(5000):
        (folder / f"f{number}.c").touch()
    (folder / "main.c").write_text(MAIN)


def assembler(text: str) -> Callable[[Path], None]:
    quoted = text.replace('"', '\\"').replace("\n", "\\n")
    return files(main__c=f'__asm__("{quoted}");\n{MAIN}')


PROJECTS = {
    "macros": files(main__c=BOMB),
    "assembler fills": assembler(".data\n.fill 0x30000000,4,1"),
    "assembler repeats": assembler(".rept 100000000\nnop\n.endr"),
    "binary of a device": assembler('.incbin "/dev/zero"'),
    "a gigabyte of cleared memory": files(main__c="char a[1 << 30];\n" + MAIN.replace("0", "a[9]")),
    "three gigabytes behind each other": files(
        main__c='char a[1<<30] __attribute__((section(".data"))) = {1}, b[1<<30] = {1};\n' + MAIN
    ),
    "includes itself": files(main__c='#include "main.c"\n#include "main.c"\n' + MAIN),
    "includes a device": files(main__c='#include "/dev/zero"\n' + MAIN),
    "includes a terminal": files(main__c='#include "/dev/tty"\n' + MAIN),
    "includes a pipe": pipe("pipe.txt", '#include "pipe.txt"\n' + MAIN),
    "a source that is a pipe": pipe("other.c"),
    "a makefile that is a pipe": pipe("Makefile"),
    "a source of 100 GB": big_source,
    "sources of 300 MB": many_big_sources,
    "folders in folders": deep,
    "links to everything": links,
    "thousands of sources": many_files,
    "constructors": files(
        main__c="__attribute__((constructor)) static void f(void) { for (;;) {} }\n" + MAIN
    ),
    "fork bomb in a makefile": files(
        main__c=MAIN, Makefile="X := $(shell :(){ :|:& };: )\nSRCS != touch made; echo main.c\n"
    ),
    "numbers without end": files(
        main__c="#define N " + "9" * 5000 + "\nvoid f(void) { for (int i = 0; i < N; i++) "
        "cnn_start(); }\n" + MAIN,
        Makefile=f"SRCS := main.c $(word {'9' * 5000},a b) $(word ²,a b)\n",
    ),
}  # fmt: skip


def state(folder: Path) -> list[tuple[str, float]]:
    """Names and times of what a folder holds directly."""
    return sorted((path.name, path.lstat().st_mtime) for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty folder with surroundings; it may become too deep for pytest to remove it."""
    folder = tmp_path / "around" / "project"
    folder.mkdir(parents=True)
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


@pytest.mark.parametrize("project", PROJECTS)
def test_hostile_project(
    project: str, folder: Path, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PROJECTS[project](folder)
    before, children = state(folder), threads()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ai8xtools.commands.emulate.arguments.LEAST_READING_SECONDS", LIMIT)
    begin = time.monotonic()
    try:
        assert emulate(parse([str(folder), "--device", "MAX78000", "--time-limit", str(LIMIT)]))
    except (ToolError, OSError) as error:
        found = diagnostics_of(error)
        assert all(one.code != "E009" and len(one.message) < 2000 for one in found)
    assert time.monotonic() - begin < SECONDS
    assert state(folder) == before
    assert not any(temporary.iterdir())
    assert threads() == children


def threads() -> int:
    """The number of this process's threads, once those that end have ended."""
    import threading

    end = time.monotonic() + 5
    while threading.active_count() > 1 and time.monotonic() < end:
        time.sleep(0.01)
    return threading.active_count()
