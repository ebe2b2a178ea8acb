"""Running the loader functions of a generated project and looking at what they wrote.

Source: docs/generated-project.md, "Order of calls"; docs/emulator.md, "The core and its
peripherals".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ai8xtools.answer import PHASES
from ai8xtools.emulator.bits import WORD_LIMIT
from ai8xtools.emulator.cpu.core import DEFAULT_SECONDS, MEMORY_BYTES, RAM, Core
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.firmware.bus import Bus
from ai8xtools.emulator.firmware.compiling import compile_network, compile_project
from ai8xtools.emulator.firmware.interrupts import interrupt_by_accelerator, may_go_on
from ai8xtools.emulator.machine.accelerator import Accelerator, NetworkRun
from ai8xtools.emulator.words.addresses import DATA, AddressMap
from ai8xtools.emulator.words.writes import Effect, Writes, effect_of
from device import Chip, chip_named
from device.chip import DEFAULT_APB_BASE

OK = 1
_OPTIONAL = {"cnn_load_bias"}
_WITHOUT_RESULT = {"load_input"}
_BUFFER = RAM + MEMORY_BYTES // 2
_BUFFER_FILL = 0xA5
_PROBED_WORDS = 16


@dataclass
class LoaderRecord:
    """The loader functions of a project have run; the network has not yet.

    `writes` holds the writes of each phase. `execute` runs the network in the emulated
    accelerator, which is in `accelerator` from then on; `check_output`, `check_is_alive` and
    `unload` then call the firmware on its result.
    """

    chip: Chip
    writes: Mapping[str, Writes]
    core: Core
    bus: Bus
    time_limit: float = DEFAULT_SECONDS
    accelerator: Accelerator | None = None

    @property
    def addresses(self) -> AddressMap:
        """The address map the words belong to."""
        return AddressMap(self.chip, self.bus.apb_base)

    def effect(self) -> dict[str, Effect]:
        """Return for each phase the final memory words and the ordered control writes."""
        return {phase: effect_of(writes, self.addresses) for phase, writes in self.writes.items()}

    def execute(self) -> NetworkRun:
        """Run the network; its results are in data memory afterwards.

        Raises EmulatorError as Accelerator.run does.
        """
        self.accelerator = accelerator = Accelerator(self.chip, self.bus.apb_base)
        accelerator.write(self.bus.writes())
        accelerator.goes_on = may_go_on(self.core.image.symbols)
        run = accelerator.run()
        self.bus.words.update(accelerator.result_words())
        if accelerator.goes_on:
            written = len(self.bus.log)
            self.bus.finish()
            interrupt_by_accelerator(self.core, self.time_limit)
            accelerator.write(self.bus.writes(written))
            if accelerator.resumes:
                run = accelerator.run()
                self.bus.words.update(accelerator.result_words())
        return run

    def check_output(self) -> bool:
        """Call check_output() of the firmware on what data memory holds now."""
        return self.core.call("check_output", time_limit=self.time_limit) == OK

    def check_is_alive(self) -> bool:
        """Tell whether check_output() notices damage.

        Up to 16 of the data words that it reads are inverted, one at a time; it must fail each
        time. False as well if it reads no data word at all.
        """
        self.bus.reads = []
        self.check_output()
        read, self.bus.reads = self.bus.reads, None
        data = [address for address in dict.fromkeys(read) if self._is_data(address)]
        for address in data[:: max(1, len(data) // _PROBED_WORDS)]:
            value = self.bus.words.get(address, 0)
            self.bus.words[address] = WORD_LIMIT - 1 - value
            noticed = not self.check_output()
            self.bus.words[address] = value
            if not noticed:
                return False
        return bool(data)

    def unload(self) -> NDArray[np.uint8]:
        """Call cnn_unload() of the firmware; return the bytes it delivers (whole words)."""
        size = MEMORY_BYTES // 4
        results = []
        for fill in (0, _BUFFER_FILL):  # what differs between the two was not written
            self.core.write_memory(_BUFFER, bytes([fill]) * size)
            self._expect_ok("cnn_unload", self.core.call("cnn_unload", _BUFFER))
            results.append(np.frombuffer(self.core.read_memory(_BUFFER, size), np.uint8))
        written = np.flatnonzero(results[0] == results[1])
        end = int(written[-1]) + 1 if len(written) else 0
        return results[0][: -(-end // 4) * 4]

    def _is_data(self, address: int) -> bool:
        _, area, _ = self.addresses.split(np.array([address]))
        return int(area[0]) == DATA

    @staticmethod
    def _expect_ok(name: str, result: int | None) -> None:
        if result != OK:
            raise EmulatorError("E823", f"{name}() returns {result} instead of {OK} (CNN_OK)")


def run_loader(
    project: Path | str,
    chip_name: str,
    *,
    apb_base: int = DEFAULT_APB_BASE,
    time_limit: float = DEFAULT_SECONDS,
    prefix: str = "",
    alone: bool = False,
) -> LoaderRecord:
    """Compile a generated project and run its loader functions, in the order of `PHASES`.

    `chip_name` is the device as users name it, `time_limit` in seconds holds for each function,
    `prefix` begins the names of the network's functions, `alone` means that there is no main().
    Raises EmulatorError: compilation (E800, E81x), a missing function (E821), an access to nothing
    (E820), no end (E822), a function that reports failure (E823); UnknownDeviceError.
    """
    chip = chip_named(chip_name)
    bus = Bus(chip, apb_base)
    folder = Path(project)
    image = compile_network(folder)[0].image if alone else compile_project(folder)
    core = Core(image, bus)
    writes = {}
    for phase in PHASES:
        name = phase if phase in _WITHOUT_RESULT else prefix + phase
        if phase in _OPTIONAL and not core.has(name):
            continue
        begin = len(bus.log)
        result = core.call(name, 0, 0, time_limit=time_limit)
        if phase not in _WITHOUT_RESULT:
            LoaderRecord._expect_ok(phase, result)
        writes[phase] = bus.writes(begin)
    return LoaderRecord(chip, writes, core, bus, time_limit)
