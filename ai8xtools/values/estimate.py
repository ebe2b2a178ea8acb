"""A quantity that is known within a range."""

from __future__ import annotations

from math import floor, log10

from ai8xtools.values.frozen import frozen


@frozen
class Estimate:
    """A quantity, and between which of its values measurements lie."""

    value: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def of(cls, value: float, factors: tuple[float, float, float]) -> Estimate:
        """Scale a value by the usual, the least and the largest factor that were measured."""
        return cls(*(value * factor for factor in factors))

    @classmethod
    def within(cls, value: float, spread: float) -> Estimate:
        """Return a value that may be such a part more or less."""
        return cls.of(value, (1.0, 1 - spread, 1 + spread))

    def __add__(self, other: Estimate) -> Estimate:
        """Return the sum of both, between the sums of their bounds."""
        return Estimate(self.value + other.value, self.low + other.low, self.high + other.high)

    def in_milliseconds(self) -> str:
        """Return a time in milliseconds with two digits behind the point, and the range unless it
        is small."""
        spread = f" ({self.low:.2f} to {self.high:.2f})" if self.high > _CERTAIN * self.low else ""
        return f"{self.value:.2f} ms{spread}"

    def in_units(self, unit: str) -> str:
        """Return value and range in two digits, in millionths or thousandths of a unit."""
        prefix, factor = ("u", 1e6) if self.value < _LEAST_MILLI else ("m", 1e3)
        value, low, high = (_two_digits(factor * one) for one in (self.value, self.low, self.high))
        return f"{value} {prefix}{unit} ({low} to {high})"


_CERTAIN = 1.05
"""Ranges below this ratio are not told."""
_LEAST_MILLI = 0.995e-3
"""From here on two digits of millionths would be a thousandth."""


def _two_digits(value: float) -> str:
    if value <= 0:
        return "0"
    digits = 1 - floor(log10(value))
    return f"{round(value, digits):,.{max(digits, 0)}f}"
