"""NumPy files that may be damaged: what is read of them, and why they are refused."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.reading.npy import MAX_FILE_BYTES, NpyError, read_arrays


def file_of(header: str, version: bytes = b"\x01\x00") -> bytes:
    """Return a file of a header and 64 bytes."""
    return b"\x93NUMPY" + version + struct.pack("<H", len(header)) + header.encode() + bytes(64)


def header_of(descr: str = "<i8", shape: str = "(1, 2, 4)", fortran: bool = False) -> str:
    return f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}}}"


def archive() -> bytes:
    content = io.BytesIO()
    np.savez(content, a=np.arange(3))
    return content.getvalue()


DAMAGED = {
    "text": (b"hello", r"an array begins with b'\\x93NUMPY', not with b'hello'"),
    "archive": (archive(), r"it is an archive of arrays \(.npz\), expected arrays"),
    "version": (file_of(header_of(), b"\x09\x00"), "version 09.00 of the format is unknown"),
    "truncated header": (file_of(header_of())[:40], "its header is damaged"),
    "only the magic": (b"\x93NUMPY\x01\x00", "its header is damaged"),
    "brackets": (file_of("(" * 500), "its header is damaged"),
    "unhashable": (file_of("{[]: 1}"), "its header is damaged"),
    "a call": (file_of("__import__('os').system('true')"), "its header is damaged"),
    "no keys": (file_of("{}"), "its header is damaged"),
    "long header": (file_of(" " * 9000), "its header has 9000 bytes, the limit is 8192"),
    "negative": (file_of(header_of(shape="(-1, 8)")), "its header names no shape"),
    "boolean": (file_of(header_of(shape="(True, 8)")), "its header names no shape"),
    "no tuple": (file_of(header_of(shape="8")), "its header names no shape"),
    "objects": (file_of(header_of("O")), "it holds 'O', not numbers"),
    "odd width": (file_of(header_of("<i3")), "it holds '<i3', not numbers"),
    "record": (file_of(header_of("<i4,<i4")), "it holds '<i4,<i4', not numbers"),
    "too short": (file_of(header_of(shape="(9, 9)")), r"shape \[9, 9\] needs 648 bytes, 64 are"),
    "claims": (file_of(header_of(shape=f"({10**30},)")), r"needs 80{30} bytes, 64 are"),
    "dimensions": (file_of(header_of(shape=f"({'1, ' * 99})")), "99 dimensions: "),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_file_is_refused(tmp_path: Path, name: str) -> None:
    content, reason = DAMAGED[name]
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(NpyError, match=reason):
        read_arrays(str(tmp_path / "x.npy"))


def test_arrays_are_read_one_after_another(tmp_path: Path) -> None:
    arrays = [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((0, 4), np.int8),
        np.array(5, ">i4"),
    ]
    with (tmp_path / "x.npy").open("wb") as file:
        for array in arrays:
            np.save(file, array)
    found = read_arrays(str(tmp_path / "x.npy"))
    assert [a.dtype for a in found] == [a.dtype for a in arrays]
    assert all(np.array_equal(*pair) for pair in zip(found, arrays, strict=True))
    assert len(read_arrays(str(tmp_path / "x.npy"), most=1)) == 1


def test_long_integers_of_python_2_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(file_of(header_of(shape="(2L, 4L)")))
    assert read_arrays(str(tmp_path / "x.npy"))[0].shape == (2, 4)


def test_huge_file_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "x.npy").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)  # sparse: takes no room
    with pytest.raises(NpyError, match=f"the limit is {MAX_FILE_BYTES}"):
        read_arrays(str(tmp_path / "x.npy"))


def test_pipe_is_refused_instead_of_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(NpyError, match="it is a pipe, not a regular file"):
        read_arrays(str(tmp_path / "x.npy"))


@pytest.mark.parametrize("name", ["none.npy", "a\0b.npy"])
def test_file_that_cannot_exist_is_missing(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError):
        read_arrays(str(tmp_path / name))
