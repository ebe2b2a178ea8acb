"""Reading NumPy files (.npy) that may be damaged: numbers only, and never more than the file holds.

`numpy.load` believes the header: it may allocate what the file does not have, unpickle objects,
read an archive in place of an array, or end in errors of Python's parser.
Source: NumPy Enhancement Proposal 1.
"""

from __future__ import annotations

import ast
import math
import os
import re
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ai8xtools.reading.files import ForeignFileError, read_bytes
from ai8xtools.reading.origin import CONVERTED, accident

MAX_FILE_BYTES = 256 << 20
"""The largest test weights of a chip's size have 40 MB, as integers of 64 bits."""
MAX_ARRAYS = 1024
_MAGIC = b"\x93NUMPY"
_MAX_HEADER_BYTES = 8192
_NUMBERS = re.compile(r"[<>|=]?([biufc]\d{1,4}|\?)")
_LONG = re.compile(r"(?<=\d)L")
"""How Python 2 wrote large numbers."""
_SHOWN_NUMBER = 1 << 64


class NpyError(Exception):
    """The file is not a sequence of numeric arrays; the text says why, `remedy` what to do."""

    def __init__(self, reason: str, remedy: str | None = None) -> None:
        super().__init__(reason)
        self.remedy = remedy


def read_arrays(path: str | os.PathLike[str], most: int = MAX_ARRAYS) -> list[NDArray[Any]]:
    """Return the arrays that stand one after another in a file, at most as many.

    Raises OSError, or NpyError with the reason; a .npz archive is a reason too.
    """
    try:
        data = read_bytes(path, MAX_FILE_BYTES)
    except ForeignFileError as exc:
        raise NpyError(str(exc.strerror), exc.remedy) from None
    return arrays_of(data, most)


def read_array(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Return the one array of a file; raises what `read_arrays` does."""
    arrays = read_arrays(path, 1)
    if not arrays:
        raise NpyError("the file is empty")
    return arrays[0]


def arrays_of(data: bytes, most: int = MAX_ARRAYS) -> list[NDArray[Any]]:
    """Return the arrays that stand one after another in the bytes of a file; NpyError."""
    arrays: list[NDArray[Any]] = []
    position = 0
    while position < len(data) and len(arrays) < most:
        array, position = _array(data, position)
        arrays.append(array)
    return arrays


def _array(data: bytes, position: int) -> tuple[NDArray[Any], int]:
    """Return the array that begins here, and where it ends."""
    magic = data[position : position + len(_MAGIC)]
    if magic[:4] == b"PK\x03\x04":
        raise NpyError("it is an archive of arrays (.npz), expected arrays (.npy)")
    if magic != _MAGIC:
        cause = None if position else accident(data)
        if cause is not None:
            raise NpyError(*cause)
        raise NpyError(f"an array begins with {_MAGIC!r}, not with {magic!r}")
    (descr, fortran, shape), start = _header(data, position + len(_MAGIC))
    dtype = _dtype(descr)
    size = math.prod(shape) * dtype.itemsize
    left = len(data) - start
    if size > left:
        raise NpyError(f"an array of shape {list(shape)} needs {size} bytes, {left} are left")
    try:
        values = np.frombuffer(data[start : start + size], dtype).copy()
        return values.reshape(shape, order="F" if fortran else "C"), start + size
    except (ValueError, OverflowError) as exc:  # more dimensions, or larger ones, than NumPy has
        raise NpyError(f"{len(shape)} dimensions: {exc}") from None


def _header(data: bytes, start: int) -> tuple[tuple[object, bool, tuple[int, ...]], int]:
    """Return the type, whether the first axis varies fastest and the shape; and the end."""
    version = data[start : start + 2]
    layout = {b"\x01\x00": "<H", b"\x02\x00": "<I", b"\x03\x00": "<I"}.get(version)
    if layout is None:
        raise NpyError(f"version {version.hex('.')} of the format is unknown")
    first = start + 2 + struct.calcsize(layout)
    try:
        (length,) = struct.unpack(layout, data[start + 2 : first])
        if length > _MAX_HEADER_BYTES:
            raise NpyError(f"its header has {length} bytes, the limit is {_MAX_HEADER_BYTES}")
        raw = data[first : first + length]
        if raw.endswith(b"\r"):  # it ends with a newline, which has become two bytes
            raise NpyError(
                "it is damaged: it was converted as text, with other line ends", CONVERTED
            )
        text = raw.decode("utf-8" if version == b"\x03\x00" else "latin-1")
        header = ast.literal_eval(_LONG.sub("", text.strip()))
        descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    except (
        ValueError,
        TypeError,
        LookupError,
        SyntaxError,
        struct.error,
        MemoryError,
        RecursionError,
    ):  # fmt: skip - all that the parser of Python answers to nonsense
        raise NpyError("its header is damaged") from None
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise NpyError("its header names no shape")
    if any(n > _SHOWN_NUMBER << 64 for n in shape):  # printing a long number takes long
        raise NpyError("its header names a shape beyond all memory")
    return (descr, bool(fortran), shape), first + length


def _dtype(descr: object) -> np.dtype[Any]:
    try:
        if isinstance(descr, str) and _NUMBERS.fullmatch(descr):
            return np.dtype(descr)
    except TypeError:  # a size that no number has
        pass
    shown = descr[:40] if isinstance(descr, str) else f"a {type(descr).__name__}"
    raise NpyError(f"it holds {shown!r}, not numbers")
