"""Mutations of NumPy files (sample, weights, biases) and of the bytes of any binary file."""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tests.robustness.choice import pick

ByteMutation = Callable[[bytes, Generator], bytes]
Values = NDArray[Any]

DTYPES = ("<i1", "<i2", "<i4", ">i8", "<u1", "<u8", "<f2", "<f4", "<f8", "<c16", "?", "U5", "S3",
          "<M8[D]", "<m8[s]", "V16", "O", "<i4,<f8", "<f16")  # fmt: skip
SPECIAL = (np.nan, np.inf, -np.inf, 1e300, -0.0, 0.5, 127.5, 1e-320)
LARGE = (128, -129, 1 << 15, 1 << 31, -(1 << 31) - 1, 1 << 53, (1 << 63) - 1, -(1 << 63))


def array_file(arrays: Sequence[Values]) -> bytes:
    """Return the content of a .npy file of consecutive arrays."""
    file = io.BytesIO()
    for array in arrays:
        np.save(file, array)
    return file.getvalue()


def read_arrays(data: bytes) -> list[Values]:
    """Return the consecutive arrays of a .npy file; a file without any counts as one of zeros."""
    file = io.BytesIO(data)
    arrays = []
    while file.tell() < len(data):
        arrays.append(np.load(file))
    return arrays or [np.zeros((1, 4, 4, 3, 3), np.int64)]


# -- bytes of any file ---------------------------------------------------------------------------


def truncate(data: bytes, rng: Generator) -> bytes:
    """The file ends early."""
    most = len(data) if rng.random() < 0.7 else min(len(data), 200)
    return data[: int(rng.integers(most + 1))]


def flip_bits(data: bytes, rng: Generator) -> bytes:
    """Bits are inverted, near the beginning or the end more often."""
    changed = bytearray(data or b"\0")
    for _ in range(int(pick(rng, (1, 1, 2, 8, 64)))):
        part = pick(rng, ((0, 160), (0, len(changed)), (len(changed) - 600, len(changed))))
        at = int(rng.integers(max(part[0], 0), max(min(part[1], len(changed)), 1)))
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def overwrite(data: bytes, rng: Generator) -> bytes:
    """A run of bytes is replaced, inserted or deleted."""
    at = int(rng.integers(len(data) + 1))
    piece = bytes(rng.integers(0, 256, int(pick(rng, (1, 4, 16, 300))), np.uint8))
    filler = pick(rng, (piece, b"\xff" * len(piece), bytes(len(piece)), b""))
    return data[:at] + filler + data[at + int(pick(rng, (0, len(piece), 1))) :]


def other_content(_: bytes, rng: Generator) -> bytes:
    """The file holds something else altogether."""
    archive = io.BytesIO()
    np.savez(archive, a=np.arange(3), b=np.arange(4))
    return pick(
        rng,
        (b"", b"\0", b"\0" * 4096, b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"\x93NUMPY",
         b"\x93NUMPY\x01\x00", b"\x93NUMPY\x09\x00\x10\x00" + b" " * 16, b"\x80\x02}.",
         b"\x80\x02.",
         pickle.dumps([1, 2]), pickle.dumps(np.arange(3)), archive.getvalue(), b"arch: test\n",
         b"\x08\x08\x3a\x00", b"\xff" * 300, b"version https://git-lfs.github.com/spec/v1\n"),
    )  # fmt: skip


def appended(data: bytes, rng: Generator) -> bytes:
    """Something follows behind the end."""
    return data + pick(rng, (b"\0", b"\n", data, data[:50], bytes(5000), b"\x93NUMPY\x01\x00"))


BYTES: tuple[ByteMutation, ...] = (truncate, flip_bits, overwrite, other_content, appended)
"""Mutations of files of any kind."""

# -- arrays --------------------------------------------------------------------------------------


def other_type(data: bytes, rng: Generator) -> bytes:
    """One array holds values of another type."""
    return _changed(data, rng, lambda array: array.astype(np.dtype(pick(rng, DTYPES))))


def other_shape(data: bytes, rng: Generator) -> bytes:
    """One array has another shape."""
    return _changed(data, rng, lambda array: reshaped(array, rng))


def other_values(data: bytes, rng: Generator) -> bytes:
    """One array holds values that no layer can have."""
    return _changed(data, rng, lambda array: with_values(array, rng))


