"""ONNX `TensorProto` messages as numpy arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import PureWindowsPath

import numpy as np
from numpy.typing import NDArray

from ai8xtools.checkpoint.errors import CheckpointError, UnreadableFileError
from ai8xtools.checkpoint.known_objects import MAX_DIMENSIONS, printable
from ai8xtools.checkpoint.known_objects import MAX_ELEMENTS as MAX_SHAPE
from ai8xtools.checkpoint.onnx_wire import Decoder, Fields, damaged, integer, integers, pieces, text
from ai8xtools.checkpoint.tensors import from_bfloat16
from ai8xtools.checkpoint.values import Array

# Field numbers of TensorProto
DIMS, DATA_TYPE, FLOATS, INT32S, INT64S, NAME, RAW = 1, 2, 4, 5, 7, 8, 9
DOUBLES, UINT64S, EXTERNAL_DATA, DATA_LOCATION = 10, 11, 13, 14

# All weights together: more than the largest weight memory holds with one bit each
MAX_ELEMENTS = 1 << 25

_BFLOAT16 = 16
_TYPES: dict[int, tuple[str, int]] = {
    1: ("<f4", FLOATS),
    2: ("u1", INT32S),
    3: ("i1", INT32S),
    4: ("<u2", INT32S),
    5: ("<i2", INT32S),
    6: ("<i4", INT32S),
    7: ("<i8", INT64S),
    9: ("?", INT32S),
    10: ("<f2", INT32S),
    11: ("<f8", DOUBLES),
    12: ("<u4", UINT64S),
    13: ("<u8", UINT64S),
    _BFLOAT16: ("<u2", INT32S),
}
"""Data type: its type in raw data, and the field that holds values that are not raw."""
_OTHER_TYPES = {8: "STRING", 14: "COMPLEX64", 15: "COMPLEX128", 21: "UINT4", 22: "INT4"}


class TensorReader:
    """Converts the tensors of one file and limits what they claim together.

    `beside` gives the bytes of a file in the same folder by its name, or raises CheckpointError.
    """

    def __init__(self, decoder: Decoder, beside: Callable[[str], memoryview]) -> None:
        self._decoder = decoder
        self._beside = functools.cache(beside)
        self._elements_left = MAX_ELEMENTS

    def name(self, message: memoryview) -> str:
        """Return the name of a tensor."""
        return text(self._decoder.fields(message), NAME)

    def values(self, message: memoryview, name: str) -> Array:
        """Return a tensor's values (bfloat16 widened to float32), read-only.

        `name` stands in messages and is printable. Raises CheckpointError E503 (damaged), E512 (its
        data is in a file that cannot be read), E513 (a type without plain numbers) or E505 (too
        large).
        """
        fields = self._decoder.fields(message)
        shape = self._shape(fields, name)
        code = integer(fields, DATA_TYPE)
        if code not in _TYPES:
            raise CheckpointError(
                "E513",
                f"the tensor '{name}' is of the data type {_OTHER_TYPES.get(code, code)}",
                remedy="Export weights as FLOAT or as integers of 8 to 64 bits.",
            )
        if integer(fields, DATA_LOCATION) or EXTERNAL_DATA in fields:
            flat = _flat({RAW: [self._elsewhere(fields, name)]}, code, 0, name)
        else:
            flat = _flat(fields, code, math.prod(shape), name)
        if flat.size != math.prod(shape):
            raise damaged(f"the tensor '{name}' of shape {list(shape)} holds {flat.size} values")
        array = flat.reshape(shape)
        array.flags.writeable = False
        return array

    def _shape(self, fields: Fields, name: str) -> tuple[int, ...]:
        shape = tuple(map(int, integers(fields, DIMS, MAX_DIMENSIONS)))
        if any(size < 0 for size in shape):
            raise damaged(f"the tensor '{name}' has the shape {list(shape)}")
        self._elements_left -= math.prod(shape)
        if self._elements_left < 0:
            raise CheckpointError(
                "E505",
                f"with the tensor '{name}' of shape {list(shape)} the weights have more than "
                f"{MAX_ELEMENTS} elements",
                remedy="No network of this size fits the accelerator.",
            )
        if math.prod(max(size, 1) for size in shape) > MAX_SHAPE:
            raise damaged(f"the tensor '{name}' has the shape {list(shape)}, beyond all memory")
        return shape

    def _elsewhere(self, fields: Fields, name: str) -> memoryview:
        """Return the data of a tensor that is in another file, which has to lie beside this one."""
        parts = map(self._decoder.fields, pieces(fields, EXTERNAL_DATA))
        entries = {text(part, 1): text(part, 2) for part in parts}
        where = entries.get("location", "")
        why = "a name without folders is taken"
        if PureWindowsPath(where).name == where and where not in ("", ".."):
            try:
                return self._section(self._beside(where), entries, name)
            except UnreadableFileError as exc:
                why = exc.message.rpartition(": ")[2]
        raise CheckpointError(
            "E512",
            f"the data of the tensor '{name}' is in another file, '{printable(where)}': {why}",
            remedy="Put that file beside the model, or save the model in one file "
            "(torch.onnx.export: external_data=False; onnx.save: save_as_external_data=False).",
        )

    def _section(self, data: memoryview, entries: Mapping[str, str], name: str) -> memoryview:
        stated = [entries.get("offset", "0"), entries.get("length", "")]
        if not all(one.isascii() and (one.isdecimal() or not one) for one in stated):
            raise damaged(f"the data of the tensor '{name}' is at {printable(' '.join(stated))}")
        begin = int(stated[0] or 0)
        end = begin + int(stated[1]) if stated[1] else len(data)
        if end > len(data):
            raise damaged(
                f"the data of the tensor '{name}' ends at {end}, its file has {len(data)} bytes"
            )
        return data[begin:end]


def _flat(fields: Fields, code: int, count: int, name: str) -> Array:
    """Return the values of a tensor in a row."""
    dtype, field = _TYPES[code]
    if RAW in fields:
        values = _from_bytes(pieces(fields, RAW)[-1:], dtype)
    elif field in (FLOATS, DOUBLES):
        values = _from_bytes(pieces(fields, field), dtype)
    else:
        values = _from_integers(integers(fields, field, count), dtype, name)
    return from_bfloat16(values) if code == _BFLOAT16 else values


def _from_bytes(parts: list[memoryview], dtype: str) -> Array:
    """Return the values of little-endian bytes; of several parts one after another."""
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    if len(data) % np.dtype(dtype).itemsize:
        raise damaged(f"{len(data)} bytes are no whole number of values of {dtype}")
    return np.frombuffer(data, dtype)


def _from_integers(values: NDArray[np.int64], dtype: str, name: str) -> Array:
    """Narrow varints to their type; half-precision numbers are stored as the integer of 16 bits."""
    narrow = np.dtype("<u2" if dtype == "<f2" else dtype)
    if narrow.kind in "iu" and narrow.itemsize < 8:
        limits = np.iinfo(narrow)
        if values.size and (values.min() < limits.min or values.max() > limits.max):
            raise damaged(f"the tensor '{name}' holds values beyond its type {narrow}")
    narrowed = values.astype(narrow)
    return narrowed.view(dtype) if dtype == "<f2" else narrowed
