"""Mutations of ONNX files: of their bytes, and models that contradict themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator

from tests.checkpoint.onnx_writer import field, model, node, tensor, tensor_of, varint
from tests.robustness.arrays import BYTES, ByteMutation, flip_bits
from tests.robustness.choice import pick

_OPERATORS = ("Conv", "Gemm", "MatMul", "ConvTranspose", "Constant", "Identity", "Add", "Relu", "",
              "BatchNormalization", "QuantizeLinear")  # fmt: skip
_ATTRIBUTES: tuple[dict[str, Any], ...] = (
    {}, {"transB": 1}, {"alpha": 0.5}, {"group": 99}, {"transB": 1 << 63},
)  # fmt: skip
_SHAPES = ((8, 1, 3, 3), (16, 8, 3, 3), (8, 16, 1, 1), (10, 32), (3,), (), (0, 4), (4, 4, 4, 4, 4))
_CLAIMS = ((1 << 40,), (1 << 62, 4), (-1,), (-1, -1), (1 << 31, 1 << 31, 4), (0,) * 40, (1,) * 70)


def other_model(_: bytes, rng: Generator) -> bytes:
    """Nodes and initializers at random."""
    nodes, tensors = [], []
    for index in range(int(rng.integers(1, 6))):
        inputs = [f"x{index}", f"w{index}", f"b{index}"][: int(rng.integers(4))]
        attributes = pick(rng, _ATTRIBUTES)
        name = pick(rng, ("", "\u00e9", "\n", "x" * 10_000, "/conv"))
        nodes.append(node(pick(rng, _OPERATORS), inputs, [f"x{index + 1}"], name, attributes))
        values = rng.integers(-1, 2, pick(rng, _SHAPES)).astype(pick(rng, (np.float32, np.int8)))
        if rng.random() < 0.9:
            tensors.append(tensor(f"w{index}", values))
        if rng.random() < 0.5:
            tensors.append(tensor(f"b{index}", np.full(pick(rng, (8, 1)), np.float32(np.nan))))
    return model(nodes, tensors)


def false_claims(_: bytes, rng: Generator) -> bytes:
    """A tensor whose shape or type does not belong to its data."""
    code = int(rng.integers(0, 24))
    content = field(int(pick(rng, (9, 4, 5, 7, 10, 13))), bytes(int(rng.integers(0, 300))))
    claims = tensor_of("w", pick(rng, _CLAIMS + _SHAPES), code, content)
    return model([node("Conv", ["x", "w"])], [claims])


def endless_numbers(data: bytes, rng: Generator) -> bytes:
    """Numbers without an end, and fields without number, in between."""
    at = int(rng.integers(len(data) + 1))
    piece = pick(
        rng, (b"\x80" * 20, b"\xff" * 11, b"\x00\x00", varint(1 << 63), b"\x07", b"\x3a\xff")
    )
    return data[:at] + piece + data[at:]


def many_fields(_: bytes, rng: Generator) -> bytes:
    """A model of nothing but very many fields."""
    return field(7, pick(rng, (b"\x0a\x00", b"\x08\x00", b"\x2a\x00")) * 2_000_000)


MUTATIONS: tuple[ByteMutation, ...] = (
    *BYTES, flip_bits, other_model, other_model, false_claims, false_claims, endless_numbers,
    many_fields,
)  # fmt: skip
"""Mutations of ONNX files."""
