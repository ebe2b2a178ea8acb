"""The accelerator: memories and registers in, results in data memory out.

`Accelerator.write` takes bus writes, `Accelerator.run` executes the configured layers from nothing
but registers and memories. Layers run one after the other; each reads everything it needs before
its output counts. What silicon would punish silently is reported as `Finding`s.
Source: spec/machine.md sections 3 and 5 to 9.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from device import Chip
from device.chip import (
    BIAS_UNIT,
    DEFAULT_APB_BASE,
    GROUPS,
    PROCESSORS_PER_GROUP,
    PROCESSORS_PER_INSTANCE,
)
from emulator import checks
from emulator.checks import Finding
from emulator.compute import convolve, finish, prepare
from emulator.decode import LayerConfig, Operator, decode_layer
from emulator.errors import EmulatorError
from emulator.fifo import fifo_image
from emulator.kernels import depthwise_bases, depthwise_bias, layer_bias, layer_kernels
from emulator.memory import INSTANCES, Memory
from emulator.power import check_power
from emulator.record import Writes

Integers = NDArray[np.int64]

_LANES = PROCESSORS_PER_INSTANCE
_PRIVATE_WORDS = 1 << 19  # data memory of a stream between two layers, per instance


@dataclass(frozen=True)
class Place:
    """Where outputs go: int64 arrays [output] of data memory instance, lane and first word."""

    instance: Integers
    lane: Integers
    word: Integers


@dataclass(frozen=True)
class LayerRun:
    """One executed layer: its configuration and its outputs, int64 [output, row, column]."""

    config: LayerConfig
    output: Integers
    place: Place


@dataclass
class Run:
    """An executed network: its layers in order, and what is suspicious about them."""

    layers: list[LayerRun] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class DataMemory:
    """Bytes a layer reads from or writes to, [instance, byte], and which of them were written."""

    data: NDArray[np.uint8]
    written: NDArray[np.bool_]


class Accelerator:
    """The accelerator of `chip`, whose bus starts at `apb_base`."""

    def __init__(self, chip: Chip, apb_base: int = DEFAULT_APB_BASE) -> None:
        self.memory = Memory(chip, apb_base)

    def write(self, writes: Writes) -> None:
        """Apply bus writes. Raises EmulatorError (E830) where the accelerator has nothing."""
        self.memory.write(writes)

    def data_words(self) -> dict[int, int]:
        """Return the words of data memory that were ever written, by address."""
        memory = self.memory
        written = np.any(memory.data_written.reshape(INSTANCES, -1, 4), axis=2)
        words: dict[int, int] = {}
        for instance in range(INSTANCES):
            index = np.flatnonzero(np.take(written, instance, axis=0))
            start = memory.addresses.apb_base + memory.chip.data_address(instance)
            values = memory.data[instance, index].tolist()
            words.update(zip((start + 4 * index).tolist(), values, strict=True))
        return words

    def input_complete(self) -> bool:
        """Tell whether everything is there that the network reads from the FIFOs."""
        memory = self.memory
        if not memory.control_register("CTL")["fifo"]:
            return True
        needed = memory.control_register("IFRM")["size"]
        return any(memory.pushes) and all(len(p) >= needed for p in memory.pushes.values())

    def run(self) -> Run:
        """Execute the network once, from the start layer to the last.

        Raises EmulatorError: no layer does anything (E831), impossible registers (E832), a group
        that takes part is not enabled or has no power (E834).
        """
        memory, run = self.memory, Run()
        layers = self._sequence()
        check_power(memory.registers, self._enabled_groups(layers))
        own = DataMemory(memory.data_bytes, memory.data_written)
        source = own
        for config, following in zip(layers, [*layers[1:], None], strict=True):
            target = own
            if following is not None and following.stream_start:
                target = _private_memory()
            run.layers.append(self._run_layer(config, following, source, target, run.findings))
            source = target
        memory.pushes.clear()
        return run

    def _sequence(self) -> list[LayerConfig]:
        """Follow the links from layer to layer; a jump back to an executed layer ends the list."""
        layers: list[LayerConfig] = []
        number: int | None = self.memory.control_register("LCNT_MAX")["first"]
        while number is not None and number not in {config.layer for config in layers}:
            if number >= self.memory.chip.max_layers:
                raise EmulatorError("E832", f"there is no layer {number} to go on with")
            layers.append(decode_layer(self.memory, number))
            number = layers[-1].next_layer
        layers = [config for config in layers if any(config.enabled)]
        if not layers:
            raise EmulatorError(
                "E831",
                "no layer has a processor: there is nothing to execute",
                remedy="The accelerator must be configured before it is started.",
            )
        return layers

    def _enabled_groups(self, layers: list[LayerConfig]) -> set[int]:
        """Return the groups that are enabled, which must be all that take part.

        Without any control word, the network is executed as if all were.
        """
        memory = self.memory
        words = [memory.registers.get(address) for address in memory.addresses.control]
        controls = [memory.control_register("CTL", group) for group in range(GROUPS)]
        if not any(words):
            return set()
        for config in layers:
            for group in config.groups:
                if not (controls[group]["enable"] and controls[group]["clock_enable"]):
                    raise EmulatorError(
                        "E834",
                        f"group {group} takes part in layer {config.layer}, but is not enabled",
                        remedy="Check the words that are written to its CTL register.",
                    )
        return {group for group, control in enumerate(controls) if control["enable"]}

    def _run_layer(
        self,
        config: LayerConfig,
        following: LayerConfig | None,
        source: DataMemory,
        target: DataMemory,
        findings: list[Finding],
    ) -> LayerRun:
        checks.check_configuration(config, self.memory, findings)
        modes = self.memory.control_register("CTL")
        first = config.layer == self.memory.control_register("LCNT_MAX")["first"]
        quad = first and bool(modes["fifo_quad"])
        if quad:  # the groups share the outputs; all see the channels of group 0
            config = dataclasses.replace(config, enabled=(config.enabled[0], 0, 0, 0))
        from_fifo = first and bool(self.memory.pushes)
        checks.refuse_impossible(config, self.memory.chip, from_fifo)
        if from_fifo:
            operands, read = fifo_image(self.memory, config), None
        else:
            operands, read = self._gather(config, source, findings)
            if source.written is not self.memory.data_written:
                read = None
        image = prepare(operands, config, rounding=bool(modes["average_rounding"]))
        if config.operator is Operator.PASSTHROUGH:
            output = image.astype(np.int64)
            place = _passthrough_place(config)
        else:
            output = self._operate(image, config, following, first, quad)
            place = _place(config)
        self._store(output, config, place, target, read, findings)
        return LayerRun(config, output, place)

    def _operate(
        self,
        image: NDArray[np.int32],
        config: LayerConfig,
        following: LayerConfig | None,
        first: bool,
        quad: bool,
    ) -> Integers:
        """Convolve, add the bias, scale and activate: int64 [output, row, column]."""
        modes = self.memory.control_register("CTL")
        kernels = layer_kernels(self.memory, config, binary=bool(modes["binary"]), quad=quad)
        if config.operator is Operator.DEPTHWISE:
            per_channel = kernels[:, 0].swapaxes(0, 1)  # [pass, processor, row, column]
            sums = convolve(image, per_channel.reshape(-1, *config.kernels.shape), config)
            bias = depthwise_bias(self.memory, config)
        else:
            # [output, pass, processor, row, column], as the channels of the image are ordered
            ordered = kernels.transpose(1, 2, 0, 3, 4)
            weights = ordered.reshape(len(ordered), -1, *config.kernels.shape)
            sums = convolve(image, weights, config)
            bias = layer_bias(
                self.memory,
                config,
                _gaps(config, weights, following),
                skip_first=first
                and bool(config.ring_words)
                and not self.memory.chip.has_next_layer,
                quad=quad,
            )
        return finish(sums + BIAS_UNIT * bias.reshape(-1, 1, 1), config.output)

    def _gather(
        self, config: LayerConfig, source: DataMemory, findings: list[Finding]
    ) -> tuple[NDArray[np.int32], tuple[Integers, Integers] | None]:
        """Read the operands [operand, channel, row, column] of a layer from data memory.

        Also returns which bytes were read: instances and byte offsets, [processor, byte].
        """
        inputs = config.input
        pixels = inputs.size[0] * inputs.size[1]
        processors = np.array(config.processors)
        if inputs.chw:
            offset = np.broadcast_to(
                4 * inputs.read_word + np.arange(pixels), (len(processors), 1, 1, pixels)
            )
        else:
            # [processor, operand, pass, pixel]
            pixel = np.arange(pixels) * inputs.passes
            steps = pixel + np.arange(inputs.passes)[:, None]
            words = (
                inputs.read_word
                + steps * inputs.operands * (inputs.read_gap + 1)
                + np.arange(inputs.operands)[:, None, None]
            )
            offset = 4 * words + processors.reshape(-1, 1, 1, 1) % _LANES
        offset = offset % source.data.shape[1]
        instance = processors.reshape(-1, 1, 1, 1) // _LANES
        checks.check_read(config, source.written[instance, offset], offset, findings)
        values = source.data[instance, offset].view(np.int8).astype(np.int32)
        # Channels: passes outside, processors inside
        image = values.transpose(1, 2, 0, 3).reshape(offset.shape[1], -1, *inputs.size)
        return image, (np.broadcast_to(instance, offset.shape), offset)

    def _store(
        self,
        output: Integers,
        config: LayerConfig,
        place: Place,
        target: DataMemory,
        read: tuple[Integers, Integers] | None,
        findings: list[Finding],
    ) -> None:
        """Write the outputs [output, row, column] to data memory."""
        pixels = np.arange(output.shape[1] * output.shape[2])
        step = config.output.step * config.output.passes
        words = place.word[:, None] + pixels * step
        instance = np.broadcast_to(place.instance[:, None], words.shape)
        values = output.reshape(len(output), -1)
        if config.output.wide:
            offset = 4 * (words + place.lane[:, None])
            offset = offset[..., None] + np.arange(4)
            instance = np.broadcast_to(instance[..., None], offset.shape)
            data = np.ascontiguousarray(values.astype("<i4")).view(np.uint8).reshape(offset.shape)
        else:
            offset = 4 * words + place.lane[:, None]
            data = values.astype(np.int8).view(np.uint8)
        if target.written is self.memory.data_written:
            limit = self.memory.chip.instance_bytes
            checks.check_write(config, instance, offset, limit, read, findings)
        offset = offset % target.data.shape[1]
        target.data[instance, offset] = data
        target.written[instance, offset] = True


def _private_memory() -> DataMemory:
    """The ring between two streaming layers: as large as needed, read by nobody else."""
    shape = (INSTANCES, 4 * _PRIVATE_WORDS)
    return DataMemory(np.zeros(shape, np.uint8), np.zeros(shape, np.bool_))


def _place(config: LayerConfig) -> Place:
    """Place of the outputs of a convolution: pass by pass, slot by slot."""
    output = config.output
    if config.operator is Operator.DEPTHWISE:
        return _depthwise_place(config)
    slot = np.tile(np.arange(output.slots), output.passes)
    number = np.repeat(np.arange(output.passes), output.slots)
    start = output.pointers[0]
    return Place(
        (start.instance + slot // _LANES) % INSTANCES,
        slot % _LANES,
        start.word + number * output.step,
    )


def _depthwise_place(config: LayerConfig) -> Place:
    """Place of the channels of a depth-wise layer, each group with its own write pointer."""
    output, processors = config.output, np.array(config.processors)
    group = processors // PROCESSORS_PER_GROUP
    start = np.array([pointer.instance for pointer in output.pointers])[group]
    word = np.array([pointer.word for pointer in output.pointers])[group]
    if config.broadcast:
        instance, lane = processors // _LANES, processors % _LANES
    else:
        first_lane = max(config.kernels.count // config.input.passes - 1, 0)
        slot = processors - depthwise_bases(config)[group] + first_lane
        instance, lane = (start + slot // _LANES) % INSTANCES, slot % _LANES
    return _repeated(config, instance, lane, word)


def _passthrough_place(config: LayerConfig) -> Place:
    """Place of the channels of a pass-through layer: the used processors close up."""
    slots, instances, words = [], [], []
    for group in config.groups:
        pointer = config.output.pointers[group]
        units = [p for p in config.processors if p // PROCESSORS_PER_GROUP == group]
        slots += [n + units[0] % _LANES for n in range(len(units))]
        instances += [pointer.instance] * len(units)
        words += [pointer.word] * len(units)
    slot = np.array(slots)
    instance = (np.array(instances) + slot // _LANES) % INSTANCES
    return _repeated(config, instance, slot % _LANES, np.array(words))


def _repeated(config: LayerConfig, instance: Integers, lane: Integers, word: Integers) -> Place:
    """Repeat the place of each processor for every pass: [pass, processor] in one axis."""
    passes = config.input.passes
    number = np.repeat(np.arange(passes), len(lane))
    return Place(
        np.tile(instance, passes),
        np.tile(lane, passes),
        np.tile(word, passes) + number * config.output.step,
    )


def _gaps(config: LayerConfig, weights: Integers, following: LayerConfig | None) -> Integers:
    """Count for each slot the unused lanes before it, [output passes, slots]: biases skip them.

    A lane is unused if all its kernels are zero and the next layer, reading this output, does not
    enable its processor. Source: spec/machine.md section 8.
    """
    output = config.output
    empty = ~weights.any(axis=(1, 2, 3)).reshape(output.passes, output.slots)
    start = output.pointers[0]
    if following is None or following.input.read_word != start.word:
        return np.zeros(empty.shape, np.int64)
    readers = set(following.processors)
    processors = (start.instance * _LANES + np.arange(output.slots)) % (INSTANCES * _LANES)
    unread = np.array([processor not in readers for processor in processors])
    gaps = empty & unread
    if output.passes == 1:
        # Lanes before the first output have bias bytes of their own. Their kernels are not loaded;
        # those of another layer may stand there.
        read = np.flatnonzero(~unread)
        gaps[0, : read[0] if len(read) else output.slots] = False
    flat = gaps.reshape(-1)
    counted: Integers = np.cumsum(flat) - flat
    return counted.reshape(empty.shape)
