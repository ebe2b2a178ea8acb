"""FIFOs that got too many words.

Source: docs/emulator.md, "What silicon would not tell you".
"""

from __future__ import annotations

from ai8xtools.emulator.checks.finding import LayerReport
from device.chip import FIFO_DATA, PROCESSORS_PER_GROUP


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
