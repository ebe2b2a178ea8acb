"""Reading NumPy files (.npy) that may be damaged: numbers only, and never more than the file holds.

`numpy.load` believes the header: it may allocate what the file does not have, unpickle objects,
read an archive in place of an array, or end in errors of Python's parser.
Source: NumPy Enhancement Proposal 1.
"""

from __future__ import annotations

import ast
import errno
import math
import os
import re
import stat
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

MAX_FILE_BYTES = 256 << 20
"""The largest test weights of a chip's size have 40 MB, as integers of 64 bits."""
MAX_ARRAYS = 1024
_MAGIC = b"\x93NUMPY"
_MAX_HEADER_BYTES = 8192
_NUMBERS = re.compile(r"[<>|=]?([biufc]\d+|\?)")
_LONG = re.compile(r"(?<=\d)L")
"""How Python 2 wrote large numbers."""


class NpyError(Exception):
    """The file is not a row of arrays of numbers; the text says why."""


def read_arrays(path: str, most: int = MAX_ARRAYS) -> list[NDArray[Any]]:
    """Return the arrays that stand one after another in a file, at most as many.

    Raises OSError, or NpyError with the reason; a .npz archive is a reason too.
    """
    arrays: list[NDArray[Any]] = []
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_FILE_BYTES:
            raise NpyError(f"it has {size} bytes, the limit is {MAX_FILE_BYTES}")
        while file.tell() < size and len(arrays) < most:
            arrays.append(_array(file, size))
    return arrays


def _opened(path: str) -> BinaryIO:
    """Open a file of the disk; anything else could block or never end."""
    try:
        mode = Path(path).stat().st_mode
    except ValueError:  # a zero byte in the name
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise NpyError("it is no regular file")
    return Path(path).open("rb")


def _array(file: BinaryIO, size: int) -> NDArray[Any]:
    """Read the array that begins here."""
    magic = file.read(len(_MAGIC))
    if magic[:4] == b"PK\x03\x04":
        raise NpyError("it is an archive of arrays (.npz), expected arrays (.npy)")
    if magic != _MAGIC:
        raise NpyError(f"an array begins with {_MAGIC!r}, not with {magic!r}")
    descr, fortran, shape = _header(file)
    dtype = _dtype(descr)
    count = math.prod(shape)
    left = size - file.tell()
    if count * dtype.itemsize > left:
        raise NpyError(
            f"an array of shape {list(shape)} needs {count * dtype.itemsize} bytes, {left} are left"
        )
    try:
        values = np.fromfile(file, dtype, count)
        return values.reshape(shape, order="F" if fortran else "C")
    except ValueError as exc:  # more dimensions than NumPy has
        raise NpyError(f"{len(shape)} dimensions: {exc}") from None


def _header(file: BinaryIO) -> tuple[object, bool, tuple[int, ...]]:
    """Return the type, whether the first axis varies fastest, and the shape."""
    version = file.read(2)
    layout = {b"\x01\x00": "<H", b"\x02\x00": "<I", b"\x03\x00": "<I"}.get(version)
    if layout is None:
        raise NpyError(f"version {version.hex('.')} of the format is unknown")
    try:
        (length,) = struct.unpack(layout, file.read(struct.calcsize(layout)))
        if length > _MAX_HEADER_BYTES:
            raise NpyError(f"its header has {length} bytes, the limit is {_MAX_HEADER_BYTES}")
        text = file.read(length).decode("utf-8" if version == b"\x03\x00" else "latin-1")
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
    return descr, bool(fortran), shape


def _dtype(descr: object) -> np.dtype[Any]:
    try:
        if isinstance(descr, str) and _NUMBERS.fullmatch(descr):
            return np.dtype(descr)
    except TypeError:  # a size that no number has
        pass
    raise NpyError(f"it holds {str(descr)[:40]!r}, not numbers")
