"""Members of zip archives that may be damaged or hostile, with a limit on what they unpack to."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Callable

from ai8xtools.reading.files import MIB, read_bytes

MAX_MEMBERS = 10_000
_MAX_RATIO = 100
"""Arrays of pictures unpack to a few times their size, a zip bomb to a thousand times."""
_HARMLESS_BYTES = 64 * MIB
_ENCRYPTED = 1
_BROKEN = (
    zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError, LookupError,
    EOFError, OverflowError,
)  # fmt: skip


class ArchiveError(Exception):
    """The file is not a zip archive that can be read within the limits; the text says why."""


def read_members(
    path: str | os.PathLike[str],
    select: Callable[[str], bool],
    *,
    most_bytes: int,
) -> dict[str, bytes]:
    """Return the members of an archive whose names `select` accepts, by name.

    Neither the file nor these members may have more than `most_bytes`. Raises OSError, or
    ArchiveError with the reason.
    """
    data = read_bytes(path, most_bytes)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if len(infos) > MAX_MEMBERS:
                raise ArchiveError(f"it has {len(infos)} members, the limit is {MAX_MEMBERS}")
            chosen = [info for info in infos if select(info.filename)]
            if len({info.filename for info in chosen}) < len(chosen):
                raise ArchiveError("a member exists twice")
            if any(info.flag_bits & _ENCRYPTED for info in chosen):
                raise ArchiveError("it is encrypted")
            credible = max(_HARMLESS_BYTES, _MAX_RATIO * len(data))
            return _contents(archive, chosen, min(most_bytes, credible))
    except _BROKEN as exc:
        raise ArchiveError(f"it is no archive, or damaged ({exc})") from None


def _contents(
    archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo], most_bytes: int
) -> dict[str, bytes]:
    """Unpack members, counting the actual sizes instead of trusting the stated ones."""
    contents: dict[str, bytes] = {}
    left = most_bytes
    for info in infos:
        with archive.open(info) as member:
            contents[info.filename] = member.read(left + 1)
        left -= len(contents[info.filename])
        if left < 0:
            raise ArchiveError(f"it unpacks to more than {most_bytes} bytes")
    return contents
