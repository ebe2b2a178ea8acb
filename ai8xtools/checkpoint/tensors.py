"""From the pickle's records to arrays over the bytes of the file."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.known_objects import (
    BFLOAT16,
    StorageRecord,
    TensorRecord,
    checked_shape,
    malformed,
    printable,
)
from ai8xtools.checkpoint.values import Array, ClassReference, Value

MAX_DEPTH = 32
MAX_VALUES = 1_000_000
# Tensors may share storages, and strides of zero repeat elements: a small file could stand for
# terabytes. Together they may claim this many times the bytes of the file, plus some for small
# files.
MAX_EXPANSION = 8
FREE_BYTES = 16 << 20

StorageBytes = Callable[[StorageRecord], memoryview]


def resolve(root: Any, storage_bytes: StorageBytes, file_bytes: int, big_endian: bool) -> Value:
    """Return the value tree of a pickle with its tensor records replaced by arrays.

    `storage_bytes` gives the raw bytes of a storage. Shared parts are repeated, so that the result
    is a tree. Raises CheckpointError E503 (inconsistent) or E505 (beyond the limits above).
    """
    return _Resolver(storage_bytes, file_bytes, ">" if big_endian else "<").value(root, 0)


class _Resolver:
    def __init__(self, storage_bytes: StorageBytes, file_bytes: int, order: str) -> None:
        self._storage_bytes = storage_bytes
        self._order = order
        self._values_left = MAX_VALUES
        self._bytes_left = FREE_BYTES + MAX_EXPANSION * file_bytes

    def value(self, value: Any, depth: int) -> Value:
        self._values_left -= 1
        if depth > MAX_DEPTH or self._values_left < 0:
            raise CheckpointError(
                "E505",
                f"the file nests values more than {MAX_DEPTH} deep or expands to more than "
                f"{MAX_VALUES} values",
            )
        if isinstance(value, TensorRecord):
            return self._array(value)
        if isinstance(value, dict):
            items = ((k, self.value(v, depth + 1)) for k, v in value.items())
            ordered = isinstance(value, collections.OrderedDict)
            return collections.OrderedDict(items) if ordered else dict(items)
        if isinstance(value, list | tuple):
            return type(value)(self.value(v, depth + 1) for v in value)
        if value is None or isinstance(value, str | int | float | bytes | ClassReference):
            return value
        raise malformed(f"it holds a bare {type(value).__name__} as a value")

    def _array(self, record: TensorRecord) -> Array:
        kind = record.storage.type
        self._bytes_left -= math.prod(record.shape) * kind.item_bytes
        if self._bytes_left < 0:
            raise CheckpointError(
                "E505",
                f"the tensors claim more than {MAX_EXPANSION} times the bytes of the file",
            )
        raw = self._storage_bytes(record.storage)
        count = record.storage.count
        if not 0 <= count * kind.item_bytes <= len(raw):
            raise malformed(
                f"storage {printable(record.storage.key)} declares {count} elements but holds "
                f"{len(raw)} bytes"
            )
        spans = zip(record.shape, record.strides, strict=True)
        last = record.offset + sum((size - 1) * stride for size, stride in spans)
        if math.prod(record.shape) and last >= count:
            raise malformed(
                f"a tensor of shape {record.shape} ends beyond its storage of {count} elements"
            )
        return self._view(record, raw[: count * kind.item_bytes])

    def _view(self, record: TensorRecord, raw: memoryview) -> Array:
        code = record.storage.type.dtype
        dtype = np.dtype(self._order + ("u2" if code == BFLOAT16 else code))
        if not math.prod(record.shape):
            array = np.zeros(checked_shape(record.shape, "an empty tensor"), dtype)
        else:
            spans = zip(record.shape, record.strides, strict=True)  # nobody goes along a size of 1
            strides = tuple(stride * dtype.itemsize if size > 1 else 0 for size, stride in spans)
            array = np.ndarray(record.shape, dtype, raw, record.offset * dtype.itemsize, strides)
        if dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
            raise malformed("a tensor of booleans holds bytes that are neither true nor false")
        if code == BFLOAT16:
            array = from_bfloat16(array)
        elif not dtype.isnative:
            array = array.astype(dtype.newbyteorder("="))
        array.flags.writeable = False
        return array


def from_bfloat16(halves: Array) -> Array:
    """Return the float32 numbers whose upper halves are integers of 16 bits, of any shape."""
    wide: Array = np.asarray(halves.astype(np.uint32) << 16)  # of a single number numpy makes none
    return wide.view(np.float32)
