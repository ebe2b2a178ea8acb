"""Large tensors that torch.save wrote, mapped into memory; nothing in the file is executed."""

from __future__ import annotations

import io
import mmap
import os

import numpy as np

from ai8xtools.checkpoint.containers import Entries, entries_of
from ai8xtools.checkpoint.errors import CheckpointError, reading
from ai8xtools.checkpoint.known_objects import malformed
from ai8xtools.checkpoint.values import Array
from ai8xtools.reading import open_file

MAX_FILE_BYTES = 1 << 40
_LONGEST_READ = 1 << 20
"""Of the archive's directory; the data is mapped, not read."""


class _Bounded(io.FileIO):
    """A file that limits the size of each read, whatever its headers claim."""

    def read(self, size: int | None = None, /) -> bytes:
        rest = os.fstat(self.fileno()).st_size - self.tell()
        if min(rest, rest if size is None or size < 0 else size) > _LONGEST_READ:
            raise ValueError("its directory is too long")
        return super().read(size) or b""


def map_tensors(path: str | os.PathLike[str]) -> tuple[Array, ...]:
    """Return the arrays of a file that torch.save wrote as a tuple or list of tensors.

    Their memory is the file's; what is written there stays in this process. Raises CheckpointError
    with `place` = path as `read_checkpoint` does.
    """
    name = os.fspath(path)
    try:
        with reading(), open_file(name, MAX_FILE_BYTES) as file:
            if not os.fstat(file.fileno()).st_size:
                raise CheckpointError("E502", "it is empty")
            with _Bounded(os.dup(file.fileno())) as bounded:
                infos = entries_of(bounded)
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        root = Entries(data, infos, mapped=True).read()
        if not isinstance(root, tuple | list):
            raise malformed("it holds no list of tensors")
        arrays = [value for value in root if isinstance(value, np.ndarray)]
        if len(arrays) < len(root):
            raise malformed("it holds something else than tensors")
    except CheckpointError as exc:
        exc.place = name
        raise
    return tuple(arrays)
