"""The smallest network with a Fire block, an example of the manuals for CIFAR-10.

Source: docs/models.md, "Images: classification".
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records


class AI85FireTestNet(nn.Module):
    """Average pooling, a Fire block of 2 and 4 + 4 channels, two maximum poolings, and scores.

    Input [N, num_channels, H, W] with H and W multiples of 8, output [N, num_classes] of 32 bits.
    For 3x32x32 it has 1366 parameters.
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
        self.pool1 = ai8x.AvgPool2d(2, 2, **kwargs)
        self.fire1 = ai8x_blocks.Fire(num_channels, 2, 4, 4, bias=bias, **kwargs)
        self.pool2 = ai8x.MaxPool2d(2, 2, **kwargs)
        self.pool3 = ai8x.MaxPool2d(2, 2, **kwargs)
        pixels = (dimensions[0] // 8) * (dimensions[1] // 8)
        self.fc = ai8x.Linear(8 * pixels, num_classes, bias=bias, wide=True, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        x = self.pool3(self.pool2(self.fire1(self.pool1(x))))
        return self.fc(x.flatten(1))


ai85firetestnet = factory(AI85FireTestNet)

models = records(2, "ai85firetestnet")
