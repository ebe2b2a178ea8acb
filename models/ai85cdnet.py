"""A network that tells cats from dogs.

Source: docs/models.md, "Images: classification".
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory


class AI85CDNet(nn.Module):
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
        super().__init__()
        assert dimensions[0] == dimensions[1], f"images of {dimensions} are not square"
        rows = (
            ("conv1", "FusedConv2dReLU", num_channels, 16, 3, 1),
            ("conv2", "FusedMaxPoolConv2dReLU", 16, 32, 3, 1),
            ("conv3", "FusedMaxPoolConv2dReLU", 32, 64, 3, 1),
            ("conv4", "FusedMaxPoolConv2dReLU", 64, 32, 3, 1),
            ("conv5", "FusedMaxPoolConv2dReLU", 32, 32, 3, 1),
            ("conv6", "FusedConv2dReLU", 32, fc_inputs, 3, 1),
        )
        ai8x_blocks.add_layers(self, rows, bias=bias, **kwargs)
        pixels = (dimensions[0] // 16) ** 2
        self.fc = ai8x.Linear(fc_inputs * pixels, num_classes, bias=True, wide=True, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        x = self.conv3(self.conv2(self.conv1(x)))
        x = self.conv6(self.conv5(self.conv4(x)))
        return self.fc(x.flatten(1))


ai85cdnet = factory(AI85CDNet)

models = [{"name": "ai85cdnet", "min_input": 1, "dim": 2}]
