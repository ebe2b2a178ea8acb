"""Folders that are exchanged atomically, with their contents.

Linux can do that in one step (renameat2, since 3.15). A project that is written again is prepared
as a whole beside the old one, the user's own files in it as further links to the same content.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

from ai8xtools.checkpoint.atomic import sync

_AT_FDCWD = -100
_EXCHANGE = 2


def exchange(one: Path, other: Path) -> None:
    """Exchange two folders. Raises OSError."""
    call = _renameat2()
    assert call is not None, "whoever calls this has asked can_exchange()"
    arguments = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _EXCHANGE)
    if call(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


def can_exchange(folder: Path) -> bool:
    """Whether the system and the file system of one of our folders can do that."""
    if _renameat2() is None:
        return False
    parts = folder / ".one", folder / ".other"
    try:
        for part in parts:
            part.mkdir()
        exchange(*parts)
    except OSError:
        return False
    finally:
        for part in parts:
            shutil.rmtree(part, ignore_errors=True)
    return True


def carry_over(source: Path, target: Path, left_out: Collection[str]) -> None:
    """Let what stands in `source` stand in `target`, too, except files that `left_out` names.

    Files become further links to the same content, or copies where the disk has no links. What
    stands in `target` already is replaced; access rights of folders are taken over. Raises OSError.
    """
    for folder, folders, files in os.walk(source):
        inside = Path(folder).relative_to(source)
        here = target / inside
        here.mkdir(exist_ok=True)
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in (*files, *links):
            if (inside / name).as_posix() not in left_out:
                link(Path(folder) / name, here / name)
        shutil.copystat(folder, here)


def link(source: Path, target: Path) -> None:
    """Link a file into another place, where it replaces what is there. Raises OSError."""
    if os.path.lexists(target):
        target.unlink()
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
        if not target.is_symlink():
            sync(target)


@cache
def _renameat2() -> Any:
    """Return the function of the C library; None where there is none."""
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):  # Windows takes no None
        return None
    function.argtypes = [
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    ]
    return function
