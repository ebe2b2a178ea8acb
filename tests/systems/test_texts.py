"""Texts as Windows has them: lines end in CR LF, a mark of the byte order, drives, backslashes.

Whatever reads them gets the same out of them as of the text with plain line ends.
"""

from __future__ import annotations

import ntpath
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

TABLE = "size,colour,label\n1.5,2,cat\n3,4,dog\n5,6,cat\n7,8,dog\n"
MAKEFILE = """SRCS += main.c \\
  cnn.c
# a comment
ifeq ($(RISCV_CORE),)
IPATH += inc  $(X)
endif
VPATH = a:b
define LINES
one
endef
"""


def _description(path: Path) -> Any:
    from ai8xtools.synthesis.parse.parser import parse_file

    return parse_file(path)


def _makefile(path: Path) -> Any:
    from ai8xtools.emulator.project.makefile import Makefile

    makefile = Makefile(path.parent)
    makefile.read(path)
    return [makefile.words(name) for name in ("SRCS", "IPATH", "VPATH")]


def _header(path: Path) -> Any:
    from ai8xtools.software.lowbit.header import read_header

    return repr(read_header(str(path)))


def _profile(path: Path) -> Any:
    from ai8xtools.software.profile import read_profile

    return read_profile(str(path))


def _qat_policy(path: Path) -> Any:
    from ai8xtools.training.policies.qat import read_policy

    return read_policy(str(path))


def _schedule(path: Path) -> Any:
    from ai8xtools.training.policies.schedule import read_schedule

    return read_schedule(str(path))


def _table(path: Path) -> Any:
    from datasets.own.tables import read_table

    return repr(read_table(path, None))


def _source(path: Path) -> Any:
    from ai8xtools.reading import source_text

    return source_text(path)


READERS: dict[str, tuple[str | Path, Callable[[Path], Any]]] = {
    "description.yaml": (ROOT / "networks/digits-chw-ai85.yaml", _description),
    "Makefile": (MAKEFILE, _makefile),
    "lowbit.h": (ROOT / "trained/mnist-lowbit-dense.h", _header),
    "profile.yaml": (ROOT / "ai8xtools/software/profiles/ch32v002.yaml", _profile),
    "qat.yaml": (ROOT / "policies/qat_policy_digits.yaml", _qat_policy),
    "schedule.yaml": (ROOT / "policies/schedule-digits.yaml", _schedule),
    "table.csv": (TABLE, _table),
    "main.c": ("int main(void)\n{\n    return 0;\n}\n", _source),
}


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["crlf", "crlf and mark"])
@pytest.mark.parametrize("name", READERS)
def test_texts_of_windows_mean_the_same(tmp_path: Path, name: str, mark: bytes) -> None:
    given, read = READERS[name]
    text = given.read_text(encoding="utf-8") if isinstance(given, Path) else given
    path = tmp_path / name
    path.write_bytes(text.encode())
    before = read(path)
    assert before
    path.write_bytes(mark + text.replace("\n", "\r\n").encode())
    assert read(path) == before


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/../../x",
        "/x",
        "..\\x",
        "a\\..\\..\\x",
        "\\x",
        "C:\\x",
        "C:x",
        "//server/x",
        "a\0b",
    ],
)
def test_names_that_lead_out_of_a_folder_on_any_system_are_known(name: str) -> None:
    from ai8xtools.reading.system import stays_below

    assert not stays_below(name)
    assert all(map(stays_below, ("x", "a/b.c", "a\\b.c", "..x", "a..", "a/.b")))


def test_what_was_generated_outside_of_a_project_is_not_removed(tmp_path: Path) -> None:
    from ai8xtools.writing.manifest import manifest, stale_files

    (tmp_path / "..\\x.c").write_bytes(b"1")  # a name as any other here, a way out on Windows
    (tmp_path / "old.c").write_bytes(b"1")
    contents = {"..\\x.c": b"1", "old.c": b"1"}
    (tmp_path / ".generated.sha256").write_text(manifest(contents, set()), encoding="utf-8")
    assert list(stale_files(tmp_path, set())) == ["old.c"]


def test_places_on_another_drive_are_named_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from ai8xtools.reading.system import relative

    monkeypatch.setattr(os.path, "relpath", ntpath.relpath)
    assert relative(Path("D:\\sdk\\a.c"), Path("C:\\work")) == "D:\\sdk\\a.c"
    assert relative(Path("C:\\work\\b\\a.c"), Path("C:\\work")) == "b\\a.c"


@pytest.mark.parametrize(
    "makefile",
    ["SRCS = src\\main.c parts\\part.c\nIPATH = inc\\own",
     "VPATH = src;parts\nSRCS = main.c part.c",
     "VPATH = src:C:\\sdk parts\nSRCS = main.c part.c\nCFLAGS = -Iinc\\own -DNAME=\\\"a\\\"",
     "SRCS = $(wildcard src\\*.c) $(wildcard parts/*.c)\nCFLAGS = -I./inc/own"],
)  # fmt: skip
def test_makefiles_may_separate_folders_as_windows_does(tmp_path: Path, makefile: str) -> None:
    from ai8xtools.emulator.project.tree import read_tree

    for name in ("src/main.c", "parts/part.c", "unused/other.c", "inc/own/own.h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("int x;\n", encoding="utf-8")
    (tmp_path / "Makefile").write_bytes(makefile.replace("\n", "\r\n").encode())
    tree = read_tree(tmp_path)
    assert {path.name for path in tree.sources} == {"main.c", "part.c"}
    if "VPATH = src;" not in makefile:
        assert tmp_path / "inc/own" in tree.include
    assert ("-DNAME=" in makefile) == any(flag == '-DNAME="a"' for flag in tree.flags)


def test_options_take_paths_with_drives() -> None:
    from ai8xtools.training.catalog.own_file import is_file_and_class
    from ai8xtools.training.catalog.own_file import plain_name as name_of_network
    from datasets.own.settings import kind_and_path
    from datasets.own.settings import plain_name as name_of_data

    assert is_file_and_class("C:\\nets\\mine.py:Net")
    assert name_of_network("C:\\nets\\mine.py:Net") == "net"
    assert kind_and_path("folder:C:\\my data") == ("folder", "C:\\my data")
    assert name_of_data("folder:C:\\my data\\pets") == "pets"
