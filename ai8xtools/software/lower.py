"""From a network to steps: layers become pooling, combination and convolution on tensors.

Layers that only pass data through need no step at all. Where something stands on an accelerator
does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.software import bounds
from ai8xtools.software.gathering import Part, is_by_rows, pieces_of, whole
from ai8xtools.software.graph import (
    Combine,
    Convolution,
    Copy,
    Insert,
    Int8,
    Interval,
    Piece,
    Pool,
    PoolKind,
    Roll,
    Size,
    Step,
    StepGraph,
    Tensor,
    sources_of,
)
from ai8xtools.synthesis.network import (
    DATA_BUFFER,
    NETWORK_INPUT,
    Activation,
    Layer,
    Network,
)

_BIAS_UNIT = 128
_LONGEST = 65535
"""Rows and columns are counted in 16 bits."""


def lower(network: Network, *, average_rounding: bool = False) -> StepGraph:
    """Return the steps of a network that has been checked.

    Raises DiagnosticError if a sum could leave 32 bits, or if 32-bit results are used further.
    """
    return _Lowering(network, average_rounding=average_rounding).graph()


class _Lowering:
    """Steps and tensors as they grow, layer by layer; `values` are tensors by layer."""

    def __init__(self, network: Network, *, average_rounding: bool) -> None:
        self.network = network
        self.average_rounding = average_rounding
        self.tensors: list[Tensor] = []
        self.ranges: list[Interval] = []
        self.steps: list[Step] = []
        self.problems: list[Diagnostic] = []
        channels, rows, columns = network.sample.shape
        self.input = self._tensor("input", (rows, columns), bounds.full_range(channels))
        self.values: dict[int, int] = {NETWORK_INPUT: self.input}
        self.kept: int | None = None
        if network.buffer is not None:
            size = network.buffer.entries, network.buffer.width
            interval = bounds.full_range(network.buffer.channels)
            self.kept = self.values[DATA_BUFFER] = self._tensor("buffer", size, interval)

    def graph(self) -> StepGraph:
        """Lower all layers; leave out steps that nothing needs."""
        previous = NETWORK_INPUT
        for position, index in enumerate(self.network.simulated):
            layer = self.network.layer(index)
            self._layer(layer, previous, position)
            previous = index
        if self.problems:
            raise DiagnosticError(self.problems)
        outputs = tuple(self.values[layer.index] for layer in self.network.outputs())
        return StepGraph(
            name=self.network.arch or "network",
            tensors=tuple(self.tensors),
            steps=_needed(self.steps, outputs, self.kept),
            input=self.input,
            outputs=outputs,
            kept=self.kept,
        )

    def _tensor(self, name: str, size: Size, interval: Interval, *, value_bytes: int = 1) -> int:
        index = len(self.tensors)
        self.tensors.append(Tensor(index, name, *size, len(interval.low), value_bytes))
        self.ranges.append(interval)
        return index

    def _layer(self, layer: Layer, previous: int, position: int) -> None:
        """Add the steps of a layer."""
        if layer.buffer_shift:
            self._roll(layer, previous, position)
            return
        self._check_size(layer)
        if layer.exit_margin is not None:
            self.problems.append(
                layer.diagnostic(
                    "E328", "only the accelerator of MAX78002 ends early", "exit_margin",
                    "Remove the key: both outputs are delivered then.",
                )
            )  # fmt: skip
        operands = self._operands(layer, previous)
        kind = _pool_kind(layer, rounding=self.average_rounding)
        if layer.combination and not layer.pool_first:
            operands = [self._combine(layer, operands, layer.in_dim)]
        if layer.pooling.reduces:
            operands = [self._pool(layer, operand, kind) for operand in operands]
        if layer.combination and layer.pool_first:
            operands = [self._combine(layer, operands, layer.pooled_dim)]
        (value,) = operands
        if layer.has_weights or layer.output_width == 32:
            value = self._convolution(layer, value)
        elif layer.flatten:
            value = self._flattened(layer, value)
        self.values[layer.index] = value
        if layer.buffer_insert:
            self._insert(layer, value, position)

    def _check_size(self, layer: Layer) -> None:
        """Complain of images that the C program cannot count."""
        longest = max(*layer.in_dim, *layer.pooled_dim, *layer.out_dim)
        if longest > _LONGEST:
            self.problems.append(
                layer.diagnostic(
                    "E910",
                    f"an image of {longest:,} rows or columns, the limit is {_LONGEST:,}",
                    ("in_dim", "op"),
                    "Cut the data into parts.",
                )
            )

    def _operands(self, layer: Layer, previous: int) -> list[int]:
        """Return the tensors of a layer's operands, of in_dim each; copy where none is whole."""
        sources = layer.sources or (previous,)
        parts = [self._part(self.values[source], layer) for source in sources]
        skip = layer.channel_skip if self.network.reshapes_inputs else None
        simple = skip is None and layer.in_crop == (0, 0)
        if simple and len(sources) == layer.operands and all(whole(p, layer) for p in parts):
            return [part.tensor for part in parts]
        gathered = pieces_of(parts, layer, skip)
        return [
            self._copied(layer, f"{layer} operand {number}", pieces, channels, layer.in_dim)
            for number, (pieces, channels) in enumerate(gathered)
        ]

    def _part(self, tensor: int, layer: Layer) -> Part:
        one = self.tensors[tensor]
        if one.bytes_per_value != 1:
            self.problems.append(
                layer.diagnostic(
                    "E902",
                    f"it reads 32-bit results ({one.name})",
                    ("in_sequences", "op"),
                    "Only results that leave the network can have 32 bits: remove 'output_width'.",
                )
            )
        return Part(tensor, one.channels, one.rows, one.columns)

    def _copied(
        self, layer: Layer, name: str, pieces: tuple[Piece, ...], channels: int, size: Size
    ) -> int:
        """Add a step that copies pieces into a new tensor."""
        sources = tuple(dict.fromkeys(piece.source for piece in pieces))
        low = min(int(self.ranges[source].low.min()) for source in sources)
        high = max(int(self.ranges[source].high.max()) for source in sources)
        interval = Interval(np.full(channels, low, np.int64), np.full(channels, high, np.int64))
        target = self._tensor(name, size, interval)
        tensors = {source: self.tensors[source] for source in sources}
        rows = is_by_rows(pieces, tensors, self.tensors[target])
        self.steps.append(
            Copy(sources=sources, target=target, layer=layer.index, name=name, pieces=pieces,
                 by_rows=rows)
        )  # fmt: skip
        return target

    def _combine(self, layer: Layer, operands: Sequence[int], size: Size) -> int:
        assert layer.combination is not None
        join = layer.combination
        interval = bounds.joined(join, [self.ranges[operand] for operand in operands])
        target = self._tensor(f"{layer} {join}", size, interval)
        self.steps.append(
            Combine(sources=tuple(operands), target=target, layer=layer.index, name=str(layer),
                    channels=len(interval.low), size=size, join=join)
        )  # fmt: skip
        return target

    def _pool(self, layer: Layer, operand: int, kind: PoolKind) -> int:
        interval, pooling = self.ranges[operand], layer.pooling
        target = self._tensor(f"{layer} pooled", layer.pooled_dim, interval)
        self.steps.append(
            Pool(source=operand, target=target, layer=layer.index, name=str(layer),
                 channels=len(interval.low), in_size=layer.in_dim, out_size=layer.pooled_dim,
                 kind=kind, window=pooling.window, stride=pooling.stride,
                 dilation=pooling.dilation)
        )  # fmt: skip
        return target

    def _flattened(self, layer: Layer, value: int) -> int:
        """Bring the values of an image into the order of channels, one pixel."""
        rows, columns = layer.pooled_dim
        pixels, channels = rows * columns, layer.in_channels
        if pixels == 1:
            return value
        pieces = tuple(Piece(value, c, channels, c * pixels, 1, 1, pixels) for c in range(channels))
        return self._copied(layer, f"{layer} flattened", pieces, channels * pixels, (1, 1))

    def _convolution(self, layer: Layer, value: int) -> int:
        weights, interval, size = _weights(layer), self.ranges[value], layer.pooled_dim
        if layer.flatten and size != (1, 1):
            weights = _by_pixels(weights, layer)
            interval = bounds.repeated(interval, size[0] * size[1])
            size = (1, 1)
        right, wide = 7 - layer.shift, layer.output_width == 32
        half = 0 if wide or right <= 0 else 1 << right >> 1
        start = np.full(len(weights), half, np.int64)
        if layer.bias is not None and layer.has_weights:
            start += _BIAS_UNIT * layer.bias
        active = layer.activation if layer.has_weights else None
        low, absolute = _limits(active)
        groups = layer.groups if layer.has_weights else len(weights)
        sums = bounds.sums_of(weights, start, groups, interval)
        complaint = bounds.overflow(layer, sums)
        self.problems += [complaint] if complaint else []
        output = bounds.narrowed(sums, right, low, absolute=absolute)
        if wide:
            output = Interval(sums.low, sums.high)
        target = self._tensor(
            f"{layer} output", layer.out_dim, output, value_bytes=4 if wide else 1
        )
        pad, stride, spread = layer.pad, layer.stride, (1, 1)
        if layer.operator.transposed:
            reach = [layer.dilation * (k - 1) for k in layer.kernel]
            pad = reach[0] - layer.pad[0], reach[1] - layer.pad[1]
            stride, spread = spread, stride
        if not layer.has_weights:
            pad, stride = (0, 0), (1, 1)
        self.steps.append(
            Convolution(source=value, target=target, layer=layer.index, name=str(layer),
                        place=layer.place, weights=weights, start=start, groups=groups,
                        in_size=size, out_size=layer.out_dim, pad=pad, dilation=layer.dilation,
                        stride=stride, spread=spread, right=right, low=low, absolute=absolute,
                        wide=wide, limited=wide and active is not None,
                        weight_bits=abs(layer.weight_bits) or 8, input=interval, output=output)
        )  # fmt: skip
        return target

    def _roll(self, layer: Layer, previous: int, position: int) -> None:
        """Move the buffer; its values become the layer's."""
        assert self.kept is not None
        (source,) = self._operands(replace(layer, in_dim=_size(self.tensors[self.kept])), previous)
        self._keep_old(layer, position, layer.index)
        buffer = self.tensors[self.kept]
        if source != self.kept:
            self.steps.append(Insert(source=source, target=self.kept, layer=layer.index,
                                     name=str(layer)))  # fmt: skip
        self.steps.append(Roll(target=self.kept, layer=layer.index, name=str(layer),
                               dropped=layer.buffer_shift * buffer.row_bytes))  # fmt: skip
        self.values[layer.index] = self.kept

    def _insert(self, layer: Layer, value: int, position: int) -> None:
        assert self.kept is not None
        self._keep_old(layer, position + 1, None)
        self.steps.append(
            Insert(source=value, target=self.kept, layer=layer.index, name=str(layer))
        )

    def _keep_old(self, layer: Layer, position: int, own: int | None) -> None:
        """Copy the buffer if layers from `position` on need what it holds before it changes."""
        assert self.kept is not None
        later = [self.network.layer(i) for i in self.network.simulated[position:]]
        named = {source for one in later if one.index != own for source in one.sources or ()}
        for index, tensor in list(self.values.items()):
            if tensor == self.kept and index != DATA_BUFFER and index in named:
                kept = self.tensors[self.kept]
                piece = Piece(self.kept, 0, 0, 0, 0, kept.size_bytes, 1)
                self.values[index] = self._copied(
                    layer, f"{layer} before", (piece,), kept.channels, _size(kept)
                )


