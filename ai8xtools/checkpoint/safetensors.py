"""Checkpoints in the safetensors format: reading and writing.

Eight bytes with the length of a JSON header, the header, the tensors' bytes. The header names each
tensor with its type, shape and place; `__metadata__` holds texts. We put the tensors of
`state_dict` there under their own names and in their own order, and each other entry of the
checkpoint (`epoch`, `arch`, `extras`, ...) as one text of the metadata. The optimizer's state is
left out: it belongs to a training run, not to a network.

The format is small, so it is read here, with the limits and messages of the other layouts, rather
than by one more package that every user would have to install.
"""

from __future__ import annotations

import collections
import json
import math
import os
import struct
from typing import Any

import numpy as np

from ai8xtools.checkpoint.atomic import write_bytes
from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.known_objects import MAX_DIMENSIONS, checked_shape, malformed, printable
from ai8xtools.checkpoint.plain import from_plain, to_plain
from ai8xtools.checkpoint.tensors import MAX_VALUES, from_bfloat16
from ai8xtools.checkpoint.values import Array, Checkpoint, Value

SUFFIX = ".safetensors"
MAX_HEADER_BYTES = 16 << 20
METADATA = "__metadata__"
LEFT_OUT = ("optimizer_state_dict", "optimizer_type")
_BFLOAT16 = "BF16"
# Type in the header -> numpy dtype without byte order (bfloat16 has no numpy twin).
_DTYPES = {
    "F64": "f8", "F32": "f4", "F16": "f2", _BFLOAT16: "u2", "I64": "i8", "I32": "i4", "I16": "i2",
    "I8": "i1", "U8": "u1", "BOOL": "?",
}  # fmt: skip
_CODES = {np.dtype(code): name for name, code in _DTYPES.items() if name != _BFLOAT16}
_LENGTH_BYTES = 8
_ALIGNMENT = 8


def is_safetensors(data: bytes) -> bool:
    """Return whether a file that begins like this is meant to be safetensors."""
    return data[_LENGTH_BYTES : _LENGTH_BYTES + 1] == b"{" and not data.startswith(b"PK\x03\x04")


def twin_of(path: str | os.PathLike[str]) -> str:
    """Return the name of the file in this format that lies beside a checkpoint."""
    return os.fspath(path).removesuffix(".tar").removesuffix(".pth") + SUFFIX


def read_safetensors(data: bytes) -> dict[str, Value]:
    """Return the entries of a checkpoint from a file's bytes; arrays are views of them.

    Raises CheckpointError: E503 damaged, E505 exceeds a limit, E506 holds what no checkpoint has.
    """
    header, start = _header(data)
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise malformed(f"{METADATA} is not a dictionary of texts")
    content = memoryview(data)[start:]
    _check_places(header, len(content))
    state = {name: _array(name, record, content) for name, record in header.items()}
    entries: dict[str, Value] = {}
    for key, text in metadata.items():
        if key != "format":  # the library that the tensors came from
            entries[key] = _value(key, text)
    entries["state_dict"] = state
    return entries


