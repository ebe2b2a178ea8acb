"""Writing a checkpoint file that torch.load reads, without torch.

The zip layout of PyTorch 1.6 and later with a protocol 2 pickle. The same content gives the same
bytes: keys and times in the archive are fixed.
Source: docs/checkpoints.md, "What is written".
"""

from __future__ import annotations

import collections
import io
import os
import struct
from typing import BinaryIO

import numpy as np

from ai8xtools.checkpoint.atomic import write_bytes
from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.known_objects import KNOWN, STORAGE_DTYPES
from ai8xtools.checkpoint.pairs import write_pair
from ai8xtools.checkpoint.safetensors import safetensors_bytes, twin_of
from ai8xtools.checkpoint.values import Array, Checkpoint, ClassReference, Value

ROOT = "archive"
ALIGNMENT = 64  # of tensor data within the file, as PyTorch does it, for reading in place
_STORAGES = {np.dtype(code): name for name, code in STORAGE_DTYPES.items() if code != "bfloat16"}
_LOCAL_HEADER_BYTES = 30
_MAX_DEPTH = 64


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint; the file appears completely or not at all.

    Arrays become tensors of the same dtype and shape, each with a storage of its own. Dictionaries
    keep their order. numpy numbers become Python numbers. Raises CheckpointError E508 for values
    the format does not have, OSError when the disk refuses.
    """
    write_bytes(path, checkpoint_bytes(path, checkpoint))


def write_with_twin(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint and its twin in the safetensors format: both or none."""
    twin = twin_of(path)
    one, other = checkpoint_bytes(path, checkpoint), safetensors_bytes(twin, checkpoint)
    write_pair(path, one, twin, other)


def checkpoint_bytes(path: str | os.PathLike[str], checkpoint: Checkpoint) -> bytes:
    """Return the file of a checkpoint; CheckpointError E508, which names `path`."""
    pickler = _Pickler()
    try:
        pickle = pickler.dump(dict(checkpoint.entries))
    except CheckpointError as exc:
        exc.place = str(path)
        raise
    file = io.BytesIO()
    _write_archive(file, {"data.pkl": pickle, "byteorder": b"little"}, pickler.tensors)
    return file.getvalue()


def _write_archive(file: BinaryIO, entries: dict[str, bytes], tensors: list[Array]) -> None:
    import zipfile  # here: readers do not need the time its import takes

    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:

        def add(name: str, content: bytes | memoryview) -> None:
            info = zipfile.ZipInfo(f"{ROOT}/{name}", (1980, 1, 1, 0, 0, 0))
            info.create_system = 0
            header = file.tell() + _LOCAL_HEADER_BYTES + len(info.filename) + 4
            padding = -header % ALIGNMENT
            info.extra = struct.pack("<2sH", b"FB", padding) + bytes(padding)
            archive.writestr(info, content)

        for name, content in entries.items():
            add(name, content)
        for index, tensor in enumerate(tensors):
            add(f"data/{index}", tensor.tobytes())
        add("version", b"3\n")


class _Pickler:
    """Writes the few instructions that checkpoints need; collects tensors in order."""

    def __init__(self) -> None:
        self.tensors: list[Array] = []
        self._out = bytearray()

    def dump(self, value: Value) -> bytes:
        self._out += b"\x80\x02"
        self._value(value, 0)
        self._out += b"."
        return bytes(self._out)

    def _value(self, value: Value, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise CheckpointError("E508", f"values nest more than {_MAX_DEPTH} deep")
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float | str | bytes):
            self._scalar(value)
        elif isinstance(value, np.ndarray):
            self._tensor(value)
        elif isinstance(value, dict):
            self._dictionary(value, depth)
        elif isinstance(value, list):
            self._out += b"](" if value else b"]"
            for item in value:
                self._value(item, depth + 1)
            self._out += b"e" if value else b""
        elif isinstance(value, tuple):
            self._tuple(value, depth)
        elif isinstance(value, ClassReference) and KNOWN.get((value.module, value.name)) == value:
            self._name(value.module, value.name)
        else:
            raise CheckpointError(
                "E508",
                f"a value of type {type(value).__name__} ({str(value)[:40]}) has no place "
                "in a checkpoint",
            )

    def _scalar(self, value: bool | int | float | str | bytes | None) -> None:
        out = self._out
        match value:
            case None:
                out += b"N"
            case bool():
                out += b"\x88" if value else b"\x89"
            case int() if -(1 << 31) <= value < 1 << 31:
                out += struct.pack("<ci", b"J", value)
            case int():
                size = value.bit_length() // 8 + 1
                if size > 16:
                    raise CheckpointError("E508", "an integer has more than 128 bits")
                out += struct.pack("<BB", 0x8A, size) + value.to_bytes(size, "little", signed=True)
            case float():
                out += struct.pack(">cd", b"G", value)
            case str():
                text = value.encode("utf-8")
                out += struct.pack("<cI", b"X", len(text)) + text
            case bytes():  # protocol 2 has no instruction for bytes: they travel as latin-1 text
                self._name("_codecs", "encode")
                self._tuple((value.decode("latin-1"), "latin1"), 0)
                out += b"R"

    def _dictionary(self, value: dict[Value, Value], depth: int) -> None:
        if isinstance(value, collections.OrderedDict):
            self._name("collections", "OrderedDict")
            self._out += b")R"
        else:
            self._out += b"}"
        if value:
            self._out += b"("
            for key, item in value.items():
                self._value(key, depth + 1)
                self._value(item, depth + 1)
            self._out += b"u"

    def _tuple(self, value: tuple[Value, ...], depth: int) -> None:
        self._out += b"(" if value else b")"
        for item in value:
            self._value(item, depth + 1)
        self._out += b"t" if value else b""

    def _name(self, module: str, name: str) -> None:
        self._out += f"c{module}\n{name}\n".encode()

    def _tensor(self, array: Array) -> None:
        """Write torch._utils._rebuild_tensor_v2(storage, 0, shape, strides, False, {})."""
        storage = _STORAGES.get(array.dtype.newbyteorder("="))
        if storage is None:
            raise CheckpointError("E508", f"there are no tensors of type {array.dtype}")
        key = str(len(self.tensors))
        self.tensors.append(np.asarray(array, array.dtype.newbyteorder("<")))
        self._name("torch._utils", "_rebuild_tensor_v2")
        self._out += b"(("
        self._scalar("storage")
        self._name("torch", storage)
        for item in (key, "cpu", array.size):
            self._scalar(item)
        self._out += b"tQ"
        self._scalar(0)
        self._tuple(array.shape, 0)
        self._tuple(_row_major_strides(array.shape), 0)
        self._scalar(False)
        self._dictionary(collections.OrderedDict(), 0)
        self._out += b"tR"


def _row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a contiguous tensor."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)
