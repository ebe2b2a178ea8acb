"""The list of tests: whole, without duplicates, whoever writes it at the same time."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.synthesis.emit.rtl import add_test, list_problems, regression_line
from tests.rtl.by_hand import rtl_options
from tests.synthesis.programs import program, summary

PROCESSES, TESTS_EACH = 6, 20


def add_some(list_file: Path, process: int) -> None:
    for number in range(TESTS_EACH):
        add_test(list_file, f"tests/cnn/net-{process}-{number}-/run_test:short")


def test_no_line_is_lost_when_processes_write_at_the_same_time(tmp_path: Path) -> None:
    test_list = tmp_path / "autogen_list"
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=add_some, args=(test_list, number)) for number in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    lines = test_list.read_text().splitlines()
    assert len(lines) == len(set(lines)) == PROCESSES * TESTS_EACH
    assert [path.name for path in tmp_path.iterdir()] == ["autogen_list"]


def test_test_joins_the_list_once(tmp_path: Path) -> None:
    test_list = tmp_path / "autogen_list"
    test_list.write_text("tests/cnn/other/run_test:long")
    line = regression_line(program(), summary(), rtl_options())
    assert line == "tests/cnn/net/run_test:short"
    assert add_test(test_list, line) and not add_test(test_list, line)
    assert test_list.read_text() == "tests/cnn/other/run_test:long\ntests/cnn/net/run_test:short\n"


def test_list_stays_whole_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_list = tmp_path / "autogen_list"
    test_list.write_text("tests/a/run_test:short\n")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        add_test(test_list, "tests/b/run_test:short")
    assert test_list.read_text() == "tests/a/run_test:short\n"
    assert [path.name for path in tmp_path.iterdir()] == ["autogen_list"]


def test_another_queue_replaces_the_line_of_a_test(tmp_path: Path) -> None:
    test_list = tmp_path / "autogen_list"
    test_list.write_text("tests/cnn/a/run_test:long\ntests/cnn/b/run_test:short\n")
    assert add_test(test_list, "tests/cnn/a/run_test:short")
    assert test_list.read_text() == "tests/cnn/a/run_test:short\ntests/cnn/b/run_test:short\n"
    assert add_test(test_list, "tests/cnn/aa/run_test:short")
    assert test_list.read_text().count("run_test") == 3


def test_list_keeps_its_permissions_and_its_link(tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    real, link = tmp_path / "lists" / "all", tmp_path / "autogen_list"
    real.write_text("tests/a/run_test:short\n")
    real.chmod(0o664)
    link.symlink_to(real)
    assert add_test(link, "tests/b/run_test:short")
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o664
    assert len(real.read_text().splitlines()) == 2


def problems(folder: Path) -> list[str]:
    return [
        f"{d.code} {d.message}" for d in list_problems(rtl_options(regression_folder=str(folder)))
    ]


def test_list_in_an_ordinary_folder_has_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path) == []
    (tmp_path / "autogen_list").write_text("")
    assert problems(tmp_path) == []


def test_folder_that_cannot_be_written_is_noticed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "autogen_list").write_text("")

    def access(path: Any, mode: int) -> bool:
        return Path(path) != tmp_path or not mode & os.W_OK

    monkeypatch.setattr(os, "access", access)
    (found,) = problems(tmp_path)
    assert "E096" in found and str(tmp_path) in found


def test_pipe_is_no_list(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "autogen_list")
    (found,) = problems(tmp_path)
    assert "E096" in found and "pipe" in found
