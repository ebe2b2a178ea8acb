"""SqueezeNet for small images: blocks that squeeze to few channels and expand them side by side.

The layers are ours, under the vendor's name.
Source: docs/models.md, "Images: classification".
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records


class AI85SqueezeNet(nn.Module):
    """A convolution, six `Fire` blocks in three sizes, and a 1x1 convolution over the average.

    Input [N, num_channels, H, W], where H and W are multiples of 8, for example 32; output
    [N, num_classes] of 32 bits. With 10 classes 111,552 parameters.
    """

    def __init__(
        self,
        num_classes: int = 10,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (32, 32),
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        common = {"bias": bias, **kwargs}
        self.conv1 = ai8x.FusedConv2dReLU(num_channels, 64, 3, padding=1, **common)
        self.pool1 = ai8x.MaxPool2d(2, **kwargs)
        self.fire2 = ai8x_blocks.Fire(64, 16, 32, 32, **common)
        self.fire3 = ai8x_blocks.Fire(64, 16, 32, 32, **common)
        self.pool3 = ai8x.MaxPool2d(2, **kwargs)
        self.fire4 = ai8x_blocks.Fire(64, 32, 64, 64, **common)
        self.fire5 = ai8x_blocks.Fire(128, 32, 64, 64, **common)
        self.pool5 = ai8x.MaxPool2d(2, **kwargs)
        self.fire6 = ai8x_blocks.Fire(128, 32, 64, 64, **common)
        self.fire7 = ai8x_blocks.Fire(128, 32, 64, 64, **common)
        rest = (dimensions[0] // 8, dimensions[1] // 8)
        self.conv8 = ai8x.FusedAvgPoolConv2d(
            128, num_classes, 1, pool_size=rest, pool_stride=rest[0], bias=bias, wide=True,
            **kwargs,
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        x = self.pool1(self.conv1(x))
        x = self.pool3(self.fire3(self.fire2(x)))
        x = self.pool5(self.fire5(self.fire4(x)))
        return self.conv8(self.fire7(self.fire6(x))).flatten(1)


ai85squeezenet = factory(AI85SqueezeNet)

models = records(2, "ai85squeezenet")