def write_safetensors(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint; the file appears completely or not at all.

    Kept are all entries but the optimizer's and those that are None. Raises CheckpointError E508
    for what the format does not have, OSError when the disk refuses.
    """
    write_bytes(path, safetensors_bytes(path, checkpoint))


def safetensors_bytes(path: str | os.PathLike[str], checkpoint: Checkpoint) -> bytes:
    """Return the file of a checkpoint; CheckpointError E508, which names `path`."""
    try:
        header, tensors = _plan(checkpoint)
    except CheckpointError as exc:
        exc.place = str(path)
        raise
    parts = (tensor.astype(tensor.dtype.newbyteorder("<")).tobytes() for tensor in tensors)
    return b"".join((struct.pack("<Q", len(header)), header, *parts))


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    """Return the parsed header and where the tensors begin."""
    (length,) = struct.unpack_from("<Q", data)
    if length > MAX_HEADER_BYTES:
        raise CheckpointError(
            "E505", f"the header claims {length} bytes; the limit is {MAX_HEADER_BYTES}"
        )
    end = _LENGTH_BYTES + length
    if end > len(data):
        raise malformed(f"it ends within its header of {length} bytes")
    text = data[_LENGTH_BYTES:end]
    if text.count(b",") + text.count(b"[") + text.count(b"{") > MAX_VALUES:
        raise CheckpointError("E505", f"the header holds more than {MAX_VALUES} values")
    header = _json(text, "its header")
    if not isinstance(header, dict):
        raise malformed("its header is not a dictionary")
    return header, end


def _json(text: bytes | str, what: str) -> Any:
    """Parse JSON in which every key is unique and every number finite."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        reason = "nested too deep" if isinstance(exc, RecursionError) else printable(str(exc))
        raise malformed(f"{what} is not JSON ({reason})") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        ((twice, _),) = collections.Counter(name for name, _ in pairs).most_common(1)
        raise malformed(f"{printable(twice)} exists twice in its header")
    return content


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _check_places(header: dict[str, Any], size: int) -> None:
    """Check that every byte belongs to exactly one tensor, and each tensor to its place."""
    places = []
    for name, record in header.items():
        shown = printable(name)
        if not isinstance(record, dict) or record.keys() != {"dtype", "shape", "data_offsets"}:
            raise malformed(f"{shown} lacks its type, shape or place, or has more than these")
        dtype, shape, place = record["dtype"], record["shape"], record["data_offsets"]
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            raise CheckpointError(
                "E506",
                f"{shown} is of type {printable(str(dtype))}; known are {', '.join(_DTYPES)}",
            )
        if not _sizes(shape) or len(shape) > MAX_DIMENSIONS:
            raise malformed(f"the shape of {shown} is not a list of sizes")
        if not _sizes(place) or len(place) != 2 or not place[0] <= place[1] <= size:
            raise malformed(f"{shown} lies beyond the {size} bytes of tensors")
        needed = math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize
        if needed != place[1] - place[0]:
            raise malformed(f"{shown} needs {needed} bytes but has {place[1] - place[0]}")
        checked_shape(shape, shown)
        places.append((*place, shown))
    position = 0
    for begin, end, shown in sorted(places):
        if begin != position:
            what = "overlaps its neighbour" if begin < position else "comes after unused bytes"
            raise malformed(f"{shown} {what}")
        position = end
    if position != size:
        raise malformed(f"{size - position} bytes after the last tensor belong to none")


def _sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)


def _array(name: str, record: dict[str, Any], content: memoryview) -> Array:
    begin, end = record["data_offsets"]
    dtype = np.dtype("<" + _DTYPES[record["dtype"]])
    array: Array = np.ndarray(record["shape"], dtype, content[begin:end] if end > begin else None)
    if dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise malformed(f"{printable(name)} holds bytes that are neither true nor false")
    if record["dtype"] == _BFLOAT16:
        array = from_bfloat16(array)
    else:
        array = array.astype(dtype.newbyteorder("="), copy=False)
    array.flags.writeable = False
    return array


def _value(key: str, text: str) -> Value:
    """Return an entry of the metadata: JSON of ours, or the plain text that others wrote."""
    if key == "arch":
        return text
    try:
        value = _json(text, printable(key))
    except CheckpointError:
        return text
    return from_plain(value)


def _plan(checkpoint: Checkpoint) -> tuple[bytes, list[Array]]:
    """Return the header and the tensors in the order of their bytes.

    The header keeps the order of `state_dict`; the bytes go by size of element, so that each tensor
    is aligned.
    """
    state = checkpoint.state_dict
    places: dict[str, tuple[int, int]] = {}
    position = 0
    order = sorted(state, key=lambda name: -state[name].dtype.itemsize)
    for name in order:
        places[name] = position, position + state[name].nbytes
        position += state[name].nbytes
    header: dict[str, Any] = {METADATA: _metadata(checkpoint)}
    for name, tensor in state.items():
        code = _CODES.get(tensor.dtype.newbyteorder("="))
        if code is None or name == METADATA:
            raise CheckpointError(
                "E508", f"{name} of type {tensor.dtype} cannot be stored in the file"
            )
        header[name] = {"dtype": code, "shape": tensor.shape, "data_offsets": places[name]}
    text = json.dumps(header, separators=(",", ":")).encode()
    if len(text) > MAX_HEADER_BYTES - _ALIGNMENT:
        raise CheckpointError("E508", f"names and notes need more than {MAX_HEADER_BYTES} bytes")
    text += b" " * (-len(text) % _ALIGNMENT)
    return text, [state[name] for name in order]


def _metadata(checkpoint: Checkpoint) -> dict[str, str]:
    metadata = {"format": "pt"}
    for key, value in checkpoint.entries.items():
        if key == "format":
            raise CheckpointError("E508", "an entry named format cannot be stored in the file")
        if key == "arch" and isinstance(value, str):
            metadata[key] = value
        elif value is not None and key not in ("state_dict", *LEFT_OUT):
            metadata[key] = json.dumps(to_plain(value), separators=(",", ":"))
    return metadata
