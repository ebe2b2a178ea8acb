"""A small network for 8x8 images of handwritten digits; the demonstration uses it."""

from __future__ import annotations

from typing import Any

import ai8x_blocks
from ai8x_blocks import factory, records


class AI85DigitsNet(ai8x_blocks.Chain):
    """Three convolutions with one pooling and a fully connected layer of 32-bit results.

    Input [N, num_channels, H, W] with H and W even, output [N, num_classes]. For 1x8x8 images the
    fully connected layer sees 16x4x4 = 256 values.
    """

    def __init__(
        self,
        num_classes: int = 10,
        num_channels: int = 1,
        dimensions: tuple[int, int] = (8, 8),
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        rows = (
            ("conv1", "FusedConv2dReLU", num_channels, 32, 3, 1),
            ("conv2", "FusedMaxPoolConv2dReLU", 32, 48, 3, 1),
            ("conv3", "FusedConv2dReLU", 48, 16, 3, 1),
        )
        features = 16 * (dimensions[0] // 2) * (dimensions[1] // 2)
        super().__init__(rows, features, num_classes, bias=bias, fc_bias=True, **kwargs)


ai85digitsnet = factory(AI85DigitsNet)

models = records(2, "ai85digitsnet")
