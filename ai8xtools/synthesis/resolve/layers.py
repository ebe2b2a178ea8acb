"""Layers in the order of execution: what the description leaves open is filled in.

Source: docs/network-description.md, "What follows from other keys".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from ai8xtools.diagnostics import Diagnostic, Place, Severity
from ai8xtools.synthesis.facts import Fact, effects
from ai8xtools.synthesis.flattening import remedy_of_flattened
from ai8xtools.synthesis.layout import LAYERS_WIDENED
from ai8xtools.synthesis.network import (
    DATA_BUFFER,
    NETWORK_INPUT,
    DataBuffer,
    Layer,
    Operator,
    Size,
    Tensor,
)
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Description, LayerDescription
from ai8xtools.synthesis.parse.rules import kernel, layer_index, operation
from ai8xtools.synthesis.resolve.geometry import LayerGeometry, UnresolvableError, geometry
from ai8xtools.synthesis.resolve.layout import beyond_group_0, streaming
from ai8xtools.synthesis.resolve.tensors import LayerTensors
from ai8xtools.synthesis.resolve.zero_channels import (
    copies_too_much,
    filled_tensors,
    read_mask,
    result_mask,
)
from ai8xtools.synthesis.zeros import Mask

_BYPASS_SHIFT = 7


class LayerBuilder:
    """Builds the layers one after the other; each sees the ones before it."""

    def __init__(
        self,
        description: Description,
        options: ResolveOptions,
        sample: Tensor,
        tensors: Mapping[int, LayerTensors],
        order: tuple[int, ...],
        buffer: DataBuffer | None,
        problems: list[Diagnostic],
    ) -> None:
        self.description = description
        self.options = options
        self.sample = sample
        self.tensors = tensors
        self.order = order
        self.problems = problems
        self.buffer = buffer
        self.built: dict[int, Layer] = {}
        self.masks: dict[int, Mask] = {}  # of results with channels that are always zero
        self.previous: Layer | None = None

    def layers(self) -> tuple[Layer, ...]:
        """Build the executed layers in order, then those between them that are only configured.

        Stops at a layer that has no size.
        """
        configured = range(min(self.order), max(self.order))
        try:
            for index in self.order:
                self.previous = self._build(index)
            for index in configured:
                if index not in self.built:
                    self.previous = self.built[index - 1]
                    self._build(index)
        except UnresolvableError as exc:
            self.problems.append(exc.diagnostic)
        return tuple(self.built[i] for i in sorted(self.built))

    def _build(self, index: int) -> Layer:
        keys = self.description.layers[index]
        layer = self.built[index] = self._layer(keys)
        mask = result_mask(layer, self._read(keys, layer.sources))
        if not mask.all():
            self.masks[index] = mask
        unreachable = beyond_group_0(keys, self.options) if self.previous is None else None
        if unreachable is not None:
            self.problems.append(unreachable)
        return layer

    def _layer(self, layer: LayerDescription) -> Layer:
        """Put a layer together from its keys, its sizes and its tensors."""
        operator, combination = operation(layer)
        operands = layer.get("operands", 2) if combination else 1
        sources = self._sources(layer)
        sizes = geometry(
            layer, self._in_dim(layer, sources), widened=self._adds_nine(layer, operator)
        )
        tensors = self._tensors(layer, sources, sizes)
        in_channels, out_channels = self._channels(layer, tensors, sources, operands, sizes)
        weights = tensors.weights if tensors else None
        if weights is not None and not weights.any():
            self.problems.append(
                replace(
                    layer.error(
                        "W233",
                        "all weights are zero",
                        "op",
                        remedy="Train the network.",
                        effects=effects(needs=Fact.WEIGHTS),
                    ),
                    severity=Severity.WARNING,
                )
            )
        return Layer(
            index=layer.index,
            name=layer.name,
            place=layer.place,
            places=self._places(layer),
            operator=operator,
            combination=combination,
            operands=operands,
            pool_first=layer.get("pool_first", True),
            in_channels=in_channels,
            out_channels=out_channels,
            in_dim=sizes.in_dim,
            in_crop=layer.get("in_crop", (0, 0)),
            pooling=sizes.pooling,
            pooled_dim=sizes.pooled_dim,
            kernel=sizes.kernel,
            pad=sizes.pad,
            stride=sizes.stride,
            dilation=sizes.dilation,
            output_pad=sizes.output_pad,
            out_dim=sizes.out_dim,
            activation=None if self.options.ignore_activation else layer.get("activate"),
            weight_bits=tensors.bits if tensors else layer.get("quantization", 0),
            shift=self._shift(layer, tensors),
            output_width=self._output_width(layer),
            groups=layer.get("groups", 1),
            flatten=layer.get("flatten", False),
            bypass=layer.get("bypass", False),
            is_output=layer.get("output", False),
            exit_margin=layer.get("exit_margin"),
            sources=sources,
            next_layer=self._next_layer(layer),
            buffer_shift=layer.get("buffer_shift", 0),
            buffer_insert=layer.get("buffer_insert", 0),
            weights=weights,
            bias=self._bias(layer, tensors),
            channel_skip=layer.get("in_channel_skip", 0),
            tensor_name=layer.get("weights"),
            weight_source=layer_index(layer.get("weight_source"), self.description)
            if "weight_source" in layer
            else None,
            zero_outputs=layer.get("zero_outputs", 0),
            copied=layer.get("copy_channels"),
            final_scale=tensors.final_scale if tensors else 0,
            sum_exponent=tensors.sum_exponent if tensors else 0,
        )

    def _tensors(
        self, layer: LayerDescription, sources: tuple[int, ...] | None, sizes: LayerGeometry
    ) -> LayerTensors | None:
        """Tensors of the file, or kernels that copy; with zeros for channels that fill passes."""
        tensors = self.tensors.get(layer.index)
        if not (self.masks or "zero_outputs" in layer or "copy_channels" in layer):
            return tensors
        read = self._read(layer, sources)
        wrong = copies_too_much(layer, len(read))
        self.problems += [wrong] if wrong is not None else []
        pixels = sizes.pooled_pixels if layer.get("flatten", False) else 1
        return filled_tensors(layer, tensors, read, pixels)

    def _read(self, layer: LayerDescription, sources: tuple[int, ...] | None) -> Mask:
        """Which channels that a layer reads are not always zero."""
        indices = sources if sources is not None else (self._default_source(),)
        return read_mask(layer, indices, self.masks, lambda s: self._source_shape(s)[0])

    def _places(self, layer: LayerDescription) -> dict[str, Place]:
        """Where each key stands; values that options gave stand there."""
        first, final = self.previous is None, layer.index == self.order[-1]
        overriding = (
            ("in_offset", "--input-offset", first and self.options.input_offset is not None),
            ("output_width", "--output-width", final and self.options.output_width is not None),
        )
        default = (
            ("calcx4", "--calcx4", self.options.calcx4),
            ("readahead", "--read-ahead", self.options.read_ahead),
            ("streaming", "--streaming-layers", layer.index in self.options.streaming_layers),
        )
        options = {key: name for key, name, wins in overriding if wins}
        options |= {key: name for key, name, used in default if used and key not in layer}
        places = {key: entry.place for key, entry in layer.entries.items()}
        return places | {k: layer.place_of(k).with_option(o) for k, o in options.items()}

    def _output_width(self, layer: LayerDescription) -> Literal[8, 32]:
        """Own key; the option wins in the final layer."""
        final = layer.index == self.order[-1]
        stated = self.options.output_width if final else None
        return 32 if (stated or layer.get("output_width", 8)) == 32 else 8

    def _sources(self, layer: LayerDescription) -> tuple[int, ...] | None:
        """Indices of the layers read; None: the one before."""
        if "in_sequences" not in layer:
            return None
        return tuple(self._source(layer, reference) for reference in layer.get("in_sequences"))

    def _source(self, layer: LayerDescription, reference: int | str) -> int:
        """Index of what a layer names as a source."""
        if self.buffer is not None and reference == self.buffer.name:
            return DATA_BUFFER
        index = layer_index(reference, self.description)
        if index is None or not (index == NETWORK_INPUT or index in self.built):
            raise UnresolvableError(
                layer.error(
                    "E215",
                    f"'in_sequences' names layer {index}, "
                    f"only layers before {layer.index} have an output here",
                    "in_sequences",
                    remedy="Use the number or name of an earlier layer, or input.",
                )
            )
        return index

    def _source_shape(self, index: int) -> tuple[int, Size]:
        """Channels and size of a layer's output or of the sample."""
        if index == NETWORK_INPUT:
            return self.sample.shape[0], (self.sample.shape[1], self.sample.shape[2])
        if index == DATA_BUFFER and self.buffer is not None:
            return self.buffer.channels, (self.buffer.entries, self.buffer.width)
        source = self.built[index]
        return source.out_channels, source.out_dim

    def _in_dim(self, layer: LayerDescription, sources: tuple[int, ...] | None) -> Size:
        """Input size: stated, else that of the source; several sources must agree."""
        indices = sources if sources is not None else (self._default_source(),)
        sizes = [self._source_shape(i)[1] for i in indices]
        stated: Size | None = layer.get("in_dim")
        if stated is None and len(set(sizes)) > 1:
            text = ", ".join(f"{r}x{c}" for r, c in sizes)
            self.problems.append(
                layer.error(
                    "E217",
                    f"the inputs have different sizes ({text})",
                    "in_sequences",
                    remedy="Make them equal with pooling, or state in_dim to join their pixels.",
                    effects=effects(needs=Fact.SIZES),
                )
            )
        if stated is not None:
            return stated
        before, after = layer.get("in_crop", (0, 0))
        return sizes[0][0] - before - after, sizes[0][1]

    def _default_source(self) -> int:
        return self.previous.index if self.previous else NETWORK_INPUT

    def _channels(
        self,
        layer: LayerDescription,
        tensors: LayerTensors | None,
        sources: tuple[int, ...] | None,
        operands: int,
        sizes: LayerGeometry,
    ) -> tuple[int, int]:
        """Input channels (before flattening) and output channels."""
        flat = sizes.pooled_pixels if layer.get("flatten", False) else 1
        ins = outs = 0
        if tensors is not None:
            ins = tensors.weights.shape[1] * layer.get("groups", 1)
            outs = tensors.weights.shape[0]
        if sources is not None:
            counts = [self._source_shape(i)[0] for i in sources]
            ins = (counts[0] if operation(layer)[1] else sum(counts)) * flat
        if not ins:
            count = self._source_shape(self._default_source())[0]
            ins = count if self.previous else max(count // operands, 1)
        ins = layer.get("in_channels", ins)
        if tensors is not None and tensors.weights.shape[1] * layer.get("groups", 1) != ins:
            self.problems.append(
                layer.error(
                    "E218",
                    f"the weights are for {tensors.weights.shape[1]} input channels, "
                    f"the layer has {ins}{self._origin(tensors)}",
                    "in_channels",
                    "in_sequences",
                    "op",
                    remedy=self._remedy_of_channels(layer, tensors, sources),
                    effects=effects(needs=Fact.SIZES),
                )
            )
        stated = layer.get("out_channels", outs or ins)
        if outs and stated != outs:
            self.problems.append(
                layer.error(
                    "E218",
                    f"the weights are for {outs} output channels, 'out_channels' is {stated}",
                    "out_channels",
                    remedy="Remove the key.",
                    effects=effects(needs=Fact.SIZES),
                )
            )
        outs = stated
        if ins % flat:
            self.problems.append(
                layer.error(
                    "E218",
                    f"{ins} inputs of the flattened layer are not a multiple of "
                    f"{sizes.pooled_dim[0]}x{sizes.pooled_dim[1]} pixels{self._origin(tensors)}",
                    *(("in_dim",) if "in_dim" in layer else ()),
                    "flatten",
                    remedy=self._remedy_of_flattened(layer, ins, sizes.pooled_dim),
                    effects=effects(needs=Fact.SIZES),
                )
            )
        return max(ins // flat, 1), outs

    def _remedy_of_flattened(self, layer: LayerDescription, inputs: int, size: Size) -> str:
        channels, (rows, columns) = self._source_shape(self._default_source())
        if "in_dim" in layer and inputs == channels * rows * columns:
            return "Remove 'in_dim': the size is that of the layer before."
        for one in self.description.layers[: layer.index + 1]:
            if "pool_stride" not in one and ("max_pool" in one or "avg_pool" in one):
                return f"{one} pools in steps of 1: give it a 'pool_stride'."
        shape = "x".join(map(str, self.sample.shape))
        return f"{remedy_of_flattened(inputs, channels, size)} The sample is {shape}."

    def _origin(self, tensors: LayerTensors | None) -> str:
        """Say what the layer before gives, and which tensor is for something else."""
        named = f" (tensor '{tensors.weight_name}')" if tensors and tensors.weight_name else ""
        if self.previous is None:
            return named
        channels, (rows, columns) = self._source_shape(self.previous.index)
        return f"; {self.previous} gives {channels}x{rows}x{columns}{named}"

    def _remedy_of_channels(
        self, layer: LayerDescription, tensors: LayerTensors, sources: tuple[int, ...] | None
    ) -> str:
        """Say what is probably meant by a layer whose weights are for other channels."""
        channels = tensors.weights.shape[1] * layer.get("groups", 1)
        if sources is None or "in_channels" in layer:
            return "Correct 'in_channels' or the order of the layers."
        counts = [self._source_shape(i)[0] for i in sources]
        if len(counts) > 1 and set(counts) == {channels} and not operation(layer)[1]:
            return "Add eltwise: add, if the inputs are to be added."
        fitting = [
            str(built.index) for built in self.built.values() if built.out_channels == channels
        ]
        hint = f"; {channels} channels have the outputs of {', '.join(fitting)}" if fitting else ""
        return f"Correct 'in_sequences', whose layers have {counts} channels{hint}."

    def _adds_nine(self, layer: LayerDescription, operator: Operator) -> bool:
        """Whether a bypassed 1x1 kernel has nine ones, as in or behind a streaming layer.

        There kernels run as 3x3, and a bypassed one has no weights that could be zero.
        """
        previous = self.previous
        near = streaming(layer, self.options) or (
            previous is not None
            and streaming(self.description.layers[previous.index], self.options)
        )
        small = operator.two_dimensional and kernel(layer) == (1, 1)
        return layer.get("bypass", False) and bool(near) and layer.index < LAYERS_WIDENED and small

    def _next_layer(self, layer: LayerDescription) -> int | None:
        """Index of the layer that is executed behind this one."""
        if layer.index not in self.order:
            return layer.index + 1
        position = self.order.index(layer.index) + 1
        return self.order[position] if position < len(self.order) else None

    def _shift(self, layer: LayerDescription, tensors: LayerTensors | None) -> int:
        """Stated shift, else the file's, plus what narrow weights need.

        A bypassed kernel of ones is shifted so that a single channel passes unchanged; weights of
        another layer bring their shift along.
        """
        source = layer_index(layer.get("weight_source", layer.index), self.description)
        if source is not None and source != layer.index and source in self.built:
            return self.built[source].shift
        if layer.get("bypass", False):
            return int(layer.get("output_shift", _BYPASS_SHIFT))
        implicit = 8 - abs(tensors.bits) if tensors else 0
        return int(layer.get("output_shift", tensors.shift if tensors else 0)) + implicit

    def _bias(self, layer: LayerDescription, tensors: LayerTensors | None) -> Tensor | None:
        """Bias values; all zero counts as none, with a warning."""
        if tensors is None or tensors.bias is None:
            return None
        if len(tensors.bias) != len(tensors.weights):
            self.problems.append(
                layer.error(
                    "E221",
                    f"the bias has {len(tensors.bias)} values for {len(tensors.weights)} "
                    "output channels",
                    "op",
                    remedy="Use the weights and biases of the same network.",
                )
            )
            return None
        if not np.any(tensors.bias):
            self.problems.append(
                replace(
                    layer.error(
                        "W269",
                        "all bias values are zero, the bias is left out",
                        "op",
                        effects=effects(needs=Fact.WEIGHTS),
                    ),
                    severity=Severity.WARNING,
                )
            )
            return None
        return tensors.bias
