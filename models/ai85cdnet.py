"""A network that tells cats from dogs.

Source: docs/models.md, "Images: classification".
"""

from __future__ import annotations

from typing import Any

import ai8x_blocks
from ai8x_blocks import factory, records


class AI85CDNet(ai8x_blocks.Chain):
    """Six convolutions with four poolings and a fully connected layer of 32 bits.

    Input [N, num_channels, H, W] with H = W a multiple of 16, output [N, num_classes]. It has 57778
    parameters for 3x128x128.
    """

    def __init__(
        self,
        num_classes: int = 2,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (128, 128),
        fc_inputs: int = 16,
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        assert dimensions[0] == dimensions[1], f"images of {dimensions} are not square"
        rows = (
            ("conv1", "FusedConv2dReLU", num_channels, 16, 3, 1),
            ("conv2", "FusedMaxPoolConv2dReLU", 16, 32, 3, 1),
            ("conv3", "FusedMaxPoolConv2dReLU", 32, 64, 3, 1),
            ("conv4", "FusedMaxPoolConv2dReLU", 64, 32, 3, 1),
            ("conv5", "FusedMaxPoolConv2dReLU", 32, 32, 3, 1),
            ("conv6", "FusedConv2dReLU", 32, fc_inputs, 3, 1),
        )
        features = fc_inputs * (dimensions[0] // 16) ** 2
        super().__init__(rows, features, num_classes, bias=bias, fc_bias=True, **kwargs)


ai85cdnet = factory(AI85CDNet)

models = records(2, "ai85cdnet")
