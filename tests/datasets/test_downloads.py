"""Files from the network and archives: completely, checked, or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from datasets.downloads import Download, fetch, unpack
from datasets.errors import DatasetError, library

CONTENT = bytes(range(256)) * 3000
Serve = Callable[..., str]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "file.bin").write_bytes(CONTENT)
    return folder


@pytest.mark.parametrize("algorithm", [hashlib.md5, hashlib.sha256])
def test_a_file_arrives_when_its_digest_is_right(
    algorithm: Callable[[bytes], hashlib._Hash], source: Path, tmp_path: Path, serve: Serve
) -> None:
    file = Download(serve(source) + "file.bin", algorithm(CONTENT).hexdigest())
    path = fetch(file, tmp_path / "a" / "b")
    assert path == tmp_path / "a" / "b" / "file.bin"
    assert path.read_bytes() == CONTENT


def test_a_file_that_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    fetch(Download("http://127.0.0.1:9/file", "0" * 32), tmp_path)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("inner", ["", "a/b"])
def test_file_in_the_place_of_a_folder_is_named(inner: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(NotADirectoryError) as info:
        fetch(Download("http://127.0.0.1:9/file", "0" * 32), tmp_path / "file" / inner)
    assert info.value.filename == str(tmp_path / "file")


def test_other_content_is_refused_and_not_kept(source: Path, tmp_path: Path, serve: Serve) -> None:
    with pytest.raises(DatasetError, match="expected 00") as info:
        fetch(Download(serve(source) + "file.bin", "0" * 64), tmp_path / "data")
    assert info.value.code == "E622"
    assert list((tmp_path / "data").iterdir()) == []


def test_a_lost_connection_leaves_nothing(source: Path, tmp_path: Path, serve: Serve) -> None:
    with pytest.raises(DatasetError, match="after 300000 bytes") as info:
        fetch(Download(serve(source, lose=300000) + "file.bin", "0" * 32), tmp_path / "data")
    assert info.value.code == "E612"
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.parametrize("name", ["absent", "refused"])
def test_no_answer_names_address_and_path(
    name: str, source: Path, tmp_path: Path, serve: Serve
) -> None:
    address = serve(source) if name == "absent" else "http://127.0.0.1:9/"
    with pytest.raises(DatasetError) as info:
        fetch(Download(address + name, "0" * 32), tmp_path)
    assert info.value.code == "E612"
    assert address + name in info.value.message
    assert info.value.place == str(tmp_path / name)
    assert "--data" in info.value.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_named(
    source: Path, tmp_path: Path, serve: Serve
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(PermissionError, match="closed"):
        fetch(Download(serve(source) + "file.bin", "0" * 32), closed)


def _tar(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            member.size = 4 if member.isfile() else 0
            tar.addfile(member, io.BytesIO(b"data"))
    return path


def _link(name: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    return member


def test_the_folder_of_an_archive_gets_its_name(tmp_path: Path) -> None:
    archive = _tar(tmp_path / "a.tar.gz", tarfile.TarInfo("inner/x/y"), tarfile.TarInfo("other"))
    unpack(archive, tmp_path / "new" / "folder", "inner")
    assert (tmp_path / "new" / "folder" / "x" / "y").read_bytes() == b"data"
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["folder"]
    assert (tmp_path / "new" / "folder").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    "member",
    [
        tarfile.TarInfo("../outside"),
        tarfile.TarInfo("inner/../../outside"),
        tarfile.TarInfo("/outside"),
        _link("inner/link", tarfile.SYMTYPE),
        _link("inner/link", tarfile.LNKTYPE),
        _link("inner/device", tarfile.CHRTYPE),
        _link("inner/pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda member: member.name + member.type.decode(),
)
def test_archives_that_reach_out_are_refused(member: tarfile.TarInfo, tmp_path: Path) -> None:
    archive = _tar(tmp_path / "a.tar.gz", tarfile.TarInfo("inner/good"), member)
    with pytest.raises(DatasetError) as info:
        unpack(archive, tmp_path / "data" / "inner", "inner")
    assert info.value.code == "E623"
    assert info.value.place == str(archive)
    assert list((tmp_path / "data").iterdir()) == []
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("fault", ["cut", "other", "empty", "flipped", "folder"])
def test_damaged_archives_leave_nothing(fault: str, tmp_path: Path) -> None:
    archive = _tar(tmp_path / "a.tar.gz", *(tarfile.TarInfo(f"inner/{i}") for i in range(40)))
    good = archive.read_bytes()
    middle = len(good) // 2
    content = {
        "cut": good[:middle],
        "other": b"<html>not found</html>",
        "empty": b"",
        "flipped": good[:middle] + bytes(b ^ 255 for b in good[middle:]),
        "folder": good,
    }
    archive.write_bytes(content[fault])
    with pytest.raises(DatasetError) as info:
        unpack(archive, tmp_path / "data" / "inner", "absent" if fault == "folder" else "inner")
    assert info.value.code == "E613"
    assert info.value.place == str(archive)
    assert list((tmp_path / "data").iterdir()) == []


def test_what_another_process_unpacked_meanwhile_is_kept(tmp_path: Path) -> None:
    archive = _tar(tmp_path / "a.tar.gz", tarfile.TarInfo("inner/x"))
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "y").write_text("theirs")
    unpack(archive, tmp_path / "inner", "inner")
    assert [p.name for p in (tmp_path / "inner").iterdir()] == ["y"]


def test_a_missing_library_is_named_with_its_remedy() -> None:
    with pytest.raises(DatasetError, match="no_such_library") as info:
        library("no_such_library", "reads something", "place")
    assert info.value.code == "E624"
    assert "pip install no_such_library" in info.value.remedy
