"""A small network for 8x8 images of handwritten digits; the demonstration uses it."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
from ai8x_blocks import factory


class AI85DigitsNet(nn.Module):
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
        super().__init__()
        self.conv1 = ai8x.FusedConv2dReLU(num_channels, 32, 3, padding=1, bias=bias, **kwargs)
        self.conv2 = ai8x.FusedMaxPoolConv2dReLU(
            32, 48, 3, pool_size=2, pool_stride=2, padding=1, bias=bias, **kwargs
        )
        self.conv3 = ai8x.FusedConv2dReLU(48, 16, 3, padding=1, bias=bias, **kwargs)
        pixels = (dimensions[0] // 2) * (dimensions[1] // 2)
        self.fc = ai8x.Linear(16 * pixels, num_classes, bias=True, wide=True, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        return self.fc(self.conv3(self.conv2(self.conv1(x))).flatten(1))


ai85digitsnet = factory(AI85DigitsNet)

models = [{"name": "ai85digitsnet", "min_input": 1, "dim": 2}]
