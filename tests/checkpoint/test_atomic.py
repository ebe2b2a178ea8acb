"""Files appear completely or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ai8xtools.checkpoint.atomic import atomic_file, write_bytes


def test_file_has_its_content_and_the_usual_permissions(tmp_path: Path) -> None:
    write_bytes(tmp_path / "new" / "file", b"content")
    (tmp_path / "plain").touch()
    assert (tmp_path / "new" / "file").read_bytes() == b"content"
    assert (tmp_path / "new" / "file").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, failure: type[BaseException] | BaseException
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises((KeyboardInterrupt, OSError)), atomic_file(path) as file:
        file.write(b"half")
        raise failure
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["file"]


def test_errors_name_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught:
        write_bytes("/proc/file", b"")
    assert caught.value.filename == "/proc/file"
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError) as caught:
        write_bytes(tmp_path / "folder", b"")
    assert caught.value.filename == str(tmp_path / "folder")


def test_pipe_is_refused_and_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file") as caught:
        write_bytes(tmp_path / "pipe", b"content")
    assert caught.value.filename == str(tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("exists", [True, False])
def test_symbolic_link_stays_and_its_file_is_written(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "file", tmp_path / "link"
    link.symlink_to(target)
    if exists:
        target.write_bytes(b"old")
    write_bytes(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert os.listdir(target.parent) == ["file"]


def test_symbolic_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("link")
    with pytest.raises(OSError) as caught:
        write_bytes(tmp_path / "link", b"content")
    assert caught.value.filename == str(tmp_path / "link")


def test_empty_path_is_refused() -> None:
    with pytest.raises(OSError, match="empty"):
        write_bytes("", b"content")
