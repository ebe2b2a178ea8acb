"""Reading outputs through the byte-transposing port of a group.

Source: docs/hardware/execution.md, "Unloading"; docs/generated-project.md, "The transposing read
port".
"""

from __future__ import annotations

from ai8xtools.synthesis.program import TransposedChannel, TransposingPort
from device import Chip
from device.chip import INSTANCES_PER_GROUP, WORD_BYTES

_LAYER = 0
"""The port moves with the write pointer of this hardware layer."""


class TransposerWords:
    """Makes the words that point the ports of a chip to a channel."""

    def __init__(self, chip: Chip, apb_base: int, ready_select: int) -> None:
        self.chip = chip
        self.apb_base = apb_base
        self.mode = {"clock_enable": 1, "ready_select": ready_select}

    def channel(self, instance: int, lane: int, offset: int) -> TransposedChannel:
        """Return how to read a lane of a data memory instance from a byte offset on.

        The pixels must stand in successive words, as those of a single pass without gaps do.
        """
        chip = self.chip
        group, quad = divmod(instance, INSTANCES_PER_GROUP)
        control = chip.control_registers["CTL"]
        pointer = chip.write_pointer(quad, offset // WORD_BYTES)
        return TransposedChannel(
            self._port(group),
            control.pack(**self.mode, mlator=1, mlator_lane=lane),
            chip.layer_registers["WPTR_BASE"].pack(pointer=pointer),
            chip.layer_registers["LCTL2"].pack(write_step=0),
        )

    def _port(self, group: int) -> TransposingPort:
        chip, base = self.chip, self.apb_base
        return TransposingPort(
            group,
            base + chip.control_address(group, "CTL"),
            base + chip.control_address(group, "MLAT"),
            base + chip.layer_address(group, _LAYER, "WPTR_BASE"),
            base + chip.layer_address(group, _LAYER, "LCTL2"),
            chip.control_registers["CTL"].pack(**self.mode),
        )