def _size(tensor: Tensor) -> Size:
    return tensor.rows, tensor.columns


def _weights(layer: Layer) -> Int8:
    """Return the weights of a layer; those of a bypassed one are ones."""
    if not layer.has_weights:  # 32 bits of a value that passes through
        return np.ones((layer.out_channels, 1, 1, 1), np.int8)
    if layer.weights is not None:
        return layer.weights
    shape = (layer.out_channels, layer.flat_channels // layer.groups, *layer.kernel)
    return np.ones(shape, np.int8)


def _by_pixels(weights: Int8, layer: Layer) -> Int8:
    """Bring the inputs of a flattened layer from the order of channels into that of pixels."""
    filters, _, *kernel = weights.shape
    moved = weights.reshape(filters, layer.in_channels, -1, *kernel).swapaxes(1, 2)
    return np.ascontiguousarray(moved).reshape(filters, -1, *kernel)


def _limits(active: Activation | None) -> tuple[int, bool]:
    """Return the least result, and whether magnitudes take the place of results."""
    match active:
        case None:
            return -128, False
        case Activation.RELU:
            return 0, False
        case Activation.ABS:
            return 0, True
        case _:
            assert_never(active)


def _pool_kind(layer: Layer, *, rounding: bool) -> PoolKind:
    """Return how a layer pools; conv1d layers always truncate."""
    if not layer.pooling.active or not layer.pooling.average:
        return PoolKind.MAX
    rounds = rounding and not layer.operator.one_dimensional
    return PoolKind.ROUNDED if rounds else PoolKind.AVERAGE


def _needed(steps: Sequence[Step], outputs: Sequence[int], kept: int | None) -> tuple[Step, ...]:
    """Leave out steps whose results nobody reads."""
    tensors, result = {*outputs, kept}, []
    for step in reversed(steps):
        if step.target in tensors:
            result.append(step)
            tensors |= set(sources_of(step))
    return tuple(reversed(result))
