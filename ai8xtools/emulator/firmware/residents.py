"""Several networks that are in the accelerator together: their functions are called in turn.

Source: docs/library.md, "Several networks in the accelerator".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.firmware.alone import BUFFER, NetworkAlone
from ai8xtools.emulator.machine.accelerator import NetworkRun
from ai8xtools.emulator.state.memory import Memory

_CHW = 1  # the order NAME_CHW


class Residents(NetworkAlone):
    """The networks of a project on a board; `sources.prefix` is that of the one in turn."""

    residents = True

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What the names of the networks' functions begin with; of one network, its own."""
        return self.sources.residents

    def load(self) -> None:
        """Load all networks. Raises EmulatorError as `call`, and: it fails (E823)."""
        if self.prefixes:
            self._ask(self.sources.loads_all)
        else:
            super().load()

    def begin(self, prefix: str, image: NDArray[np.integer]) -> Memory:
        """Give a network its turn and an input [channel, row, column], and start it.

        Returns what the accelerator holds before it runs. Data memory holds random data before the
        input is loaded, so that nothing of an earlier one counts as loaded. Raises EmulatorError as
        `load`.
        """
        self.sources = replace(self.sources, prefix=prefix)
        name = prefix.removesuffix("_cnn")
        self._ask(f"{name}_select")
        data = self.board.accelerator.memory.data_bytes
        data[:] = np.random.default_rng(0).integers(256, size=data.shape)
        self.board.core.write_memory(BUFFER, image.astype(np.int8).tobytes())
        self._ask(f"{name}_load_input", BUFFER, _CHW)
        if not self.board.bus.start_requested:
            self.call("start")
        return self.board.accelerator.memory.snapshot()

    def execute(self) -> NetworkRun:
        """Run the network that has begun, and unload. Raises EmulatorError as Accelerator.run."""
        run = self._execute()
        self.interrupted()
        self.call("unload", BUFFER)
        self.board.forget_writes()
        return run

    def _ask(self, name: str, *arguments: int) -> None:
        if self.board.core.call(name, *arguments, time_limit=self.time_limit) != 0:
            raise EmulatorError("E823", f"{name}() reports failure")


def difference(one: Memory, two: Memory) -> str:
    """Say in which register, kernel or bias two memories first differ; empty if in none."""
    addresses = one.addresses
    for address in sorted(one.registers.keys() | two.registers.keys()):
        words = one.registers.get(address, 0), two.registers.get(address, 0)
        if words[0] != words[1]:
            what = addresses.describe(address) or "a register"
            return f"{what} (0x{address:08x}) is 0x{words[1]:08x} instead of 0x{words[0]:08x}"
    kernels = np.argwhere((one.kernels != two.kernels).any(axis=2))
    if len(kernels):
        processor, column = kernels[0].tolist()
        place = f"processor {processor}, column {column}"
        return f"kernels differ in {len(kernels)} places, the first {place}"
    biases = np.argwhere(one.bias != two.bias)
    if len(biases):
        group, number = biases[0].tolist()
        return f"biases differ in {len(biases)} places, the first group {group}, number {number}"
    return ""
