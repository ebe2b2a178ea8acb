"""What stands at which bus address, in both directions, for one chip.

Source: docs/hardware/chips.md, "Addresses"; docs/emulator.md, "The core and its peripherals".
"""

from __future__ import annotations

from functools import cached_property
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.bits import word_address
from ai8xtools.emulator.errors import OtherChipError
from ai8xtools.values import frozen
from device import Chip, known_chips
from device.chip import (
    AON_CONTROL,
    DEFAULT_APB_BASE,
    FAST_FIFO_CONTROL,
    FAST_FIFO_DATA,
    FAST_FIFO_INTERRUPT,
    FAST_FIFO_STATUS,
    FIFO_CONTROL,
    FIFO_DATA,
    FIFO_STATUS,
    FIFOS,
    GROUPS,
    KERNEL_COLUMN_STRIDE_BYTES,
    POWER_CONTROL,
    POWER_REGISTERS,
    PROCESSORS_PER_GROUP,
    PROCESSORS_PER_INSTANCE,
    STREAM_REGISTERS,
)
from device.registers import Register

REGISTERS, BIAS, TRAM, KERNELS, DATA, OUTSIDE = range(6)  # areas, in the order of their addresses

INSTANCES_PER_GROUP = PROCESSORS_PER_GROUP // PROCESSORS_PER_INSTANCE


