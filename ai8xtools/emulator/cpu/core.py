"""A core that runs a compiled program, on unicorn.

Peripherals are mapped as I/O, so that every access reaches them. That also makes stores in a Thumb
IT block work, which observed stores to memory do not. What unicorn cannot do is stop in the middle
of such an access and go on later: it would repeat the access. Therefore interrupts come when the
program sleeps, for which unicorn stops, or, if it waits in a loop, only while it leaves the bus
alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from unicorn import (
    UC_HOOK_BLOCK,
    UC_HOOK_CODE,
    UC_HOOK_MEM_INVALID,
    UC_HOOK_MEM_READ,
    UC_MEM_WRITE_PROT,
    UC_MEM_WRITE_UNMAPPED,
    UC_PROT_EXEC,
    UC_PROT_READ,
    Uc,
    UcError,
)

from ai8xtools.emulator.bits import WORD_BITS, signed
from ai8xtools.emulator.cpu.debugging import Debugger, DebugTarget
from ai8xtools.emulator.cpu.elf import Image
from ai8xtools.emulator.cpu.io import CoreObserver, IoArea, Peripherals, Unobserved
from ai8xtools.emulator.cpu.memory_map import ROOMY_BYTES, CoreMemory
from ai8xtools.emulator.cpu.port import Port
from ai8xtools.emulator.cpu.spinning import Spin
from ai8xtools.emulator.cpu.watchdog import watched
from ai8xtools.emulator.errors import EmulatorError, OutOfTimeError, StoppedError
from device.chip import SRAM_BASE, WORD_BYTES

RAM, MEMORY_BYTES = SRAM_BASE, ROOMY_BYTES
PAGE = 0x1000
DEFAULT_SECONDS = 60.0
INTERRUPT = "emulator_interrupt"
"""Function of the program that gets the number of an interrupt."""
_ENDLESS = 1_000_000
"""A program that is out of time counts as stuck after so many instructions without an access to a
register.
"""


_SPIN_SECONDS = 0.1
"""Of processor time without an access to a register, after which a program may wait in vain."""


class _LateError(Exception):
    """Time is up; the program has stopped."""


class Core:
    """A core with the program `image` loaded, `peripherals` on its bus; the program tells which.

    `memory` tells the sizes of flash and SRAM. Raises EmulatorError (E813) if the program needs
    more, (E826) if the addresses of a peripheral are impossible.
    """

    def __init__(
        self,
        image: Image,
        peripherals: Peripherals | None = None,
        observer: CoreObserver | None = None,
        memory: CoreMemory | None = None,
    ) -> None:
        self._memory = memory or CoreMemory()
        self._memory.check(image)
        self.image = image
        self.architecture = image.architecture
        self.observer = observer or Unobserved()
        self._family = image.architecture.family
        self._port = self._new_port()
        self._areas = [*(peripherals.areas if peripherals else ()), *self._port.areas]
        self._stopped = False
        self._exit_code: int | None = None
        self._fault: Exception | None = None
        self._late = False
        self._probing = False  # accesses have no effect and end the run
        self._accesses = 0
        self._own_accesses = 0  # those that are not of handlers
        self._quiet = (0, 0.0, _SPIN_SECONDS)  # own accesses, since when, and when it is suspected
        self._suspected = False
        self._spin: Spin | None = None
        self.on_tick: Callable[[], None] = lambda: None
        """Called now and then by another thread while the program runs."""
        self.slept = 0.0
        """Microseconds that have passed while the program slept."""
        self._accessing = False  # in the middle of one
        self._halting = False  # from outside: an access meanwhile is made again, so does nothing
        self._uc = self._core()
        self._debugger: Debugger | None = None
        self._target = DebugTarget(self._uc, self.architecture, self._memory, self._areas)
        self._paused = False  # the debugger has stopped the program
        self._depth = 0  # handlers of interrupts that are running
        self._debugging: Any = None  # hook of unicorn

    def has(self, name: str) -> bool:
        """Tell whether the program defines a function or object."""
        return name in self.image.symbols

    def call(self, name: str, *arguments: int, time_limit: float = DEFAULT_SECONDS) -> int | None:
        """Call a function with up to four integer arguments and return its signed result.

        The result is None if `stop` ended the run, and the status if exit() did. Raises
        EmulatorError: no such function (E821), it touches an unmapped address (E820) or does not
        return in time (E822).
        """
        if not self.has(name):
            raise StoppedError(
                "E821",
                f"the program has no function {name}()",
                remedy="The functions of a generated project must exist and must not be static.",
            )
        self._stopped, self._exit_code, self._late = False, None, False
        self._paused, self._depth = False, 0
        core = self._family
        self._uc.reg_write(core.stack, self._memory.sram_base + self._memory.sram_bytes)
        try:
            with watched(
                time_limit, lambda: self._accesses, self._end_for_time, self._look,
                self._uc.emu_stop,
            ):  # fmt: skip
                self._run_function(self.image.symbols[name], *arguments)
        except _LateError:
            raise self._too_late(time_limit) from None
        result = int(self._uc.reg_read(core.arguments[0]))
        return self._exit_code if self._stopped else signed(result, WORD_BITS)

    def keeps_registers(self, call: Callable[[], object]) -> bool:
        """Return whether a call leaves all registers as it finds them that functions must keep."""
        values = {register: 0xA5A5_5A00 + register for register in self._family.kept}
        for register, value in values.items():
            self._uc.reg_write(register, value)
        call()
        return all(self._uc.reg_read(register) == value for register, value in values.items())

    def run(self, time_limit: float = DEFAULT_SECONDS) -> int | None:
        """Run main() from reset and return what it returns, else as `call`."""
        try:
            status = self.call("reset_handler", time_limit=time_limit)
        except EmulatorError as error:
            if self._debugger is not None:
                self._debugger.failed(self._target, error)
            raise
        if self._debugger is not None:
            self._debugger.ended(status)
            self._detach()
        return status

    def attach(self, debugger: Debugger) -> None:
        """Let a debugger watch the program while it runs."""
        self._debugger = debugger
        self._debugging = self._uc.hook_add(UC_HOOK_CODE, self._before_instruction)

    def stop(self) -> None:
        """End the run; the core cannot go on from there."""
        self._stopped = True
        self._uc.emu_stop()

    def now(self) -> float:
        """Return the microseconds since the start of the program: estimated, and waited."""
        return self._port.now()

    def pass_time(self, microseconds: float) -> None:
        """Let time pass."""
        self._port.microseconds += microseconds

    def read_memory(self, address: int, size: int) -> bytes:
        """Return bytes of flash or RAM; raises EmulatorError (E820) where there is nothing."""
        try:
            return bytes(self._uc.mem_read(address, size))
        except UcError:
            raise self._to_nothing("reads", address) from None

    def write_memory(self, address: int, data: bytes) -> None:
        """Place bytes in flash or RAM; raises EmulatorError (E820) where there is nothing."""
        try:
            self._uc.mem_write(address, data)
        except UcError:
            raise self._to_nothing("writes to", address) from None

    def check_buffer(self, address: int, size: int) -> None:
        """Raise EmulatorError (E820) if a buffer for DMA, of so many bytes, is not all in SRAM."""
        memory = self._memory
        end = memory.sram_base + memory.sram_bytes
        if not memory.sram_base <= address <= end - size:
            raise StoppedError(
                "E820",
                f"{self._place()} is given a buffer from 0x{address:08x} to "
                f"0x{address + size - 1:08x}; SRAM is from 0x{memory.sram_base:08x} to "
                f"0x{end - 1:08x}",
                remedy="Check the address of the buffer, and its size in bytes.",
            )

    def _place(self) -> str:
        """Return the function that runs."""
        return self.image.function_at(self._uc.reg_read(self._family.position))

    def _write_flash(self, address: int, data: bytes) -> None:
        """Write into flash memory, as its controller does."""
        memory = self._memory
        if not memory.flash_base <= address <= memory.flash_base + memory.flash_bytes - len(data):
            raise self._to_nothing("writes flash memory at", address)
        self.write_memory(address, data)

    def watch_blocks(self, enter: Callable[[int, int], None]) -> None:
        """Have a function called with address and size of each block of code before it runs.

        An exception that it raises ends the run and is raised again outside.
        """

        def on_block(_uc: Any, address: int, size: int, _data: object) -> None:
            try:
                enter(address, size)
            except Exception as exc:
                self._fail(exc)

        self._uc.hook_add(UC_HOOK_BLOCK, on_block)

    def return_address(self) -> int:
        """Return where the function that has just been called will return to."""
        core = self._family
        return int(self._uc.reg_read(core.link)) & ~core.code_bit

    def take_the_place_of(
        self, functions: Mapping[str, Callable[[], None]], instead: IoArea | None = None
    ) -> None:
        """Have functions outside of the program called in the place of some of its own.

        They find `argument`s. Exceptions end the run and are raised again outside. All accesses to
        the area `instead`, whole pages of SRAM, are answered by it.
        """
        family = self._family
        places = {self.image.symbols[name] & ~family.code_bit: name for name in functions}
        for address in places:
            self.write_memory(address, family.return_instruction)
        if instead is not None:
            self._uc.mem_unmap(instead.base, instead.size_bytes)
            self._map(self._uc, instead)
        self.watch_blocks(
            lambda address, _: functions[places[address]]() if address in places else None
        )

    def argument(self, number: int) -> int:
        """Return an argument, a word, of the function that has just been called."""
        registers = self.image.architecture.arguments
        if number < len(registers):
            return int(self._uc.reg_read(registers[number]))
        place = int(self._uc.reg_read(self._family.stack)) + WORD_BYTES * (number - len(registers))
        return int.from_bytes(self.read_memory(place, WORD_BYTES), "little")

    def addresses_read(self, name: str, *, time_limit: float = DEFAULT_SECONDS) -> set[int]:
        """Call a function, as `call` does, and return the addresses in flash and RAM it reads."""
        addresses: set[int] = set()

        def note(_uc: Any, _kind: int, address: int, *_rest: object) -> None:
            addresses.add(address)

        hook = self._uc.hook_add(UC_HOOK_MEM_READ, note)
        self._uc.ctl_flush_tb()  # what is translated already does not know the hook
        try:
            self.call(name, time_limit=time_limit)
        finally:
            self._uc.hook_del(hook)
            self._uc.ctl_flush_tb()
        return addresses

    def _new_port(self) -> Port:
        def leave(status: int) -> None:
            self._exit_code = status
            self.stop()

        return Port(self.observer, self.read_memory, self._write_flash, leave)

    def _core(self) -> Any:
        memory = self._memory
        uc = Uc(self._family.unicorn_architecture, self._family.unicorn_mode)
        uc.ctl_set_cpu_model(self.architecture.unicorn_model)
        uc.mem_map(memory.flash_base, memory.flash_bytes, UC_PROT_READ | UC_PROT_EXEC)
        uc.mem_map(memory.sram_base, memory.sram_bytes)
        uc.mem_map(self._return, PAGE, UC_PROT_EXEC)
        for area in self._areas:
            self._map(uc, area)
        uc.hook_add(UC_HOOK_MEM_INVALID, self._invalid)
        for address, data in self.image.segments:
            uc.mem_write(address, data)
        return uc

    @property
    def _return(self) -> int:
        """The address that called functions return to; there is no code at it."""
        return self._memory.flash_base - PAGE

    def _map(self, uc: Any, area: IoArea) -> None:
        """Map I/O; an exception there ends the run and is raised again outside."""

        def on_read(_uc: Any, offset: int, width: int, _data: object) -> int:
            self._accesses += 1
            self._own_accesses += not self._depth
            if self._probing or self._halting:
                self._uc.emu_stop()
                return 0
            self._accessing = True
            try:
                address = area.base + offset
                if not area.has_something_at(address):
                    raise self._to_nothing("reads", address)
                return area.read(address, width)
            except Exception as exc:
                self._fail(exc)
                return 0
            finally:
                self._accesses += 1  # a program that goes on after a long one is not idle
                self._accessing = False

        def on_write(_uc: Any, offset: int, width: int, value: int, _data: object) -> None:
            self._accesses += 1
            self._own_accesses += not self._depth
            if self._probing or self._halting:
                self._uc.emu_stop()
                return
            self._accessing = True
            try:
                area.write(area.base + offset, width, value)
            except Exception as exc:
                self._fail(exc)
            finally:
                self._accesses += 1  # a program that goes on after a long one is not idle
                self._accessing = False

        try:
            uc.mmio_map(area.base, area.size_bytes, on_read, None, on_write, None)
        except UcError:
            raise EmulatorError(
                "E826",
                f"{area.name} at 0x{area.base:08x} overlaps memory or other peripherals, or is not "
                "aligned",
                area.option,
                area.remedy,
            ) from None

    def _fail(self, reason: Exception) -> None:
        self._fault = self._fault or reason
        self._uc.emu_stop()

    def _run_function(self, address: int, *arguments: int, back: int | None = None) -> None:
        """Run the function at an address until it returns, delivering interrupts on the way.

        It returns to `back`, where a debugger looks for who has called it; else to nowhere.
        """
        uc, core = self._uc, self._family
        back = self._return if back is None else back
        stack = uc.reg_read(core.stack)
        uc.reg_write(core.link, back | core.code_bit)
        for register, value in zip(core.arguments, arguments, strict=False):
            uc.reg_write(register, value)
        position = address
        while True:
            try:
                passes = position == back  # it executes what it returns to
                until = self._return if passes else back
                uc.emu_start(position | core.code_bit, until, count=int(passes))
            except UcError as exc:
                raise self._fault or self._crash(exc) from None
            finally:
                self._halting = False
                spin, self._spin = self._spin, None
                if spin is not None:
                    spin.end()
            if self._fault:
                raise self._fault
            if self._late:
                raise _LateError
            if self._paused:
                self._debug()
            position = uc.reg_read(core.position) & ~core.code_bit
            if self._stopped or (position == back and uc.reg_read(core.stack) == stack):
                return
            if spin is not None and spin.repeats:
                self.observer.spins(self._place(), self._variables(spin.reads))
            if self._paused or passes or position == back or spin is not None:
                self._paused = False
                continue
            sleeps, began = self._sleeps(position), self.now()
            interrupt = self.observer.wait(sleeps)
            if self._stopped:
                return
            if interrupt:
                context = uc.context_save()
                self._interrupt(interrupt, position)
                uc.context_restore(context)
            self.slept += (self.now() - began) * sleeps
            if self._suspected:
                self._suspected = False
                if not sleeps and not self._depth and not self.observer.live:
                    self._spin = Spin(uc, core, self._memory)

    def _variables(self, addresses: Iterable[int]) -> list[str]:
        """Return the variables at addresses, each with the first of these."""
        names: dict[str, str] = {}
        for address in sorted(addresses):
            held = (n for at, size, n in self.image.objects if at <= address < at + size)
            name = next(held, "")
            names.setdefault(name or str(address), f"{name} (0x{address:08x})".lstrip())
        return [*names.values()]

    def _interrupt(self, number: int, position: int) -> None:
        """Run the handler of an interrupt that comes before the instruction at a position."""
        back = None
        if self._debugger is not None:
            back = position
            self._uc.ctl_flush_tb()  # what is translated already does not end there
        self._depth += 1
        self._run_function(self.image.symbols[INTERRUPT], number, back=back)
        self._depth -= 1
        if back is not None:
            self._uc.ctl_flush_tb()

    def _before_instruction(self, _uc: Any, address: int, _size: int, _data: object) -> None:
        if self._debugger is not None and self._debugger.stops_before(address, self._depth):
            self._paused = True
            self._uc.emu_stop()

    def _debug(self) -> None:
        """Let the debugger do what it wants with the program that it has stopped."""
        assert self._debugger is not None
        self._debugger.stopped(self._target, self._depth)
        self._stopped = self._stopped or self._target.wants_end
        if self._target.wants_detach:
            self._detach()

    def _detach(self) -> None:
        """Let the program go on without a debugger."""
        self._debugger = None
        self._uc.hook_del(self._debugging)
        self._uc.ctl_flush_tb()

    def _sleeps(self, position: int) -> bool:
        """Tell whether the instruction in front of a position waits for an interrupt."""
        return any(
            self.read_memory(position - len(code), len(code)) == code
            for code in self._family.sleep_instructions
        )

    def _look(self, idle: bool) -> bool:
        """Stop for the interrupt that the idle program waits for, or for good at its end."""
        self.on_tick()
        accesses, accessing = self._accesses, self._accessing
        if self.observer.satisfied:
            self.stop()
            return False
        if not idle or accessing or self._accesses != accesses:
            return False
        expecting = self.observer.expecting
        self._suspected = self._suspected or self._has_long_been_quiet()
        if expecting or self._suspected:
            self._halting = True
            self._uc.emu_stop()
        return expecting

    def _has_long_been_quiet(self) -> bool:
        """Whether it has computed for long without an access; then again after twice the time."""
        count, since, patience = self._quiet
        now = time.process_time()
        if count != self._own_accesses or self._debugger is not None:
            self._quiet = self._own_accesses, now, _SPIN_SECONDS
        elif now - since > patience:
            self._quiet = count, since, 2 * patience
            return True
        return False

    def _end_for_time(self) -> None:
        self._late = True
        self._uc.emu_stop()

    def _is_stuck(self) -> bool:
        """Let a stopped program go on; return whether it computes for long and does nothing else.

        It ends at its next access, which has no effect, or when it sleeps or returns. So this
        depends on the program alone and not on how busy the machine is.
        """
        uc, core = self._uc, self._family
        accesses, position = self._accesses, uc.reg_read(core.position) & ~core.code_bit
        uc.ctl_flush_tb()  # code translated before does not count
        self._probing = True
        try:
            uc.emu_start(position | core.code_bit, self._return, count=_ENDLESS)
        except UcError:
            return False
        finally:
            self._probing = False
        position = uc.reg_read(core.position) & ~core.code_bit
        ended = position == self._return or self._sleeps(position)
        return self._accesses == accesses and not ended

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
        place = self._place()
        return StoppedError(
            "E820",
            f"{place} {verb} address 0x{address:08x}, {what}",
            remedy="Check pointers and array bounds; with another APB base, name it.",
        )

    def _crash(self, error: UcError) -> EmulatorError:
        position = self._uc.reg_read(self._family.position)
        place = self.image.function_at(position)
        return StoppedError("E820", f"{place} fails at 0x{position:08x}: {error}")

    def _too_late(self, time_limit: float) -> OutOfTimeError:
        place = self._place()
        remedy = "Give it more time with --time-limit."
        if self._is_stuck():
            remedy = f"{place} reads and writes no register: it looks like an endless loop."
        return OutOfTimeError(
            "E822",
            f"the program does not finish within {time_limit:g} s; it is in {place}",
            remedy=remedy,
        )
