"""A U-Net that assigns a class to each pixel of an image of 352x352, folded to 48 channels.

Source: docs/models.md, "Segmentation, detection, images as output".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records


class AI85UNetLarge(nn.Module):
    """Three times down and up again, with the encoder's maps beside the decoder's.

    Input [N, num_channels, H, W] with H and W multiples of 8, output
    [N, num_classes * fold_ratio^2, H, W], which `ai8x.unfold_batch` turns into an image of
    `fold_ratio` times the size. With 4 classes 279084 parameters. `bias` must be True.
    """

    def __init__(
        self,
        num_classes: int = 4,
        num_channels: int = 48,
        dimensions: tuple[int, int] = (88, 88),  # noqa: ARG002 - the interface of all networks
        bias: bool = True,
        fold_ratio: int = 4,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        planes = num_classes * fold_ratio * fold_ratio
        common = {"bias": bias, "batchnorm": "NoAffine", **kwargs}
        before = (
            ("prep0", "FusedConv2dBNReLU", num_channels, 64, 1, 0),
            ("prep1", "FusedConv2dBNReLU", 64, 64, 1, 0),
            ("prep2", "FusedConv2dBNReLU", 64, 32, 1, 0),
            ("enc1", "FusedConv2dBNReLU", 32, 8, 3, 1),
            ("enc2", "FusedMaxPoolConv2dBNReLU", 8, 28, 3, 1),
            ("enc3", "FusedMaxPoolConv2dBNReLU", 28, 56, 3, 1),
            ("bneck", "FusedMaxPoolConv2dBNReLU", 56, 112, 3, 1),
        )
        behind = (
            ("dec0", "FusedConv2dBNReLU", 48, 64, 3, 1),
            ("conv_p1", "FusedConv2dBNReLU", 64, 64, 1, 0),
            ("conv_p2", "FusedConv2dBNReLU", 64, 64, 1, 0),
            ("conv_p3", "FusedConv2dBN", 64, 64, 1, 0),
            ("conv", "FusedConv2dBN", 64, planes, 1, 0),
        )
        ai8x_blocks.add_layers(self, before, **common)
        for level, inputs, half, outputs in ((3, 112, 56, 56), (2, 56, 28, 28), (1, 28, 8, 48)):
            # always with bias, and without the keywords of the other layers
            self.add_module(f"upconv{level}", ai8x.ConvTranspose2d(inputs, half, 3, padding=1))
            row = (f"dec{level}", "FusedConv2dBNReLU", 2 * half, outputs, 3, 1)
            ai8x_blocks.add_layers(self, (row,), **common)
        ai8x_blocks.add_layers(self, behind, **common)

    def forward(self, x: Tensor) -> Tensor:
        """Return the folded scores of the classes of each pixel."""
        enc1 = self.enc1(self.prep2(self.prep1(self.prep0(x))))
        enc2 = self.enc2(enc1)
        enc3 = self.enc3(enc2)
        x = self.bneck(enc3)
        x = self.dec3(torch.cat((self.upconv3(x), enc3), dim=1))
        x = self.dec2(torch.cat((self.upconv2(x), enc2), dim=1))
        x = self.dec1(torch.cat((self.upconv1(x), enc1), dim=1))
        x = self.conv_p2(self.conv_p1(self.dec0(x)))
        return self.conv(self.conv_p3(x))


ai85unetlarge = factory(AI85UNetLarge)

models = records(2, "ai85unetlarge")
