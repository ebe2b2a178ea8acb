"""Recorded words, which are executed instead of firmware.

A recording is a NumPy archive with the arrays phase, size, addr and value (one entry per bus write,
in order). What is expected afterwards is optional: expected_addr, expected_value and expected_mask,
or the array expected with these as columns; without masks all bits count. Phases: 0 cnn_enable,
1 cnn_init, 2 cnn_load_weights, 3 cnn_load_bias, 4 cnn_configure, 5 load_input, 6 cnn_start; words
of later phases are not applied.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from emulator.bits import WORD_LIMIT
from emulator.errors import EmulatorError
from emulator.words.writes import Writes
from values import frozen

LAST_PHASE = 6
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
    with path.open("rb") as file:  # a missing file is an OSError
        if not zipfile.is_zipfile(file):
            raise EmulatorError("E801", "not a NumPy archive (.npz)", str(path))
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = set(archive.files)
            missing = [name for name in _ARRAYS if name not in names]
            if missing:
                raise EmulatorError(
                    "E801", f"the recording lacks the array {missing[0]}", str(path)
                )
            wanted = names & {*_ARRAYS, *_EXPECTED, "expected"}
            arrays = {name: _words(name, archive[name], path) for name in wanted}
    except (ValueError, TypeError, zipfile.BadZipFile, EOFError) as exc:
        raise EmulatorError("E801", f"not a recording of words: {exc}", str(path)) from None
    phase, size, address, value = (arrays[name] for name in _ARRAYS)
    if len({array.shape for array in (phase, size, address, value)}) != 1 or phase.ndim != 1:
        raise EmulatorError("E801", "the arrays of the recording differ in length", str(path))
    if not np.isin(size, (1, 2, 4)).all():
        wrong = int(size[~np.isin(size, (1, 2, 4))][0])
        raise EmulatorError("E801", f"a write of {wrong} bytes: 1, 2 or 4 are possible", str(path))
    chosen = phase <= LAST_PHASE
    return RecordedWords(Writes(size, address, value).where(chosen), _expected(arrays, path))


def _words(name: str, array: NDArray[np.generic], path: Path) -> NDArray[np.int64]:
    """Check that an array holds integers that fit 32 bits."""
    if not np.issubdtype(array.dtype, np.integer):
        found = f"the type {array.dtype}"
    elif array.size and (int(array.min()) < 0 or int(array.max()) >= WORD_LIMIT):
        found = f"values from {array.min()} to {array.max()}"
    else:
        return array.astype(np.int64)
    raise EmulatorError(
        "E801",
        f"the array {name} has {found}: integers of 32 bits without sign are needed",
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
