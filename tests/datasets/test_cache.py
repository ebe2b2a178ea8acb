"""Prepared data is read without executing anything, however it is damaged."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from datasets import cache
from datasets.errors import DatasetError

KINDS = ((torch.uint8, (3, 4)), (torch.int64, ()), (torch.float32, (2,)), (torch.bool, ()))


def made() -> tuple[torch.Tensor, ...]:
    return (
        torch.arange(60, dtype=torch.uint8).reshape(5, 3, 4),
        torch.arange(5),
        torch.rand(5, 2),
        torch.tensor([True, False, True, True, False]),
    )


def test_tensors_are_those_that_torch_reads_and_no_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "data.pt"
    cache.store(path, made())
    before = path.read_bytes()
    found = cache.load(path, KINDS, "x", aligned=4)
    for one, other in zip(found, torch.load(path, weights_only=True), strict=True):
        assert one.dtype == other.dtype and torch.equal(one, other)
    found[0].fill_(7)
    assert path.read_bytes() == before


class Calls:
    """What a pickle of which calls a function."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, ("executed",))


def _archive(content: bytes, *, storage: bytes = b"", method: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("a/data.pkl", content)
        archive.writestr("a/data/0", storage)
    return file.getvalue()


NESTED = b"\x80\x02" + b"N" + b"\x85" * 900_000 + b"."
HUGE = (
    b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQK\x00\x8a\x08"
    + (1 << 61).to_bytes(8, "little")
    + b"\x85K\x00\x85\x89ccollections\nOrderedDict\n)RtR\x85."
)  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"hello",
        _archive(pickle.dumps((Calls(),), 2)),
        _archive(pickle.dumps({"a": 1}, 2)),
        _archive(pickle.dumps((1, 2), 2)),
        _archive(NESTED),
        _archive(HUGE, storage=bytes(16)),
        _archive(HUGE, storage=bytes(1 << 22), method=zipfile.ZIP_DEFLATED),
        _archive(NESTED)[:-30],
    ],
    ids=["empty", "text", "call", "dict", "numbers", "nested", "huge", "deflated", "cut"],
)
def test_hostile_files_are_refused(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "data.pt"
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="the prepared data is damaged") as refused:
        cache.load(path, KINDS, "x", aligned=4)
    assert (refused.value.code, refused.value.place) == ("E613", str(path))
    assert not (tmp_path / "executed").exists()


def test_pipe_in_place_of_prepared_data_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "data.pt")
    with pytest.raises(Exception, match="it is a pipe, not a regular file"):
        cache.load(tmp_path / "data.pt", KINDS, "x", aligned=4)
