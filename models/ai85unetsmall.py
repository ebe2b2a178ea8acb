"""U-Nets for images of 80x80 that are not folded: one of few channels, one of more.

The layers are ours, under the vendor's names.
Source: docs/models.md, "Segmentation, detection, images as output".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records

Widths = tuple[int, int, int, int, int]


class AI85UNet(nn.Module):
    """Three times down and up again, with the encoder's maps beside the decoder's.

    `widths` are the channels of the four sizes and of the layer in front of the last. Input
    [N, num_channels, H, W] with H and W multiples of 8, output [N, num_classes * fold_ratio^2, H,
    W]. `bias` must be True.
    """

    def __init__(
        self,
        widths: Widths,
        num_classes: int = 4,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (80, 80),  # noqa: ARG002 - the interface of all networks
        bias: bool = True,
        fold_ratio: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        first, second, third, fourth, last = widths
        common = {"bias": bias, "batchnorm": "NoAffine", **kwargs}
        down = (
            ("enc1", "FusedConv2dBNReLU", num_channels, first, 3, 1),
            ("enc2", "FusedMaxPoolConv2dBNReLU", first, second, 3, 1),
            ("enc3", "FusedMaxPoolConv2dBNReLU", second, third, 3, 1),
            ("bneck", "FusedMaxPoolConv2dBNReLU", third, fourth, 3, 1),
        )
        ai8x_blocks.add_layers(self, down, **common)
        steps = ((3, fourth, third, third), (2, third, second, second), (1, second, first, last))
        for level, inputs, half, outputs in steps:
            up = ai8x.ConvTranspose2d(inputs, half, 3, padding=1, bias=bias, **kwargs)
            self.add_module(f"upconv{level}", up)
            row = (f"dec{level}", "FusedConv2dBNReLU", 2 * half, outputs, 3, 1)
            ai8x_blocks.add_layers(self, (row,), **common)
        planes = num_classes * fold_ratio * fold_ratio
        ai8x_blocks.add_layers(self, (("conv", "FusedConv2dBN", last, planes, 1, 0),), **common)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes of each pixel."""
        enc1 = self.enc1(x)
        enc2 = self.enc2(enc1)
        enc3 = self.enc3(enc2)
        x = self.bneck(enc3)
        x = self.dec3(torch.cat((self.upconv3(x), enc3), dim=1))
        x = self.dec2(torch.cat((self.upconv2(x), enc2), dim=1))
        x = self.dec1(torch.cat((self.upconv1(x), enc1), dim=1))
        return self.conv(x)


ai85unetsmall = factory(AI85UNet, (4, 8, 32, 64, 16))
"""The network of few channels: 63,168 parameters with 4 classes."""
ai85unetmedium = factory(AI85UNet, (8, 28, 56, 112, 32))
"""The network of more channels: 221,080 parameters with 4 classes."""

models = records(2, "ai85unetsmall", "ai85unetmedium")
