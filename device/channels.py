"""Channels per pass, the columns of kernels, and where they start.

Source: docs/hardware/memory.md, "Columns"; docs/placement.md, "Kernels: finding columns".
"""

from __future__ import annotations

from device.chip import KERNEL_COLUMN_BYTES, PROCESSORS, PROCESSORS_PER_INSTANCE

MAX_FLATTENED_PIXELS = 256
"""A layer that flattens reads each pixel as a pass of its own."""
KERNEL_ALIGNMENT = 4
"""The kernels of a layer start at a column that is a multiple of this."""


def kernel_columns(kernels: int, taps: int, bits: int) -> int:
    """Return the columns that `kernels` kernels of `taps` weights of `bits` bits take."""
    per_byte = 8 // bits
    remainder = kernels % per_byte * taps * (per_byte - 1)
    return -(-(kernels * taps * bits + remainder) // (8 * KERNEL_COLUMN_BYTES))


def passes(channels: int) -> int:
    """Return in how many passes of at most 64 channels they are handled."""
    return -(-channels // PROCESSORS)


def channels_per_pass(channels: int) -> int:
    """Return the channels of one pass: equal shares, a multiple of 4 when there are several."""
    share = -(-channels // passes(channels))
    if channels <= PROCESSORS:
        return share
    whole = -(-share // PROCESSORS_PER_INSTANCE) * PROCESSORS_PER_INSTANCE
    return min(whole, PROCESSORS)
