"""Biases that were not loaded, and FIFOs that got too many words.

Source: docs/emulator.md, "What silicon would not tell you".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from device.chip import (
    FIFO_DATA,
    PROCESSORS_PER_GROUP,
)
from emulator.checks.finding import LayerReport

Integers = NDArray[np.int64]


def check_biases(
    report: LayerReport, group: Integers, index: Integers, used: NDArray[np.bool_]
) -> None:
    """Report biases of outputs in use that were never loaded.

    `group` and `index` tell where the bias of each output is; `index` is -1 without one.
    """
    memory, size = report.memory, report.memory.chip.bias_bytes
    lacking = used & (index >= 0)
    lacking &= (index >= size) | ~memory.bias_written[group, index % size]
    if not lacking.any():
        return
    first = np.unravel_index(np.argmax(lacking), lacking.shape)
    where, number = int(group[first]), int(index[first])
    address = memory.addresses.apb_base + memory.chip.bias_address(where, number)
    text = (
        f"bias {number} of group {where} at 0x{address:08x} was never loaded "
        f"({np.count_nonzero(lacking)} such biases)"
    )
    processor = where * PROCESSORS_PER_GROUP
    report.add(text, processor, address)


def check_fifo_words(report: LayerReport, surplus: dict[int, int], needed: int) -> None:
    """Report FIFOs (by group) that got more words than the layer reads."""
    for group, count in surplus.items():
        text = (
            f"the FIFO of group {group} got {needed + count} words, the input has {needed}: "
            "the rest is left over"
        )
        address = report.memory.addresses.apb_base + FIFO_DATA + 4 * group
        processor = group * PROCESSORS_PER_GROUP
        report.add(text, processor, address)
