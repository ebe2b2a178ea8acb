"""MobileFaceNet for MAX78002: depthwise bottlenecks that turn a face into a vector.

Source: docs/models.md, "Faces".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records

SETTINGS = ((5, 64, 64, 2, 2), (1, 64, 128, 2, 4), (6, 128, 128, 1, 2), (1, 128, 128, 2, 4),
            (2, 128, 128, 1, 2))  # fmt: skip


class AI87MobileFaceNet(nn.Module):
    """A convolution, a depthwise one, rows of bottlenecks, an average, vectors of length 1.

    Input [N, 3 or 6, 112, 112], of which the first three channels count; output
    [N, emb_dimensionality]. The settings of the bottlenecks are those of
    `ai8x_blocks.bottleneck_rows`. `bias` must be True; 851712 parameters with it.
    """

    def __init__(
        self,
        pre_layer_stride: int = 1,
        bottleneck_settings: Sequence[Sequence[int]] = SETTINGS,
        last_layer_width: int = 128,
        emb_dimensionality: int = 64,
        avg_pool_size: tuple[int, int] = (7, 7),
        depthwise_bias: bool = True,
        reduced_depthwise_bias: bool = True,
        num_classes: int | None = None,  # noqa: ARG002 - the interface of all networks
        num_channels: int = 3,
        dimensions: tuple[int, int] = (112, 112),  # noqa: ARG002
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        first, last = bottleneck_settings[0][1], bottleneck_settings[-1][2]
        self.channels = min(num_channels, 3)
        self.pre_stage = ai8x.FusedConv2dReLU(
            self.channels, first, 3, stride=pre_layer_stride, padding=1, bias=False, **kwargs
        )
        self.dwise = ai8x.FusedMaxPoolDepthwiseConv2dBNReLU(
            first, first, 3, padding=1, bias=bias, **kwargs
        )
        self.feature_stage = ai8x_blocks.bottleneck_rows(
            ai8x_blocks.ResidualBottleneck,
            bottleneck_settings,
            depthwise_bias,
            reduced_depthwise_bias,
            bias=bias,
            **kwargs,
        )
        self.post_stage = ai8x.FusedConv2dReLU(last, last_layer_width, 1, bias=False, **kwargs)
        self.classifier = ai8x.FusedAvgPoolConv2d(
            last_layer_width, emb_dimensionality, 1, pool_size=avg_pool_size, pool_stride=1,
            bias=False, **kwargs,
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors; the division by their length is left to software."""
        x = self.dwise(self.pre_stage(x[:, : self.channels]))
        for blocks in self.feature_stage:
            x = blocks(x)
        x = self.classifier(self.post_stage(x)).flatten(1)
        return functional.normalize(x, p=2.0, dim=1)


ai87netmobilefacenet_112 = factory(AI87MobileFaceNet)

models = records(3, "ai87netmobilefacenet_112")
