"""MobileNetV2 for MAX78002: residual bottlenecks of depthwise convolutions.

Source: docs/models.md, "Images: classification".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records

Settings = tuple[tuple[int, int, int, int, int], ...]


class AI87MobileNetV2(nn.Module):
    """A convolution, rows of `ResidualBottleneck`, a 1x1 convolution, an average and scores.

    `bottleneck_settings` are those of `ai8x_blocks.bottleneck_rows`. `bias` must be True. Input
    [N, num_channels, H, W], where H and W divided by all strides are `avg_pool_size`; output
    [N, num_classes] of 32 bits.
    """

    def __init__(
        self,
        pre_layer_stride: int,
        bottleneck_settings: Sequence[Sequence[int]],
        last_layer_width: int,
        avg_pool_size: int,
        depthwise_bias: bool = False,
        num_classes: int = 100,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (32, 32),  # noqa: ARG002 - the interface of all networks
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        first, last = bottleneck_settings[0][1], bottleneck_settings[-1][2]
        self.pre_stage = ai8x.FusedConv2dBNReLU(
            num_channels, first, 3, stride=pre_layer_stride, padding=1, bias=bias, **kwargs
        )
        self.feature_stage = ai8x_blocks.bottleneck_rows(
            ai8x_blocks.ResidualBottleneck,
            bottleneck_settings,
            depthwise_bias,
            bias=bias,
            **kwargs,
        )
        self.post_stage = ai8x.FusedConv2dReLU(last, last_layer_width, 1, bias=False, **kwargs)
        self.classifier = ai8x.FusedAvgPoolConv2d(
            last_layer_width, num_classes, 1, pool_size=avg_pool_size, pool_stride=avg_pool_size,
            bias=False, wide=True, **kwargs,
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        x = self.pre_stage(x)
        for blocks in self.feature_stage:
            x = blocks(x)
        return self.classifier(self.post_stage(x)).flatten(1)


M0_5: Settings = (
    (1, 16, 8, 1, 1), (2, 8, 12, 2, 6), (3, 12, 16, 2, 6), (4, 16, 32, 2, 6), (3, 32, 48, 1, 6),
    (3, 48, 80, 1, 6), (1, 80, 160, 1, 6),
)  # fmt: skip
M0_75: Settings = (
    (1, 24, 12, 1, 1), (2, 12, 20, 2, 6), (3, 20, 24, 2, 6), (4, 24, 48, 2, 6), (3, 48, 72, 1, 6),
    (3, 72, 120, 1, 6), (1, 120, 240, 1, 6),
)  # fmt: skip
M1_0: Settings = (
    (1, 32, 16, 1, 1), (2, 16, 24, 2, 6), (3, 24, 32, 2, 6), (4, 32, 64, 2, 6), (3, 64, 128, 1, 6),
    (3, 128, 128, 1, 6), (1, 128, 256, 1, 6),
)  # fmt: skip
IMAGENET: Settings = (
    (1, 32, 16, 1, 1), (2, 16, 24, 2, 6), (3, 24, 32, 2, 6), (4, 32, 64, 2, 6), (3, 64, 96, 1, 6),
    (3, 96, 160, 2, 6), (1, 160, 320, 1, 6),
)  # fmt: skip


ai87netmobilenetv2 = factory(AI87MobileNetV2, 2, IMAGENET, 1280, 7)
"""The network for ImageNet, [N, 3, 224, 224]."""
ai87netmobilenetv2cifar100 = factory(AI87MobileNetV2, 1, M1_0, 1024, 4)
"""The network for CIFAR-100, [N, 3, 32, 32]: 1999680 parameters."""
ai87netmobilenetv2cifar100_m0_75 = factory(AI87MobileNetV2, 1, M0_75, 960, 4)
"""The network for CIFAR-100 of 0.75 times the width: 1348468 parameters."""
ai87netmobilenetv2cifar100_m0_5 = factory(AI87MobileNetV2, 1, M0_5, 640, 4, depthwise_bias=True)
"""The network for CIFAR-100 of half the width, all layers with bias: 635600 parameters."""

models = records(
    2,
    "ai87netmobilenetv2",
    "ai87netmobilenetv2cifar100",
    "ai87netmobilenetv2cifar100_m0_75",
    "ai87netmobilenetv2cifar100_m0_5",
)
