"""The encodings of low-bit weights: the integer of each code, and the code of each weight.

A weight w of a layer with the clip scalar s becomes a level of the encoding, written here as the
number `u` of the training; the engine multiplies by the integer `value` of its code. Arithmetic is
that of float32, as in training, so that ties fall as they did there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ai8xtools.values import frozen

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]

_NF4 = (
    -1, -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0,
    0.0796, 0.1609, 0.2461, 0.3379, 0.4407, 0.5626, 0.723, 1,
)  # fmt: skip
_NF2 = (-1, -0.2998, 0.2998, 1)
COARSE, FINE = 127, 2048
"""Factors of the levels of NF4 and NF2: for activations of 8 bits, and of 4 bits."""


@frozen
class Encoding:
    """How the weights of a layer are stored.

    `identifier` is what headers call it, `bits` the width of a code. By code: `levels` is u of the
    training, `values` the integers that the engine multiplies by. `bits_per_weight` counts ternary
    weights as a fifth of eight bits; `limit` is the level at the clip scalar.
    """

    name: str
    identifier: int
    bits: int
    levels: tuple[float, ...]
    values: tuple[int, ...]
    limit: float
    code: Callable[[Floats, float], Codes]

    @property
    def bits_per_weight(self) -> float:
        """Bits that a weight takes in the packed array."""
        return 1.6 if self.name == "Ternary" else float(self.bits)

    @property
    def table(self) -> tuple[int, ...]:
        """The values for activations of four bits: those of NF4 and NF2 are finer there."""
        if self.name in ("NF4", "NF2"):
            return tuple(round(FINE * level) for level in self.levels)
        return self.values


def encode(weights: NDArray[np.floating], clip: float, encoding: Encoding) -> Codes:
    """Return the code of each weight, for a layer with this clip scalar (above zero)."""
    return encoding.code(weights.astype(np.float32), clip)


def quantized(codes: Codes, encoding: Encoding) -> Floats:
    """Return the level that each code stands for in training, float32."""
    return np.array(encoding.levels, np.float32)[codes]


def _scaled(weights: Floats, factor: float, clip: float) -> Floats:
    return weights * (np.float32(factor) / np.float32(clip))


def _rounded(
    factor: float, offset: float, low: int, high: int
) -> Callable[[Floats, float], NDArray[np.int64]]:
    """Return the argument of floor(u): weights times factor / clip, rounded after the offset."""

    def level(weights: Floats, clip: float) -> NDArray[np.int64]:
        shifted = _scaled(weights, factor, clip) - np.float32(offset)
        rounded: NDArray[np.int64] = np.clip(np.rint(shifted), low, high).astype(np.int64)
        return rounded

    return level


def _symmetric(bits: int) -> Encoding:
    """Odd halves, without zero: the upper bit is the sign, the others the magnitude."""
    half = 1 << (bits - 1)
    magnitudes = [code % half + 0.5 for code in range(2 * half)]
    levels = tuple(-m if code >= half else m for code, m in enumerate(magnitudes))
    floor = _rounded(half, 0.5, -half, half - 1)

    def code(weights: Floats, clip: float) -> Codes:
        floors = floor(weights, clip)  # u is floors + 0.5: below zero its size is -floors - 1
        codes: Codes = np.where(floors < 0, half - 1 - floors, floors)
        return codes

    values = tuple(int(2 * level) for level in levels)
    return Encoding(f"{bits}bitsym", bits, bits, levels, values, half - 0.5, code)


def _twos_complement(name: str, bits: int, identifier: int, offset: float) -> Encoding:
    half = 1 << (bits - 1)
    integers = [code - 2 * half if code >= half else code for code in range(2 * half)]
    level = _rounded(half, offset, -half, half - 1)

    def code(weights: Floats, clip: float) -> Codes:
        codes: Codes = level(weights, clip) & (2 * half - 1)
        return codes

    levels = tuple(integer + offset for integer in integers)
    return Encoding(name, identifier, bits, levels, tuple(integers), half, code)


def _nearest(name: str, identifier: int, levels: tuple[float, ...]) -> Encoding:
    """The nearest level, the first one on a tie."""

    def code(weights: Floats, clip: float) -> Codes:
        scaled = weights.astype(np.float64) / float(clip)
        nearest: Codes = np.abs(scaled[..., None] - np.array(levels)).argmin(axis=-1)
        return nearest

    bits = len(levels).bit_length() - 1
    values = tuple(round(COARSE * level) for level in levels)
    return Encoding(name, identifier, bits, levels, values, 1.0, code)


def _binary(weights: Floats, _clip: float) -> Codes:
    mean = np.float32(weights.mean(dtype=np.float64))  # the same in any order of summation
    plus: Codes = (weights - mean >= 0).astype(np.int64)
    return plus


def _binary_about_zero(weights: Floats, _clip: float) -> Codes:
    plus: Codes = (weights >= 0).astype(np.int64)
    return plus


def _ternary(weights: Floats, _clip: float) -> Codes:
    """Codes 0, 1, 2 stand for +1, -1, 0; the scale follows from the weights, not from the clip."""
    level = _rounded(1.0, 0.0, -1, 1)(weights, float(np.abs(weights).mean(dtype=np.float64)) or 1.0)
    return np.where(level > 0, 0, np.where(level < 0, 1, 2))


def _power_of_two(weights: Floats, clip: float) -> Codes:
    """Sign and exponent; a weight of exactly zero becomes +1."""
    magnitude = np.abs(_scaled(weights, 128.0, clip))
    with np.errstate(divide="ignore"):
        exponent = np.clip(np.floor(np.log2(magnitude)), 0, 7).astype(np.int64)
    codes: Codes = exponent + 8 * (weights < 0)
    return codes


_POWERS = tuple(float(1 << (code & 7)) * (-1 if code > 7 else 1) for code in range(16))
ENCODINGS: dict[str, Encoding] = {
    encoding.name: encoding
    for encoding in (
        Encoding("Binary", 1, 1, (-1.0, 1.0), (-1, 1), 1.0, _binary),
        Encoding("BinarySym", 1, 1, (-1.0, 1.0), (-1, 1), 1.0, _binary_about_zero),
        Encoding("Ternary", 64, 2, (1.0, -1.0, 0.0), (1, -1, 0), 1.0, _ternary),
        _symmetric(2),
        _symmetric(4),
        _twos_complement("4bit", 4, 12, 0.01),
        _twos_complement("sint4", 4, 12, 0.0),
        Encoding("FP130", 20, 4, _POWERS, tuple(map(int, _POWERS)), 128.0, _power_of_two),
        _nearest("NF4", 36, _NF4),
        _nearest("NF2", 34, _NF2),
        _twos_complement("8bit", 8, 16, 0.0),
    )
}
"""By name; `BinaryBalanced` of older files is an alias of `Binary`."""


SIGNED: dict[int, Encoding] = {
    1: _twos_complement("1bit", 1, 9, 0.0),
    2: _twos_complement("2bit", 2, 10, 0.0),
    4: ENCODINGS["sint4"],
}
"""Two's complement by width, as containers store integers; 1 and 2 bits are not trained so."""


def _not_stored(_weights: Floats, _clip: float) -> Codes:
    raise ValueError("weights that are not rounded have no codes")


TRAINING_ONLY: dict[str, Encoding] = {
    encoding.name: encoding
    for encoding in (_symmetric(5), Encoding("None", 0, 32, (), (), 1.0, _not_stored))
}
"""By name: 5 bits, and weights as they are, which no engine reads."""

BY_IDENTIFIER: dict[int, Encoding] = {
    encoding.identifier: encoding for encoding in reversed(ENCODINGS.values())
}
"""By the number that headers give: encodings that share it are read alike."""
STORED: dict[int, Encoding] = {one.identifier: one for one in SIGNED.values()} | BY_IDENTIFIER
"""By the number that tensors of containers give."""
