"""Networks for sounds: keywords or noises, and the tones of a modem.

The layers are ours, under the vendor's names.
Source: docs/models.md, "Keywords", "Time series".
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records


class AI85AudioNet(ai8x_blocks.Chain):
    """Eight convolutions over time, alternately pooled, and a fully connected layer.

    Input [N, num_channels, L] with L from 48, for example 128x128 (keywords) or 512x64; output
    [N, num_classes] of 32 bits. For 128x128 and 21 classes 113,184 parameters. No layer pads a
    series of more than 64 channels, so that it runs on both chips.
    """

    def __init__(
        self,
        num_classes: int = 21,
        num_channels: int = 128,
        dimensions: tuple[int, int] = (128, 1),
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        rows = (
            ("conv1", "FusedConv1dReLU", num_channels, 96, 1, 0),
            ("conv2", "FusedConv1dReLU", 96, 64, 3, 0),
            ("conv3", "FusedMaxPoolConv1dReLU", 64, 64, 3, 1),
            ("conv4", "FusedConv1dReLU", 64, 64, 3, 1),
            ("conv5", "FusedMaxPoolConv1dReLU", 64, 64, 3, 1),
            ("conv6", "FusedConv1dReLU", 64, 96, 3, 1),
            ("conv7", "FusedMaxPoolConv1dReLU", 96, 96, 1, 0),
            ("conv8", "FusedConv1dReLU", 96, 32, 3, 0),
        )
        steps = ((dimensions[0] - 2) // 2 // 2) // 2 - 2
        super().__init__(rows, 32 * steps, num_classes, bias=bias, **kwargs)


class AI85AFSKNet(nn.Module):
    """Two convolutions over the samples of a bit, and two fully connected layers.

    Input [N, num_channels, 22], output [N, num_classes] of 32 bits; 3,272 parameters.
    """

    def __init__(
        self,
        num_classes: int = 2,
        num_channels: int = 1,
        dimensions: tuple[int, int] = (22, 1),
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.conv1 = ai8x.FusedConv1dReLU(num_channels, 8, 5, padding=2, bias=bias, **kwargs)
        self.conv2 = ai8x.FusedMaxPoolConv1dReLU(8, 16, 3, padding=1, bias=bias, **kwargs)
        half = dimensions[0] // 2
        self.fc1 = ai8x.FusedLinearReLU(16 * half, 16, bias=bias, **kwargs)
        self.fc2 = ai8x.Linear(16, num_classes, bias=bias, wide=True, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        return self.fc2(self.fc1(self.conv2(self.conv1(x)).flatten(1)))


ai85audionet = factory(AI85AudioNet)
ai85afsknet = factory(AI85AFSKNet)

models = records(1, "ai85audionet", "ai85afsknet")
