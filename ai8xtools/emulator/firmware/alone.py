"""A network without the program around it: its functions are called, main() is not.

Works with the functions of all generations of the SDK. Source:
docs/generated-project.md, "Order of calls".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.cpu.core import MEMORY_BYTES, RAM
from ai8xtools.emulator.decode.own_input import input_shape, set_input
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.firmware.board import Board
from ai8xtools.emulator.firmware.compiling import compile_network
from ai8xtools.emulator.firmware.interrupts import interrupt_by_accelerator
from ai8xtools.emulator.firmware.samples import expected_words, sample_words, sample_writes
from ai8xtools.emulator.machine.accelerator import NetworkRun
from ai8xtools.emulator.project.network import NetworkSources
from ai8xtools.emulator.project.tree import TreeOptions
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.addresses import refuse_device
from ai8xtools.reading import source_text
from device import Chip
from device.chip import DEFAULT_APB_BASE, WORD_BYTES

_OK = 1
BUFFER, _BUFFER_FILL = RAM + MEMORY_BYTES // 2, 0xA5
_BUFFER_BYTES = MEMORY_BYTES // 4
_CHECKS = ("check_output", "cnn_check")
_WHOLE_CLOCK = 0x10000
"""Second argument of cnn_enable(): the clock is not divided."""


class BeforeRun(Protocol):
    """Called with the memory of an accelerator that is about to run, on the project's sample or on
    another input.
    """

    def __call__(self, memory: Memory, *, is_sample: bool) -> None:
        """Look at it."""


class NetworkAlone:
    """The functions of a network on a board, loaded into its accelerator.

    `notes` are for the user. After `run`, `comparison` is whether the output is as the project
    expects it for its sample; None if nothing was compared.
    """

    residents = False
    """Whether several networks that are loaded together are one project."""

    def __init__(
        self,
        project: Path,
        chip: Chip | None = None,
        apb_base: int = DEFAULT_APB_BASE,
        options: TreeOptions | None = None,
        time_limit: float = 60.0,
        *,
        load: bool = True,
    ) -> None:
        """Compile the network of a project, and load it into its accelerator unless told not to.

        Raises EmulatorError as `compile_firmware` and `load`, and: no functions of a network, or of
        several (E814).
        """
        firmware, self.sources = compile_network(project, options, residents=self.residents)
        self.board = Board(firmware.image, None, apb_base)
        self.notes = firmware.notes
        self.comparison: bool | None = None
        self.compared: frozenset[int] = frozenset()
        """Addresses of the words that were compared."""
        self.sample_memory: Memory | None = None
        """The memory of the accelerator before it ran on the sample."""
        self.before_run: BeforeRun | None = None
        self.time_limit = time_limit
        self._chip = chip
        self._loads_sample = self.board.core.has("load_input") and bool(
            self.sources.program or _mentions_sample(self.sources)
        )
        self.loads_at_once = not self.board.core.has(f"{self.sources.prefix}_start")
        if load:
            self.load()

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Channels, rows and columns of the input; operands count as channels."""
        return input_shape(self.board.accelerator.memory)

    @property
    def has_sample(self) -> bool:
        """Whether the project brings an input."""
        return self._loads_sample or bool(self._sample())

    def run(self, image: NDArray[np.integer] | None = None) -> NetworkRun:
        """Run the network with the sample of the project or another input.

        `image`: integers from -128 to 127, [channel, row, column] as in `input_shape`. Raises
        ValueError for another shape or range, EmulatorError if there is no sample (E815) and as
        Accelerator.run does.
        """
        board = self.board
        self.start(sample=image is None)
        accelerator = board.accelerator
        if image is not None:
            set_input(accelerator.memory, image)
        self.about_to_run(is_sample=image is None)
        if image is None:
            self.sample_memory = accelerator.memory.snapshot()
        run = self._execute()
        if accelerator.goes_on and self.interrupted():
            run = self._execute()
            self.interrupted()
            board.accelerator.rewind()
        self.comparison = self._compare() if image is None else None
        return run

    def _execute(self) -> NetworkRun:
        """Run the accelerator to its end; the program sees the results."""
        accelerator, bus = self.board.accelerator, self.board.bus
        run = accelerator.run()
        bus.words.update(accelerator.result_words())
        bus.finish()
        return run

    def interrupted(self) -> bool:
        """Let the accelerator interrupt the program; return whether it is started again, behind an
        early exit."""
        interrupt_by_accelerator(self.board.core, self.time_limit)
        return self.board.bus.start_requested

    def load(self) -> None:
        """Call the functions that load the network, by the names of the project's generation.

        Raises EmulatorError: a function does not end in time (E822), it starts nothing (E834), it
        is for another chip (E803).
        """
        core = self.board.core
        if not self.call("enable", 0, _WHOLE_CLOCK):
            core.call("emulator_power_on", time_limit=self.time_limit)
        if self.loads_at_once:
            self.call("load")
        else:
            self.call("init")
            if not self.call("load_weights") and core.has("load_kernels"):
                core.call("load_kernels", time_limit=self.time_limit)
            self.call("load_bias")
            self.call("configure")
        addresses = self.board.bus.addresses
        if addresses is None:
            raise EmulatorError("E834", "the functions of the network set up no accelerator")
        if self._chip is not None and addresses.chip is not self._chip:
            refuse_device(addresses.control[0], addresses.chip, self._chip)

    def start(self, *, sample: bool) -> None:
        """Load the sample, if requested, and call the function that starts the network.

        The network itself does not run. Raises EmulatorError: there is no sample (E815).
        """
        if sample:
            self._load_sample()
        self.call("start")

    def about_to_run(self, *, is_sample: bool) -> None:
        """Show the memory of the accelerator to whoever wants to see it."""
        if self.before_run is not None:
            self.before_run(self.board.accelerator.memory, is_sample=is_sample)

    def output_words(self) -> list[int]:
        """Return the words that the network's own function reads out; empty if there is none."""
        result = self._result()
        words = np.pad(result, (0, -len(result) % WORD_BYTES)).view("<u4")
        return [int(word) for word in words]

    def _result(self) -> NDArray[np.uint8]:
        """Return the bytes that the network's own function reads out, up to the last one."""
        if not self.has("unload"):
            return np.zeros(0, np.uint8)
        # what differs between the two was not written
        results = [self.unloaded(_BUFFER_BYTES, fill) for fill in (0, _BUFFER_FILL)]
        written = np.flatnonzero(results[0] == results[1])
        return results[0][: int(written[-1]) + 1 if len(written) else 0]

    def delivered(self, data: Mapping[int, int]) -> bytes:
        """Return the bytes that the network's own function reads out of other words of data."""
        board = self.board
        kept = dict(board.bus.words)
        board.bus.words.update(data)
        try:
            return self._result().tobytes()
        finally:
            board.bus.words = kept
            board.forget_writes()

    def unloaded(self, size_bytes: int, fill: int | None = None) -> NDArray[np.uint8]:
        """Return the bytes that the network's own function reads out, by their number.

        With `fill` the buffer holds this byte wherever nothing is written.
        """
        core = self.board.core
        if fill is not None:
            core.write_memory(BUFFER, bytes([fill]) * size_bytes)
        core.call(f"{self.sources.prefix}_unload", BUFFER, time_limit=self.time_limit)
        return np.frombuffer(core.read_memory(BUFFER, size_bytes), np.uint8)

    def has(self, name: str) -> bool:
        """Tell whether there is a function of the network, named without its prefix."""
        return self.board.core.has(f"{self.sources.prefix}_{name}")

    def call(self, name: str, *arguments: int) -> bool:
        """Call a function of the network if there is one; return whether there is.

        `name` is without the prefix that all of them have.
        """
        if not self.has(name):
            return False
        name = f"{self.sources.prefix}_{name}"
        self.board.core.call(name, *arguments, time_limit=self.time_limit)
        return True

    def _load_sample(self) -> None:
        if self.loads_at_once and self._loads_sample:
            return  # the only function has loaded it
        if self._loads_sample:
            self.board.core.call("load_input", time_limit=self.time_limit)
            return
        arrays = self._sample()
        if not arrays:
            shape = "x".join(map(str, self.input_shape))
            raise EmulatorError(
                "E815",
                "the project has no sample: no sampledata.h with SAMPLE_INPUT_...",
                remedy=f"Give it an input of {shape} (channels, rows, columns) with --input FILE.",
            )
        for address, word in sample_writes(self.board.accelerator.memory, arrays):
            self.board.bus.write(address, 4, word)

    def _sample(self) -> dict[int, list[int]]:
        path = self.sources.samples
        return sample_words(source_text(path)) if path else {}

    def _compare(self) -> bool | None:
        """Tell whether the output is as the project expects it; None if unknown."""
        board = self.board
        if self._loads_sample:
            for name in _CHECKS:
                if board.core.has(name):
                    board.bus.reads = []
                    accepted = board.core.call(name, time_limit=self.time_limit) == _OK
                    self.compared = frozenset(board.bus.reads)
                    return accepted
        path = self.sources.results
        expected = expected_words(source_text(path)) if path else []
        if not expected:
            return None
        words = board.bus.words
        self.compared = frozenset(address for address, _, _ in expected)
        return all(words.get(address, 0) & mask == value for address, mask, value in expected)


def _mentions_sample(sources: NetworkSources) -> bool:
    """Whether the network's own files load the sample."""
    return any("INPUT_" in source_text(path) for path in sources.files)
