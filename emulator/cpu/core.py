"""The core that runs the firmware, a Cortex-M4 or RISC-V, on unicorn.

The accelerator and the peripherals are mapped as I/O, so that every access reaches `Bus`. That also
makes stores in a Thumb IT block work, which observed stores to memory do not. What unicorn cannot
do is stop in the middle of such an access and go on later: it would repeat the access. Therefore
interrupts come when the program sleeps, for which unicorn stops, or, if it waits in a loop, only
while it leaves the bus alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from unicorn import (
    UC_HOOK_MEM_INVALID,
    UC_MEM_WRITE_PROT,
    UC_MEM_WRITE_UNMAPPED,
    UC_PROT_EXEC,
    UC_PROT_READ,
    Uc,
    UcError,
)

from device.chip import ACCELERATOR_BYTES, DEFAULT_APB_BASE, FLASH_BASE, SRAM_BASE
from emulator.cpu.architecture import ARCHITECTURES
from emulator.cpu.elf import Image
from emulator.cpu.memory_map import ROOMY_BYTES, CoreMemory
from emulator.errors import EmulatorError
from emulator.firmware.bus import PERIPHERAL_BYTES, PERIPHERALS, Bus
from emulator.firmware.compiling import PORT

RAM, MEMORY_BYTES = SRAM_BASE, ROOMY_BYTES
SYSTEM, PAGE = 0xE000E000, 0x1000
RETURN = FLASH_BASE - PAGE  # where called functions return to; nothing stands there
IDLE_SECONDS = 0.02  # a program that leaves the bus alone for so long is waiting
DEFAULT_SECONDS = 60.0

_CONSOLE, _ABORT, _STOPWATCH = range(0, 12, 4)  # the port, see sdk/runtime.c


class Observer(Protocol):
    """Whoever wants to know what the program does."""

    def text(self, character: str) -> None:
        """The program prints a character."""

    def wait(self, sleeping: bool) -> int:
        """The program waits for an interrupt; return the number of the one that comes, or 0."""

    @property
    def expecting(self) -> bool:
        """Whether an interrupt will come, so that a program without accesses may wait for it."""


class _Nobody:
    def text(self, character: str) -> None:
        """Take no notice."""

    def wait(self, sleeping: bool) -> int:  # noqa: ARG002
        """Raise no interrupt."""
        return 0

    @property
    def expecting(self) -> bool:
        """Expect none."""
        return False


class Core:
    """A core with the program `image` loaded and `bus` behind it; the program tells which core.

    `memory` tells the sizes of flash and SRAM. Raises EmulatorError (E813) if the program needs
    more, (E826) if the base address of the accelerator is impossible.
    """

    def __init__(
        self,
        image: Image,
        bus: Bus,
        observer: Observer | None = None,
        memory: CoreMemory | None = None,
    ) -> None:
        self._memory = memory or CoreMemory()
        self._memory.check(image)
        self.image = image
        self.architecture = ARCHITECTURES[image.machine]
        self.bus = bus
        self.observer = observer or _Nobody()
        self._stopped = False
        self._fault: Exception | None = None
        self._accesses = 0
        self._uc = self._core()

    def has(self, name: str) -> bool:
        """Tell whether the program defines a function or object."""
        return name in self.image.symbols

    def call(self, name: str, *arguments: int, time_limit: float = DEFAULT_SECONDS) -> int | None:
        """Call a function with up to four integer arguments and return its signed result.

        The result is None if `stop` ended the run. Raises EmulatorError: no such function (E821),
        it touches an unmapped address (E820) or does not return in time (E822).
        """
        if not self.has(name):
            raise EmulatorError(
                "E821",
                f"the program has no function {name}()",
                remedy="The functions of a generated project must exist and must not be static.",
            )
        self._stopped = False
        core = self.architecture
        self._uc.reg_write(core.stack, SRAM_BASE + self._memory.sram_bytes)
        with self._watched(time_limit):
            self._run_function(self.image.symbols[name], *arguments)
        result = int(self._uc.reg_read(core.arguments[0]))
        return None if self._stopped else result - (result >> 31 << 32)

    def run(self, time_limit: float = DEFAULT_SECONDS) -> int | None:
        """Run main() from reset and return what it returns, else as `call`."""
        return self.call("reset_handler", time_limit=time_limit)

    def stop(self) -> None:
        """End the run; the core cannot go on from there."""
        self._stopped = True
        self._uc.emu_stop()

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of flash or RAM."""
        return bytes(self._uc.mem_read(address, size))

    def write_memory(self, address: int, data: bytes) -> None:
        """Place bytes in flash or RAM."""
        self._uc.mem_write(address, data)

    def _core(self) -> Any:
        core = self.architecture
        uc = Uc(core.unicorn_architecture, core.unicorn_mode)
        uc.ctl_set_cpu_model(core.unicorn_model)
        uc.mem_map(FLASH_BASE, self._memory.flash_bytes, UC_PROT_READ | UC_PROT_EXEC)
        uc.mem_map(SRAM_BASE, self._memory.sram_bytes)
        uc.mem_map(RETURN, PAGE, UC_PROT_EXEC)
        for base, size in (
            (PERIPHERALS, PERIPHERAL_BYTES),
            (self.bus.apb_base, ACCELERATOR_BYTES),
            (SYSTEM, PAGE),
        ):
            self._map(uc, base, size, self.bus.read, self.bus.write)
        self._map(uc, PORT, PAGE, self._port_read, self._port_write)
        uc.hook_add(UC_HOOK_MEM_INVALID, self._invalid)
        for address, data in self.image.segments:
            uc.mem_write(address, data)
        return uc

    def _map(
        self,
        uc: Any,
        base: int,
        size: int,
        read: Callable[[int, int], int],
        write: Callable[[int, int, int], None],
    ) -> None:
        """Map I/O; an exception there ends the run and is raised again outside."""

        def on_read(_uc: Any, offset: int, width: int, _data: object) -> int:
            self._accesses += 1
            try:
                if not self.bus.is_mapped(base + offset):
                    raise self._to_nothing("reads", base + offset)
                return read(base + offset, width)
            except Exception as exc:
                self._fail(exc)
                return 0

        def on_write(_uc: Any, offset: int, width: int, value: int, _data: object) -> None:
            self._accesses += 1
            try:
                write(base + offset, width, value)
            except Exception as exc:
                self._fail(exc)

        try:
            uc.mmio_map(base, size, on_read, None, on_write, None)
        except UcError:
            raise EmulatorError(
                "E826",
                f"the accelerator's area at 0x{self.bus.apb_base:08x} overlaps memory or other "
                "peripherals, or is not aligned",
                "--apb-base",
                f"The chip has it at 0x{DEFAULT_APB_BASE:08x}.",
            ) from None

    def _fail(self, reason: Exception) -> None:
        self._fault = self._fault or reason
        self._uc.emu_stop()

    def _run_function(self, address: int, *arguments: int) -> None:
        """Run the function at an address until it returns, delivering interrupts on the way."""
        uc, core = self._uc, self.architecture
        uc.reg_write(core.link, RETURN | core.code_bit)
        for register, value in zip(core.arguments, arguments, strict=False):
            uc.reg_write(register, value)
        position = address
        while True:
            try:
                uc.emu_start(position | core.code_bit, RETURN)
            except UcError as exc:
                raise self._fault or self._crash(exc) from None
            if self._fault:
                raise self._fault
            position = uc.reg_read(core.position) & ~core.code_bit
            if self._stopped or position == RETURN:
                return
            interrupt = self.observer.wait(self._sleeps(position))
            if self._stopped:
                return
            if interrupt:
                context = uc.context_save()
                self._run_function(self.image.symbols["emulator_interrupt"], interrupt)
                uc.context_restore(context)

    def _sleeps(self, position: int) -> bool:
        """Tell whether the instruction in front of a position waits for an interrupt."""
        return any(
            self.read_memory(position - len(code), len(code)) == code
            for code in self.architecture.sleep_instructions
        )

    @contextmanager
    def _watched(self, time_limit: float) -> Iterator[None]:
        """Stop the core when time is up, or when it waits for the network without sleeping."""
        finished = threading.Event()
        deadline = time.monotonic() + time_limit

        def watch() -> None:
            accesses = -1
            while not finished.wait(IDLE_SECONDS):
                idle = accesses == self._accesses
                accesses = self._accesses
                if time.monotonic() > deadline:
                    self._fail(self._too_late(time_limit))
                elif idle and self.observer.expecting:
                    self._uc.emu_stop()

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            finished.set()
            thread.join()

    def _port_read(self, address: int, _size: int) -> int:
        return 1 if address == PORT + _STOPWATCH else 0

    def _port_write(self, address: int, _size: int, value: int) -> None:
        if address == PORT + _CONSOLE:
            self.observer.text(chr(value))
        elif address == PORT + _ABORT:
            raise EmulatorError("E824", "the program calls abort()")

    def _invalid(
        self, _uc: Any, access: int, address: int, _size: int, _value: int, _data: object
    ) -> bool:
        """Remember an access to an address where nothing is mapped; the core then stops."""
        verb = "writes to" if access in (UC_MEM_WRITE_UNMAPPED, UC_MEM_WRITE_PROT) else "reads"
        protected = access == UC_MEM_WRITE_PROT
        what = "which is not writable" if protected else "where the chip has nothing"
        self._fault = self._to_nothing(verb, address, what)
        return False

    def _to_nothing(
        self, verb: str, address: int, what: str = "where the chip has nothing"
    ) -> EmulatorError:
        place = self.image.function_at(self._uc.reg_read(self.architecture.position))
        return EmulatorError(
            "E820",
            f"{place} {verb} address 0x{address:08x}, {what}",
            remedy="Check pointers and array bounds; with another APB base, name it.",
        )

    def _crash(self, error: UcError) -> EmulatorError:
        position = self._uc.reg_read(self.architecture.position)
        place = self.image.function_at(position)
        return EmulatorError("E820", f"{place} fails at 0x{position:08x}: {error}")

    def _too_late(self, time_limit: float) -> EmulatorError:
        return EmulatorError(
            "E822",
            f"the program does not finish within {time_limit:g} s",
            remedy="Give it more time if the network is large; else look for an endless loop.",
        )
