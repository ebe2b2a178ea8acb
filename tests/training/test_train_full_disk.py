"""A disk that gets full, or cannot be written, while train.py writes its results."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.checkpoint import atomic, read_checkpoint
from ai8xtools.training.loop import trainer

Train = Callable[..., Any]
WRITE = ("tinyclassifier", "tinyclasses", "--epochs", "3", "--out-dir", "logs")


def _full_after(files: int) -> Callable[[int], None]:
    """Return a replacement of os.fsync that refuses all outputs after the first `files`."""
    left = iter(range(files))

    def fsync(handle: int) -> None:
        written = Path(f"/proc/self/fd/{handle}").readlink().name
        if ".writing-" in written and next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return fsync


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".log")


@pytest.mark.parametrize("files", range(7))
def test_full_disk_leaves_whole_files_only(
    files: int, tiny: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic.os, "fsync", _full_after(files))
    done = tiny(*WRITE)
    assert done.status == 1
    assert "error: No space left on device [E002]" in done.error
    assert "existing results are untouched" in done.error
    assert "E009" not in done.error
    found = list(_files(Path("logs")))
    assert not any(path.name.startswith(".") for path in found)
    for path in found:
        if path.name.endswith(".pth.tar"):
            assert read_checkpoint(path).arch == "tinyclassifier"
    if files >= 2:
        assert any(path.name == "best.pth.tar" for path in found)


def test_full_disk_keeps_the_best_checkpoint_of_an_earlier_epoch(
    tiny: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_epoch = trainer.train_epoch

    def full_in_the_second_epoch(passes: Any, batches: Any, optimizers: Any, epoch: int) -> Any:
        if epoch == 1:
            monkeypatch.setattr(atomic.os, "fsync", _full_after(0))
        return train_epoch(passes, batches, optimizers, epoch)

    monkeypatch.setattr(trainer, "train_epoch", full_in_the_second_epoch)
    done = tiny(*WRITE)
    assert done.status == 1
    assert read_checkpoint(done.folder / "best.pth.tar").epoch == 0
    assert {path.name for path in done.folder.iterdir() if path.suffix == ".tar"} == {
        "best.pth.tar", "checkpoint.pth.tar",
    }  # fmt: skip


def test_folder_that_cannot_be_written_is_named(
    tiny: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("logs").mkdir()
    make = os.mkdir

    def read_only(path: Any, *arguments: Any) -> None:
        if "logs" in str(path):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        make(path, *arguments)

    monkeypatch.setattr(os, "mkdir", read_only)
    done = tiny(*WRITE)
    assert done.status == 1
    assert "logs/" in done.error
    assert "error: Read-only file system [E002]" in done.error
    assert "Choose a folder that can be written." in done.error


def test_file_in_the_place_of_the_log_folder_is_named(tiny: Train) -> None:
    Path("logs").write_text("")
    done = tiny(*WRITE)
    assert done.status == 1
    assert "logs: error: File exists [E002]" in done.error
    assert "Choose another name, or move what has this one." in done.error
