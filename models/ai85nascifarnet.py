"""A network for CIFAR-10 and CIFAR-100 that was found by architecture search.

Source: docs/models.md, "Images: classification".
"""

from __future__ import annotations

from typing import Any

import ai8x_blocks
from ai8x_blocks import factory, records

LAYERS = (
    #                                                  in   out kernel padding
    ("conv1_1", "FusedConv2dBNReLU", 3, 64, 3, 1),  # 32x32
    ("conv1_2", "FusedConv2dBNReLU", 64, 32, 1, 0),
    ("conv1_3", "FusedConv2dBNReLU", 32, 64, 3, 1),
    ("conv2_1", "FusedMaxPoolConv2dBNReLU", 64, 32, 3, 1),  # 16x16
    ("conv2_2", "FusedConv2dBNReLU", 32, 64, 1, 0),
    ("conv3_1", "FusedMaxPoolConv2dBNReLU", 64, 128, 3, 1),  # 8x8
    ("conv3_2", "FusedConv2dBNReLU", 128, 128, 1, 0),
    ("conv4_1", "FusedMaxPoolConv2dBNReLU", 128, 64, 3, 1),  # 4x4
    ("conv4_2", "FusedConv2dBNReLU", 64, 128, 3, 1),
    ("conv5_1", "FusedMaxPoolConv2dBNReLU", 128, 128, 1, 0),  # 2x2
)


class AI85NASCifarNet(ai8x_blocks.Chain):
    """Ten normalized convolutions and a fully connected layer of 32 bits. `bias` must be True.

    Input [N, num_channels, H, W] with H and W multiples of 16, output [N, num_classes]. For 3x32x32
    it has 302602 parameters with 10 classes and 348772 with 100.
    """

    def __init__(
        self,
        num_classes: int = 10,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (32, 32),
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        pixels = (dimensions[0] // 16) * (dimensions[1] // 16)
        super().__init__(
            ai8x_blocks.with_inputs(LAYERS, num_channels), 128 * pixels, num_classes, bias=bias,
            fc_bias=True, batchnorm="NoAffine", **kwargs,
        )  # fmt: skip


ai85nascifarnet = factory(AI85NASCifarNet)

models = records(2, "ai85nascifarnet")
