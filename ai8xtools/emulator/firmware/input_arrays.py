"""The arrays from which a program copies its input: which byte of them is which value.

Nothing is assumed about their form. Each byte gets a number, the program's own function copies it,
and where the number turns up in the accelerator it is known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.own_input import input_shape, set_input
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.firmware.board import Board
from ai8xtools.emulator.firmware.marking import TRIALS, numbers_delivered, random_bytes
from ai8xtools.emulator.state.memory import Memory
from device.chip import FLASH_BASE, SRAM_BASE

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

LOAD_INPUT = "load_input"
_SMALLEST_BYTES = 16  # of a variable in SRAM that may be an array of inputs


class InputArrays:
    """The arrays that load_input() copies, of the program on a board with a loaded network.

    Raises EmulatorError (E861) if there is no such function, or it makes up data or changes it.
    """

    def __init__(self, board: Board, time_limit: float) -> None:
        self._board, self._core = board, board.core
        self._memory = memory = board.accelerator.memory
        board.forget_writes()
        self._time_limit = time_limit
        if not self._core.has(LOAD_INPUT):
            raise _refusal(
                "the project has no function load_input() that copies a sample from arrays"
            )
        self._arrays = self._find()
        self._original = self._content()
        self.shape = input_shape(memory)
        """Channels, rows and columns of an input."""
        try:
            self._places = self._locate()
        finally:
            self._store(self._original)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return tuple(name for _, _, name in self._arrays)

    def place(self, image: NDArray[np.int8]) -> None:
        """Put an input [channel, row, column] into the arrays."""
        content = self._original.copy()
        content[self._places] = image.view(np.uint8).reshape(-1)
        self._store(content)

    def restore(self) -> None:
        """Put back the sample that the program brings."""
        self._store(self._original)

    def _find(self) -> list[tuple[int, int, str]]:
        """Return address, size and name of the arrays that load_input() reads."""
        read = np.array(sorted(self._core.addresses_read(LOAD_INPUT, time_limit=self._time_limit)))
        arrays = [
            (address, size, name)
            for address, size, name in self._core.image.objects
            if (FLASH_BASE <= address < SRAM_BASE or size >= _SMALLEST_BYTES)
            and np.searchsorted(read, address) < np.searchsorted(read, address + size)
        ]
        self._board.bus.forget_writes()
        if not arrays:
            raise _refusal("load_input() copies no array: it makes up its data by code")
        return arrays

    def _content(self) -> Bytes:
        data = b"".join(self._core.read_memory(a, size) for a, size, _ in self._arrays)
        return np.frombuffer(data, np.uint8).copy()

    def _store(self, content: Bytes) -> None:
        first = 0
        for address, size, _ in self._arrays:
            self._core.write_memory(address, content[first : first + size].tobytes())
            first += size

    def _locate(self) -> Integers:
        """Return for each value of the input the byte of the arrays that it is copied from."""
        count = len(self._original)
        source = numbers_delivered(self._delivered_from, count)
        target = numbers_delivered(self._delivered_to, int(np.prod(self.shape)))
        size = max(len(source), len(target))
        source, target = (np.pad(part, (0, size - len(part))) for part in (source, target))
        mask = target > 0
        order = np.argsort(target[mask])
        places: Integers = source[mask][order] - 1
        lacking = int(np.count_nonzero((places < 0) | (places >= count)))
        if lacking:
            names = ", ".join(self.names)
            raise _refusal(
                f"load_input() copies {len(places) - lacking} of {len(places)} values of the "
                f"input from arrays ({names}) and makes up the others by code"
            )
        self._try(places)
        return places

    def _try(self, places: Integers) -> None:
        """Refuse a function that changes what it copies."""
        delivered = numbers_delivered(self._delivered_to, len(places)) > 0
        for trial in range(TRIALS):
            image = random_bytes(len(places), trial)
            content = self._original.copy()
            content[places] = image
            actual, expected = self._delivered_from(content), self._delivered_to(image)
            if (
                len(actual) < len(delivered)
                or (actual[: len(delivered)] != expected)[delivered].any()
            ):
                raise _refusal(
                    f"load_input() changes the values of {', '.join(self.names)} by code"
                )

    def _delivered_from(self, content: Bytes) -> Bytes:
        """Return what the accelerator gets when the arrays have some content."""
        self._store(content)
        try:
            self._core.call(LOAD_INPUT, time_limit=self._time_limit)
        except EmulatorError as error:
            raise _refusal(f"load_input() fails with other data: {error.message}") from None
        scratch = self._scratch()
        scratch.write(self._board.bus.writes())
        self._board.bus.forget_writes()
        return _state(scratch)

    def _delivered_to(self, values: Bytes) -> Bytes:
        """Return what the accelerator has to get for the values of an input."""
        scratch = self._scratch()
        set_input(scratch, values.view(np.int8).reshape(self.shape))
        return _state(scratch)

    def _scratch(self) -> Memory:
        """Return a memory with the registers of the network and nothing else."""
        scratch = Memory(self._memory.chip, self._memory.addresses.apb_base)
        scratch.registers = dict(self._memory.registers)
        return scratch


def _state(memory: Memory) -> Bytes:
    """Return data memory and the words of the FIFOs as bytes; each FIFO has a place of its own."""
    streams = [
        np.array(memory.pushes.get(address, []), np.uint32).view(np.uint8)
        for address in sorted(memory.addresses.fifos)
    ]
    longest = max(map(len, streams))
    padded = [np.pad(stream, (0, longest - len(stream))) for stream in streams]
    # Transposed, so that the length of the FIFOs moves nothing
    return np.concatenate([memory.data_bytes.reshape(-1), np.stack(padded, axis=1).reshape(-1)])


def _refusal(reason: str) -> EmulatorError:
    return EmulatorError(
        "E861",
        f"the input of the program cannot be replaced: {reason}",
        remedy="With --fast the inputs go to the accelerator directly.",
    )
