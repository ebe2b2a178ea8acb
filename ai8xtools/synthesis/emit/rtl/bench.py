"""What the open test bench in rtl/bench must know of a chip."""

from __future__ import annotations

from ai8xtools.synthesis.emit.rtl.images import kernel_parts
from ai8xtools.writing.templates import render
from device import Chip
from device.chip import GROUPS, PROCESSORS_PER_GROUP, PROCESSORS_PER_INSTANCE


def chip_header(chip: Chip, apb_base: int) -> str:
    """Return the text of chip.svh: sizes and addresses as macros."""
    control = chip.control_registers["CTL"].by_name
    return render(
        "rtl/chip.svh.j2",
        chip=chip,
        apb_base=apb_base,
        groups=GROUPS,
        quads=PROCESSORS_PER_GROUP // PROCESSORS_PER_INSTANCE,
        processors=PROCESSORS_PER_GROUP,
        kernel_parts=kernel_parts(chip),
        enable_bit=control["enable"].low,
        done_bit=control["done"].low,
    )
