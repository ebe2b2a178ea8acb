"""Arrays in .npz files: x and y, or x_train, y_train, x_test and y_test. Never unpickled.

Source: docs/own-data.md, "Arrays".
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.reading import read_bytes
from ai8xtools.reading.archives import ArchiveError, read_members
from ai8xtools.reading.files import where_else
from ai8xtools.reading.npy import NpyError, arrays_of
from ai8xtools.reading.system import in_order
from datasets.errors import DatasetError
from datasets.own.tables import LARGEST

MAX_BYTES = 4 << 30
_PAIRS = (("x_train", "y_train"), ("x_test", "y_test"))
_EXACT = 2.0**53
"""Double precision holds all whole numbers up to this."""
_NAMES = ("x", "y", *(name for pair in _PAIRS for name in pair))
_GROUPS = ("groups", "groups_train", "groups_test")
_LAYOUT = (
    "It must hold x and y, or x_train, y_train, x_test and y_test, labels as whole numbers; see "
    "docs/own-data.md. quantize.py --calibrate takes samples without labels in FILE.npy or "
    "FILE.npz, as the network takes them."
)
_SAMPLES = "samples are bytes [N, H, W] or [N, H, W, C], or numbers [N, features]"
Array = NDArray[Any]


def read_archive(path: Path, *, groups: bool = False) -> tuple[dict[str, Array], list[str]]:
    """Return the arrays of a file, or of the .npy files of a folder, by name, and other members.

    They are x and y, or those of training and test; with `groups` also those that are there of
    groups, groups_train and groups_test. Raises DatasetError E685 for objects in place of numbers,
    missing arrays and other lengths.
    """
    names = _NAMES + (_GROUPS if groups else ())
    others: list[str] = []

    def is_wanted(name: str) -> bool:
        is_known = name.removesuffix(".npy") in names
        if not is_known:
            others.append(name)
        return is_known

    try:
        if path.is_dir():
            files = in_order(file for file in path.iterdir() if is_wanted(file.name))
            members = {file.name: read_bytes(file, MAX_BYTES) for file in files}
        else:
            members = read_members(path, is_wanted, most_bytes=MAX_BYTES)
    except FileNotFoundError as exc:
        raise DatasetError("E620", "the file is missing", str(path), where_else(path)) from exc
    except ArchiveError as exc:
        raise _refused(path, str(exc)) from exc
    arrays = {name.removesuffix(".npy"): _array(path, name, data) for name, data in members.items()}
    return _pairs(path, arrays), others


def _pairs(path: Path, arrays: dict[str, Array]) -> dict[str, Array]:
    """Return the arrays of which none is missing; DatasetError for others."""
    pairs = [pair for pair in (("x", "y"), *_PAIRS) if any(name in arrays for name in pair)]
    if ("x", "y") in pairs and len(pairs) > 1:
        raise _refused(path, f"it holds {', '.join(arrays)}, part of which would be ignored")
    expected = list(_PAIRS) if pairs and pairs[0] != ("x", "y") else [("x", "y")]
    for x, y in expected:
        missing = [name for name in (x, y) if name not in arrays]
        if missing:
            raise _refused(path, f"there is no array {missing[0]}")
        if arrays[y].ndim != 1 or len(arrays[x]) != len(arrays[y]) or not len(arrays[y]):
            shapes = f"{x} is {_times(arrays[x])}, {y} is {_times(arrays[y])}"
            raise _refused(path, f"{shapes}; there must be one label for each sample")
        if not arrays[x].size:
            raise _refused(path, f"{x} is {_times(arrays[x])}: samples without numbers")
    groups = {f"groups{x[1:]}": x for x, _ in expected if f"groups{x[1:]}" in arrays}
    for name, x in groups.items():
        if arrays[name].ndim != 1 or len(arrays[name]) != len(arrays[x]):
            raise _refused(
                path, f"{x} is {_times(arrays[x])}, {name} is {_times(arrays[name])}",
                "There must be one group for each sample.",
            )  # fmt: skip
    return {name: arrays[name] for name in (*(n for pair in expected for n in pair), *groups)}


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
    """Return pictures as uint8 [N, C, H, W]; None for rows of features, [N, F].

    Raises DatasetError E685 for what may be something else: more axes of other numbers than bytes,
    pictures whose channels may be the second or the last axis.
    """
    if x.ndim == 2:
        return None
    if x.dtype != np.uint8 and x.ndim > 2:
        raise _refused(
            path, f"x is {_axes(x)} of {x.dtype}: pictures, series, or features?",
            "Name series with series: in place of npz:. Give pictures as bytes, np.round(x / "
            "257).astype(np.uint8) for 16 bits; features as x.reshape(len(x), -1).",
        )  # fmt: skip
    if x.ndim == 3:
        return x[:, None]
    if x.ndim != 4:
        raise _refused(path, f"x is {_axes(x)}; {_SAMPLES}")
    first, last = (x.shape[axis] in (1, 3) for axis in (1, 3))
    if first == last and (first or x.shape[3] in (2, 4)) and x.shape[1:] != (1, 1, 1):
        raise _refused(
            path, f"x is {_axes(x)}: which axis has the channels is not known",
            "Give pictures as [N, H, W, C] or [N, C, H, W] with 1 or 3 channels.",
        )  # fmt: skip
    y = np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if last and not first else x
    if not 1 <= y.shape[1] <= 1024:
        raise _refused(path, f"pictures of {y.shape[1]} channels")
    return y


def as_numbers(path: Path, name: str, x: Array) -> NDArray[np.float64]:
    """Return numbers as float64; DatasetError E685 for what single precision cannot hold."""
    if x.dtype.kind not in "iufb":
        raise _refused(path, f"{name} is {_axes(x)} of {x.dtype}; {_SAMPLES}")
    values = x.astype(np.float64)
    wrong = np.argwhere(~(np.abs(values) <= LARGEST))  # not a number, too
    if len(wrong):
        place, value = ", ".join(map(str, wrong[0])), values[tuple(wrong[0])]
        raise _refused(path, f"{name}[{place}] is not finite in single precision ({value:g})")
    large = x.dtype.kind in "iu" and (np.abs(values) >= _EXACT).any()
    wrong = np.argwhere(values.astype(object) != x.astype(object)) if large else wrong
    if len(wrong):
        place = ", ".join(map(str, wrong[0]))
        raise _refused(
            path, f"{name}[{place}] is {x[tuple(wrong[0])]}: beyond 2^53 numbers are rounded",
            f"Subtract what is common: {name} - {name}.min(0).",
        )  # fmt: skip
    return values


def _axes(x: Array) -> str:
    return "x".join(("N", *map(str, x.shape[1:])))


def _times(x: Array) -> str:
    return "x".join(map(str, x.shape)) or "a single number"


def _refused(path: Path, message: str, remedy: str = _LAYOUT) -> DatasetError:
    return DatasetError("E685", message, str(path), remedy)
