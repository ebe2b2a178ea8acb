"""Mathematics for the C library of emulated programs, computed by the host.

Numbers come and go as bits, so that the program needs no arithmetic with fractions for them. The
order of `OPERATIONS` is that of sdk/include/math.h.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable

import numpy as np

from ai8xtools.emulator.bits import truncated

IN_FLOAT = 0x100
"""Added to the number of an operation on numbers of 32 bits."""
_NUMBER = re.compile(
    r"\s*[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|inf(?:inity)?|nan)", re.IGNORECASE
)


def _one(function: Callable[[float], float]) -> Callable[[float, float], float]:
    """Turn a function of one argument into one of two; the result is NaN where it cannot be
    computed.
    """

    def compute(x: float, _y: float) -> float:
        try:
            return float(function(x))
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    return compute


def _two(function: Callable[[float, float], float]) -> Callable[[float, float], float]:
    def compute(x: float, y: float) -> float:
        return float(function(x, y))

    return compute


def _round(x: float) -> float:
    """Round to the nearest whole number, halves away from zero."""
    return math.copysign(math.floor(abs(x) + 0.5), x) if abs(x) < 2**52 else x


def _difference(x: float, y: float) -> float:
    return x if x != x else max(x - y, 0.0)


def _load_exponent(x: float, y: float) -> float:
    return float(np.ldexp(x, int(y)))


OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "sin": _one(np.sin), "cos": _one(np.cos), "tan": _one(np.tan), "asin": _one(np.arcsin),
    "acos": _one(np.arccos), "atan": _one(np.arctan), "sinh": _one(np.sinh),
    "cosh": _one(np.cosh), "tanh": _one(np.tanh), "asinh": _one(np.arcsinh),
    "acosh": _one(np.arccosh), "atanh": _one(np.arctanh), "exp": _one(np.exp),
    "exp2": _one(np.exp2), "expm1": _one(np.expm1), "log": _one(np.log), "log2": _one(np.log2),
    "log10": _one(np.log10), "log1p": _one(np.log1p), "sqrt": _one(np.sqrt),
    "cbrt": _one(np.cbrt), "floor": _one(np.floor), "ceil": _one(np.ceil),
    "trunc": _one(np.trunc), "round": _one(_round), "rint": _one(np.rint),
    "nearbyint": _one(np.rint), "fabs": _one(np.fabs), "erf": _one(math.erf),
    "erfc": _one(math.erfc), "tgamma": _one(math.gamma), "lgamma": _one(math.lgamma),
    "pow": _two(np.float_power), "fmod": _two(np.fmod), "remainder": _two(np.remainder),
    "atan2": _two(np.arctan2), "hypot": _two(np.hypot), "fmax": _two(np.fmax),
    "fmin": _two(np.fmin), "fdim": _two(_difference), "copysign": _two(np.copysign),
    "ldexp": _two(_load_exponent),
}  # fmt: skip
"""By the names of C; each takes two numbers, those of one argument leave out the second."""
_IN_ORDER = tuple(OPERATIONS.values())


def compute(operation: int, x: int, y: int) -> int:
    """Compute with numbers given as bits; return the bits of the result."""
    in_float, number = divmod(operation, IN_FLOAT)
    pattern = "<f" if in_float else "<d"
    function = _IN_ORDER[number]
    with np.errstate(all="ignore"):
        result = function(_from_bits(pattern, x), _from_bits(pattern, y))
        if in_float:
            result = float(np.float32(result))
    return int.from_bytes(struct.pack(pattern, result), "little")


def format_number(conversion: str, bits: int) -> str:
    """Return a number of 64 bits in a conversion of printf, such as "%-8.3f"."""
    value = _from_bits("<d", bits)
    if conversion[-1] in "aA":
        return value.hex()
    try:
        return conversion % value
    except (TypeError, ValueError):
        return conversion


def parse_number(text: str) -> tuple[int, int]:
    """Return the bits of the number with which a text begins, and how much of the text it takes."""
    match = _NUMBER.match(text)
    value = float(match[0]) if match else 0.0
    return int.from_bytes(struct.pack("<d", value), "little"), match.end() if match else 0


def _from_bits(pattern: str, bits: int) -> float:
    size = struct.calcsize(pattern)
    return float(struct.unpack(pattern, truncated(bits, 8 * size).to_bytes(size, "little"))[0])
