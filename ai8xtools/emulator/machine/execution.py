"""Executing one layer: read the operands, compute, write the outputs.

Source: docs/hardware/memory.md, "Data memory" and "Bias memory"; docs/hardware/streaming.md,
"FIFOs"; docs/hardware/execution.md, "Write pointers" and "Order of layers";
docs/hardware/arithmetic.md, "Shift, rounding, clipping".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.checks import (
    biases,
    fifo_words,
    impossible,
    loaded_kernels,
    overwrites,
    reads,
)
from ai8xtools.emulator.checks.finding import LayerFinding, LayerReport
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.fifo import fifo_image, surplus_words
from ai8xtools.emulator.decode.locations import (
    OutputLocations,
    input_bytes,
    output_bytes,
    output_locations,
    unused_lanes,
    words_of,
)
from ai8xtools.emulator.decode.weights import bias_values, depthwise_bias, layer_bias
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.machine.arithmetic import LayerParameters, operate, prepare
from ai8xtools.emulator.machine.kernels import DecodedKernels
from ai8xtools.emulator.state.data_memory import DataMemory
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen
from device.chip import BIAS_UNIT

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


def _is_spread(kernels: NDArray[np.generic]) -> bool:
    """Tell whether kernels [..., row, column] have taps in the middle column of three only.

    A one-dimensional convolution with dilation is stored so, and its series as rows of an image.
    """
    return kernels.shape[-2:] == (3, 3) and not kernels[..., ::2].any()


class LayerExecution:
    """A layer to execute: its configuration, and those of the layers behind it.

    `first` marks the start layer. What is suspicious goes to `findings`. `decoded` keeps kernels
    from one execution to the next.
    """

    def __init__(
        self,
        memory: Memory,
        config: LayerConfig,
        later: Sequence[LayerConfig],
        findings: list[LayerFinding],
        decoded: DecodedKernels | None = None,
        *,
        first: bool,
    ) -> None:
        self._memory = memory
        self._decoded = decoded or DecodedKernels()
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
        rounding = bool(self._modes["average_rounding"])
        image = prepare(operands[..., None], config, rounding=rounding)
        parameters = self.parameters()
        if parameters is not None and _is_spread(parameters.kernels):
            target.spread.add(config.layer)
        output = operate(image, config, parameters)[..., 0].astype(np.int64)
        done = LayerRun(config, output, output_locations(config))
        self._store(done, target, None if source.private else read)
        return done

    @property
    def config(self) -> LayerConfig:
        """The configuration as the layer computes: with quad mode, in group 0 alone."""
        return self._config

    def parameters(self) -> LayerParameters | None:
        """Return what the layer multiplies with and adds; None if it does not compute.

        Reports biases that are missing. Raises EmulatorError (E832).
        """
        config = self._config
        if not config.kind.has_kernels:
            return None
        kernels = self._decoded.of(self._memory, config, self._modes, quad=self._quad)
        if config.kind.sums_channels:
            streams = bool(config.ring_words) and self._memory.chip.skips_stream_bias
            group, index = layer_bias(
                config,
                unused_lanes(config, kernels.values, self._following),
                skip_first=self._first and streams,
                quad=self._quad,
            )
        else:
            group, index = depthwise_bias(config)
        biases.check_biases(self._report, group, index, kernels.used.reshape(index.shape))
        bias = BIAS_UNIT * bias_values(self._memory, group, index).reshape(-1)
        kind = kernels.exact_type(bias, config.output)
        return LayerParameters(kernels.as_type(kind), bias.astype(kind))

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
        instance, offset = output_bytes(done.config, place, words.shape[1])
        kind = "<i4" if done.config.output.wide else np.int8
        data = done.output.astype(kind).tobytes()
        if not target.private:
            overwrites.check_writes(self._report, target, instance, offset)
            if read is not None:
                pixels = np.arange(words.shape[1])
                overwrites.check_own_input(
                    self._report, (read.instance, read.offset), (place.instance, words, pixels)
                )
        stored = np.frombuffer(data, np.uint8).reshape(offset.shape)
        target.write(instance, offset, stored, done.config.layer)
