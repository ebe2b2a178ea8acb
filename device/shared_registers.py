"""Registers outside the groups: power of the memories, standard FIFOs, fast FIFO.

Those of the APB block are numbered in words from the APB base, those of the fast FIFO from its own
base address.
Source: docs/hardware/execution.md, "Initialization" and "Start"; docs/hardware/streaming.md,
"FIFOs".
"""

from __future__ import annotations

from device.fields import Field, Register, flag

SHARED_REGISTERS = {
    register.name: register
    for register in (
        Register(
            "FIFO_CTL",
            0,
            "FIFO control",
            (
                Field("ready_select", 0, 2, "wait states", "0"),
                Field("almost_empty", 2, 5, "fill level in words", "2"),
                Field("almost_full", 7, 4, "fill level in words", "2"),
                flag("synchronized", 11, "the FIFOs advance together", "MAX78000: 1. MAX78002: 0"),
                Field("enable", 12, 4, "FIFOs that are used", "one bit for each"),
            ),
            "Standard FIFOs. Written after the layer registers, for FIFO input only.",
        ),
        Register(
            "FIFO_STAT",
            1,
            "FIFO status",
            (Field("full", 0, 4, "FIFOs that take no word", "one bit for each"),),
            "A word may be stored to a FIFO while its bit is 0.",
        ),
        Register(
            "AON_CTL",
            1024,
            "AON control",
            (
                Field("ready_select", 0, 12, "wait states", "0"),
                Field("power_down", 12, 4, "groups whose memories lose power", "one bit for each"),
            ),
            "Always-on part of the accelerator.",
        ),
    )
}
"""Registers of the APB block by name."""

FAST_FIFO_REGISTERS = {
    register.name: register
    for register in (
        Register(
            "CTL",
            0,
            "Fast FIFO control",
            (Field("thresholds", 4, 4, "not known in detail", "always 10"),),
        ),
        Register("STAT", 1, "Fast FIFO status", (flag("full", 1, "it takes no word"),)),
    )
}
"""Registers of the fast FIFO by name."""
