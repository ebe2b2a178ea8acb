"""Formats and shifts of one layer: integers of b bits times 2^-k, and sums of 32 bits.

Source: docs/q15.md, "Formats".
"""

from __future__ import annotations

import enum
from typing import assert_never

import numpy as np

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.formats import (
    Float64s,
    Int64s,
    largest,
    power_of_two_fraction,
    to_fixed,
)
from ai8xtools.values import frozen

MAX_SHIFT = 30
_SUM_LIMIT = 1 << 31


class NoKernelError(InputError):
    """Numbers of 16 or 8 bits with shifts do not compute a network."""


class Guard(enum.StrEnum):
    """What keeps sums within 32 bits.

    `worst`: no input whatever leaves them. `calib`: none up to twice as large as the samples.
    `none`: nothing, sums wrap around.
    """

    WORST = "worst"
    CALIBRATED = "calib"
    NONE = "none"

    def reach(self, top: int, largest_input: int) -> int | None:
        """Return the magnitude of inputs for which no sum may leave 32 bits; None without guard.

        `top` is the greatest of all inputs, `largest_input` that of the samples.
        """
        match self:
            case Guard.WORST:
                return top
            case Guard.CALIBRATED:
                return min(2 * largest_input, top)
            case Guard.NONE:
                return None
            case _:
                assert_never(self)

    @property
    def holds_for_all(self) -> bool:
        """Whether no input whatever makes a sum leave 32 bits."""
        return self.reach(2, 0) == 2

    @property
    def wraps(self) -> bool:
        """Whether sums may leave 32 bits, and wrap around."""
        return self.reach(2, 0) is None


@frozen
class LayerFormats:
    """Fractions k of input, weights, bias and output, the shifts that follow, and the guard.

    `guard_bits` were taken from `kw`; `bound` is what no sum exceeds for any input of the range.
    """

    kx: int
    kw: int
    kb: int
    ko: int
    guard_bits: int
    bound: int

    @property
    def bias_lshift(self) -> int:
        """Bits by which the bias is shifted left."""
        return self.kx + self.kw - self.kb

    @property
    def out_rshift(self) -> int:
        """Bits by which sums are shifted right."""
        return self.kx + self.kw - self.ko


@frozen
class QuantizedLayer:
    """Integers of a layer: `weights` [filters, rows, columns, channels of a group], `bias`."""

    formats: LayerFormats
    weights: Int64s
    bias: Int64s


def quantize_layer(
    weights: Float64s,
    bias: Float64s,
    kx: int,
    ko: int,
    bits: int,
    guard: Guard,
    largest_input: int,
    name: str,
) -> QuantizedLayer:
    """Return the integers of a layer whose input has the fraction `kx`, its output at most `ko`.

    `weights` [filters, channels, rows, columns]; `largest_input` is the magnitude of the largest
    input integer of the samples. Raises NoKernelError E741 for shifts above 30.
    """
    kernels = weights.transpose(0, 2, 3, 1)
    raw_kw = power_of_two_fraction(largest(weights), bits)
    raw_kb = power_of_two_fraction(largest(bias), bits)
    top = 1 << bits - 1
    reach = guard.reach(top, largest_input)
    spare = 0
    while True:
        kw = raw_kw - spare
        kb, clamped = min(raw_kb, kx + kw), min(ko, kx + kw)
        _check_shifts(name, kx, kw, kb, clamped)
        integers, offsets = to_fixed(kernels, kw, bits), to_fixed(bias, kb, bits)
        worst = largest_sum(integers, offsets, kx + kw - kb, kx + kw - clamped, top)
        shifts = kx + kw - kb, kx + kw - clamped
        if reach is None or largest_sum(integers, offsets, *shifts, reach) < _SUM_LIMIT:
            formats = LayerFormats(kx, kw, kb, clamped, spare, worst)
            return QuantizedLayer(formats, integers, offsets)
        spare += 1


def largest_sum(
    weights: Int64s, bias: Int64s, bias_lshift: int, out_rshift: int, reach: int
) -> int:
    """Return what no sum exceeds in magnitude for inputs of magnitudes up to `reach`."""
    products = np.abs(weights).reshape(len(weights), -1).sum(1) * reach
    return int((products + (np.abs(bias) << bias_lshift)).max()) + ((1 << out_rshift) >> 1)


def _check_shifts(name: str, kx: int, kw: int, kb: int, ko: int) -> None:
    for what, shift, other in (
        ("bias", kx + kw - kb, f"its bias needs a fraction of {kb} bits"),
        ("result", kx + kw - ko, f"its result needs a fraction of {ko} bits"),
    ):
        if shift > MAX_SHIFT:
            raise NoKernelError(
                "E741",
                f"{name}: the {what} would be shifted by {shift} bits, the limit is {MAX_SHIFT}: "
                f"input and weights have fractions of {kx} and {kw} bits, {other}",
                None,
                "The layer's data, weights and bias differ too much in size. Scale its weights, "
                "or use batch normalization before it.",
            )
