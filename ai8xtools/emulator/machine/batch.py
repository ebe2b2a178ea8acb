"""A loaded network on many inputs at once: every layer takes all of them before the next begins.

What the registers say is decoded once. Nothing is checked: `Accelerator.run` does that, whose
arithmetic this is. Data memory holds the bytes that layers read or write, and those alone; the last
axis of all arrays counts the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.fifo import fifo_image
from ai8xtools.emulator.decode.locations import input_bytes, output_bytes, output_locations
from ai8xtools.emulator.decode.own_input import first_layer, input_shape
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.machine import snoop
from ai8xtools.emulator.machine.accelerator import Accelerator
from ai8xtools.emulator.machine.arithmetic import Floats, LayerParameters, Values, operate, prepare
from ai8xtools.emulator.machine.execution import LayerExecution
from ai8xtools.emulator.state.data_memory import DataMemory
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.reading.progress import tracked
from ai8xtools.values import frozen

Integers = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Images = NDArray[np.int8]

NOWHERE: Integers = np.zeros(0, np.int64)
_BATCH_BYTES = 2**25  # of the largest image of a layer, as int32, for all inputs of a batch
_LARGEST_BATCH = 64


@frozen
class LayerStep:
    """A layer to execute: where it reads and writes, as positions in two memories.

    `reads` is [operand, channel, pixel], None where the FIFOs deliver; `writes` [byte] in the order
    of outputs, pixels, bytes. `source` and `target` are numbers of memories, 0 is data memory.
    """

    config: LayerConfig
    parameters: LayerParameters | None
    rounding: bool
    source: int
    reads: Integers | None
    target: int
    writes: Integers


class NetworkBatch:
    """The network in an accelerator, which has been started or could be; its memory stays as it is.

    `result_places` are those of the bytes that `run` returns: data memory instances and offsets,
    int64 [byte]. Every input finds data memory as it is now. Raises EmulatorError: conditional
    execution or quad mode (E860), impossible registers (E832).
    """

    def __init__(
        self,
        accelerator: Accelerator,
        result_places: tuple[Integers, Integers] = (NOWHERE, NOWHERE),
    ) -> None:
        memory = accelerator.memory
        _refuse_unsuitable(memory)
        self.shape = input_shape(memory)
        modes = memory.control_register("CTL")
        self._from_fifo = bool(memory.pushes) or bool(modes["fifo"])
        self._decoded = dict(memory.registers), memory.kernel_version, memory.bias.copy()
        self._spaces = [_Space(memory.data_bytes)]
        places = [*_steps(accelerator, self._spaces, from_fifo=self._from_fifo)]
        size = memory.data_bytes.shape[1]
        places_of_input = _flat(*_input_bytes(first_layer(memory), size), size)
        results = _flat(*result_places, size)
        self._spaces[0].use(results)
        if not self._from_fifo:
            self._spaces[0].use(places_of_input)
        for space in self._spaces:
            space.close()
        self.input_positions = (
            None if self._from_fifo else self._spaces[0].positions(places_of_input)
        )
        """Positions in memory 0 of the input, [operand, channel, pixel]; None with FIFOs."""
        writes = [step.writes for step in places if step.target == 0]
        self._written = _distinct(np.concatenate(writes))
        self.steps = [_placed(step, self._spaces) for step in places]
        self.result_positions = self._spaces[0].positions(results)
        """Positions in memory 0 of the bytes of the results."""
        self.sizes = [len(space.addresses) for space in self._spaces]
        """How many bytes of each memory are in use."""
        largest = max(_largest(step.config) for step in self.steps)
        self.size = max(1, min(_LARGEST_BATCH, _BATCH_BYTES // (4 * largest)))
        """How many inputs are computed at once."""

    def run(
        self,
        images: Images,
        on_layer: Callable[[LayerConfig, Floats], None] = lambda _config, _output: None,
    ) -> Bytes:
        """Execute the network on inputs [input, channel, row, column]; return those bytes.

        Returns uint8 [input, byte]. `on_layer` gets the output of each layer, integers
        [output, row, column, input], once for each batch of inputs. Raises ValueError for another
        shape or type.
        """
        if images.dtype != np.int8 or images.shape[1:] != self.shape:
            shape = " x ".join(map(str, self.shape))
            raise ValueError(
                f"inputs must be int8, each {shape}, not {images.dtype} {images.shape}"
            )
        parts = [
            self._run(images[first : first + self.size], on_layer)
            for first in tracked("Inputs", range(0, len(images), self.size))
        ]
        return np.concatenate([np.zeros((0, len(self.result_positions)), np.uint8), *parts])

    def fits(self, memory: Memory) -> bool:
        """Tell whether registers, kernels and biases are still those that were decoded."""
        registers, version, bias = self._decoded
        return (
            memory.registers == registers
            and memory.kernel_version == version
            and bool(np.array_equal(memory.bias, bias))
        )

    def run_in(self, memory: Memory) -> None:
        """Execute the network on the input that is in a memory, which gets the results.

        The network in it is the same (`fits`). Raises EmulatorError (E833): a FIFO lacks words.
        """
        memories = self._memories_of(memory)
        for step in self.steps:
            _execute(step, memories, self._pushed(memory))
        flat = memory.data_bytes.reshape(-1)
        flat[self._spaces[0].addresses] = memories[0][:, 0]
        memory.data_written.reshape(-1)[self._written] = True
        memory.pushes.clear()

    def traced(self, memory: Memory) -> Iterator[tuple[LayerStep, Values, Floats]]:
        """Execute the network as `run_in` does, in a copy of the memory.

        Yields each step with its operands [operand, channel, row, column, 1] and its output.
        """
        memories, pushed = self._memories_of(memory), self._pushed(memory)
        for step in self.steps:
            operands = _operands(step, memories, pushed)
            yield step, operands, _execute(step, memories, pushed)

    def _memories_of(self, memory: Memory) -> list[Bytes]:
        """Return the bytes in use of all memories, before a run."""
        memories = [space.filled(1) for space in self._spaces]
        memories[0] = self.data_of(memory)[:, None]
        return memories

    def data_of(self, memory: Memory) -> Bytes:
        """Return the bytes of data memory that are in use, by their positions."""
        return memory.data_bytes.reshape(-1)[self._spaces[0].addresses]

    def _pushed(self, memory: Memory) -> Images:
        """Return the image in the FIFOs [channel, row, column, 1]; none if they are not used."""
        if not self._from_fifo:
            return np.zeros((0, 1), np.int8)
        pushed: Images = fifo_image(memory, self.steps[0].config)[0].astype(np.int8)[..., None]
        return pushed

    def _run(self, images: Images, on_layer: Callable[[LayerConfig, Floats], None]) -> Bytes:
        count = len(images)
        memories = [space.filled(count) for space in self._spaces]
        pixels = np.ascontiguousarray(images.transpose(1, 2, 3, 0))
        if self.input_positions is not None:
            memories[0][self.input_positions.reshape(-1)] = pixels.view(np.uint8).reshape(-1, count)
        for step in self.steps:
            output = _execute(step, memories, pixels)
            on_layer(step.config, output)
        return memories[0][self.result_positions].T


class _Space:
    """A memory of which only the bytes in use are kept. `content`: as it is at first, or zeros."""

    def __init__(self, content: Bytes | None) -> None:
        self._content = content
        self._used: list[Integers] = []
        self.addresses: Integers = np.zeros(0, np.int64)
        """Of the bytes that are kept, ascending."""

    def use(self, addresses: Integers) -> None:
        """Keep the bytes at these addresses."""
        self._used.append(_distinct(addresses))

    def close(self) -> None:
        """Number the bytes that are kept; no more come."""
        self.addresses = _distinct(np.concatenate([np.zeros(0, np.int64), *self._used]))

    def positions(self, addresses: Integers) -> Integers:
        """Return at which positions the bytes are kept."""
        positions: Integers = np.searchsorted(self.addresses, addresses)
        return positions

    def filled(self, count: int) -> Bytes:
        """Return the bytes at the start, for each of `count` inputs: [position, input]."""
        if self._content is None:
            return np.zeros((len(self.addresses), count), np.uint8)
        initial = self._content.reshape(-1)[self.addresses]
        return np.repeat(initial[:, None], count, axis=1)


def _distinct(addresses: Integers) -> Integers:
    """Return each address once, ascending; they are few enough for a table of all."""
    present = np.zeros(int(addresses.max(initial=-1)) + 1, np.bool_)
    present[addresses] = True
    return np.flatnonzero(present)


def _refuse_unsuitable(memory: Memory) -> None:
    """Refuse networks in which data decides what is executed, and quad mode (E860)."""
    if snoop.is_configured(memory):
        reason = "the network has conditional execution: data decides what is executed"
    elif memory.control_register("CTL")["fifo_quad"]:
        reason = "the network runs in quad mode, whose input is not known"
    else:
        return
    raise EmulatorError("E860", reason, remedy="Run it without --fast.")


def _steps(accelerator: Accelerator, spaces: list[_Space], *, from_fifo: bool) -> list[LayerStep]:
    """Decode the layers; positions are addresses as yet. Memories of streams are added."""
    memory = accelerator.memory
    rounding = bool(memory.control_register("CTL")["average_rounding"])
    stream_bytes = DataMemory.stream_bytes()
    layers = accelerator.planned_layers()
    steps: list[LayerStep] = []
    source = 0
    for number, planned in enumerate(layers):
        later = layers[number + 1 :]
        execution = LayerExecution(memory, planned, later, [], first=number == 0)
        config = execution.config
        target = 0
        if later and later[0].stream_start:
            target = len(spaces)
            spaces.append(_Space(None))
        sizes = [memory.data_bytes.shape[1] if n == 0 else stream_bytes for n in (source, target)]
        reads = None
        if number or not from_fifo:
            reads = _flat(*_input_bytes(config, sizes[0]), sizes[0])
            spaces[source].use(reads)
        pixels = config.output_size[0] * config.output_size[1]
        instance, offset = output_bytes(config, output_locations(config), pixels)
        writes = _flat(instance, offset, sizes[1]).reshape(-1)
        spaces[target].use(writes)
        steps.append(
            LayerStep(config, execution.parameters(), rounding, source, reads, target, writes)
        )
        source = target
    return steps


def _placed(step: LayerStep, spaces: Sequence[_Space]) -> LayerStep:
    """Replace the addresses of a step by positions."""
    reads = None if step.reads is None else spaces[step.source].positions(step.reads)
    writes = spaces[step.target].positions(step.writes)
    return LayerStep(
        step.config, step.parameters, step.rounding, step.source, reads, step.target, writes
    )


def _operands(step: LayerStep, memories: Sequence[Bytes], images: Images) -> Values:
    """Return what a layer reads, [operand, channel, row, column, input]."""
    inputs, count = step.config.input, images.shape[-1]
    values = images if step.reads is None else memories[step.source][step.reads].view(np.int8)
    adds = inputs.operands > 1 or (inputs.pooling and not inputs.max_pool)
    operands: Values = values.reshape(inputs.operands, -1, *inputs.size, count)
    return operands.astype(np.int32) if adds else operands


def _execute(step: LayerStep, memories: Sequence[Bytes], images: Images) -> Floats:
    """Execute a layer; return its output."""
    operands, count = _operands(step, memories, images), images.shape[-1]
    output = operate(prepare(operands, step.config, rounding=step.rounding), step.config,
                     step.parameters)  # fmt: skip
    target, flat = memories[step.target], output.reshape(-1, count)
    if step.config.output.wide:
        words = np.ascontiguousarray(flat.astype(np.int64).astype("<i4"))
        data = words.view(np.uint8).reshape(len(flat), count, 4)
        target[step.writes] = data.transpose(0, 2, 1).reshape(-1, count)
    else:
        target[step.writes] = flat.astype(np.int8).view(np.uint8)
    return output


def _input_bytes(config: LayerConfig, size: int) -> tuple[Integers, Integers]:
    """Return instances and offsets of what a layer reads, [operand, channel, pixel]."""
    instance, offset = (part.transpose(1, 2, 0, 3) for part in input_bytes(config, size))
    shape = offset.shape[0], -1, offset.shape[3]
    return instance.reshape(shape), offset.reshape(shape)


def _flat(instance: Integers, offset: Integers, size: int) -> Integers:
    """Return addresses in a memory whose instances have `size` bytes; offsets wrap."""
    return instance * size + offset % size


def _largest(config: LayerConfig) -> int:
    """Return how many values the larger of input and output of a layer has."""
    inputs, output = config.input, config.output
    rows, columns = config.output_size
    read = inputs.operands * inputs.passes * len(config.processors)
    return max(
        read * inputs.size[0] * inputs.size[1], output.slots * output.passes * rows * columns
    )
