"""The bus behind the emulated core: the accelerator, and peripherals that remember what they got.

Every write to the accelerator and to its power registers is recorded with the phase it belongs to.
Source: docs/emulator.md, "The core and its peripherals".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_

from ai8xtools.emulator.bits import bytes_at, with_bytes, word_address
from ai8xtools.emulator.cpu.io import IoArea
from ai8xtools.emulator.errors import StoppedError
from ai8xtools.emulator.firmware.computing import ComputingBlocks
from ai8xtools.emulator.firmware.system_area import SystemArea
from ai8xtools.emulator.machine.timing import MarkLog
from ai8xtools.emulator.sensors import SYSTEM_TIMER, Sensors
from ai8xtools.emulator.state.clocks import core_mhz
from ai8xtools.emulator.state.power import CLOCK_GATES, PowerLoss, is_supplied_anew, loss_by
from ai8xtools.emulator.words.addresses import (
    INSTANCES_PER_GROUP,
    AddressMap,
    control_registers,
    refuse_device,
)
from ai8xtools.emulator.words.writes import (
    WriteLog,
    Writes,
    column_words,
    merged_words,
    split_writes,
)
from device import CHIPS, MAX78000, MAX78002, Chip
from device.chip import (
    ACCELERATOR_BYTES,
    DEFAULT_APB_BASE,
    FAST_FIFO_CONTROL,
    FAST_FIFO_DATA,
    FAST_FIFO_STATUS,
    FIFO_STATUS,
    POWER_CONTROL,
    POWER_REGISTERS,
)
from device.fields import Register, flag

PERIPHERALS, PERIPHERAL_BYTES = 0x40000000, 0x100000
# Memory tests of any chip end at once and find nothing: all bits that tell the end, no error bit
_TESTS_DONE = reduce(
    or_,
    (test.done for chip in CHIPS for test in chip.memory_tests),
    MAX78002.control_registers["SRAM_TEST"].pack(cleared=1),
)
_WITHOUT_HARDWARE = "If it waits for hardware, run the network alone: --accelerator-only."
_PLL_CONTROL = 0x40000010
_CLOCK_CONTROL = 0x40000008
_CLOCKS = Register(
    "CLKCTRL",
    0,
    "Clock control",
    (
        flag("system", 13, "the clock that was chosen is ready"),
        *(
            flag(name, bit, "the oscillator is ready")
            for bit, name in enumerate(("erfo", "ertco", "iso", "ipo", "ibro", "inro"), 24)
        ),
    ),
)
_PLL = Register(
    "PLL", 0, "PLL control", (flag("enabled", 0, "it runs"), flag("ready", 1, "it is stable"))
)


_PATIENCE = 1_000_000
"""Reads of one word in a row, always with the same value, after which a program waits in vain."""
POLLS = 16
"""Reads of control registers in a row, without a write, by which a program awaits the end."""


def _in_vain(address: int) -> StoppedError:
    """Return the error of a program that waits for a register."""
    reason, remedy = "which does not change", _WITHOUT_HARDWARE
    if address == _PLL_CONTROL:
        reason = "but the PLL was not enabled"
        remedy = "Enable it first: MXC_GCR->ipll_ctrl |= MXC_F_GCR_IPLL_CTRL_EN."
    return StoppedError(
        "E825", f"the program waits for register 0x{address:08x}, {reason}", remedy=remedy
    )


class Bus:
    """Words by address, a record of writes, and registers that act.

    The chip shows itself by the first write to a group's control register, unless it is given.
    `start_requested` means that the master group was enabled and the network has not run since,
    `was_started` that it ever was.
    """

    def __init__(
        self,
        chip: Chip | None = None,
        apb_base: int = DEFAULT_APB_BASE,
        sensors: Sensors | None = None,
    ) -> None:
        self.apb_base = apb_base
        self.sensors = sensors or Sensors()
        self._first, self._end = apb_base, apb_base + ACCELERATOR_BYTES
        self.words: dict[int, int] = dict.fromkeys(CLOCK_GATES, 0xFFFFFFFF)
        self.log = WriteLog()
        self.start_requested = False
        self.was_started = False
        self.addresses: AddressMap | None = None
        self.reads: list[int] | None = None  # addresses read, while this is a list
        self.overwritten: set[int] = set()
        """Words that the program wrote since the network ran, while `reads` is a list."""
        self.own_reads: set[int] = set()
        """Those of them that it read."""
        self.read_count = 0
        """Reads of the accelerator."""
        self.marks = MarkLog()
        """What happened between the writes, reads one after the other in one."""
        self._controls: dict[int, int] = {}
        self._status: dict[int, int] = {apb_base + FIFO_STATUS: 0, FAST_FIFO_STATUS: 0}
        self._transposer: tuple[int, int] | None = None  # group, next pixel
        self._kernels: tuple[int, dict[int, int]] = (0, {})
        self._chips = control_registers(apb_base)
        self._system = SystemArea(self._start_system_timer)
        self._computing = ComputingBlocks()
        self._is_set_up = False  # no control register was written yet
        self.on_polling: Callable[[], None] = lambda: None
        """Called when a program that has started the network looks only at control registers."""
        self._lost = PowerLoss()  # by what was written to the registers of power
        self.on_loss: Callable[[PowerLoss], None] = lambda _lost: None
        """Called when groups lose what they hold."""
        self._looked_at, self._looks = (0, 0), 0  # a word that is read again and again
        self._control_reads = (0, 0)  # number of writes before them, reads of control registers
        if chip is not None:
            self._identify(chip)

    def writes(self, first: int = 0, end: int | None = None) -> Writes:
        """Return the recorded writes number `first` to `end`."""
        return self.log.writes(first, end)

    def forget_writes(self) -> None:
        """Clear the record of writes; memories keep what was written."""
        self._kernels = (0, self._kernel_words())
        self.log.clear()
        self.marks.clear()

    def is_accelerator(self, address: int) -> bool:
        """Whether writes to an address are recorded."""
        return (
            self.apb_base <= address < self.apb_base + ACCELERATOR_BYTES
            or FAST_FIFO_CONTROL <= address <= FAST_FIFO_DATA
            or POWER_CONTROL <= address < POWER_CONTROL + 4 * POWER_REGISTERS
        )

    def write(self, address: int, size: int, value: int) -> None:
        """Store 1, 2 or 4 bytes."""
        if self._first <= address < self._end or self.is_accelerator(address):
            if POWER_CONTROL <= address < POWER_CONTROL + 4 * POWER_REGISTERS:
                self._power(address, value)
            self.log.append(size, address, value)
            if self.reads is not None:
                self.overwritten.add(word_address(address))
        else:
            self.sensors.acknowledge(address, value)
            self._computing.write(address, size, value)
        if size == 4:
            self.words[address] = value
        else:
            word = word_address(address)
            self.words[word] = with_bytes(self.words.get(word, 0), address, size, value)
        if not self._is_set_up:
            chip = self._chips.get(address)
            if chip is None:
                return
            if self.addresses is None:
                self._identify(chip)
            elif self.addresses.chip is not chip:
                refuse_device(address, chip, self.addresses.chip)
            self._is_set_up = True
        if address in self._controls:
            self._control(address, value)

    def _power(self, address: int, value: int) -> None:
        """A register of power is written: groups may lose what they hold.

        That shows when they get power again: until then a program that has ended may be asked.
        """
        if not self._is_set_up:
            return
        if is_supplied_anew(self.words, address, value):
            self.on_loss(self._lost)
            self._lost = PowerLoss()
        self._lost = self._lost.with_loss(loss_by(self.words, address, value))

    @property
    def areas(self) -> tuple[IoArea, ...]:
        """The addresses of the chip beside its flash and SRAM."""
        peripherals = IoArea(
            "the peripherals' area",
            PERIPHERALS,
            PERIPHERAL_BYTES,
            self.read,
            self.write,
            peek=self.peek,
        )
        accelerator = IoArea(
            "the accelerator's area",
            self.apb_base,
            ACCELERATOR_BYTES,
            self.read,
            self.write,
            self.has_something_at,
            "--apb-base",
            f"The chip has it at 0x{DEFAULT_APB_BASE:08x}.",
            self.peek,
        )
        return peripherals, accelerator, self._system.area, self.sensors.area

    def read(self, address: int, size: int) -> int:
        """Load 1, 2 or 4 bytes."""
        word = word_address(address)
        if self.reads is not None:
            self.reads.append(word)
            if word in self.overwritten:
                self.own_reads.add(word)
        if self._first <= word < self._end:
            self._note_read(word in self._controls)
        value = self._status.get(word)
        if value is None:
            value = self._special(word)
        if self.start_requested and word in self._controls:
            self._poll()
        if value is None:
            value = self.words.get(word, 0)
        if (word, value) == self._looked_at:
            self._looks += 1
            if self._looks > _PATIENCE:
                raise _in_vain(word)
        else:
            self._looked_at, self._looks = (word, value), 0
        return bytes_at(value, address, size)

    def _start_system_timer(self, cycles: int) -> None:
        chip = self.addresses.chip if self.addresses else MAX78000
        period = cycles / core_mhz(self.words, chip)
        self.sensors.start_timer(SYSTEM_TIMER, period, period)

    def _note_read(self, is_control: bool) -> None:
        self.read_count += 1
        self.marks.read(len(self.log), control=is_control)

    def peek(self, address: int) -> int:
        """Return a byte as a debugger sees it, without any effect on the program."""
        word = word_address(address)
        value = self._status.get(word)
        return bytes_at(self.words.get(word, 0) if value is None else value, address, 1)

    def _poll(self) -> None:
        """A control register is read while the network should run."""
        writes, count = self._control_reads
        self._control_reads = (len(self.log), count + 1 if writes == len(self.log) else 1)
        if self._control_reads[1] >= POLLS:
            self._control_reads = (0, 0)
            self.on_polling()

    def has_something_at(self, address: int) -> bool:
        """Whether anything can be read at an address; all is said to be, while the chip is open."""
        if self.addresses is None or not self._first <= address < self._end:
            return True
        return self.addresses.has_something_at(address)

    def watch_reads(self) -> None:
        """Record anew what is read, and what the program has written before it reads it."""
        self.reads = []
        self.overwritten.clear()
        self.own_reads.clear()

    def finish(self) -> None:
        """Note that the network has run: the groups that took part report it."""
        assert self.addresses is not None
        self.start_requested = False
        fields = self.addresses.chip.control_registers["CTL"].by_name
        for address in self.addresses.control:
            word = self.words.get(address, 0)
            if fields["enable"].unpack(word):
                self.words[address] = fields["done"].set(word, 1)

    def _identify(self, chip: Chip) -> None:
        self.addresses = AddressMap(chip, self.apb_base)
        self._controls = {a: group for group, a in enumerate(self.addresses.control)}
        self._status |= dict.fromkeys(self.addresses.memory_tests, _TESTS_DONE)

    def _control(self, address: int, value: int) -> None:
        """A control register was written: start, stop, or prepare the transposing read port."""
        assert self.addresses is not None
        register = self.addresses.chip.control_registers["CTL"].unpack(value)
        group = self._controls[address]
        if group == 0:  # the master group
            self.start_requested = bool(register["enable"])
            self.was_started |= self.start_requested
        self._transposer = (group, -1) if register["mlator"] else None

    def _special(self, word: int) -> int | None:
        """Return what a register that is not plain memory reads, else None."""
        if word == _CLOCK_CONTROL:
            value = self.words.get(word, 0)
            for ready in _CLOCKS.fields:
                value = ready.set(value, 1)
            return value
        if word == _PLL_CONTROL:
            enabled = _PLL.unpack(self.words.get(word, 0))["enabled"]
            return _PLL.by_name["ready"].set(self.words.get(word, 0), enabled)
        if not self._first <= word < self._end:
            computed = self._computing.read(word)
            return self.sensors.peripheral(word) if computed is None else computed
        if self.addresses is None or not self.is_accelerator(word):
            return None
        if self._transposer and word == self.addresses.transposers[self._transposer[0]]:
            return self._transposed()
        offset = (word - self.apb_base - self.addresses.chip.cnn_offset) % (
            self.addresses.chip.group_stride
        )
        if self.addresses.chip.kernel_offset <= offset < self.addresses.chip.data_offset:
            return self._kernel_words().get(word, 0)
        return None

    def _kernel_words(self) -> dict[int, int]:
        """The kernel memories as plain reads see them, decoded anew after further writes."""
        length, words = self._kernels
        if length != len(self.log):
            assert self.addresses is not None
            split = split_writes(self.writes(length), self.addresses)
            words = merged_words(split.plain, words)
            for stream in split.streams:
                words.update(column_words(stream, self.addresses))
            self._kernels = (len(self.log), words)
        return words

    def _transposed(self) -> int:
        """Four successive pixels of one byte lane; the first read after selecting it is void.

        Hardware layer 0 holds the position (write pointer) and the number of passes to leave out.
        Source: docs/hardware/execution.md, "Unloading".
        """
        assert self.addresses is not None and self._transposer is not None
        group, pixel = self._transposer
        self._transposer = (group, pixel + 1)
        if pixel < 0:
            return 0
        chip = self.addresses.chip

        def register(name: str) -> dict[str, int]:
            address = self.apb_base + chip.layer_address(group, 0, name)
            return chip.layer_registers[name].unpack(self.words.get(address, 0))

        control = chip.control_registers["CTL"].unpack(self.words[self.addresses.control[group]])
        pointer = register("WPTR_BASE")["pointer"] + register("LCTL2")["passes"]
        instance, word = divmod(pointer, chip.write_pointer_words)
        start = self.apb_base + chip.data_address(
            group * INSTANCES_PER_GROUP + instance % INSTANCES_PER_GROUP, 4 * word
        )
        lane, pixels = control["mlator_lane"], start + 16 * pixel
        words = (self.words.get(pixels + 4 * i, 0) for i in range(4))
        return int.from_bytes(bytes(bytes_at(word, lane, 1) for word in words), "little")
