"""A project appears completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.writing.folder import check_folder, folder_name, write_project
from ai8xtools.writing.manifest import MANIFEST

FILES: dict[str, str | bytes] = {
    "main.c": "int x;\n",
    ".vscode/settings.json": "{}",
    "project.mk": "# yours\n",
    "b.npy": b"\0",
}


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files but the list of those that were generated."""
    return {name: data for name, data in everything(folder).items() if name != MANIFEST}


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def as_bytes(files: Mapping[str, str | bytes]) -> dict[str, bytes]:
    return {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}


def fail_at(monkeypatch: pytest.MonkeyPatch, name: str, number: int, error: BaseException) -> None:
    """Let the `number`-th call of a function of os fail."""
    original = getattr(os, name)
    calls = 0

    def failing(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            raise error
        return original(*args, **kwargs)

    monkeypatch.setattr(os, name, failing)


def test_new_folder_is_created_with_its_parents(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "net"
    write_project(FILES, target)
    assert contents(target) == as_bytes(FILES)
    assert os.listdir(tmp_path / "a" / "b") == ["net"]


def test_existing_folder_is_refused_and_stays(tmp_path: Path) -> None:
    target = tmp_path / "net"
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    with pytest.raises(DiagnosticError, match=r"E060(.|\n)*--overwrite"):
        write_project(FILES, target)
    assert everything(tmp_path) == {"net/mine.txt": b"mine"}


@pytest.mark.parametrize("name", ["file", "file/net"])
def test_file_in_the_way_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DiagnosticError, match="E061"):
        check_folder(tmp_path / name, overwrite=True)


def test_overwriting_keeps_files_of_the_user_and_project_mk(tmp_path: Path) -> None:
    target = tmp_path / "net"
    write_project(FILES, target)
    (target / "project.mk").write_text("mine")
    (target / "extra.c").write_text("mine")
    write_project({**FILES, "main.c": "new", "sub/new.c": "new"}, target, overwrite=True)
    assert contents(target) == {
        **as_bytes(FILES),
        "main.c": b"new",
        "sub/new.c": b"new",
        "project.mk": b"mine",
        "extra.c": b"mine",
    }
    assert os.listdir(tmp_path) == ["net"]


def test_a_file_of_the_user_is_not_replaced_by_a_new_one(tmp_path: Path) -> None:
    target = tmp_path / "net"
    write_project(FILES, target)
    (target / "CMakeLists.txt").write_text("mine")
    before = everything(tmp_path)
    with pytest.raises(DiagnosticError, match=r"CMakeLists.txt(.|\n)*E063"):
        write_project({**FILES, "main.c": "new", "CMakeLists.txt": "new"}, target, overwrite=True)
    assert everything(tmp_path) == before
    write_project({**FILES, "CMakeLists.txt": "mine"}, target, overwrite=True)
    write_project({**FILES, "CMakeLists.txt": "new"}, target, overwrite=True)
    assert contents(target)["CMakeLists.txt"] == b"new"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failed_write_leaves_nothing(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise error

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(type(error)) as caught:
        write_project(FILES, tmp_path / "new" / "net")
    assert list(tmp_path.iterdir()) == []
    if isinstance(caught.value, OSError):
        assert caught.value.filename == str(tmp_path / "new" / "net")


@pytest.mark.parametrize(
    ("call", "number"), [*(("replace", number) for number in range(1, 6)), ("unlink", 1)]
)
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_failed_replacement_restores_everything(
    error: BaseException, call: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "net"
    write_project({**FILES, "old.c": "old"}, target)
    before = everything(tmp_path)
    new = dict.fromkeys([*FILES, "sub/new.c"], "new")
    with monkeypatch.context() as patched:
        patched.setattr("ai8xtools.writing.folder.can_exchange", lambda _folder: False)
        fail_at(patched, call, number, error)
        with pytest.raises(type(error)):
            write_project(new, target, overwrite=True)
    assert everything(tmp_path) == before
    assert not (target / "sub").exists()


def test_overwriting_removes_what_is_no_longer_generated(tmp_path: Path) -> None:
    target = tmp_path / "net"
    write_project({**FILES, "main_riscv.c": "old", "sub/old.c": "old", "edited.c": "old"}, target)
    (target / "edited.c").write_text("mine")
    write_project({"main.c": "new"}, target, overwrite=True)
    mine = {"edited.c": b"mine", "project.mk": b"# yours\n"}
    assert contents(target) == {"main.c": b"new", **mine}
    write_project({"other.c": "new"}, target, overwrite=True)
    assert contents(target) == {"other.c": b"new", **mine}


def test_list_of_generated_files_is_understood_by_sha256sum(tmp_path: Path) -> None:
    write_project(FILES, tmp_path / "net")
    lines = (tmp_path / "net" / MANIFEST).read_text().splitlines()
    assert [line[66:] for line in lines] == [".vscode/settings.json", "b.npy", "main.c"]
    assert all(len(line.split("  ")[0]) == 64 for line in lines)


EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize("name", ["../mine", "/mine", "link/mine", "linked", "folder", "", "a\0b"])
def test_list_that_names_other_things_removes_nothing(tmp_path: Path, name: str) -> None:
    target, outside = tmp_path / "net", tmp_path / "outside"
    write_project(FILES, target)
    (target / "folder").mkdir()
    outside.mkdir()
    for path in (tmp_path / "mine", outside / "mine"):
        path.write_bytes(b"")
    (target / "link").symlink_to(outside)
    (target / "linked").symlink_to(outside / "mine")
    absolute = str(tmp_path / "mine") if name == "/mine" else name
    (target / MANIFEST).write_text(f"{EMPTY}  {absolute}\nnonsense\n")
    before = contents(tmp_path / "outside"), sorted(os.listdir(target))
    write_project(FILES, target, overwrite=True)
    assert (contents(tmp_path / "outside"), sorted(os.listdir(target))) == before
    assert (tmp_path / "mine").exists()


def test_list_that_is_not_text_removes_nothing(tmp_path: Path) -> None:
    write_project({**FILES, "old.c": ""}, tmp_path / "net")
    (tmp_path / "net" / MANIFEST).write_bytes(b"\xff")
    write_project(FILES, tmp_path / "net", overwrite=True)
    assert (tmp_path / "net" / "old.c").exists()


def test_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "net" / "main.c").mkdir(parents=True)
    with pytest.raises(DiagnosticError, match="E061"):
        write_project(FILES, tmp_path / "net", overwrite=True)
    assert os.listdir(tmp_path / "net") == ["main.c"]


def test_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "net").symlink_to(tmp_path / "real")
    write_project(FILES, tmp_path / "net", overwrite=True)
    assert contents(tmp_path / "real") == as_bytes(FILES)
    assert (tmp_path / "net").is_symlink()


@pytest.mark.parametrize("parent", ["out", "o" * 200])
def test_very_long_names_are_cut_and_stay_different(parent: str) -> None:
    name = "n" * (245 - len(parent))
    assert folder_name(name, parent) == name
    long = [folder_name(name + "n" * 50 + end, parent) for end in "ab"]
    assert long[0] != long[1]
    assert {len(one) for one in long} == {246 - len(parent)}


def test_programs_can_be_executed_and_empty_folders_are_made(tmp_path: Path) -> None:
    target = tmp_path / "net"
    for overwrite in (False, True):
        write_project(
            {**FILES, "run.py": "#!/usr/bin/env python3\n"},
            target,
            overwrite=overwrite,
            executables=["run.py"],
            empty_folders=["output"],
        )
        assert os.access(target / "run.py", os.X_OK) and not os.access(target / "main.c", os.X_OK)
        assert (target / "output").is_dir()
    (target / "output" / "mine").touch()
    write_project(FILES, target, overwrite=True, empty_folders=["output"])
    assert (target / "output" / "mine").exists() and not (target / "run.py").exists()


def test_folders_of_a_failed_run_disappear_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "net"
    write_project(FILES, target)
    monkeypatch.setattr("ai8xtools.writing.folder.can_exchange", lambda _folder: False)
    fail_at(monkeypatch, "replace", 2, OSError(28, "No space left on device"))
    with pytest.raises(OSError, match="No space"):
        write_project(FILES, target, overwrite=True, empty_folders=["output"])
    assert not (target / "output").exists() and contents(target) == as_bytes(FILES)
