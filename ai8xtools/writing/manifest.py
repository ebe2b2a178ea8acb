"""The list of the generated files of a project, with their digests.

With it, files that are no longer generated can be told from the user's own when a project is
written again. It has the format of sha256sum, so `sha256sum -c` lists the files that were edited.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath

from ai8xtools.reading import MIB, read_text
from ai8xtools.reading.system import stays_below

MANIFEST = ".generated.sha256"
_MOST_BYTES = 4 * MIB
_LARGEST = 256 * MIB
"""The largest size of a generated file; a larger one is not ours."""


def manifest(contents: Mapping[str, bytes], kept: Collection[str]) -> str:
    """Return the text of the list for files by name; those `kept` are the user's."""
    lines = [
        f"{_digest(content)}  {name}\n"
        for name, content in sorted(contents.items())
        if name not in kept
    ]
    return "".join(lines)


def stale_files(folder: Path, current: Collection[str]) -> tuple[str, ...]:
    """Return the files that were generated, are not in `current`, and nobody has edited since."""
    return tuple(
        name
        for name, digest in _entries(folder)
        if name not in current and _is_inside(folder, name) and _holds(folder / name, digest)
    )


def listed_files(folder: Path) -> tuple[str, ...]:
    """Return the names of all files that the list of a folder has; none if there is no list."""
    return tuple(name for name, _ in _entries(folder))


def _entries(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield name and digest of each line of the list; nothing of one that is not readable."""
    try:
        lines = read_text(folder / MANIFEST, _MOST_BYTES).splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        digest, separator, name = line.partition("  ")
        if separator and name:
            yield name, digest


def _is_inside(folder: Path, name: str) -> bool:
    """Whether a name is a file in this folder, not one outside it by a link or `..`."""
    path = PurePosixPath(name)
    parents = [folder / part for part in path.parents if part != PurePosixPath(".")]
    return stays_below(name) and not any(parent.is_symlink() for parent in parents)


def _holds(path: Path, digest: str) -> bool:
    """Whether a plain file still has the content that was generated."""
    try:
        plain = not path.is_symlink() and path.is_file() and path.stat().st_size <= _LARGEST
        return plain and _digest(path.read_bytes()) == digest
    except OSError:
        return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
