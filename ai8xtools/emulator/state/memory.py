"""The memories and registers of the accelerator, as writes leave them.

Source: docs/hardware/memory.md, "Addresses", "Writing kernels" and "Bias memory".
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.bits import word_address
from ai8xtools.emulator.errors import WrongAddressError
from ai8xtools.emulator.state.power import PowerLoss
from ai8xtools.emulator.words.addresses import (
    BIAS,
    DATA,
    INSTANCES_PER_GROUP,
    KERNELS,
    OUTSIDE,
    REGISTERS,
    AddressMap,
    control_registers,
    refuse_device,
)
from ai8xtools.emulator.words.writes import (
    Integers,
    KernelStream,
    Writes,
    merged_words,
    split_writes,
)
from device import Chip
from device.chip import (
    DEFAULT_APB_BASE,
    FAST_FIFO_INTERRUPT,
    FAST_FIFO_STATUS,
    GROUPS,
    KERNEL_COLUMN_BYTES,
    KERNEL_COLUMN_STRIDE_BYTES,
    PROCESSORS,
    PROCESSORS_PER_GROUP,
    PROCESSORS_PER_INSTANCE,
)

INSTANCES = PROCESSORS // PROCESSORS_PER_INSTANCE
# Read-only registers of the fast FIFO
_WITHOUT_EFFECT = (FAST_FIFO_STATUS, FAST_FIFO_INTERRUPT + 4)


class Memory:
    """Registers and memories of one accelerator; everything starts as zero.

    `data`: uint32 [instance, word]; `kernels`: uint8 [processor, column, byte]; `bias`: int8
    [group, index]. The `_written` arrays tell what was ever written: bytes of data, columns,
    biases; `kernels_replaced` the columns that one load wrote twice, differently. `kernel_version`
    counts the writes to kernels. `control` lists the control writes in order, `pushes` the words of
    each FIFO.
    """

    def __init__(self, chip: Chip, apb_base: int = DEFAULT_APB_BASE) -> None:
        self.chip = chip
        self.addresses = AddressMap(chip, apb_base)
        self.registers: dict[int, int] = {}
        self.control: list[tuple[int, int]] = []
        self.pushes: dict[int, list[int]] = {}
        words = chip.instance_stride // 4
        self.data = np.zeros((INSTANCES, words), np.uint32)
        self.data_written = np.zeros((INSTANCES, 4 * words), np.bool_)
        columns = chip.kernel_columns_first
        self.kernels = np.zeros((PROCESSORS, columns, KERNEL_COLUMN_BYTES), np.uint8)
        self.kernels_written = np.zeros((PROCESSORS, columns), np.bool_)
        self.kernels_replaced = np.zeros((PROCESSORS, columns), np.bool_)
        self.kernel_version = 0
        self.bias = np.zeros((GROUPS, chip.bias_bytes), np.int8)
        self.bias_written = np.zeros((GROUPS, chip.bias_bytes), np.bool_)

    def snapshot(self) -> Memory:
        """Return a memory that stays as this one is now."""
        kept = copy.copy(self)
        for name in ("registers", "data", "data_written", "kernels", "bias"):
            setattr(kept, name, getattr(self, name).copy())
        kept.pushes = {address: [*words] for address, words in self.pushes.items()}
        return kept

    @property
    def data_bytes(self) -> NDArray[np.uint8]:
        """The data memory as bytes [instance, byte], a view."""
        return self.data.view(np.uint8)

    def register(self, layer: int, name: str, group: int = 0) -> dict[str, int]:
        """Return the fields of a per-layer register by name."""
        return self.chip.layer_registers[name].unpack(self.register_word(layer, name, group))

    def register_word(self, layer: int, name: str, group: int = 0) -> int:
        """Return the word of a per-layer register."""
        address = self.addresses.apb_base + self.chip.layer_address(group, layer, name)
        return self.registers.get(address, 0)

    def control_register(self, name: str, group: int = 0) -> dict[str, int]:
        """Return the fields of a group control register by name."""
        return self.chip.control_registers[name].unpack(self.control_register_word(name, group))

    def control_register_word(self, name: str, group: int = 0) -> int:
        """Return the word of a group control register."""
        address = self.addresses.apb_base + self.chip.control_address(group, name)
        return self.registers.get(address, 0)

    def write(self, writes: Writes) -> None:
        """Apply writes in order (except that, within one call, memory tests act first).

        Raises EmulatorError (E830) for an address where the accelerator has nothing.
        """
        self._check_device(writes)
        misaligned = writes.address % writes.size != 0
        if misaligned.any():
            i = int(np.argmax(misaligned))
            self._refuse(
                int(writes.address[i]), f"it is no multiple of the {writes.size[i]} bytes written"
            )
        split = split_writes(writes, self.addresses)
        self._control(split.control)
        for address, values in split.pushes.items():
            self.pushes.setdefault(address, []).extend(values)
        plain = split.plain
        group, area, offset = self.addresses.split(plain.address)
        outside = (area == OUTSIDE) & ~np.isin(plain.address, _WITHOUT_EFFECT)
        if outside.any():
            self._refuse(int(plain.address[np.argmax(outside)]))
        chosen = area == REGISTERS
        self._check_registers(plain.where(chosen))
        self.registers |= merged_words(plain.where(chosen))
        chosen = area == BIAS
        self._write_bias(group[chosen], offset[chosen] // 4, plain.value[chosen])
        chosen = area == DATA
        self._write_data(plain.where(chosen), group[chosen], offset[chosen])
        chosen = area == KERNELS
        self._write_kernel_words(plain.where(chosen), group[chosen], offset[chosen])
        self._write_streams(split.streams)

    def lose(self, lost: PowerLoss) -> None:
        """Clear what groups lose without power or by a reset."""
        for address in lost.among(self.addresses, self.registers):
            del self.registers[address]
        for group in lost.registers:
            self.bias[group], self.bias_written[group] = 0, False
        for group in lost.kernels:
            processors = slice(group * PROCESSORS_PER_GROUP, (group + 1) * PROCESSORS_PER_GROUP)
            self.kernels[processors], self.kernels_written[processors] = 0, False
            self.kernel_version += 1
        for group in lost.data:
            instances = slice(group * INSTANCES_PER_GROUP, (group + 1) * INSTANCES_PER_GROUP)
            self.data[instances], self.data_written[instances] = 0, False

    def _check_device(self, writes: Writes) -> None:
        """Refuse a program that only writes to the control registers of another chip."""
        own = self.addresses.control[0]
        if own in self.registers or own in writes.address:
            return
        for address, chip in control_registers(self.addresses.apb_base).items():
            # One of them alone may be a word of data memory
            if np.isin([address, address + chip.group_stride], writes.address).all():
                refuse_device(address, chip, self.chip)

    def _check_registers(self, writes: Writes) -> None:
        """Refuse values for registers that do not exist; zeros have no effect."""
        for address in np.unique(word_address(writes.address[writes.value != 0])).tolist():
            if self.addresses.register_name(address) is None:
                self._refuse(address, "the accelerator has no register there")

    def _control(self, control: list[tuple[int, int]]) -> None:
        for address, value in control:
            self.registers[address] = value
            if address in self.addresses.memory_tests:
                self._clear(self.addresses.memory_tests.index(address), value)
        self.control += control

    def _clear(self, group: int, test: int) -> None:
        """A memory test of a group leaves zeros."""
        tests = self.chip.control_registers["SRAM_TEST"].unpack(test)
        if tests["test_data"]:
            instances = slice(group * INSTANCES_PER_GROUP, (group + 1) * INSTANCES_PER_GROUP)
            self.data[instances], self.data_written[instances] = 0, True
        if tests["test_kernels"]:
            processors = slice(group * PROCESSORS_PER_GROUP, (group + 1) * PROCESSORS_PER_GROUP)
            self.kernels[processors], self.kernels_written[processors] = 0, True
            self.kernel_version += 1
        if tests["test_biases"]:
            self.bias[group], self.bias_written[group] = 0, True

    def _write_bias(self, group: Integers, index: Integers, value: Integers) -> None:
        beyond = index >= self.chip.bias_bytes
        if beyond.any():
            i = int(np.argmax(beyond))
            self._refuse(
                self.addresses.apb_base + self.chip.bias_address(int(group[i]), int(index[i]))
            )
        self.bias[group, index] = value.astype(np.int8)  # the lowest byte
        self.bias_written[group, index] = True

    def _write_data(self, writes: Writes, group: Integers, offset: Integers) -> None:
        chip = self.chip
        unit, rest = np.divmod(offset, chip.instance_stride)
        beyond = (unit >= INSTANCES_PER_GROUP) | (rest >= chip.instance_bytes)
        if beyond.any():
            self._refuse(int(writes.address[np.argmax(beyond)]))
        instance = group * INSTANCES_PER_GROUP + unit
        data = writes.value.astype("<u4").view(np.uint8).reshape(-1, 4)
        for i in range(4):
            touched = writes.size > i
            place = instance[touched], rest[touched] + i
            self.data_bytes[place] = data[touched, i]
            self.data_written[place] = True

    def _write_streams(self, streams: Sequence[KernelStream]) -> None:
        """Packed kernels; notes columns that these streams write twice with different bytes."""
        if not streams:
            return
        self.kernels_replaced[:] = False
        self.kernel_version += 1
        now = np.zeros_like(self.kernels_written)
        for stream in streams:
            end = stream.first + len(stream.columns)
            self._check_columns(stream.processor, end)
            place = stream.processor, slice(stream.first, end)
            differs = np.any(self.kernels[place] != stream.columns, axis=1)
            self.kernels_replaced[place] |= now[place] & differs
            self.kernels[place] = stream.columns
            self.kernels_written[place] = now[place] = True

    def _write_kernel_words(self, writes: Writes, group: Integers, offset: Integers) -> None:
        """Plain kernel words: byte 0; bytes 1 to 4; bytes 5 to 8, most significant first."""
        unit, rest = np.divmod(offset, self.chip.kernel_stride)
        column, part = rest // KERNEL_COLUMN_STRIDE_BYTES, rest // 4 % 4
        processor = group * PROCESSORS_PER_GROUP + unit
        beyond = (unit >= PROCESSORS_PER_GROUP) | (column >= self.kernels.shape[1])
        if beyond.any():
            self._refuse(int(writes.address[np.argmax(beyond)]))
        for i in np.unique(processor):
            self._check_columns(int(i), int(column[processor == i].max()) + 1)
        chosen = part == 0
        data = writes.value.astype(">u4").view(np.uint8).reshape(-1, 4)
        self.kernels[processor[chosen], column[chosen], 0] = data[chosen, 3]
        for number in (1, 2):
            chosen = part == number
            for i in range(4):
                place = processor[chosen], column[chosen], 4 * number - 3 + i
                self.kernels[place] = data[chosen, i]
        self.kernels_written[processor, column] = True
        self.kernel_version += int(len(writes) > 0)

    def _check_columns(self, processor: int, end: int) -> None:
        """Refuse a kernel column behind the last one that a processor has."""
        if end > self.chip.kernel_capacity(processor):
            self._refuse(
                self.addresses.apb_base + self.chip.kernel_address(processor, end - 1),
                f"processor {processor} has {self.chip.kernel_capacity(processor)} kernel columns",
            )

    def _refuse(self, address: int, reason: str = "the accelerator has no memory there") -> None:
        place = self.addresses.describe(address)
        raise WrongAddressError(
            "E830",
            f"write to 0x{address:08x}{f' ({place})' if place else ''}: {reason}",
            remedy=f"Check the address; the device is {self.chip.name}.",
        )
