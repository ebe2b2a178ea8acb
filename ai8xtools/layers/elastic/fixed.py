"""Networks as they are chosen from elastic ones: ordinary layers conv1, conv2, ..., fc."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from ai8xtools.layers.elastic.space import Architecture
from ai8xtools.layers.operators import Conv1d, Conv2d, Linear


@dataclass(frozen=True, slots=True)
class PlainLayer:
    """A convolution: channels, kernel and the size of the pooling in front of it, 1 for none."""

    name: str
    in_channels: int
    out_channels: int
    kernel: int
    pool: int


def plain_layers(
    architecture: Architecture, pools: tuple[int, ...], channels: int
) -> Iterator[PlainLayer]:
    """Yield the convolutions of a chosen network."""
    count = 0
    for unit, pool in zip(architecture.units, pools, strict=True):
        for number, choice in enumerate(unit):
            count += 1
            pooled = pool if number == 0 else 1
            yield PlainLayer(f"conv{count}", channels, choice.width, choice.kernel, pooled)
            channels = choice.width


class SequentialNetwork(nn.Module):
    """Convolutions conv1, conv2, ... with rectification, then fc with 32-bit results."""

    convolution: ClassVar[Any]
    axes: ClassVar[int]

    def __init__(
        self, architecture: Architecture, pools: tuple[int, ...], positions: int,
        num_classes: int, num_channels: int, *, bias: bool, bn: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        self.layers = tuple(plain_layers(architecture, pools, num_channels))
        for layer in self.layers:
            pooled = layer.pool > 1
            convolution = self.convolution(
                layer.in_channels, layer.out_channels, layer.kernel,
                pooling="Max" if pooled else None, pool_size=layer.pool if pooled else 2,
                pool_stride=layer.pool if pooled else 2, padding=layer.kernel // 2,
                bias=bias or bn, activation="ReLU", batchnorm="Affine" if bn else None,
            )  # fmt: skip
            setattr(self, layer.name, convolution)
        features = self.layers[-1].out_channels * positions
        self.positions, self.bias, self.bn = positions, bias or bn, bn
        self.fc = Linear(features, num_classes, bias=True, wide=True)

    def convolutions(self) -> Iterator[Any]:
        """Yield the convolutions in their order."""
        for layer in self.layers:
            yield getattr(self, layer.name)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        for layer in self.convolutions():
            x = layer(x)
        return self.fc(x.flatten(1))


class SequentialNetwork1d(SequentialNetwork):
    """A network for series."""

    convolution, axes = Conv1d, 1


class SequentialNetwork2d(SequentialNetwork):
    """A network for images."""

    convolution, axes = Conv2d, 2
