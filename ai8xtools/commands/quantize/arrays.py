"""Samples of a user's file."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading.archives import ArchiveError, read_members
from ai8xtools.reading.npy import NpyError, arrays_of, read_array

SUFFIXES = (".npy", ".npz")
_MOST_BYTES = 4 << 30
_NAMES = ("x_train", "x")
"""Arrays of samples where a file has several."""


def read_samples(path: str) -> NDArray[Any]:
    """Return the array of a `.npy` file, or that of samples in a `.npz` file.

    That is x_train, x, or the only array. Raises InputError E740 for a file that holds none.
    """
    try:
        return _read_member(path) if path.lower().endswith(SUFFIXES[1]) else read_array(path)
    except OSError as exc:
        raise InputError("E740", f"the samples cannot be read: {exc.strerror}", path) from None
    except (NpyError, ArchiveError) as exc:
        remedy = exc.remedy if isinstance(exc, NpyError) else None
        raise InputError("E740", f"these are no samples: {exc}", path, remedy) from None


def _read_member(path: str) -> NDArray[Any]:
    """Return the array of samples of an archive."""
    names: list[str] = []

    def is_wanted(name: str) -> bool:
        names.append(name)
        return name in (f"{known}.npy" for known in _NAMES)

    known = read_members(path, is_wanted, most_bytes=_MOST_BYTES)
    if not known and len(names) == 1:
        known = read_members(path, names.__contains__, most_bytes=_MOST_BYTES)
    if len(known) != 1:
        held = ", ".join(names) or "none"
        raise NpyError(f"which array holds them cannot be told ({held})", "Call it x.")
    (data,) = known.values()
    arrays = arrays_of(data, 1)
    if not arrays:
        raise NpyError("the array is empty")
    return arrays[0]
