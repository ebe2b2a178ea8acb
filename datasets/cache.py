"""Prepared tensors in one file: written completely or not at all, mapped into memory for reading.

Large data sets are prepared once. What does not fit in memory is first collected in a temporary
file beside the destination.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ai8xtools.checkpoint.atomic import atomic_file
from ai8xtools.checkpoint.errors import CheckpointError, UnreadableFileError
from ai8xtools.checkpoint.mapped import map_tensors
from ai8xtools.reading.system import reserve
from datasets.errors import DatasetError

Kind = tuple[torch.dtype, tuple[int, ...]]
"""Type of a tensor, and its shape without the first dimension."""


@contextlib.contextmanager
def bytes_on_disk(folder: Path, shape: tuple[int, ...]) -> Iterator[np.memmap[Any, Any]]:
    """Give the block an array of bytes that stands in a temporary file in `folder`.

    Raises OSError, which names `folder`, when the disk has no room for it: writing to memory that
    is mapped from a full disk would end the process without a word.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".prepare.") as scratch:
        try:
            reserve(scratch.fileno(), math.prod(shape))
        except OSError as exc:
            exc.filename = str(folder)
            raise
        yield np.memmap(scratch, np.uint8, "w+", shape=shape)


def store(path: Path, tensors: Sequence[Tensor]) -> None:
    """Write the tensors at once."""
    with atomic_file(path) as file:
        torch.save(tuple(tensors), file)


def load(path: Path, kinds: Sequence[Kind], source: str, aligned: int) -> tuple[Tensor, ...]:
    """Map the tensors of a file into memory.

    Raises DatasetError E613 when it is damaged or its tensors are not of these `kinds`, or the
    first `aligned` of them not of the same length; `source` is what the file can be made from anew.
    """
    remedy = f"Delete the file; it is made anew from {source}."
    try:
        content = [_as_tensor(array) for array in map_tensors(path)]
    except UnreadableFileError:
        raise
    except CheckpointError as exc:
        message = f"the prepared data is damaged: {exc.message}"
        raise DatasetError("E613", message, str(path), remedy) from exc
    actual = [(t.dtype, tuple(t.shape[1:])) for t in content]
    if actual != list(kinds) or len({len(t) for t in content[:aligned]}) != 1:
        raise DatasetError(
            "E613", "the prepared data has tensors of other types or shapes", str(path), remedy
        )
    return tuple(content)


def _as_tensor(array: npt.NDArray[Any]) -> Tensor:
    """Return a tensor over the memory of an array; writing there changes no file."""
    if not array.flags.aligned or min(array.strides, default=0) < 0:
        array = array.copy()
    array.flags.writeable = True
    return torch.from_numpy(array)


def listing_digest(files: Iterable[Path]) -> Tensor:
    """Return 32 bytes that change when a file is added, removed or gets another size."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.parent.name}/{path.name} {path.stat().st_size}\n".encode())
    return torch.frombuffer(bytearray(digest.digest()), dtype=torch.uint8)
