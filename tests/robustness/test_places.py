"""What stands where a tool expects a file of its own: folders, pipes, devices, loops of links."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ai8xtools.diagnostics import diagnostics_of
from ai8xtools.writing.folder import write_project
from tests.robustness.foreign import prepare, run_case
from tests.robustness.reads import TABLE

KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path.name),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("places")
    prepare(made, trained=False)
    return made


@pytest.mark.parametrize("file", ["folder", "pipe", "loop"])
@pytest.mark.parametrize("inside", ["answer.npz", "plan.json", "cnn.h", "Makefile"])
def test_what_is_no_file_in_a_project_is_an_error(folder: Path, inside: str, file: str) -> None:
    (reads,) = (r for r in TABLE if r.tool == "emulate" and r.inside == inside)
    ended = run_case(reads, file, folder)
    assert ended.status == 1 and ended.failure() is None, ended.text


@pytest.mark.parametrize("kind", KINDS)
def test_project_is_written_over_what_is_no_file(tmp_path: Path, kind: str) -> None:
    files = {"a.c": "1\n", "b.h": "2\n"}
    write_project(files, tmp_path / "p")
    (tmp_path / "p" / "b.h").unlink()
    KINDS[kind](tmp_path / "p" / "b.h")
    write_project(files, tmp_path / "p", overwrite=True)
    assert (tmp_path / "p" / "b.h").read_text() == "2\n"


def test_network_of_a_file_with_any_ending_is_imported(tmp_path: Path) -> None:
    from ai8xtools.training.catalog.own_file import own_model

    path = tmp_path / "NET.PY"
    path.write_text("x = 1/0\n")
    with pytest.raises(Exception, match="ZeroDivisionError") as refused:
        own_model(f"{path}:Net", 2)
    assert [d.code for d in diagnostics_of(refused.value)] == ["E602"]


def test_library_behind_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    from ai8xtools.software.cmsis.tree import read_library

    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(Exception, match="E940"):
        read_library(str(tmp_path / "loop"), ())


def test_many_ways_through_a_network_are_gone_once() -> None:
    from types import SimpleNamespace as Of

    from ai8xtools.synthesis.final_scales import final_scales

    layers = [Of(has_weights=True, final_scale=3, sources=None)]
    layers += [Of(has_weights=False, sources=(n, n)) for n in range(200)]
    network = Of(layer=layers.__getitem__)
    assert final_scales(200, network) == {0: 3}  # type: ignore[arg-type]
