"""A chip with firmware: the cores, the bus and the accelerator together, running main().

Source: docs/emulator.md, "The core and its peripherals"; docs/generated-project.md, "Console".
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from ai8xtools.emulator.bits import WORD_LIMIT, changed
from ai8xtools.emulator.checks.finding import LayerFinding
from ai8xtools.emulator.cpu.architecture import CORTEX_M4
from ai8xtools.emulator.cpu.core import DEFAULT_SECONDS, Core
from ai8xtools.emulator.cpu.debugging import Debugger
from ai8xtools.emulator.cpu.elf import Image
from ai8xtools.emulator.cpu.memory_map import CoreMemory
from ai8xtools.emulator.decode.own_input import input_values
from ai8xtools.emulator.errors import EmulatorError, OutOfTimeError, StoppedError
from ai8xtools.emulator.firmware.bus import Bus
from ai8xtools.emulator.firmware.compiling import compile_firmware
from ai8xtools.emulator.firmware.interrupts import (
    TIMER_INTERRUPTS,
    WAKE_INTERRUPT,
    accelerator_interrupt,
    interrupt_name,
    may_go_on,
)
from ai8xtools.emulator.firmware.progress import ALONE, FAIL, PASS, Progress
from ai8xtools.emulator.firmware.starter import Starter
from ai8xtools.emulator.firmware.timekeeping import Timekeeper
from ai8xtools.emulator.machine.accelerator import Accelerator, NetworkRun
from ai8xtools.emulator.project.tree import TreeOptions
from ai8xtools.emulator.sensors import LOW_POWER, OFF, RESTART, UART, Recorded, Sensors
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.state.power import (
    CPU1_CLOCK,
    PowerLoss,
    check_clock,
    is_running,
    loss_asleep,
)
from ai8xtools.emulator.words.addresses import DATA
from ai8xtools.values import frozen
from device import Chip
from device.chip import DEFAULT_APB_BASE
from device.fields import Register, flag

PROBING_SECONDS = 2.0
_PROBES = 16
_MICROSECONDS = 1e6
_SHORTEST_SPIN_US, _LONGEST_SPIN_US = 1_000.0, 20_000.0
_COMPARISONS = ("check_output", "cnn_check")  # the second name is that of the first SDKs
_OK = 1
_SEMAPHORE_INTERRUPT = 0x4003E040
_SEMAPHORE = Register("IRQ0", 0, "Semaphore interrupt", (flag("wake", 16, "wakes the Arm core"),))
_HEXADECIMAL = re.compile(r"0x([0-9a-fA-F]{1,8})\b")


@frozen
class FirmwareOutcome:
    """How a program ended: what it printed and what main() returned (None: it did not return).

    `run` is the last inference, `inferences` their number; `failed_at` the address of the data word
    that the program read last before it reported failure. `started` means that the accelerator was
    started at all, `read` holds the addresses that were read after the last inference, `own` those
    of them that the program had written itself. `errors` are the findings of any inference by which
    the program is wrong, whatever its result.
    """

    console: str
    exit_code: int | None
    inferences: int
    run: NetworkRun | None
    failed_at: int | None
    started: bool = False
    read: frozenset[int] = frozenset()
    errors: tuple[LayerFinding, ...] = ()
    own: frozenset[int] = frozenset()

    @property
    def reported_failure(self) -> bool:
        """Whether the program reported that a result is wrong."""
        return FAIL in self.console

    @property
    def reported_success(self) -> bool:
        """Whether the program reported success and never failure."""
        return PASS in self.console and not self.reported_failure

    @property
    def passed(self) -> bool:
        """Whether the program reported success, and nothing is wrong with its registers."""
        return self.reported_success and not self.errors


class Board:
    """A board with a compiled program. `on_text` gets what it prints, as it prints it.

    With a `wrapper`, that program runs on the Arm core, and starts `image` on the RISC-V core.
    Unless `chip` is given, the device follows from the first register that the program writes, and
    the size of flash is not limited to that of the chip, that of SRAM to that of `sram_of`.
    """

    def __init__(
        self,
        image: Image,
        chip: Chip | None = None,
        apb_base: int = DEFAULT_APB_BASE,
        on_text: Callable[[str], None] = lambda _text: None,
        wrapper: Image | None = None,
        recorded: Recorded | None = None,
        sram_of: Chip | None = None,
    ) -> None:
        self.chip = chip
        self.sensors = Sensors(recorded)
        self.bus = Bus(chip, apb_base, self.sensors)
        memory = CoreMemory()
        if chip:
            memory = CoreMemory(chip.flash_bytes, chip.sram_bytes, chip.name)
        elif sram_of:
            memory = CoreMemory(sram_bytes=sram_of.sram_bytes, owner=sram_of.name)
        self.wrapper: Core | None = None
        if wrapper is not None:
            self.wrapper = Core(wrapper, self.bus, Starter(self), memory)
            memory = memory.without_flash(memory.flash_use(wrapper))
        self.core = core = Core(image, self.bus, self, memory)
        self.sensors.attach(
            core.write_memory, core.now, core.pass_time, core.stop, core.check_buffer
        )
        self.first_run: NetworkRun | None = None
        self.progress = Progress()
        self.repeats = False
        """Whether the program was ended because it did the same again and again."""
        self.waits = ""
        """What the program waits for in vain, once the output of its network has been read."""
        self.time = Timekeeper(self.bus)
        self.last_run: NetworkRun | None = None
        self.first_memory: Memory | None = None
        """The memory of the accelerator before the network ran for the first time."""
        self.inputs: set[int] = set()
        """Hashes of the inputs that the network had."""
        self.before_first_run: Callable[[Memory], None] | None = None
        """Gets the memory of the accelerator before the network runs for the first time."""
        self.before_later_run: Callable[[Memory], None] | None = None
        """The same, each time after that."""
        self.time_limit = DEFAULT_SECONDS
        self.notes: tuple[str, ...] = ()
        """What the user should know about how the program was compiled."""
        self.repetitions: tuple[str, ...] = ()
        """Loops of the program that repeat parts of an inference."""
        self._errors: dict[LayerFinding, None] = {}  # of all inferences, each once
        self._on_text = on_text
        self._captured: str | None = None  # what is printed while check_output() is tried
        self._accelerator: Accelerator | None = None
        self._read_before: set[int] = set()  # addresses read after earlier inferences
        self._applied = 0  # writes of the bus that the accelerator has seen
        self._asked_at = 0.0  # whether it waits, in seconds of processor time
        self._polled = False  # the network has run, and its interrupt has still to come
        self.bus.on_polling = self._run_while_polled
        self.bus.on_loss = self._lose
        self.sensors.on_mode = self._enter
        self.sensors.serial.on_text = self.text

    @classmethod
    def with_project(
        cls,
        project: Path | str,
        chip: Chip | None = None,
        apb_base: int = DEFAULT_APB_BASE,
        on_text: Callable[[str], None] = lambda _text: None,
        options: TreeOptions | None = None,
        recorded: Recorded | None = None,
    ) -> Board:
        """Compile a project for the board; its Makefile tells the chip, unless given.

        Of a project for the RISC-V core both programs are compiled; `recorded` is what sensors
        deliver. Raises EmulatorError as
        `compile_firmware` does, and if the program does not fit the chip (E813).
        """
        firmware = compile_firmware(Path(project), options)
        board = cls(
            firmware.image, chip or firmware.chip, apb_base, on_text, firmware.wrapper, recorded,
            firmware.written_to,
        )  # fmt: skip
        board.notes, board.repetitions = firmware.notes, firmware.repetitions
        return board

    @property
    def accelerator(self) -> Accelerator:
        """The accelerator with everything applied that was written so far."""
        if self._accelerator is None:
            if self.bus.addresses is None:
                raise EmulatorError("E834", "the accelerator is started before it was set up")
            self._accelerator = Accelerator(self.bus.addresses.chip, self.bus.apb_base)
            self._accelerator.goes_on = may_go_on(self.core.image.symbols)
        self._accelerator.write(self.bus.writes(self._applied))
        self._applied = len(self.bus.log)
        return self._accelerator

    def attach(self, debugger: Debugger) -> None:
        """Let a debugger watch the program on the Arm core. Raises EmulatorError (E871): none."""
        core = self.wrapper or self.core
        if core.architecture is not CORTEX_M4:
            raise EmulatorError(
                "E871",
                f"the program runs on the {core.architecture.title} core alone; the debugger "
                "serves the Arm core",
                "--gdb",
            )
        core.attach(debugger)

    def forget_writes(self) -> None:
        """Clear the record of writes, once the accelerator has them."""
        _ = self.accelerator
        self._applied = 0
        self.bus.forget_writes()

    def run(self, time_limit: float = DEFAULT_SECONDS) -> FirmwareOutcome:
        """Run main() from reset until it returns, fails, or starts over after it has passed.

        Raises EmulatorError: access to nothing (E820), no main() (E821), no end within
        `time_limit` seconds (E822), sleep without end (E825), and as Accelerator.run does.
        """
        self.time_limit = time_limit
        try:
            exit_code = (self.wrapper or self.core).run(time_limit)
        except OutOfTimeError as error:
            if not self.progress.passed:
                reason = self._unheard()
                raise self.progress.explain_timeout(error, self.repetitions, reason) from None
            exit_code = None
        if self.sensors.ended == UART and not self.inferences:
            raise self._unanswered()
        failed_at = self.bus.reads[-1] if FAIL in self.console and self.bus.reads else None
        return FirmwareOutcome(
            self.console,
            exit_code,
            self.inferences,
            self.last_run,
            failed_at,
            self.bus.was_started,
            frozenset(self.bus.reads or ()),
            tuple(self._errors),
            frozenset(self.bus.own_reads),
        )

    def _unanswered(self) -> EmulatorError:
        """Return the error of a program that waits for bytes before its network has run."""
        count = self.sensors.serial.delivered
        sent = f"all {count} bytes of the file were sent" if count else "nothing is sent to it"
        return StoppedError(
            "E825",
            f"the program waits for bytes from the UART, and {sent}",
            remedy="Name a file with what it waits for: --uart FILE.",
        )

    @property
    def results_read(self) -> frozenset[int]:
        """The addresses that the program has read after any inference."""
        return frozenset(self._read_before.union(self.bus.reads or ()))

    def wrong_words(
        self, seconds: float = PROBING_SECONDS
    ) -> tuple[list[tuple[int, int, int]], bool]:
        """Return the words that check_output() complains of: address, expected, found.

        The second value tells whether these are all, or time ended the search. A function that
        stops at the first wrong word is called again with that word corrected. Empty if the program
        has no such function, or one that does not print the three numbers.
        """
        complaints: dict[int, tuple[int, int]] = {}
        new = None
        deadline = time.monotonic() + seconds
        try:
            while self.core.has("check_output") and time.monotonic() < deadline:
                new = [wrong for wrong in self._complaints(seconds) if wrong[0] not in complaints]
                if not new:
                    break
                for address, expected, value in new:
                    complaints[address] = expected, value
                    self.bus.words[address] = changed(self.bus.words[address], value, expected)
        finally:
            self._captured = None
            for address, (expected, value) in complaints.items():
                self.bus.words[address] = changed(self.bus.words[address], value, expected)
        in_time = new == [] and time.monotonic() < deadline
        return [(address, *values) for address, values in complaints.items()], in_time

    def checked_words(self, seconds: float = PROBING_SECONDS) -> frozenset[int]:
        """Return the data words that the program's own comparison reads, once it has passed.

        `check_output()` is called again: it must accept the output, and refuse it when words that
        it reads, spread over all of them, are inverted, one at a time. No words if there is no such
        function, or if it does not compare. Addresses.
        """
        name = next((name for name in _COMPARISONS if self.core.has(name)), None)
        if name is None or self.bus.addresses is None:
            return frozenset()
        try:
            accepted, read = self._tried(name, seconds)
            if not accepted or not read:
                return frozenset()
            for address in read[:: max(1, len(read) // _PROBES)] + read[-1:]:
                value = self.bus.words.get(address, 0)
                self.bus.words[address] = changed(value, 0, WORD_LIMIT - 1)
                noticed = not self._tried(name, seconds)[0]
                self.bus.words[address] = value
                if not noticed:
                    return frozenset()
        finally:
            self._captured = None
        return frozenset(read)

    def _tried(self, name: str, seconds: float) -> tuple[bool, list[int]]:
        """Call a comparison; return whether it accepts the output, and the data words it reads."""
        assert self.bus.addresses is not None
        self._captured, self.bus.reads = "", []
        result = None
        with contextlib.suppress(EmulatorError):
            result = self.core.call(name, time_limit=seconds)
        read = np.array(list(dict.fromkeys(self.bus.reads)), np.int64)
        _, area, _ = self.bus.addresses.split(read)
        return result == _OK, read[area == DATA].tolist()

    def _complaints(self, seconds: float) -> list[tuple[int, int, int]]:
        """Call check_output() and return what it prints: address, expected, found."""
        self._captured = ""
        with contextlib.suppress(EmulatorError):  # too slow, or not what it is called
            self.core.call("check_output", time_limit=seconds)
        numbers = [int(text, 16) for text in _HEXADECIMAL.findall(self._captured)]
        words = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=False)
        return [word for word in words if word[0] in self.bus.words]

    def text(self, character: str) -> None:
        """The program prints a character; a report of failure ends the run."""
        if self._captured is not None:
            self._captured += character
            return
        self.progress.printed(character)
        self._on_text(character)
        if character == "\n" and FAIL in self.console:
            self.core.stop()

    @property
    def console(self) -> str:
        """What the program has printed."""
        return self.progress.console

    @property
    def inferences(self) -> int:
        """How often the network has run to its end."""
        return self.progress.inferences

    def stand_in(self, name: str) -> None:
        """The program calls a function that has no hardware behind it."""
        self.progress.called(name)

    def measured(self, microseconds: int) -> None:
        """The program has measured a time."""
        self.time.measured.append(microseconds)

    @property
    def device_microseconds(self) -> float:
        """Estimated time that the accelerator has taken."""
        return self.time.microseconds

    @property
    def expecting(self) -> bool:
        """Whether the network was started, or has run while the program looked for its end."""
        awaited = self.bus.start_requested or self._polled or self.sensors.interrupts
        return awaited or self._wakes_the_first()

    @property
    def due(self) -> bool:
        """Whether the network was started and has its input, or has run and interrupts."""
        return self._polled or (self.bus.start_requested and self.accelerator.input_complete())

    @property
    def live(self) -> bool:
        """Whether the accelerator, a timer or a sensor may still change something."""
        return self.due or self.sensors.live or self._wakes_the_first()

    def spins(self, place: str, variables: Sequence[str]) -> None:
        """The program repeats a loop for ever: it ends where its output is known, or else is wrong.

        Raises EmulatorError (E825) if the network has not run, or nobody has read its output.
        """
        what = (
            f" for {' and '.join(variables[:3])}, which nothing changes any more"
            if variables
            else ""
        )
        if self.progress.passed or (self.inferences and self.has_data(self.results_read)):
            self.waits = f"then {place} waits{what}" if what else ""
            self.core.stop()
            return
        reason, remedy = self._unheard(), "It ends there: look for what came before."
        if variables:
            remedy = (
                "Enable the interrupt in its driver and with NVIC_EnableIRQ(), and let its handler "
                "change the variable, which must be volatile."
            )
        if never := self.progress.never_delivers():
            reason, remedy = reason + never, ALONE
        elif self.core.has("vTaskStartScheduler"):
            reason += ", and no tick interrupts a task here"
        elif not reason:
            reason = f": {self._standstill()}, and no other interrupt will come"
        what = what or ", in an empty loop"
        raise StoppedError(
            "E825", f"the program waits awake in {place}{what}{reason}", remedy=remedy
        )

    def _standstill(self) -> str:
        """Say how far the accelerator has come."""
        if self.bus.start_requested:
            return "the FIFOs hold less than an image"
        if self.inferences:
            return "the accelerator has finished, and was not started again"
        return "the accelerator was not started"

    def _wakes_the_first(self) -> bool:
        """Whether the program on the RISC-V core has woken the one on the Arm core."""
        woken = _SEMAPHORE.unpack(self.bus.words.get(_SEMAPHORE_INTERRUPT, 0))["wake"]
        return self.wrapper is not None and bool(woken)

    @property
    def satisfied(self) -> bool:
        """Whether the program has its verdict, or cannot get one, and does nothing new any more."""
        if self.progress.satisfied:
            return True
        repeats = self.progress.repeats(self.sensors.count)
        self.repeats = repeats and self.has_data(self.results_read)
        return self.repeats

    def has_data(self, read: Iterable[int]) -> bool:
        """Whether among the addresses that a program has read some are of the accelerator's data.

        Those of a port that transposes them count, too.
        """
        addresses = self.bus.addresses
        if addresses is None:
            return False
        known = np.array(sorted(read), np.int64)
        _, area, _ = addresses.split(known)
        return bool((area == DATA).any()) or bool(np.isin(known, addresses.transposers).any())

    def wait(self, sleeping: bool) -> int:
        """The program waits: run the network if it was started, which causes the interrupt."""
        if PASS in self.console:  # from here on everything repeats
            self.core.stop()
            return 0
        if self._wakes_the_first():  # and waits for ever
            self.core.stop()
            return 0
        if self._polled:
            self._polled = False
            return accelerator_interrupt(self.core.architecture)
        if self.bus.start_requested and self.accelerator.input_complete():
            self._infer()
            if self.sensors.mode != LOW_POWER or self.core.architecture is not CORTEX_M4:
                return accelerator_interrupt(self.core.architecture)
            self._polled = True  # it waits until something else wakes the core
        self.sensors.spin(None if sleeping else self._spun_us())
        return TIMER_INTERRUPTS if sleeping or self.sensors.interrupts else 0

    def _unheard(self) -> str:
        """Say which interrupt has come that the program does not handle; empty if none has."""
        number = self.sensors.unheard
        if number is None:
            return ""
        name = interrupt_name(number, self.core.architecture)
        return f", and {name} has come, which the program has not enabled or does not handle"

    def _spun_us(self) -> float:
        """Return the time to count for what a program has computed since it was last asked."""
        before, self._asked_at = self._asked_at, time.process_time()
        elapsed = (self._asked_at - before) * _MICROSECONDS
        return min(max(elapsed, _SHORTEST_SPIN_US), _LONGEST_SPIN_US)

    def asleep(self, alone: bool) -> None:
        """The program sleeps: its timers have woken it, or nothing will."""
        if self.sensors.spins or (not alone and not self.progress.only_ticks()):
            return
        reason = self._standstill()
        if self._polled:
            reason = "the interrupt of the accelerator does not wake the Arm core from this mode"
        for sensor in sorted(self.sensors.recorded.silent):
            reason += f", and nothing comes from --{sensor} none"
        reason += self._unheard()
        what = "nothing wakes it" if alone else "only its timers wake it"
        raise EmulatorError(
            "E825",
            f"the program sleeps and {what}: {reason}",
            remedy="If it waits for hardware, run the network alone: --accelerator-only.",
        )

    def run_second(self) -> int:
        """The Arm core waits: run the RISC-V core, which ends that; return the interrupt."""
        if not is_running(self.bus.words, CPU1_CLOCK):
            raise EmulatorError("E825", "the Arm core sleeps, but it did not start the RISC-V core")
        self.core.run(self.time_limit)
        if self._wakes_the_first():
            return WAKE_INTERRUPT
        if PASS not in self.console and FAIL not in self.console:
            raise EmulatorError("E825", "the RISC-V program ends without waking the Arm core")
        assert self.wrapper is not None
        self.wrapper.stop()
        return 0

    def _run_while_polled(self) -> None:
        """The program looks at a control register again and again: run the network now."""
        if self.accelerator.input_complete():
            self._infer()
            self._polled = True

    def _lose(self, lost: PowerLoss) -> None:
        """Groups of the accelerator lose what they hold."""
        memory = self.accelerator.memory
        memory.lose(lost)
        for address in lost.among(memory.addresses, self.bus.words):
            del self.bus.words[address]

    def _enter(self, mode: int) -> None:
        """The Arm core is about to sleep in a mode that takes more than the core's clock."""
        if mode == RESTART:
            raise EmulatorError(
                "E825", "the program enters a mode from which the chip starts anew",
                remedy="What follows does not run; the emulator does not start it again.",
            )  # fmt: skip
        if mode == OFF and self.bus.addresses is not None:
            self._lose(loss_asleep(self.bus.words))

    def _infer(self) -> None:
        check_clock(self.bus.words)
        accelerator = self.accelerator
        before = self.before_first_run if self.first_run is None else self.before_later_run
        if self.first_memory is None:
            self.first_memory = accelerator.memory.snapshot()
        resumes = accelerator.resumes
        known = len(self.inputs)
        if accelerator.is_finished and not resumes:
            self.inputs.add(hash(input_values(accelerator.memory)))
        self._read_before.update(self.bus.reads or ())
        if before is not None and not resumes:
            before(accelerator.memory)
        self.last_run = accelerator.start()
        self.time.ran(self.last_run, accelerator.memory)
        self._errors |= dict.fromkeys(self.last_run.errors)
        self.first_run = self.first_run or self.last_run
        if self.accelerator.is_finished and not resumes:
            self.sensors.news()
            self.progress.inferred(anew=len(self.inputs) > known)
        self.bus.words.update(self.accelerator.result_words())
        self.bus.finish()
        self.bus.watch_reads()
