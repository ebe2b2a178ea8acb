"""A network that makes a colour image of what a Bayer sensor saw.

Source: docs/models.md, "Segmentation, detection, images as output".
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
from ai8x_blocks import factory, records


class Bayer2RGBNet(nn.Module):
    """A 1x1 convolution, a transposed one that doubles the size, and a 3x3 one: 174 parameters.

    Input [N, num_channels, 64, 64], the mosaic folded by 2; output [N, 3, 128, 128]. Layers do not
    receive the keywords; they learn their arithmetic from the checkpoint.
    """

    def __init__(
        self,
        num_classes: int | None = None,  # noqa: ARG002 - the interface of all networks
        num_channels: int = 4,
        dimensions: tuple[int, int] = (64, 64),  # noqa: ARG002
        bias: bool = False,
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        super().__init__()
        self.l1 = ai8x.Conv2d(num_channels, 3, 1, bias=bias)
        self.l2 = ai8x.ConvTranspose2d(3, 3, 3, padding=1, bias=bias)
        self.l3 = ai8x.Conv2d(3, 3, 3, padding=1, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the image."""
        return self.l3(self.l2(self.l1(x)))


bayer2rgbnet = factory(Bayer2RGBNet)

b2rgb = bayer2rgbnet

models = records(2, "bayer2rgbnet")
