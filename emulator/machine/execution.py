"""Executing one layer: read the operands, compute, write the outputs.

Source: docs/hardware/memory.md, "Data memory" and "Bias memory"; docs/hardware/streaming.md,
"FIFOs"; docs/hardware/execution.md, "Write pointers" and "Order of layers";
docs/hardware/arithmetic.md, "Shift, rounding, clipping".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from device.chip import BIAS_UNIT
from emulator.checks import biases, fifo_words, impossible, loaded_kernels, overwrites, reads
from emulator.checks.finding import LayerFinding, LayerReport
from emulator.decode.config import LayerConfig, LayerKind
from emulator.decode.fifo import fifo_image, surplus_words
from emulator.decode.locations import (
    OutputLocations,
    input_bytes,
    output_locations,
    unused_lanes,
    words_of,
)
from emulator.decode.weights import bias_values, depthwise_bias, layer_bias, layer_kernels
from emulator.errors import EmulatorError
from emulator.machine.arithmetic import convolve, finish, prepare
from emulator.state.data_memory import DataMemory
from emulator.state.memory import Memory
from values import frozen

Integers = NDArray[np.int64]


@frozen
class LayerRun:
    """One executed layer: its configuration, and where its outputs went.

    `output` is int64 [output, row, column], in the order of the outputs in `place`: output passes,
    in each the lanes from lane 0 of the first data memory instance on, used or not.
    """

    config: LayerConfig
    output: Integers
    place: OutputLocations

    @property
    def words(self) -> Integers:
        """Word of each output's pixels in its data memory instance, int64 [output, pixel]."""
        return words_of(self.config, self.place, self.output[0].size)


@frozen
class _Read:
    """The bytes that a layer read: instances and offsets, both int64 [processor, ..., pixel]."""

    instance: Integers
    offset: Integers


class LayerExecution:
    """A layer to execute: its configuration, and those of the layers behind it.

    `first` marks the start layer. What is suspicious goes to `findings`.
    """

    def __init__(
        self,
        memory: Memory,
        config: LayerConfig,
        later: Sequence[LayerConfig],
        findings: list[LayerFinding],
        *,
        first: bool,
    ) -> None:
        self._memory = memory
        self._modes = memory.control_register("CTL")
        self._first = first
        self._quad = first and bool(self._modes["fifo_quad"])
        self._following = later[0] if later else None
        self._report = LayerReport(memory, config, findings)
        loaded_kernels.check_kernels(self._report, later)
        if self._quad:  # the groups share the outputs; all see the channels of group 0
            config = dataclasses.replace(config, enabled=(config.enabled[0], 0, 0, 0))
        self._config = config

    def run(self, source: DataMemory, target: DataMemory) -> LayerRun:
        """Execute the layer.

        Raises EmulatorError: impossible registers (E832), missing FIFO words (E833).
        """
        memory, config = self._memory, self._config
        from_fifo = self._first and bool(memory.pushes)
        impossible.refuse_impossible(self._report, from_fifo)
        read = None
        if self._first and self._modes["fifo"] and not from_fifo:
            raise EmulatorError(
                "E833", f"layer {config.layer} reads the FIFOs, but they got no words"
            )
        if from_fifo:
            fifo_words.check_fifo_words(self._report, *surplus_words(memory, config))
            operands = fifo_image(memory, config)
        else:
            operands, read = self._gather(source)
        image = prepare(operands, config, rounding=bool(self._modes["average_rounding"]))
        output = self._operate(image)
        done = LayerRun(config, output, output_locations(config))
        self._store(done, target, None if source.private else read)
        return done

    def _operate(self, image: NDArray[np.int32]) -> Integers:
        """Return what is written: int64 [output, row, column]."""
        match self._config.kind:
            case LayerKind.PASSTHROUGH:
                return image.astype(np.int64)
            case LayerKind.CONVOLUTION:
                return self._convolution(image)
            case LayerKind.DEPTHWISE:
                return self._depthwise(image)
            case _:
                assert_never(self._config.kind)

    def _convolution(self, image: NDArray[np.int32]) -> Integers:
        """Sum over all channels; then as `_finished`."""
        config = self._config
        # [output, pass, processor, row, column], as the channels of the image are ordered
        ordered = self._kernels().transpose(1, 2, 0, 3, 4)
        weights = ordered.reshape(len(ordered), -1, *config.kernels.shape)
        sums = convolve(image, weights, config)
        streams = bool(config.ring_words) and self._memory.chip.skips_stream_bias
        places = layer_bias(
            config,
            unused_lanes(config, weights, self._following),
            skip_first=self._first and streams,
            quad=self._quad,
        )
        return self._finished(sums, places, np.any(weights, axis=(1, 2, 3)))

    def _depthwise(self, image: NDArray[np.int32]) -> Integers:
        """Give every channel its own kernel; then as `_finished`."""
        config = self._config
        kernels = self._kernels()[:, 0].swapaxes(0, 1)  # [pass, processor, row, column]
        sums = convolve(image, kernels.reshape(-1, *config.kernels.shape), config)
        return self._finished(sums, depthwise_bias(config), np.any(kernels, axis=(2, 3)))

    def _kernels(self) -> Integers:
        binary = bool(self._modes["binary"])
        return layer_kernels(self._memory, self._config, binary=binary, quad=self._quad)

    def _finished(
        self, sums: Integers, places: tuple[Integers, Integers], used: NDArray[np.bool_]
    ) -> Integers:
        """Add the biases, scale and activate; `places` holds group and index of each bias."""
        group, index = places
        biases.check_biases(self._report, group, index, used.reshape(index.shape))
        bias = bias_values(self._memory, group, index)
        return finish(sums + BIAS_UNIT * bias.reshape(-1, 1, 1), self._config.output)

    def _gather(self, source: DataMemory) -> tuple[NDArray[np.int32], _Read]:
        """Read the operands [operand, channel, row, column] from data memory."""
        inputs = self._config.input
        instance, offset = input_bytes(self._config, source.data.shape[1])
        reads.check_reads(self._report, source, instance, offset)
        # Channels: passes outside, processors inside
        values = source.read(instance, offset).astype(np.int32).transpose(1, 2, 0, 3)
        image = values.reshape(offset.shape[1], -1, *inputs.size)
        return image, _Read(instance, offset)

    def _store(self, done: LayerRun, target: DataMemory, read: _Read | None) -> None:
        """Write the outputs to data memory."""
        words, place = done.words, done.place
        instance = np.broadcast_to(place.instance[:, None], words.shape)
        values = done.output.reshape(len(words), -1)
        if done.config.output.wide:
            offset = 4 * words[..., None] + np.arange(4)
            instance = np.broadcast_to(instance[..., None], offset.shape)
            data = values.astype("<i4").tobytes()
        else:
            offset = 4 * words + place.lane[:, None]
            data = values.astype(np.int8).tobytes()
        if not target.private:
            overwrites.check_writes(self._report, target, instance, offset)
            if read is not None:
                pixels = np.arange(words.shape[1])
                overwrites.check_own_input(
                    self._report, (read.instance, read.offset), (place.instance, words, pixels)
                )
        stored = np.frombuffer(data, np.uint8).reshape(offset.shape)
        target.write(instance, offset, stored, done.config.layer)
