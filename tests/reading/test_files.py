"""Files of users are opened only if they are regular, and read up to a limit."""

from __future__ import annotations

import io
import os
import socket
import zipfile
from pathlib import Path

import pytest

from ai8xtools.reading import ForeignFileError, read_bytes, read_text
from ai8xtools.reading.archives import ArchiveError, read_members


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a\r\nb\rc\n" * 50_000)
    assert read_bytes(path, 400_000) == b"a\r\nb\rc\n" * 50_000
    assert read_text(path, 400_000) == "a\nb\nc\n" * 50_000


def test_larger_file_is_refused_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ForeignFileError, match="1099511627776 bytes, the limit is 1000") as caught:
        read_bytes(path, 1000)
    assert caught.value.size == 1 << 40


def test_file_that_claims_no_size_is_read_up_to_the_limit() -> None:
    assert read_bytes("/proc/self/status", 1 << 20).startswith(b"Name:")
    with pytest.raises(ForeignFileError, match="the limit is 10"):
        read_bytes("/proc/self/status", 10)


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(tmp_path / "socket"))
        for path, kind in (
            (tmp_path / "pipe", "a pipe"),
            (tmp_path / "socket", "a socket"),
            ("/dev/zero", "a device"),
        ):
            with pytest.raises(ForeignFileError, match=f"it is {kind}, not a regular file"):
                read_bytes(path, 1000)
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path, 1000)


def _archive(**members: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return content.getvalue()


def test_members_are_read_by_name(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(_archive(x=b"1", y=b"2"))
    found = read_members(tmp_path / "a", lambda name: name == "y", most_bytes=1000)
    assert found == {"y": b"2"}


def _encrypted() -> bytes:
    data = bytearray(_archive(x=b"1"))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (_archive(x=bytes(1 << 20)), "it unpacks to more than 100000 bytes"),
        (_encrypted(), "it is encrypted"),
        (b"PK\x03\x04", "it is no archive"),
        (_archive(x=b"1")[:-30], "it is no archive"),
    ],
    ids=["bomb", "encrypted", "start", "cut"],
)
def test_archives_beyond_the_limits_are_refused(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ArchiveError, match=reason):
        read_members(tmp_path / "a", bool, most_bytes=100_000)
