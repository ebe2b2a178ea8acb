"""Elastic networks, the largest ones of a search: `train.py --nas`.

Source: docs/architecture-search.md.
"""

from __future__ import annotations

from typing import Any

from ai8x_blocks import factory
from ai8x_nas import OnceForAll1DSequentialModel, OnceForAll2DSequentialModel


class AI85NASNetSequentialMNIST(OnceForAll2DSequentialModel):
    """Four units of up to 16, 32, 48 and 64 channels for 1x28x28 images."""

    def __init__(
        self,
        num_classes: int = 10,
        num_channels: int = 1,
        dimensions: tuple[int, int] = (28, 28),
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_classes, num_channels, dimensions, bias, n_units=4, depth_list=(2, 2, 2, 1),
            width_list=(16, 32, 48, 64), kernel_list=(3, 3, 3, 3), **kwargs,
        )  # fmt: skip


class AI85NASNetSequentialCIFAR100(OnceForAll2DSequentialModel):
    """Five units of up to 64 and 128 channels for 3x32x32 images."""

    def __init__(
        self,
        num_classes: int = 100,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (32, 32),
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_classes, num_channels, dimensions, bias, n_units=5, depth_list=(3, 2, 2, 2, 2),
            width_list=(64, 64, 64, 128, 128), kernel_list=(3, 3, 3, 3, 3), **kwargs,
        )  # fmt: skip


class AI85NASNetSequentialKWS20(OnceForAll1DSequentialModel):
    """Five units of up to 64 channels for 128x128 series."""

    def __init__(
        self,
        num_classes: int = 21,
        num_channels: int = 128,
        dimensions: tuple[int, int] = (128, 1),
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            num_classes, num_channels, dimensions, bias, n_units=5, depth_list=(1, 2, 2, 2, 1),
            width_list=(64, 64, 64, 64, 64), kernel_list=(1, 5, 5, 5, 3), **kwargs,
        )  # fmt: skip


ai85nasnet_sequential_mnist = factory(AI85NASNetSequentialMNIST)
ai85nasnet_sequential_cifar100 = factory(AI85NASNetSequentialCIFAR100)
ai85nasnet_sequential_kws20 = factory(AI85NASNetSequentialKWS20)

models = [
    {"name": "ai85nasnet_sequential_mnist", "min_input": 1, "dim": 2},
    {"name": "ai85nasnet_sequential_cifar100", "min_input": 1, "dim": 2},
    {"name": "ai85nasnet_sequential_kws20", "min_input": 1, "dim": 1},
]
