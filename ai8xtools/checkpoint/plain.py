"""Checkpoint values as JSON, and back.

JSON has neither tuples nor tensors nor keys that are numbers. What it lacks is written as an object
with a single key that begins with `$`.
"""

from __future__ import annotations

import base64
import collections
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.checkpoint.known_objects import KNOWN, STORAGE_DTYPES, malformed
from ai8xtools.checkpoint.tensors import MAX_DEPTH
from ai8xtools.checkpoint.values import Array, ClassReference, Value

MAX_INTEGER_BITS = 128
_KEYS = (str, int, float, bytes, type(None))
_DTYPES = {code for code in STORAGE_DTYPES.values() if code != "bfloat16"}


def to_plain(value: Value, depth: int = 0) -> Any:
    """Return what json.dumps accepts. Raises CheckpointError E508 for a value without a form."""
    if depth > MAX_DEPTH:
        raise CheckpointError("E508", f"values are nested more than {MAX_DEPTH} deep")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
        raise CheckpointError("E508", f"an integer has more than {MAX_INTEGER_BITS} bits")
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list):
        return [to_plain(item, depth + 1) for item in value]
    if isinstance(value, tuple):
        return {"$tuple": [to_plain(item, depth + 1) for item in value]}
    if isinstance(value, dict):
        return _from_dictionary(value, depth)
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, np.ndarray):
        return {"$tensor": _from_array(value)}
    if isinstance(value, ClassReference):
        return {"$class": [value.module, value.name]}
    raise CheckpointError(
        "E508", f"a value of type {type(value).__name__} cannot be stored in a file"
    )


def from_plain(value: Any, depth: int = 0) -> Value:
    """Return the value that `to_plain` was given.

    Raises CheckpointError E503 for objects that it cannot have written, E505 for too deep ones.
    """
    if depth > 2 * MAX_DEPTH + 2:  # a pair of a dictionary takes two levels
        raise CheckpointError("E505", f"the file nests values more than {MAX_DEPTH} deep")
    if isinstance(value, list):
        return [from_plain(item, depth + 1) for item in value]
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
        raise malformed(f"an integer of {value.bit_length()} bits")
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((key, content),) = value.items()
        if key in _READERS:
            try:
                return _READERS[key](content, depth + 1)
            except (ValueError, TypeError, KeyError):
                raise malformed(f"its notes hold {key} with a value that does not fit") from None
    return {key: from_plain(item, depth + 1) for key, item in value.items()}


def _from_dictionary(value: dict[Value, Value], depth: int) -> Any:
    ordered = isinstance(value, collections.OrderedDict)
    texts = all(isinstance(key, str) for key in value)
    if texts and not ordered and not any(key.startswith("$") for key in value):
        return {key: to_plain(item, depth + 1) for key, item in value.items()}
    pairs = [[to_plain(k, depth), to_plain(v, depth + 1)] for k, v in value.items()]
    return {"$ordered" if ordered else "$pairs": pairs}


def _from_array(array: Array) -> list[Any]:
    code = array.dtype.str[1:].replace("b1", "?")
    if code not in _DTYPES:
        raise CheckpointError("E508", f"there are no tensors of type {array.dtype}")
    raw = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return [code, list(array.shape), base64.b64encode(raw).decode()]


def _array(content: Any, _depth: int) -> Array:
    code, shape, text = content
    if code not in _DTYPES:
        raise ValueError
    raw = base64.b64decode(text, validate=True)
    array: Array = np.frombuffer(raw, np.dtype("<" + code)).reshape(shape)
    if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
        raise ValueError
    return array


def _list(content: Any, depth: int) -> list[Value]:
    if not isinstance(content, list):
        raise TypeError
    return [from_plain(item, depth) for item in content]


def _pairs(content: Any, depth: int) -> dict[Value, Value]:
    pairs = _list(content, depth)
    if not all(isinstance(key, _KEYS) for key, _ in pairs):
        raise TypeError
    return dict(pairs)


def _float(content: Any, _depth: int) -> float:
    if content not in ("nan", "inf", "-inf"):
        raise ValueError
    return float(content)


def _class(content: Any, _depth: int) -> ClassReference:
    module, name = content
    reference = KNOWN[module, name]
    if not isinstance(reference, ClassReference):
        raise ValueError
    return reference


_READERS: dict[str, Callable[[Any, int], Value]] = {
    "$float": _float,
    "$tuple": lambda content, depth: tuple(_list(content, depth)),
    "$ordered": lambda content, depth: collections.OrderedDict(_pairs(content, depth)),
    "$pairs": _pairs,
    "$bytes": lambda content, _: base64.b64decode(content, validate=True),
    "$tensor": _array,
    "$class": _class,
}
