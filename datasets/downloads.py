"""Files from the network, checked, and archives, unpacked: completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import http.client
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from ai8xtools.checkpoint.atomic import atomic_file
from ai8xtools.reading.progress import progress
from ai8xtools.reading.system import stays_below
from datasets.errors import ANEW, DatasetError

_TIMEOUT_SECONDS = 30
_BLOCK_BYTES = 1 << 18
_LONGEST_READ = 1 << 20
_BLOCK_OF_TAR = 512
_MAX_UNPACKED_RATIO = 64
_FREE_UNPACKED_BYTES = 64 << 20
"""Recordings and pictures shrink little; zeros shrink a thousandfold."""


@dataclass(frozen=True, slots=True)
class Download:
    """A file on the network with the digest that its publisher states.

    `digest` is MD5 (32 hexadecimal digits) or SHA-256 (64).
    """

    url: str
    digest: str

    @property
    def name(self) -> str:
        """The name of the file itself."""
        return self.url.rsplit("/", 1)[1]


def fetch(source: Download, folder: Path) -> Path:
    """Return `folder`/`source.name`; download it if it is not there.

    The file takes its name when all of it has arrived and its digest is right. Raises DatasetError
    E612 (network) or E622 (other content), and OSError when `folder` cannot be written.
    """
    path = folder / source.name
    if path.is_file():
        return path
    _refuse_file_as_folder(folder)
    digest = hashlib.md5() if len(source.digest) == 32 else hashlib.sha256()
    with _open(source, path) as response, atomic_file(path) as file:
        total = _length(response)
        with progress(f"Downloading {source.name}", total) as advance:
            arrived = 0
            while block := _read(response, source, path):
                file.write(block)
                digest.update(block)
                arrived += len(block)
                advance(len(block))
        if total is not None and arrived != total:
            raise _unreachable(source, path, f"the connection ended after {arrived} bytes")
        _compare(digest.hexdigest(), source, path)
    return path


def _refuse_file_as_folder(folder: Path) -> None:
    """Raise OSError for a path that cannot become a folder, before anything is fetched for it."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(existing))


@contextlib.contextmanager
def _open(source: Download, path: Path) -> Iterator[Any]:
    """Open the address; what the network answers instead becomes DatasetError."""
    request = urllib.request.Request(source.url, headers={"User-Agent": "Python"})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
    except (OSError, http.client.HTTPException) as exc:  # URLError and time-outs are OSErrors
        reason = exc.reason if isinstance(exc, urllib.error.URLError) else exc
        raise _unreachable(source, path, str(reason)) from exc
    with response:
        yield response


def _read(response: Any, source: Download, path: Path) -> bytes:
    try:
        block: bytes = response.read(_BLOCK_BYTES)
    except (OSError, http.client.HTTPException) as exc:
        raise _unreachable(source, path, str(exc)) from exc
    return block


def _length(response: Any) -> int | None:
    """Return the number of bytes that the server announces."""
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isdecimal() else None


def _unreachable(source: Download, path: Path, why: str) -> DatasetError:
    return DatasetError(
        "E612",
        f"the file is not there and {source.url} cannot be downloaded: {why}",
        str(path),
        "Check the connection, put the file there yourself, or name another folder with --data.",
    )


def _compare(digest: str, source: Download, path: Path) -> None:
    if digest != source.digest:
        raise DatasetError(
            "E622",
            f"{source.url} holds something else today: digest {digest}, expected {source.digest}",
            str(path),
            "Nothing was kept. Try again later, or put the right file there yourself.",
        )


def unpack(archive: Path, target: Path, inner: str = "") -> None:
    """Unpack a compressed tar file into the new folder `target`, which appears when all is there.

    With `inner` the folder of this name in the archive becomes `target`. Archives with links,
    devices or names that lead out of the folder are refused (DatasetError E623) as are damaged ones
    (E613).
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
        try:
            with gzip.open(archive) as stream, progress(f"Unpacking {archive.name}", None) as step:
                left = _FREE_UNPACKED_BYTES + _MAX_UNPACKED_RATIO * archive.stat().st_size
                bounded = cast(IO[bytes], _Bounded(stream))
                with tarfile.open(fileobj=bounded, mode="r:") as tar:
                    for member in tar:
                        left -= member.size + _BLOCK_OF_TAR
                        if left < 0:
                            raise _too_large(archive)
                        _extract(tar, member, Path(scratch), archive)
                        step(1)
                _read_to_the_end(stream)
        except (tarfile.TarError, EOFError, zlib.error, ValueError) as exc:
            raise _damaged(archive, exc) from exc
        except OSError as exc:  # a broken gzip header; a refusal of the disk has a number
            if exc.errno is not None:
                raise
            raise _damaged(archive, exc) from exc
        folder = Path(scratch) / inner
        if not folder.is_dir():
            raise DatasetError("E613", f"it has no folder {inner}", str(archive), ANEW)
        _rename(folder, target)


class _Bounded:
    """A stream that limits the size of each read: headers may claim any length."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream = stream
        self.tell, self.seek = stream.tell, stream.seek

    def read(self, size: int = -1) -> bytes:
        """Return some bytes; ValueError for more than a header or a block of a file has."""
        if not 0 <= size <= _LONGEST_READ:
            raise ValueError("a header is too long")
        return self._stream.read(size)


def _too_large(archive: Path) -> DatasetError:
    return DatasetError(
        "E623",
        f"the archive is refused: it unpacks to more than {_MAX_UNPACKED_RATIO} times its size",
        str(archive),
        "Nothing was unpacked. Get the archive from its publisher.",
    )


def _read_to_the_end(stream: gzip.GzipFile) -> None:
    """Read what follows the last member: zeros, then the check sum, which is compared.

    tarfile takes damaged headers for the end of an archive; here they raise ValueError or OSError.
    """
    left = _FREE_UNPACKED_BYTES
    while block := stream.read(_BLOCK_BYTES):
        left -= len(block)
        if block.strip(b"\0") or left < 0:
            raise ValueError("a header is damaged")


def _rename(folder: Path, target: Path) -> None:
    """Give the unpacked folder its name, unless another process was quicker."""
    folder.chmod(0o755)  # temporary folders are closed to others
    try:
        folder.rename(target)
    except OSError:
        if not (target.is_dir() and any(target.iterdir())):
            raise


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, archive: Path) -> None:
    """Write one member of an archive below `folder`."""
    if not stays_below(member.name) or not (member.isfile() or member.isdir()):
        raise DatasetError(
            "E623",
            f"the archive is refused: {member.name!r} leads out of it or is no plain file",
            str(archive),
            "Nothing was unpacked. Get the archive from its publisher.",
        )
    path = folder / member.name
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    content: IO[bytes] | None = tar.extractfile(member)
    assert content is not None  # it is a file
    with path.open("wb") as file:
        shutil.copyfileobj(content, file, _BLOCK_BYTES)


def _damaged(archive: Path, exc: Exception) -> DatasetError:
    return DatasetError("E613", f"the archive is damaged ({exc})", str(archive), ANEW)
