"""From a network with fixed-point weights to a container."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.quantization.fixed.network import FixedNetwork
from ai8xtools.quantization.formats import Float64s, Int64s, to_fixed
from ai8xtools.quantization.q15.graph import Add, Clip, Concat, Pool, Step, Weighted
from ai8xtools.software.container.from_graph import planned
from ai8xtools.software.container.pack import Builder, Seal
from ai8xtools.software.container.records import (
    NONE,
    ROUNDED,
    Container,
    Element,
    Follow,
    Op,
    Vectors,
)


class FixedLowering:
    """A container under construction; `numbers` are its tensors by the maps of the graph."""

    def __init__(self, network: FixedNetwork) -> None:
        self.network = network
        self.builder = Builder()
        self.kind = Element.INT8 if network.data_bits == 8 else Element.INT16
        self.numbers: dict[int, int] = {0: self._activation(0)}
        self._followed: dict[int, int] = {}
        for step in network.graph.steps:
            self._step(step)
        if network.graph.steps[-1].target != network.graph.output:
            self._copy(network.graph.output)

    def container(self, vectors: Vectors | None = None, seal: Seal | None = None) -> Container:
        """Return the container with its memory planned."""
        return planned(self.builder.container(vectors, seal))

    def _activation(self, tensor: int) -> int:
        channels, rows, columns = self.network.graph.shapes[tensor]
        shape = (rows, columns, channels)
        return self.builder.activation(self.kind, shape, self.network.fractions[tensor])

    def _copy(self, tensor: int) -> None:
        target = self._activation(tensor)
        self.builder.layer(Op.COPY, [self.numbers[tensor]], target)

    def _result(self, step: Step) -> int:
        self.numbers[step.target] = self._activation(step.target)
        return self.numbers[step.target]

    def _step(self, step: Step) -> None:
        sources = [self.numbers[source] for source in step.sources]
        match step:
            case Weighted():
                self._weighted(step, sources)
            case Pool():
                self.builder.layer(
                    Op.AVGPOOL if step.average else Op.MAXPOOL, sources, self._result(step),
                    follow=ROUNDED if step.average else Follow.NOTHING, kernel=step.window,
                    stride=step.stride, pad=step.padding,
                )  # fmt: skip
            case Clip():
                if self._followed.get(step.source) == step.target:
                    self.numbers[step.target] = sources[0]
                    return
                self.builder.layer(Op.COPY, sources, self._result(step), follow=_follow(step))
            case Add():
                self.builder.layer(Op.ADD, sources, self._result(step))
            case Concat():
                self.builder.layer(Op.CONCAT, sources, self._result(step))

    def _weighted(self, step: Weighted, sources: Sequence[int]) -> None:
        layer = self.network.layers[step.target]
        weights = layer.weights.transpose(0, 2, 3, 1)
        op = Op.DEPTHWISE if step.groups > 1 else Op.CONV
        if step.linear:
            weights, op = weights.reshape(len(weights), 1, 1, -1), Op.FC
        follow = Follow.NOTHING
        clip = self._clip_behind(step.target)
        if clip is not None:
            follow = _follow(clip)
            self._followed[step.target] = clip.target
        bias_shift, out_shift = layer.stored_shifts
        bias = NONE
        if layer.bias is not None:
            bias = self.builder.bias(layer.bias, layer.data_bits, layer.bias_fraction)
        self.builder.layer(
            op,
            sources,
            self._result(step),
            follow=follow,
            weights=self.builder.weights(
                weights, layer.bits, layer.stored_fraction, rows=step.linear
            ),
            bias=bias,
            kernel=(1, 1) if step.linear else step.kernel,
            stride=step.stride,
            pad=step.padding,
            groups=step.groups,
            bias_shift=bias_shift,
            out_shift=out_shift,
            factor=layer.stored_factor,
        )

    def _clip_behind(self, tensor: int) -> Clip | None:
        """Return the clip that alone reads a map, if there is one."""
        users = self.network.graph.users(tensor)
        only = users[0] if len(users) == 1 and tensor != self.network.graph.output else None
        return only if isinstance(only, Clip) else None


def _follow(clip: Clip) -> Follow:
    return Follow.RELU if clip.low == 0 else Follow.NOTHING


def fixed_input(network: FixedNetwork, samples: Float64s) -> Int64s:
    """Return samples [N, C, H, W] as integers [N, H, W, C]."""
    moved: NDArray[np.float64] = samples.transpose(0, 2, 3, 1)
    return to_fixed(moved, network.fractions[0], network.data_bits)
