"""Q formats: how many bits stand before and behind the binary point."""

from __future__ import annotations

from ai8xtools.quantization.formats import ceil_log2
from ai8xtools.values import frozen


@frozen
class QFormat:
    """Bits before and behind the binary point, besides the sign; `fraction` may be negative."""

    integer: int
    fraction: int

    @property
    def bits(self) -> int:
        """All bits, the sign included."""
        return 1 + self.integer + self.fraction

    def __str__(self) -> str:
        return f"Q{self.integer}.{self.fraction}"


def q_format(magnitude: float, bits: int) -> QFormat:
    """Return the format of `bits` bits with the fewest integer bits for a magnitude.

    A magnitude that is a power of two does not fit by one step, and saturates.
    """
    integer = max(0, ceil_log2(magnitude)) if magnitude else 0
    return QFormat(integer, bits - 1 - integer)