@frozen(slots=False)
class AddressMap:
    """The addresses of a chip whose APB bus starts at `apb_base`."""

    chip: Chip
    apb_base: int = DEFAULT_APB_BASE

    @cached_property
    def control(self) -> tuple[int, ...]:
        """Addresses of the CTL register of each group."""
        return self._in_groups("CTL")

    @cached_property
    def memory_tests(self) -> tuple[int, ...]:
        """Addresses of the SRAM_TEST register of each group."""
        return self._in_groups("SRAM_TEST")

    @cached_property
    def transposers(self) -> tuple[int, ...]:
        """Addresses of the transposing read port (MLAT) of each group."""
        return self._in_groups("MLAT")

    @cached_property
    def ordered(self) -> frozenset[int]:
        """Registers whose writes act when they happen, so that their order counts."""
        return frozenset(
            {
                *self.control,
                *self.memory_tests,
                self.apb_base + AON_CONTROL,
                self.apb_base + FIFO_CONTROL,
                FAST_FIFO_CONTROL,
                FAST_FIFO_INTERRUPT,
                *(POWER_CONTROL + 4 * i for i in range(POWER_REGISTERS)),
            }
        )

    @cached_property
    def fifos(self) -> dict[int, int]:
        """Data registers of the FIFOs; the fast FIFO has number -1."""
        standard = {self.apb_base + FIFO_DATA + 4 * i: i for i in range(FIFOS)}
        return {**standard, FAST_FIFO_DATA: -1}

    @cached_property
    def _thresholds(self) -> tuple[int, ...]:
        """Offsets in a group at which the areas after the registers begin."""
        chip = self.chip
        return (chip.bias_offset, chip.tram_offset, chip.kernel_offset, chip.data_offset)

    @cached_property
    def registers(self) -> dict[int, Register]:
        """Declarations of the accelerator's registers by address, for all groups and layers."""
        chip, base = self.chip, self.apb_base
        registers = {
            base + chip.layer_address(group, layer, name): register
            for name, register in chip.layer_registers.items()
            # registers of streams are fewer; those of later layers have other addresses
            for layer in range(chip.max_layers)
            for group in range(GROUPS)
            if name not in STREAM_REGISTERS or layer < chip.max_streaming_layers
        }
        for name, register in chip.control_registers.items():
            for group in range(GROUPS):
                registers[base + chip.control_address(group, name)] = register
        return registers

    @cached_property
    def register_names(self) -> dict[int, str]:
        """Address of every register in words, such as `group 0 layer 3 POST`."""
        names = dict(self._names_outside)
        for group in range(GROUPS):
            start = self.apb_base + self.chip.group(group)
            for offset, name in self._names_in_group.items():
                names.setdefault(start + offset, f"group {group} {name}")
        return names

    def register_name(self, word: int) -> str | None:
        """Return the name of a register by its address; None if there is none."""
        group, offset = divmod(word - self.apb_base - self.chip.cnn_offset, self.chip.group_stride)
        if word in self._names_outside or not 0 <= group < GROUPS:
            return self._names_outside.get(word)
        name = self._names_in_group.get(offset)
        return name and f"group {group} {name}"

    @cached_property
    def _names_outside(self) -> dict[int, str]:
        """Names of the registers that groups share, by address."""
        base = self.apb_base
        return {
            base + FIFO_CONTROL: "FIFO control",
            base + FIFO_STATUS: "FIFO status",
            base + AON_CONTROL: "always-on control",
            FAST_FIFO_CONTROL: "fast FIFO control",
            FAST_FIFO_STATUS: "fast FIFO status",
            FAST_FIFO_INTERRUPT: "fast FIFO interrupt enable",
            FAST_FIFO_DATA: "fast FIFO data",
            **{base + FIFO_DATA + 4 * i: f"FIFO {i} data" for i in range(FIFOS)},
            **{POWER_CONTROL + 4 * i: f"power register {i}" for i in range(POWER_REGISTERS)},
        }

    @cached_property
    def _names_in_group(self) -> dict[int, str]:
        """Names of the registers that each group has, by their offset in the group."""
        chip, start = self.chip, self.chip.group(0)
        names: dict[int, str] = {}
        for layer in range(chip.max_layers):
            for name in chip.layer_registers:
                address = chip.layer_address(0, layer, name)
                names.setdefault(address - start, f"layer {layer} {name}")
        return names | {chip.control_address(0, n) - start: n for n in chip.control_registers}

    def describe(self, address: int) -> str:
        """Say in words what stands at an address; the empty string if nothing does."""
        word = word_address(address)
        if name := self.register_name(word):
            return name
        group, area, offset = (int(part[0]) for part in self.split(np.array([word])))
        if area == OUTSIDE:
            return ""
        if area == BIAS:
            return f"group {group} bias {offset // 4}"
        if area == REGISTERS:
            return f"group {group} register at offset 0x{offset:x}"
        stride = (self.chip.tram_stride, self.chip.kernel_stride, self.chip.instance_stride)
        unit, rest = divmod(offset, stride[area - TRAM])
        if unit >= (INSTANCES_PER_GROUP if area == DATA else PROCESSORS_PER_GROUP):
            return ""
        if area == DATA:
            return f"data memory instance {group * INSTANCES_PER_GROUP + unit} word {rest // 4}"
        processor = group * PROCESSORS_PER_GROUP + unit
        if area == TRAM:
            return f"processor {processor} line buffer word {rest // 4}"
        column, part = divmod(rest, KERNEL_COLUMN_STRIDE_BYTES)
        return f"processor {processor} kernel column {column} word {part // 4}"

    def has_something_at(self, address: int) -> bool:
        """Tell whether a register or a memory of the accelerator stands at an address."""
        word = word_address(address)
        if self.register_name(word):
            return True
        chip = self.chip
        group, offset = divmod(word - self.apb_base - chip.cnn_offset, chip.group_stride)
        if not 0 <= group < GROUPS or offset < chip.bias_offset:
            return False
        if offset < chip.tram_offset:
            return offset - chip.bias_offset < 4 * chip.bias_bytes
        if offset < chip.kernel_offset:
            return offset - chip.tram_offset < PROCESSORS_PER_GROUP * chip.tram_stride
        if offset < chip.data_offset:
            return offset - chip.kernel_offset < PROCESSORS_PER_GROUP * chip.kernel_stride
        unit, rest = divmod(offset - chip.data_offset, chip.instance_stride)
        return unit < INSTANCES_PER_GROUP and rest < chip.instance_bytes

    def split(self, addresses: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Return group, area and byte offset in the area of each address, three int64 arrays."""
        group, offset = np.divmod(
            np.asarray(addresses, np.int64) - self.apb_base - self.chip.cnn_offset,
            self.chip.group_stride,
        )
        area = np.searchsorted(np.array(self._thresholds), offset, side="right")
        starts = np.array((0, *self._thresholds), np.int64)
        outside = (group < 0) | (group >= GROUPS)
        return group, np.where(outside, OUTSIDE, area), offset - starts[area]

    def _in_groups(self, register: str) -> tuple[int, ...]:
        return tuple(
            self.apb_base + self.chip.control_address(group, register) for group in range(GROUPS)
        )


def control_registers(apb_base: int = DEFAULT_APB_BASE) -> dict[int, Chip]:
    """Return the chips by the address of the CTL register of their first group."""
    return {apb_base + chip.control_address(0, "CTL"): chip for chip in known_chips()}


def refuse_device(address: int, chip: Chip, device: Chip) -> NoReturn:
    """Refuse a program that sets up `chip` though it should run on `device`. E803."""
    raise OtherChipError(
        "E803",
        f"the program is for {chip.name}: it writes to that chip's control register 0x"
        f"{address:08x}; the device is {device.name}",
        "--device",
        f"Name the device {chip.name}.",
    )
