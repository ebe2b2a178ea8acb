"""Elastic networks, the largest ones of a search: `train.py --nas`.

Source: docs/architecture-search.md.
"""

from __future__ import annotations

from ai8x_blocks import factory, records
from ai8x_nas import OnceForAll1DSequentialModel, OnceForAll2DSequentialModel

ai85nasnet_sequential_mnist = factory(
    OnceForAll2DSequentialModel, num_classes=10, num_channels=1, dimensions=(28, 28), bias=False,
    n_units=4, depth_list=(2, 2, 2, 1), width_list=(16, 32, 48, 64), kernel_list=(3, 3, 3, 3),
)  # fmt: skip
"""Four units of up to 16, 32, 48 and 64 channels for 1x28x28 images."""
ai85nasnet_sequential_cifar100 = factory(
    OnceForAll2DSequentialModel, num_classes=100, num_channels=3, dimensions=(32, 32), bias=False,
    n_units=5, depth_list=(3, 2, 2, 2, 2), width_list=(64, 64, 64, 128, 128),
    kernel_list=(3, 3, 3, 3, 3),
)  # fmt: skip
"""Five units of up to 64 and 128 channels for 3x32x32 images."""
ai85nasnet_sequential_kws20 = factory(
    OnceForAll1DSequentialModel, num_classes=21, num_channels=128, dimensions=(128, 1), bias=False,
    n_units=5, depth_list=(1, 2, 2, 2, 1), width_list=(64, 64, 64, 64, 64),
    kernel_list=(1, 5, 5, 5, 3),
)  # fmt: skip
"""Five units of up to 64 channels for 128x128 series."""

models = [
    *records(2, "ai85nasnet_sequential_mnist", "ai85nasnet_sequential_cifar100"),
    *records(1, "ai85nasnet_sequential_kws20"),
]
