"""Layers of a network from those that the accelerator executes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.decompile.channels import (
    DecodedLayer,
    Inputs,
    Outputs,
    channels_of,
)
from ai8xtools.commands.decompile.flow import INPUT, UNKNOWN, Read, reads
from ai8xtools.diagnostics import Place
from ai8xtools.emulator.decode.config import (
    ActivationFunction,
    ElementwiseOperation,
    LayerConfig,
)
from ai8xtools.emulator.machine.execution import LayerExecution
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.layout import LayerLayout
from ai8xtools.synthesis.network import (
    MAX_TAPS,
    NETWORK_INPUT,
    Activation,
    Combination,
    Layer,
    Operator,
    Pooling,
    Size,
    Tensor,
)
from ai8xtools.synthesis.resolve.shapes import pooled_size
from ai8xtools.values import frozen
from device.chip import BIAS_UNIT, PROCESSORS, WORD_BYTES
from device.masks import mask_of

Integers = NDArray[np.int64]

_MOST_PASSES = 16
"""Of channels; more are those of a flattened image."""


@frozen(slots=False)
class Rebuilt:
    """A layer of a description, and where it works."""

    layer: Layer
    layout: LayerLayout
    decoded: DecodedLayer
    outputs: Outputs


def decoded_layers(memory: Memory, configs: Sequence[LayerConfig]) -> list[DecodedLayer]:
    """Return the layers with what they multiply with, and what they read."""
    executions = [
        LayerExecution(memory, config, configs[number + 1 :], [], first=number == 0)
        for number, config in enumerate(configs)
    ]
    whole, all_reads = reads(memory, [execution.config for execution in executions])
    return [
        DecodedLayer(
            config, execution.parameters(), read, bias_bytes=_bias_bytes(memory, whole, config)
        )
        for config, execution, read in zip(whole, executions, all_reads, strict=True)
    ]


def _bias_bytes(memory: Memory, configs: Sequence[LayerConfig], config: LayerConfig) -> int | None:
    """Return how many bytes there are up to the bias of another layer, or to the last bias."""
    own = [(g, o) for g, o in enumerate(config.output.bias_offsets) if o is not None]
    if len(own) != 1:
        return None
    group, offset = own[0]
    if not memory.bias_written[group].any():
        return None
    starts = [other.output.bias_offsets[group] for other in configs]
    end = int(np.flatnonzero(memory.bias_written[group])[-1]) + 1
    return min([o for o in starts if o is not None and o > offset], default=end) - offset


def rebuilt_layers(
    memory: Memory, configs: Sequence[LayerConfig], sample: Tensor, *, sparse: bool
) -> list[Rebuilt]:
    """Return the layers of the network that executes these; `sparse` as `channels_of` has it.

    Raises EmulatorError (E890) for what no description expresses.
    """
    layers = [*map(_unflattened, decoded_layers(memory, configs))]
    inputs, outputs = channels_of(layers, sparse=sparse)
    binary = bool(memory.control_register("CTL")["binary"])
    built: list[Rebuilt] = []
    for position, one in enumerate(layers):
        source = inputs[position].sources[0]
        size = built[source].layer.out_dim if source >= 0 else sample[0].shape
        if source == UNKNOWN:
            size = one.config.input.size
        taps = spread_taps(memory, one.config) if source < 0 or size[1] == 1 else 0
        work = _Work(one, inputs[position], outputs[position], position, size, binary, taps)
        built.append(Rebuilt(work.layer(), work.layout(memory), one, outputs[position]))
    return built


def spread_taps(memory: Memory, config: LayerConfig) -> int:
    """Return the taps of a series' kernel whose taps stand below each other in an image; else 0.

    Source: docs/hardware/execution.md, "Substitutions".
    """
    inputs, kernels = config.input, config.kernels
    single = inputs.stride == 1 and not inputs.pooling and inputs.operands == 1
    if not single or kernels.bypass or kernels.shape != (3, 3) or config.conv1d:
        return 0
    if not config.kind.sums_channels or config.transposed or inputs.pad != (1, 1):
        return 0
    parameters = LayerExecution(memory, config, (), [], first=False).parameters()
    assert parameters is not None
    values = parameters.kernels
    reach = MAX_TAPS - 1
    if values[..., ::2].any() or not values.any():
        return 0
    taps = 3 if values[..., 0, 1].any() else 2
    return taps if (taps - 1) * inputs.size[1] > reach else 0


def _unflattened(layer: DecodedLayer) -> DecodedLayer:
    """Return a layer with what it reads of one pixel, and how many pixels it flattens.

    The passes of a flattened layer are those of the writer for one pixel after the other.
    """
    config, read = layer.config, layer.read
    passes, written, output = config.input.passes, read.writers >= 0, config.output
    plain = config.kind.sums_channels and config.kernels.shape == (1, 1)
    if not plain or config.conv1d or config.input.size != (1, 1):
        return layer
    pixels = len(np.unique(read.pixels[written])) if written.any() else 1
    count, least = len(config.processors), (passes - 1) * PROCESSORS
    if not written.any() and (passes > _MOST_PASSES or count * passes <= least):
        pixels = passes
    lacks = output.passes > 1 and config.kernels.count < output.passes * output.slots * passes
    if (pixels == 1 and not lacks) or passes % pixels:
        return layer
    count = passes // pixels * len(config.processors)
    kept = Read(*(part[:, :count] for part in (read.writers, read.outputs, read.pixels)))
    return replace(layer, read=kept, flattened=pixels)


@frozen
class _Work:
    """What a layer is made from: `source_size` are the rows and columns of what it reads.

    `taps` are those of a series' kernel that is spread over the columns of an image, else 0.
    """

    decoded: DecodedLayer
    inputs: Inputs
    outputs: Outputs
    position: int
    source_size: Size
    binary: bool
    taps: int

    @property
    def flattened(self) -> int:
        """How many pixels of each channel become channels; 0: none."""
        return self.decoded.flattened

    @property
    def config(self) -> LayerConfig:
        """The registers."""
        return self.decoded.config

    @property
    def operator(self) -> Operator:
        """What follows pooling."""
        config = self.config
        if not config.kind.has_kernels:
            return Operator.NONE
        if config.conv1d or self.taps:
            return Operator.CONV1D
        if config.transposed:
            return Operator.CONVTRANSPOSE2D
        plain = config.kind.sums_channels and config.kernels.shape == (1, 1)
        single = config.input.pooled == (1, 1) and config.input.pad == (0, 0)
        return Operator.LINEAR if plain and single else Operator.CONV2D

    @property
    def sizes(self) -> tuple[Size, Size]:
        """Rows and columns of the input and after pooling."""
        inputs = self.config.input
        if self.taps:
            return self.source_size, self.source_size
        if self.flattened:
            source = self.source_size if self.inputs.sources[0] >= 0 else (self.flattened, 1)
            return source, pooled_size(source, self.pooling)
        size, own = inputs.size, self.source_size
        if own[1] == size[1] and size[0] <= own[0] < size[0] + inputs.stride:
            size = own
        return size, inputs.pooled

    @property
    def pooling(self) -> Pooling:
        """Pooling; along one column as along the other where there is but one."""
        inputs = self.config.input
        window = inputs.pool if inputs.pooling else (1, 1)
        stride, dilation = (inputs.stride, inputs.stride), inputs.pool_dilation
        if inputs.size[1] == 1:
            window, dilation = (window[0], window[0]), (dilation[0], dilation[0])
        return Pooling(window, stride, dilation, not inputs.max_pool)

    def layer(self) -> Layer:
        """Return the layer."""
        config, inputs = self.config, self.inputs
        size, pooled = self.sizes
        weights = self._weights()
        combined = config.input.operands > 1
        previous = self.position - 1 if self.position else INPUT
        usual = set(inputs.sources) == {previous} and (not combined or previous == INPUT)
        channels = inputs.channels
        bits = 0
        if weights is not None:
            bits = config.kernels.bits
            bits = -1 if bits == 1 and self.binary and (np.abs(weights) == 1).all() else bits
        pad = config.input.pad
        if config.transposed:
            pad = (config.kernels.shape[0] - 1 - pad[0], config.kernels.shape[1] - 1 - pad[1])
        depthwise = config.kind.has_kernels and not config.kind.sums_channels
        return Layer(
            index=self.position,
            places={"output_shift": Place()} if config.kernels.bypass else {},
            operator=self.operator,
            combination=_combination(config.input.operation) if combined else None,
            operands=config.input.operands,
            pool_first=config.input.pool_first or not (combined and config.input.pooling),
            in_channels=channels,
            out_channels=self.outputs.count,
            in_dim=size,
            in_crop=self._crop(size),
            pooling=self.pooling,
            pooled_dim=pooled,
            kernel=self.kernel,
            pad=pad if config.kind.has_kernels and not self.taps else (0, 0),
            dilation=config.input.size[1] if self.taps else 1,
            output_pad=int(config.transposed),
            out_dim=self.out_dim,
            activation=_activation(config.output.activation),
            weight_bits=bits,
            shift=config.output.shift,
            output_width=32 if config.output.wide else 8,
            groups=channels if depthwise else 1,
            flatten=bool(self.flattened),
            bypass=config.kernels.bypass,
            sources=None if usual else tuple(
                NETWORK_INPUT if s == INPUT else s for s in inputs.sources),
            weights=weights,
            bias=self._bias(),
        )  # fmt: skip

    @property
    def kernel(self) -> Size:
        """Rows and columns of the kernel."""
        if not self.config.kind.has_kernels:
            return 1, 1
        return (self.taps, 1) if self.taps else self.config.kernels.shape

    @property
    def out_dim(self) -> Size:
        """Rows and columns of the output."""
        if self.taps:
            return self.source_size[0] - (self.taps - 1) * self.config.input.size[1], 1
        return (1, 1) if self.flattened else self.config.output_size

    def _crop(self, size: Size) -> Size:
        """Rows that are left out before and after, if whole rows are."""
        if self.inputs.sources[0] < 0 or self.flattened:
            return 0, 0
        rows, columns = self.source_size
        before, rest = divmod(self.inputs.pixel, columns)
        after = rows - before - size[0]
        if rest or columns != size[1] or after < 0:
            return 0, 0
        return before, after

    def _weights(self) -> NDArray[np.int8] | None:
        """Weights [out, in, row, column]; those of a flattened layer are for channel by channel."""
        parameters, config = self.decoded.parameters, self.config
        if parameters is None or config.kernels.bypass:
            return None
        kernels = parameters.kernels.astype(np.int8)
        if self.taps:
            kernels = kernels[..., 3 - self.taps :, 1:2]
        if not config.kind.sums_channels:
            return kernels[: self.outputs.count, None]
        chosen = kernels[self.outputs.numbers]
        if self.flattened:
            count = len(config.processors)
            split = chosen.reshape(len(chosen), self.flattened, -1, count)
            by_channel = split.transpose(0, 2, 3, 1).reshape(len(chosen), -1, self.flattened)
            used = by_channel[:, : self.inputs.channels]
            return np.ascontiguousarray(used.reshape(len(chosen), -1, 1, 1))
        return np.ascontiguousarray(chosen[:, : self.inputs.channels])

    def _bias(self) -> Integers | None:
        """Biases in units of 128, if the registers say that there are any."""
        parameters, config = self.decoded.parameters, self.config
        if parameters is None or all(o is None for o in config.output.bias_offsets):
            return None
        values = parameters.bias.astype(np.int64) // BIAS_UNIT
        return np.asarray(values[self.outputs.numbers])

    @property
    def _leading_words(self) -> int:
        """Words in front of the valid output."""
        return self.config.input.size[1] * self.config.output.passes if self.taps == 3 else 0

    def layout(self, memory: Memory) -> LayerLayout:
        """Return where the layer works; kernels and biases are left to the loader."""
        snoop = memory.control_register("CTL", self.config.base_group)["snoop"]
        config, chip = self.config, memory.chip
        read = memory.register(config.layer, "LCTL", config.base_group)
        post = memory.register(config.layer, "POST", config.base_group)
        group = config.groups[0] if config.writes_by_group else config.base_group
        ahead = chip.has_extended_modes and bool(read.get("read_ahead"))
        return LayerLayout(
            processors=mask_of(config.processors),
            output_processors=self.outputs.mask,
            in_offset=config.input.read_word * WORD_BYTES,
            out_offset=(config.output.pointers[group].word + self._leading_words) * WORD_BYTES,
            write_gap=config.output.gap,
            read_gap=config.input.read_gap,
            channels_first=config.input.chw,
            streaming=False,
            calcx4=config.kernels.four_at_once,
            read_ahead=ahead,
            tcalc=bool(post.get("tcalc")),
            snoop_layer=_jump(memory, config) if snoop else None,
        )


def _jump(memory: Memory, config: LayerConfig) -> int | None:
    """Return the layer that follows if a condition hits, by its place in the description."""
    first = memory.control_register("LCNT_MAX")["first"]
    following = memory.register(config.layer, "NXTLYR", config.base_group)
    return following["layer"] - first if following["jump"] else None


def with_streams(built: Sequence[Rebuilt], *, first: bool) -> list[Rebuilt]:
    """Return the layers with those that stream; `first` is whether the first does."""
    return [
        replace(
            one,
            layout=replace(
                one.layout,
                streaming=first if number == 0 else one.decoded.config.stream_start > 0,
            ),
        )
        for number, one in enumerate(built)
    ]


def _combination(operation: ElementwiseOperation) -> Combination:
    return Combination[operation.name]


def _activation(activation: ActivationFunction) -> Activation | None:
    match activation:
        case ActivationFunction.NONE:
            return None
        case ActivationFunction.RELU:
            return Activation.RELU
        case ActivationFunction.ABS:
            return Activation.ABS
        case _:
            assert_never(activation)
