"""Networks that turn a face into a vector; vectors of one person are near each other.

Source: docs/models.md, "Faces".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import normalize

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records


class AI85FaceIDNet(nn.Module):
    """Eight convolutions and an average over the rest of the image: 176336 parameters.

    Input [N, 3 or 6, 160, 120], of which the first three channels count; output [N, 512, 1, 1].
    """

    def __init__(
        self,
        num_classes: int | None = None,  # noqa: ARG002 - the interface of all networks
        num_channels: int = 3,
        dimensions: tuple[int, int] = (160, 120),  # noqa: ARG002
        bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.channels = min(num_channels, 3)
        rows = (
            ("conv1", "FusedConv2dReLU", self.channels, 16, 3, 1, {"bias": False}),  # 160x120
            ("conv2", "FusedMaxPoolConv2dReLU", 16, 32, 3, 1, {"bias": False}),  # 80x60
            ("conv3", "FusedMaxPoolConv2dReLU", 32, 32, 3, 1),  # 40x30
            ("conv4", "FusedMaxPoolConv2dReLU", 32, 64, 3, 1),  # 20x15
            ("conv5", "FusedMaxPoolConv2dReLU", 64, 64, 3, 1),  # 10x7
            ("conv6", "FusedConv2dReLU", 64, 64, 3, 1),
            ("conv7", "FusedConv2dReLU", 64, 64, 3, 1),
            ("conv8", "FusedMaxPoolConv2d", 64, 512, 1, 0, {"bias": False}),  # 5x3
        )
        ai8x_blocks.add_layers(self, rows, bias=bias, **kwargs)
        self.avgpool = ai8x.AvgPool2d((5, 3), stride=1, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors."""
        x = self.conv4(self.conv3(self.conv2(self.conv1(x[:, : self.channels]))))
        return self.avgpool(self.conv8(self.conv7(self.conv6(self.conv5(x)))))


class AI85FaceIDNet112(nn.Module):
    """Residual bottlenecks, an average, a fully connected layer, vectors of length 1.

    Input [N, 3 or 6, 112, 112], of which the first three channels count; output
    [N, emb_dimensionality]. The settings of the bottlenecks are those of
    `ai8x_blocks.bottleneck_rows`. `bias` must be True; 892016 parameters with it.
    """

    def __init__(
        self,
        pre_layer_stride: int = 1,
        bottleneck_settings: Sequence[Sequence[int]] = (
            (1, 32, 48, 2, 2),
            (1, 48, 64, 2, 4),
            (1, 64, 64, 1, 2),
            (1, 64, 96, 2, 4),
            (1, 96, 128, 1, 2),
        ),
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
        self.pre_stage_2 = ai8x.FusedMaxPoolConv2dReLU(
            first, first, 3, padding=1, bias=False, **kwargs
        )
        self.feature_stage = ai8x_blocks.bottleneck_rows(
            ai8x_blocks.ConvResidualBottleneck,
            bottleneck_settings,
            depthwise_bias,
            reduced_depthwise_bias,
            bias=bias,
            **kwargs,
        )
        self.post_stage = ai8x.FusedConv2dReLU(last, last_layer_width, 1, bias=False, **kwargs)
        self.pre_avg = ai8x.Conv2d(
            last_layer_width, last_layer_width, 3, padding=1, bias=False, **kwargs
        )
        self.avg_pool = ai8x.AvgPool2d(avg_pool_size, stride=1, **kwargs)
        self.linear = ai8x.Linear(last_layer_width, emb_dimensionality, bias=bias, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the vectors; the division by their length is left to software."""
        x = self.pre_stage_2(self.pre_stage(x[:, : self.channels]))
        for blocks in self.feature_stage:
            x = blocks(x)
        x = self.avg_pool(self.pre_avg(self.post_stage(x)))
        return normalize(self.linear(x.flatten(1)), p=2.0, dim=1)


ai85faceidnet = factory(AI85FaceIDNet)
ai85faceidnet_112 = factory(AI85FaceIDNet112)

models = records(3, "ai85faceidnet", "ai85faceidnet_112")
