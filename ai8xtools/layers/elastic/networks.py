"""Elastic networks: units of convolutions one after another, then a fully connected layer.

Source: docs/architecture-search.md, "The search space".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ai8xtools.layers.chips import require
from ai8xtools.layers.elastic.fixed import SequentialNetwork1d, SequentialNetwork2d
from ai8xtools.layers.elastic.operators import ElasticConv1d, ElasticConv2d, ElasticLinear, reorder
from ai8xtools.layers.elastic.space import (
    Architecture,
    LayerChoice,
    SearchSpace,
    UnitSpace,
    kernels_of,
    widths_of,
)


class OnceForAllSequentialUnit(nn.Module):
    """Convolutions of the same largest width, the first of which may pool its input.

    The first `depth` of them compute. Input [N, in_channels, ...], output [N, width, ...].
    """

    convolution: ClassVar[Any] = None

    def __init__(
        self, depth: int, in_channels: int, width: int, kernel_size: int, *,
        pool: int = 1, bias: bool = False, bn: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        require(depth > 0, f"depth={depth}: a unit has at least one layer")
        require(kernel_size % 2 == 1, f"kernel_size={kernel_size}: elastic kernels are odd")
        self.in_channels, self.pool = in_channels, pool
        self.layers: Any = nn.ModuleList()
        for number in range(depth):
            pooling = {"pooling": "Max", "pool_size": pool, "pool_stride": pool}
            layer = self.convolution(
                in_channels if number == 0 else width, width, kernel_size,
                padding=kernel_size // 2, bias=bias or bn, activation="ReLU",
                batchnorm="Affine" if bn else None,
                **(pooling if number == 0 and pool > 1 else {}), **kwargs,
            )  # fmt: skip
            layer.choose(width, kernel_size)
            self.layers.append(layer)
        self.depth = depth
        self.space = UnitSpace(depth, 1, widths_of(width), kernels_of(kernel_size))

    def choose(self, layers: Sequence[LayerChoice]) -> None:
        """Let a part of the unit compute."""
        self.depth = len(layers)
        for layer, choice in zip(self.layers, layers, strict=False):
            layer.choose(choice.width, choice.kernel)

    def forward(self, x: Tensor) -> Tensor:
        """Run the layers in use."""
        for layer in self.layers[: self.depth]:
            x = layer(x)
        return x

    def order(self) -> Tensor:
        """Return the channels of the unit, those with the greatest weights first."""
        magnitude = sum(layer.op.weight.abs().flatten(1).sum(1) for layer in self.layers)
        assert isinstance(magnitude, Tensor)
        return magnitude.argsort(descending=True, stable=True)


class OnceForAll1DSequentialUnit(OnceForAllSequentialUnit):
    """A unit of one-dimensional convolutions."""

    convolution = ElasticConv1d


class OnceForAll2DSequentialUnit(OnceForAllSequentialUnit):
    """A unit of two-dimensional convolutions."""

    convolution = ElasticConv2d


class OnceForAllSequentialModel(nn.Module):
    """Units one after another, then a fully connected layer of 32-bit results.

    `depth_list`, `width_list` and `kernel_list` have the largest depth, channels and kernel of each
    of `n_units` units, `pool_list` the size of the maximum pooling in front of each, 1 for none.
    Input [N, num_channels, ...], output [N, num_classes]. Raises AssertionError for what the chip
    does not allow.
    """

    unit: ClassVar[Any] = None
    fixed: ClassVar[Any] = None

    def __init__(
        self, num_classes: int, num_channels: int, dimensions: Sequence[int], bias: bool = False,
        n_units: int = 1, depth_list: Sequence[int] = (1,), width_list: Sequence[int] = (64,),
        kernel_list: Sequence[int] = (3,), bn: bool = True,
        pool_list: Sequence[int] | None = None, unit: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        pools = tuple(pool_list or (1, *[2] * (n_units - 1)))
        lists = {"depth_list": depth_list, "width_list": width_list, "kernel_list": kernel_list,
                 "pool_list": pools}  # fmt: skip
        for name, values in lists.items():
            require(len(values) == n_units, f"{name} has {len(values)} values, n_units={n_units}")
        self.num_classes, self.num_channels = num_classes, num_channels
        self.bias, self.bn = bool(bias), bool(bn)
        size = tuple(dimensions)[: self.fixed.axes]
        make_unit = unit or self.unit
        self.units: Any = nn.ModuleList()
        channels = num_channels
        for depth, width, kernel, pool in zip(
            depth_list, width_list, kernel_list, pools, strict=True
        ):
            self.units.append(
                make_unit(depth, channels, width, kernel, pool=pool, bias=bias, bn=bn, **kwargs)
            )
            size = tuple(extent // pool for extent in size)
            channels = width
        require(min(size) > 0, f"pool_list={pools}: nothing is left of {tuple(dimensions)}")
        self.positions = int(torch.tensor(size).prod())
        self.fc = ElasticLinear(
            channels, self.positions, num_classes, bias=True, wide=True, **kwargs
        )
        self.chosen = self.space.largest()

    @property
    def space(self) -> SearchSpace:
        """All networks that this one contains."""
        return SearchSpace(tuple(unit.space for unit in self.units))

    def choose(self, architecture: Architecture) -> None:
        """Let a part of the network compute; ValueError for one that it does not contain."""
        if architecture not in self.space:
            raise ValueError(f"the network does not contain {architecture}")
        for unit, layers in zip(self.units, architecture.units, strict=True):
            unit.choose(layers)
        self.chosen = architecture

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        for unit in self.units:
            x = unit(x)
        return self.fc(x.flatten(1))

    def normalizations(self) -> Iterable[Any]:
        """Yield the batch normalizations."""
        for unit in self.units:
            yield from (layer.bn for layer in unit.layers if layer.bn is not None)

    @torch.no_grad()
    def calibrate(self, inputs: Iterable[Tensor]) -> None:
        """Measure the statistics of batch normalization of the part that computes."""
        normalizations = list(self.normalizations())
        if not normalizations:
            return
        training = self.training
        self.train()
        for bn in normalizations:
            bn.forget()
            bn.calibrating = True
        try:
            for x in inputs:
                self(x)
        finally:
            for bn in normalizations:
                bn.calibrating = False
            self.train(training)

    @torch.no_grad()
    def sort_channels(self) -> None:
        """Put the channels with the greatest weights first; the whole network computes the same."""
        before = None
        for unit in self.units:
            order = unit.order()
            for number, layer in enumerate(unit.layers):
                reorder(layer, order, before if number == 0 else order)
            before = order
        weight = self.fc.op.weight.unflatten(1, (self.fc.channels, -1))
        self.fc.op.weight.copy_(weight[:, before].flatten(1))

    def network(self, architecture: Architecture | None = None) -> Any:
        """Return a part as a network of its own, with copies of its weights."""
        selection = architecture or self.chosen
        pools = tuple(unit.pool for unit in self.units)
        network = self.fixed(
            selection, pools, self.positions, self.num_classes, self.num_channels,
            bias=self.bias, bn=self.bn,
        )  # fmt: skip
        self._fill(network, selection)
        return network

    @torch.no_grad()
    def _fill(self, network: Any, architecture: Architecture) -> None:
        kept = self.chosen
        self.choose(architecture)
        targets = iter(network.convolutions())
        channels = self.num_channels
        for unit in self.units:
            for layer in unit.layers[: unit.depth]:
                target = next(targets)
                weight, bias = layer.chosen_parameters(channels)
                channels = layer.width
                target.op.weight.copy_(weight)
                if bias is not None:
                    target.op.bias.copy_(bias)
                for name, value in ({} if layer.bn is None else layer.bn.state_dict()).items():
                    own = getattr(target.bn, name)
                    own.copy_(value[:channels] if value.ndim else value)
        network.fc.op.weight.copy_(self.fc.chosen_weight(channels * self.positions))
        network.fc.op.bias.copy_(self.fc.op.bias)
        self.choose(kept)


class OnceForAll1DSequentialModel(OnceForAllSequentialModel):
    """An elastic network for series: inputs [N, C, L]."""

    unit = OnceForAll1DSequentialUnit
    fixed = SequentialNetwork1d


class OnceForAll2DSequentialModel(OnceForAllSequentialModel):
    """An elastic network for images: inputs [N, C, H, W]."""

    unit = OnceForAll2DSequentialUnit
    fixed = SequentialNetwork2d