def fewer_or_more(data: bytes, rng: Generator) -> bytes:
    """Arrays are missing, stand twice or in another order."""
    arrays = read_arrays(data)
    at = int(rng.integers(len(arrays)))
    return array_file(
        pick(rng, ([*arrays[:at], *arrays[at + 1 :]], [*arrays, arrays[at]], arrays[::-1],
                   arrays[:1], [arrays[at]] * 40, [np.arange(3)] * 3000, [np.stack(arrays[:1])]))
    )  # fmt: skip


def strange_header(_: bytes, rng: Generator) -> bytes:
    """A header that claims what the file does not have, or that is none."""
    headers = (
        "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 8, 8000000000), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (99999999999999999999, 1, 1), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (-1, 8, 8), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 8, 8), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (True, 8, 8), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (1.5, 8), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': 8, }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (1,) * 40, }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (" + "1, " * 40 + "), }",
        "{'descr': '<i8', 'fortran_order': 3, 'shape': (1, 8, 8), }",
        "{'descr': '<V0', 'fortran_order': False, 'shape': (1, 8, 8), }",
        "{'descr': 'O', 'fortran_order': False, 'shape': (1, 8, 8), }",
        "{'descr': 'x', 'fortran_order': False, 'shape': (1, 8, 8), }",
        "{'descr': [('a', '<i8')] * 9, 'fortran_order': False, 'shape': (1, 8, 8), }",
        "{'descr': [('a', 'O'), ('b', '<i8')], 'fortran_order': False, 'shape': (1, 8, 8), }",
        "{'descr': '<i8', 'shape': (1, 8, 8), }", "{}", "[]", "(", "(" * 500, "1" * 9000, "x", "'",
        "{'descr': '<U99999999999', 'fortran_order': False, 'shape': (1, 8, 8), }",
        "{[]: 1}", "__import__('os').system('touch executed')", "\0", "\u00e9", " " * 20_000,
    )  # fmt: skip
    header = pick(rng, headers).encode("latin-1") + b"\n"
    version = pick(rng, (b"\x01\x00", b"\x02\x00", b"\x03\x00"))
    layout = "<H" if version == b"\x01\x00" else "<I"
    size = pick(rng, (len(header),) * 4 + (0xFFFF,))
    return b"\x93NUMPY" + version + struct.pack(layout, size) + header + bytes(8 * 64)


def _changed(data: bytes, rng: Generator, change: Callable[[Values], Values]) -> bytes:
    arrays = read_arrays(data)
    at = int(rng.integers(len(arrays)))
    arrays[at] = change(arrays[at])
    return array_file(arrays)


def reshaped(array: Values, rng: Generator) -> Values:
    """Return the array, or part of it, in another shape."""
    axis = int(rng.integers(max(array.ndim, 1)))
    choices: tuple[Callable[[], Values], ...] = (
        lambda: array.reshape(-1),
        lambda: array.reshape(-1)[:1].reshape(()),
        lambda: array[..., None],
        lambda: array[None],
        lambda: array.T,
        lambda: array[:0],
        lambda: np.delete(array, 0, min(axis, array.ndim - 1)) if array.ndim else array,
        lambda: np.repeat(array, 2, axis) if array.ndim else array,
        lambda: np.asfortranarray(array),
        lambda: array.reshape((*array.shape, *(1,) * 20)),
        lambda: np.zeros((1, 1500, 1500), array.dtype),
        lambda: np.zeros((3, 1, 2_000_000), array.dtype),
        lambda: np.zeros((2000, 40, 3, 3), array.dtype),
        lambda: np.zeros((0, 3, 3), array.dtype),
    )
    return pick(rng, choices)()


def with_values(array: Values, rng: Generator) -> Values:
    """Return the array with one or all values changed to something large or special."""
    kind = int(rng.integers(3))
    if kind == 0:
        return np.full(array.shape, pick(rng, (0, 1, -1, 127, -128)), array.dtype)
    special: float = pick(rng, SPECIAL) if kind == 1 else pick(rng, LARGE)
    changed = array.astype(np.float64) if kind == 1 else array.astype(np.int64)
    if changed.size:
        changed.flat[int(rng.integers(changed.size))] = special
    with np.errstate(invalid="ignore"):
        return changed.astype(array.dtype) if rng.random() < 0.2 else changed


MUTATIONS: tuple[ByteMutation, ...] = (
    *BYTES, other_type, other_shape, other_values, fewer_or_more, strange_header,
)  # fmt: skip
"""Mutations of .npy files."""
