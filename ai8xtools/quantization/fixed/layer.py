"""The integers of a layer with fixed-point weights, and its arithmetic."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.fixed.division import Division, divided, divisor, restored
from ai8xtools.quantization.formats import (
    Float64s,
    Int64s,
    ceil_log2,
    largest,
    limits,
    power_of_two_fraction,
    to_fixed,
)
from ai8xtools.values import frozen

LONGEST_SHIFT = 30
"""Shifts of biases and sums stay within what 32-bit cores shift by."""


@frozen(slots=False, kw_only=True)
class FixedLayer:
    """Integers and formats of a layer: weights of any shape, outputs first; biases, or None.

    Weights of `bits` bits stand for `weights` times D / 2^(bits-1); inputs, outputs and biases have
    `data_bits`. `in_fraction`, `out_fraction` and
    `bias_fraction` count the bits behind the point. A D below 1 is 2^-`spare`.
    """

    bits: int
    data_bits: int
    division: Division
    by: float
    weights: Int64s
    bias: Int64s | None
    in_fraction: int
    out_fraction: int
    bias_fraction: int

    @property
    def spare(self) -> int:
        """The exponent of D = 1/2^spare: 0 for D of 1 and more, and for integers."""
        return max(0, -ceil_log2(self.by)) if self.division.shifts else 0

    @property
    def factor(self) -> int:
        """The factor of the sums."""
        return int(self.by * (1 << self.spare))

    @property
    def out_shift(self) -> int:
        """By how much sums times D are shifted to the right: b-1+fx-fy."""
        return self.bits - 1 + self.in_fraction - self.out_fraction

    @property
    def bias_shift(self) -> int:
        """By how much biases are shifted to the left: b-1+fx-kb."""
        return self.bits - 1 + self.in_fraction - self.bias_fraction

    @property
    def restored(self) -> Float64s:
        """The weights that the integers represent."""
        return restored(self.weights, self.by, self.bits)

    @property
    def folded(self) -> bool:
        """Whether D is a power of two that moves the point of the weights, without any rest."""
        if not self.division.shifts:
            return False
        shifts = [self.out_shift] if self.bias is None else [self.out_shift, self.bias_shift]
        return ceil_log2(self.by) <= min(shifts)

    @property
    def stored_fraction(self) -> int:
        """Fraction bits of the weights as files state them: a power of two moves the point."""
        return self.bits - 1 - (ceil_log2(self.by) if self.folded else 0)

    @property
    def stored_factor(self) -> int:
        """D as files state it: 1 for a power of two."""
        return 1 if self.folded else int(self.by)

    @property
    def stored_shifts(self) -> tuple[int, int]:
        """Shifts of biases and of sums as files state them."""
        moved = ceil_log2(self.by) if self.folded else 0
        return (0 if self.bias is None else self.bias_shift - moved), self.out_shift - moved

    def finish(self, sums: Int64s, *, relu: bool = False) -> Int64s:
        """Return outputs from sums of x_q times w_q, int64 [..., outputs]."""
        shift = self.out_shift + self.spare
        total = sums * self.factor + ((1 << shift) >> 1)
        if self.bias is not None:
            total = total + (self.bias << (self.bias_shift + self.spare))
        low, high = limits(self.data_bits)
        return (total >> shift).clip(0 if relu else low, high)


def fixed_layer(
    weights: ArrayLike,
    bias: ArrayLike | None,
    *,
    bits: int,
    division: Division,
    magnitude: float,
    in_fraction: int,
    out_fraction: int,
    data_bits: int | None = None,
    name: str = "layer",
) -> FixedLayer:
    """Return the integers of a layer.

    `magnitude` is that of the weights for which D is chosen; `in_fraction` and `out_fraction` count
    the fraction bits of input and output, the latter at most. `data_bits` is the width of both and
    of biases, that of the weights unless given. Raises InputError E741 for a shift beyond 30.
    """
    by = divisor(magnitude, division)
    width = bits if data_bits is None else data_bits
    most = in_fraction + bits - 1
    fraction = min(power_of_two_fraction(0.0 if bias is None else largest(bias), width), most)
    layer = FixedLayer(
        bits=bits,
        data_bits=width,
        division=division,
        by=by,
        weights=divided(weights, by, bits),
        bias=None if bias is None else to_fixed(bias, fraction, width),
        in_fraction=in_fraction,
        out_fraction=min(out_fraction, most),
        bias_fraction=fraction,
    )
    _check_shifts(layer, name)
    return layer


def _check_shifts(layer: FixedLayer, name: str) -> None:
    shifts = {
        "outputs": layer.out_shift,
        "biases": layer.bias_shift if layer.bias is not None else 0,
    }
    for what, shift in shifts.items():
        if shift + layer.spare > LONGEST_SHIFT:
            raise InputError(
                "E741",
                f"{name}: {what} would be shifted by {shift + layer.spare} bits, "
                f"the limit is {LONGEST_SHIFT}",
                remedy="Scale the data or the weights of this layer: their ranges lie too far "
                "apart.",
            )
