"""Samples of a user's file."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading.npy import NpyError, read_array


def read_samples(path: str) -> NDArray[Any]:
    """Return the array of a `.npy` file; raises InputError E740 for a file that holds none."""
    try:
        return read_array(path)
    except OSError as exc:
        raise InputError("E740", f"the samples cannot be read: {exc.strerror}", path) from None
    except NpyError as exc:
        raise InputError("E740", f"these are no samples: {exc}", path, exc.remedy) from None
