"""A writer of small ONNX files for tests: just enough of the protocol buffers, by hand.

`tests/checkpoint/test_onnx.py` pins down its bytes; the field numbers are those of onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FLOAT, INT8, INT32, INT64, FLOAT16, DOUBLE, BFLOAT16 = 1, 3, 6, 7, 10, 11, 16
_CODES = {"float32": FLOAT, "int8": INT8, "int32": INT32, "int64": INT64, "float16": FLOAT16,
          "float64": DOUBLE, "uint8": 2}  # fmt: skip


def varint(value: int) -> bytes:
    """Return a number in groups of seven bits; negative ones have ten bytes."""
    value &= (1 << 64) - 1
    groups = []
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def field(number: int, value: int | str | bytes | float) -> bytes:
    """Return a field: a number, or counted bytes of a text or a message."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + np.float32(value).tobytes()
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name: str, values: ArrayLike) -> bytes:
    """Return a TensorProto with raw data."""
    array = np.asarray(values)
    return tensor_of(name, array.shape, _CODES[array.dtype.name], field(9, array.tobytes()))


def tensor_of(name: str, shape: Iterable[int], code: int, content: bytes) -> bytes:
    """Return a TensorProto whose values are given as fields."""
    dims = b"".join(field(1, size) for size in shape)
    return dims + field(2, code) + content + field(8, name)


def node(
    operator: str,
    inputs: Iterable[str],
    outputs: Iterable[str] = ("y",),
    name: str = "",
    attributes: Mapping[str, Any] | None = None,
) -> bytes:
    """Return a NodeProto; attributes are integers, floats or tensors (bytes)."""
    parts = [field(1, i) for i in inputs] + [field(2, o) for o in outputs]
    parts += [field(3, name)] if name else []
    parts.append(field(4, operator))
    for key, value in (attributes or {}).items():
        number = {float: 2, int: 3, bytes: 5}[type(value)]
        parts.append(field(5, field(1, key) + field(number, value)))
    return b"".join(parts)


def model(nodes: Iterable[bytes], initializers: Iterable[bytes]) -> bytes:
    """Return a whole file."""
    graph = b"".join(field(1, n) for n in nodes) + field(2, "graph")
    graph += b"".join(field(5, t) for t in initializers)
    return field(1, 8) + field(2, "tests") + field(7, graph) + field(8, field(2, 17))


def chain(*layers: tuple[str, NDArray[Any] | None, NDArray[Any] | None]) -> bytes:
    """Return a file of layers (operator, weights, bias) in a row; without weights: just a node."""
    nodes, tensors = [], []
    for index, (operator, weights, bias) in enumerate(layers):
        inputs = [f"x{index}"]
        for kind, values in (("weight", weights), ("bias", bias)):
            if values is not None:
                inputs.append(f"layer{index}.{kind}")
                tensors.append(tensor(inputs[-1], values.astype(np.float32)))
        attributes = {"transB": 1} if operator == "Gemm" else {}
        name = f"/layer{index}/{operator}"
        nodes.append(node(operator, inputs, [f"x{index + 1}"], name, attributes))
    return model(nodes, tensors)
