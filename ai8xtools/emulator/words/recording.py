"""Recorded words, which are executed instead of firmware.

A recording is a NumPy archive with the arrays phase, size, addr and value (one entry per bus write,
in order). What is expected afterwards is optional: expected_addr, expected_value and expected_mask,
or the array expected with these as columns; without masks all bits count. Phases: 0 cnn_enable,
1 cnn_init, 2 cnn_load_weights, 3 cnn_load_bias, 4 cnn_configure, 5 load_input, 6 cnn_start; words
of later phases are not applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.bits import WORD_LIMIT
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.words.writes import Writes
from ai8xtools.reading import MIB
from ai8xtools.reading.archives import ArchiveError, read_members
from ai8xtools.reading.npy import NpyError, arrays_of
from ai8xtools.values import frozen

LAST_PHASE = 6
MAX_BYTES = 512 * MIB
_ARRAYS = ("phase", "size", "addr", "value")
_EXPECTED = ("expected_addr", "expected_value", "expected_mask")


@frozen
class RecordedWords:
    """The writes up to the start of the network, and the words expected afterwards.

    `expected`: int64 [word, 3], address, value and mask; no rows if nothing is expected.
    """

    writes: Writes
    expected: NDArray[np.int64]

    def mismatches(self, words: dict[int, int]) -> list[tuple[int, int, int]]:
        """Return (address, expected, found) of each word that is not as expected, masked."""
        return [
            (address, value, words.get(address, 0) & mask)
            for address, value, mask in self.expected.tolist()
            if words.get(address, 0) & mask != value
        ]


def read_words(path: Path) -> RecordedWords:
    """Read a recording. Raises EmulatorError (E801) if it is not one."""
    files = {f"{name}.npy": name for name in (*_ARRAYS, *_EXPECTED, "expected")}
    try:
        members = read_members(path, files.__contains__, most_bytes=MAX_BYTES)
        arrays = {
            files[file]: _words(files[file], _array(files[file], data), path)
            for file, data in members.items()
        }
    except (ArchiveError, NpyError) as exc:
        raise EmulatorError("E801", f"not a NumPy archive (.npz): {exc}", str(path)) from None
    missing = [name for name in _ARRAYS if name not in arrays]
    if missing:
        raise EmulatorError("E801", f"the recording lacks the array {missing[0]}", str(path))
    phase, size, address, value = (arrays[name] for name in _ARRAYS)
    if len({array.shape for array in (phase, size, address, value)}) != 1 or phase.ndim != 1:
        raise EmulatorError("E801", "the arrays of the recording differ in length", str(path))
    if not np.isin(size, (1, 2, 4)).all():
        wrong = int(size[~np.isin(size, (1, 2, 4))][0])
        raise EmulatorError("E801", f"a write of {wrong} bytes: 1, 2 or 4 are possible", str(path))
    chosen = phase <= LAST_PHASE
    return RecordedWords(Writes(size, address, value).where(chosen), _expected(arrays, path))


def _array(name: str, data: bytes) -> NDArray[np.generic]:
    """Return the array of a member; NpyError, which names it."""
    try:
        return arrays_of(data, 1)[0]
    except NpyError as exc:
        raise NpyError(f"the array {name}: {exc}") from None
    except IndexError:
        raise NpyError(f"the array {name} is empty") from None


def _words(name: str, array: NDArray[np.generic], path: Path) -> NDArray[np.int64]:
    """Check that an array holds integers that fit 32 bits."""
    if not np.issubdtype(array.dtype, np.integer):
        content = f"the type {array.dtype}"
    elif array.size and (int(array.min()) < 0 or int(array.max()) >= WORD_LIMIT):
        content = f"values from {array.min()} to {array.max()}"
    else:
        return array.astype(np.int64)
    raise EmulatorError(
        "E801",
        f"the array {name} has {content}: integers of 32 bits without sign are needed",
        str(path),
    )


def _expected(arrays: Mapping[str, NDArray[np.int64]], path: Path) -> NDArray[np.int64]:
    """Return address, value and mask of each expected word; without masks, all bits count."""
    columns = [arrays[name] for name in _EXPECTED if name in arrays]
    complete = set(_EXPECTED[:2]) <= set(arrays) or not columns
    if "expected" in arrays:
        columns = list(np.atleast_2d(arrays["expected"]).T)
    if not columns:
        return np.zeros((0, 3), np.int64)
    if len(columns) == 2:
        columns.append(np.full_like(columns[0], WORD_LIMIT - 1))
    if not complete or len(columns) != 3 or len({column.shape for column in columns}) != 1:
        raise EmulatorError(
            "E801",
            "expected words need an address and a value each, and may have a mask",
            str(path),
        )
    return np.stack(columns, axis=1)
