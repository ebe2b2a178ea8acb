"""A network on input after input, with the program's own functions around it.

The program is compiled and the network loaded once. For every input its values are put in place of
the sample in the program's arrays, and load_input(), cnn_start(), the interrupt and cnn_unload()
run as they do on the chip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.bits import WORD_LIMIT
from ai8xtools.emulator.decode.locations import output_bytes
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.firmware.alone import NetworkAlone
from ai8xtools.emulator.firmware.input_arrays import LOAD_INPUT, InputArrays
from ai8xtools.emulator.firmware.marking import TRIALS, numbers_delivered, random_bytes
from ai8xtools.emulator.machine.accelerator import NetworkRun
from ai8xtools.emulator.machine.batch import NetworkBatch
from ai8xtools.emulator.machine.execution import LayerRun
from ai8xtools.emulator.machine.timing import TimedRun
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen
from device.chip import WORD_BYTES

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_BEHIND = 64
"""Bytes that are looked at behind the result."""
_NETWORKS = 2
"""One to an early exit, and one behind it."""


@frozen
class OutputPlaces:
    """The output of a layer among the bytes of the result: their `positions`, int64 [byte], in the
    order of the result; four bytes are a value if the layer is `wide`."""

    layer: int
    positions: Integers
    wide: bool


@frozen
class ResultPlaces:
    """Where the bytes of the result stand: data memory instances and byte offsets, int64 [byte].

    `of_program` means that the program's cnn_unload() reads them out in this order; else they are
    what the last layer writes. `outputs` are those of the layers whose output is in the result, in
    the order of their execution.
    """

    instance: Integers
    offset: Integers
    of_program: bool
    outputs: tuple[OutputPlaces, ...]

    def values(self, result: Bytes) -> Integers:
        """Return the values of all outputs in results [input, byte]: int64 [input, value]."""
        parts = (
            np.ascontiguousarray(result[:, output.positions]).view("<i4" if output.wide else "i1")
            for output in self.outputs
        )
        return np.concatenate([part.astype(np.int64) for part in parts], axis=1)


class RepeatedNetwork:
    """The network of a project, loaded once and run on many inputs.

    What is suspicious about registers and layers is looked for in the first run, and again when the
    program has written other registers, kernels or biases. Raises EmulatorError (E861) if the
    program's input cannot be replaced.
    """

    def __init__(self, network: NetworkAlone) -> None:
        if network.loads_at_once:
            raise EmulatorError(
                "E861",
                "the input of the program cannot be replaced: one function loads network and "
                "input together",
                remedy="With --fast the inputs go to the accelerator directly.",
            )
        self._network = network
        self._arrays = InputArrays(network.board, network.time_limit)
        self._decoded: list[tuple[NetworkBatch, int]] = []  # with their cycles
        self.cycles: list[int] = []
        """Estimated cycles of the accelerator, of each input."""

    @property
    def array_names(self) -> tuple[str, ...]:
        """Names of the arrays into which the inputs are put."""
        return self._arrays.names

    def infer(self, image: NDArray[np.int8]) -> NetworkRun | None:
        """Run the network on an input [channel, row, column], up to its interrupt.

        Returns the run if its layers were checked, None if they are those of the input before.
        Raises EmulatorError: the accelerator was not started or lacks input (E834), and as
        Accelerator.run does.
        """
        network, board = self._network, self._network.board
        self._arrays.place(image)
        board.core.call(LOAD_INPUT, time_limit=network.time_limit)
        network.call("start")
        if not (board.bus.start_requested and board.accelerator.input_complete()):
            raise EmulatorError("E834", "the program does not start the accelerator")
        run = self._execute()
        if network.interrupted() and board.accelerator.goes_on:
            run = self._execute(resumed=True) or run
            network.interrupted()
        board.forget_writes()
        return run

    def _execute(self, *, resumed: bool = False) -> NetworkRun | None:
        """Execute the layers from a start to the end, which may be an early exit."""
        board = self._network.board
        accelerator = board.accelerator
        memory, run = accelerator.memory, None
        before = memory.data.copy()
        decoded = next((pair for pair in self._decoded if pair[0].fits(memory)), None)
        if decoded is not None:
            decoded[0].run_in(memory)
            cycles = decoded[1]
        else:
            if not resumed:
                self._network.about_to_run(is_sample=False)
            try:
                batch = NetworkBatch(accelerator)
            except EmulatorError:  # it is executed step by step, and says itself what is wrong
                batch = None
            run = accelerator.run()
            ran = [done.config for done in run.layers]
            if batch is not None:
                ran = [step.config for step in batch.steps]
            cycles = TimedRun.of(0, memory, ran, 1.0).total_cycles
            if batch is not None:
                self._decoded = [(batch, cycles), *self._decoded][:_NETWORKS]
        if resumed:
            self.cycles[-1] += cycles
        else:
            self.cycles.append(cycles)
        board.bus.words.update(accelerator.changed_words(before))
        board.bus.finish()
        return run

    def result(self, size_bytes: int) -> Bytes:
        """Return the first bytes that the program's cnn_unload() delivers."""
        return self._network.unloaded(size_bytes)


