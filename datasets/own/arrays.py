"""Arrays in .npz files: x and y, or x_train, y_train, x_test and y_test. Never unpickled.

Source: docs/own-data.md, "Arrays".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.reading.archives import ArchiveError, read_members
from ai8xtools.reading.npy import NpyError, arrays_of
from datasets.errors import DatasetError

MAX_BYTES = 4 << 30
_PAIRS = (("x_train", "y_train"), ("x_test", "y_test"))
_NAMES = ("x", "y", *(name for pair in _PAIRS for name in pair))
_LAYOUT = (
    "It must hold x and y, or x_train, y_train, x_test and y_test, labels as whole numbers; see "
    "docs/own-data.md."
)
Array = NDArray[Any]


def read_archive(path: Path) -> dict[str, Array]:
    """Return the arrays of a file by name: x and y, or those of training and test.

    Raises DatasetError E685 for objects in place of numbers, missing arrays and other lengths.
    """
    try:
        members = read_members(
            path, lambda name: name.removesuffix(".npy") in _NAMES, most_bytes=MAX_BYTES
        )
    except FileNotFoundError as exc:
        raise DatasetError("E620", "the file is missing", str(path), "Check the path.") from exc
    except ArchiveError as exc:
        raise _refused(path, str(exc)) from exc
    found = {name.removesuffix(".npy"): _array(path, name, data) for name, data in members.items()}
    pairs = [pair for pair in (("x", "y"), *_PAIRS) if any(name in found for name in pair)]
    wanted = list(_PAIRS) if pairs and pairs[0] != ("x", "y") else [("x", "y")]
    for x, y in wanted:
        missing = [name for name in (x, y) if name not in found]
        if missing:
            raise _refused(path, f"there is no array {missing[0]}")
        if found[y].ndim != 1 or len(found[x]) != len(found[y]) or not len(found[y]):
            shapes = f"{x} is {_times(found[x])}, {y} is {_times(found[y])}"
            raise _refused(path, f"{shapes}; there must be one label for each sample")
    return {name: found[name] for pair in wanted for name in pair}


def _array(path: Path, name: str, data: bytes) -> Array:
    try:
        arrays = arrays_of(data, 1)
    except NpyError as exc:
        if b"'|O'" in data[:4096]:
            raise DatasetError(
                "E685", f"{name} holds Python objects, which are not unpickled", str(path),
                "Save arrays of numbers, like np.asarray(x, np.uint8); labels as integers.",
            ) from exc  # fmt: skip
        raise _refused(path, f"{name}: {exc}") from exc
    if not arrays:
        raise _refused(path, f"{name} is empty")
    return arrays[0]


def as_bytes(path: Path, x: Array) -> NDArray[np.uint8] | None:
    """Return pictures as uint8 [N, C, H, W]; None for other arrays than those of bytes."""
    if x.dtype != np.uint8 or x.ndim not in (3, 4):
        return None
    if x.ndim == 3:
        return x[:, None]
    last = x.shape[3] in (1, 3) and x.shape[1] not in (1, 3)
    y = np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if last else x
    if not 1 <= y.shape[1] <= 1024:
        raise _refused(path, f"pictures of {y.shape[1]} channels")
    return y


def as_features(path: Path, name: str, x: Array) -> NDArray[np.float32]:
    """Return numbers as float32 [N, ...]; DatasetError E685 for what is not finite."""
    if x.dtype.kind not in "iufb" or x.ndim not in (2, 3, 4):
        raise _refused(
            path, f"{name} is {_times(x)} of {x.dtype}; samples are bytes [N, H, W] or "
            "[N, H, W, C], or numbers [N, features]"
        )  # fmt: skip
    values = x.astype(np.float32)
    if not np.isfinite(values).all():
        where = np.argwhere(~np.isfinite(values))[0]
        raise _refused(path, f"{name}[{', '.join(map(str, where))}] is not finite")
    return values


def _times(x: Array) -> str:
    return "x".join(map(str, x.shape)) or "a single number"


def _refused(path: Path, message: str) -> DatasetError:
    return DatasetError("E685", message, str(path), _LAYOUT)
