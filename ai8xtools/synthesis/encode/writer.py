"""Collects register writes: addresses, packing, and which zero values need not be written."""

from __future__ import annotations

from collections.abc import Mapping

from ai8xtools.synthesis.program import Write
from device import Chip
from device.chip import FAST_FIFO_CONTROL, WORD_BYTES
from device.registers import FAST_FIFO_REGISTERS, SHARED_REGISTERS


class RegisterWriter:
    """Makes `Write` values for one chip and base address.

    A register is zero after a reset, so a zero is only written where the caller forces it or all
    zeros are asked for.
    Source: docs/hardware/execution.md, "Layer registers".
    """

    def __init__(self, chip: Chip, apb_base: int, write_zeros: bool) -> None:
        self.chip = chip
        self.apb_base = apb_base
        self.write_zeros = write_zeros

    def layer(self, group: int, layer: int, name: str, fields: Mapping[str, int]) -> Write:
        """Return the write of a per-layer register; `layer` counts hardware layers."""
        register = self.chip.layer_registers[name]
        value = register.pack(**fields)
        return Write(
            self.apb_base + self.chip.layer_address(group, layer, name),
            value,
            register.meaning,
            f"L{layer} G{group} R{register.number:02d}",
            skipped=value == 0 and not self.write_zeros,
        )

    def control(
        self,
        group: int,
        name: str,
        fields: Mapping[str, int],
        comment: str = "",
        *,
        forced: bool = False,
    ) -> Write:
        """Return the write of a group control register."""
        register = self.chip.control_registers[name]
        value = register.pack(**fields)
        return Write(
            self.apb_base + self.chip.control_address(group, name),
            value,
            comment or register.meaning,
            f"R{register.number:02d}",
            skipped=value == 0 and not forced and not self.write_zeros,
            verifiable=name != "SRAM_TEST",  # reads as the state of the test
        )

    def shared(
        self, name: str, fields: Mapping[str, int], comment: str = "", *, forced: bool = False
    ) -> Write:
        """Return the write of a register outside the groups."""
        register = SHARED_REGISTERS[name]
        value = register.pack(**fields)
        return Write(
            self.apb_base + WORD_BYTES * register.number,
            value,
            comment or register.meaning,
            f"F{register.number:02d}",
            skipped=value == 0 and not forced and not self.write_zeros,
        )

    def fast_fifo(self, name: str, fields: Mapping[str, int]) -> Write:
        """Return the write of a register of the fast FIFO."""
        register = FAST_FIFO_REGISTERS[name]
        return Write(
            FAST_FIFO_CONTROL + WORD_BYTES * register.number,
            register.pack(**fields),
            register.meaning,
            f"F{register.number:02d}",
            verifiable=False,
        )