def result_places(network: NetworkAlone, run: NetworkRun) -> ResultPlaces:
    """Find out what the program reads out after a run."""
    last = run.layers[-1]
    places = _unloaded_places(network)
    if places is None:
        instance, offset = _written_by(last)
        every = OutputPlaces(last.config.layer, np.arange(instance.size), last.config.output.wide)
        return ResultPlaces(instance, offset, False, (every,))
    size = network.board.accelerator.memory.data_bytes.shape[1]
    delivered = places[0] * size + places[1]
    outputs: list[OutputPlaces] = []
    later = np.zeros(0, np.int64)
    for done in reversed(run.layers):
        instance, offset = _written_by(done)
        own = instance * size + offset % size
        is_whole = np.isin(own, delivered).all() and not np.isin(own, later).any()
        if done is last or is_whole:
            positions = np.flatnonzero(np.isin(delivered, own))
            outputs.insert(0, OutputPlaces(done.config.layer, positions, done.config.output.wide))
        later = np.union1d(later, own)
    return ResultPlaces(*places, True, tuple(outputs))


def _written_by(done: LayerRun) -> tuple[Integers, Integers]:
    instance, offset = output_bytes(done.config, done.place, done.output[0].size)
    return instance.reshape(-1), offset.reshape(-1)


def departing_bytes(network: NetworkAlone, places: tuple[Integers, Integers]) -> Integers:
    """Return which bytes cnn_unload() delivers that are not those at `places`, instances and
    offsets; whatever stands in data memory, and bytes behind the last included.
    """
    memory = network.board.accelerator.memory
    chip = memory.chip
    starts = np.array([chip.data_address(i) for i in range(len(memory.data))], np.int64)
    byte_addresses = network.board.bus.apb_base + starts[places[0]] + places[1]
    wrong = np.zeros(len(byte_addresses) + _BEHIND, np.bool_)
    with _data(network, len(wrong)) as (addresses, deliver):
        words = byte_addresses // WORD_BYTES * WORD_BYTES
        numbers = np.searchsorted(addresses, words) % len(addresses)
        in_memory = np.flatnonzero(addresses[numbers] == words)
        numbers, byte_addresses = WORD_BYTES * numbers[in_memory], byte_addresses[in_memory]
        for trial in range(TRIALS):
            values = random_bytes(WORD_BYTES * len(addresses), trial)
            result = deliver(values)
            wrong[in_memory] |= result[in_memory] != values[numbers + byte_addresses % WORD_BYTES]
            wrong[len(places[0]) :] |= result[len(places[0]) :] != 0
    return np.flatnonzero(wrong)


@contextmanager
def _data(network: NetworkAlone, count: int) -> Iterator[tuple[Integers, Callable[[Bytes], Bytes]]]:
    """Yield the addresses of the words of data memory, and a function that fills them with bytes
    and returns the first `count` of those that cnn_unload() then delivers.
    """
    board = network.board
    kept = dict(board.bus.words)
    addresses = np.array(sorted(board.accelerator.data_words()), np.int64)

    def deliver(values: Bytes) -> Bytes:
        words = np.frombuffer(values.tobytes(), "<u4").tolist()
        board.bus.words.update(zip(addresses.tolist(), words, strict=True))
        return network.unloaded(count, fill=0)

    try:
        yield addresses, deliver
    finally:
        board.bus.words = kept
        board.forget_writes()


def _unloaded_places(network: NetworkAlone) -> tuple[Integers, Integers] | None:
    """Return where the bytes stand that cnn_unload() delivers; None if it does more than copy."""
    board = network.board
    count = WORD_BYTES * len(network.output_words())
    if not count:
        return None
    with _data(network, count) as (addresses, deliver):
        numbers = numbers_delivered(deliver, WORD_BYTES * len(addresses))
        delivered = numbers > 0
        if (numbers > WORD_BYTES * len(addresses)).any():
            return None
        for trial in range(TRIALS):
            values = random_bytes(WORD_BYTES * len(addresses), trial)
            expected = values[np.where(delivered, numbers - 1, 0)]
            if (deliver(values) != expected)[delivered].any():
                return None
    end = int(np.flatnonzero(delivered)[-1]) + 1 if delivered.any() else 0
    if not delivered[:end].all():
        return None
    byte = numbers[:end] - 1
    address = addresses[byte // WORD_BYTES] - board.bus.apb_base
    return data_places(board.accelerator.memory, address + byte % WORD_BYTES)


def data_places(memory: Memory, relative: Integers) -> tuple[Integers, Integers]:
    """Return data memory instances and offsets of addresses relative to the base address."""
    starts = np.array([memory.chip.data_address(i) for i in range(len(memory.data))], np.int64)
    instance = np.searchsorted(starts, relative % WORD_LIMIT, side="right") - 1
    return instance, relative - starts[instance]
