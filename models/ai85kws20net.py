"""Networks that recognize 20 spoken keywords: 128 features for each of 128 time steps.

Source: docs/models.md, "Keywords".
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records


class AI85KWS20Net(nn.Module):
    """The first version: 1x1 kernels over time, then the series as an image of 16x8.

    Input [N, num_channels, 128], output [N, num_classes] of 32 bits; 126490 parameters.
    """

    def __init__(
        self,
        num_classes: int = 21,
        num_channels: int = 128,
        dimensions: tuple[int, int] = (128, 1),  # noqa: ARG002 - the interface of all networks
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        rows = (
            ("voice_conv1", "FusedConv1dReLU", num_channels, 100, 1, 0),
            ("voice_conv2", "FusedConv1dReLU", 100, 100, 1, 0),
            ("voice_conv3", "FusedConv1dReLU", 100, 50, 1, 0),
            ("voice_conv4", "FusedConv1dReLU", 50, 16, 1, 0),
            ("kws_conv1", "FusedConv2dReLU", 16, 32, 3, 1),
            ("kws_conv2", "FusedConv2dReLU", 32, 64, 3, 1),
            ("kws_conv3", "FusedConv2dReLU", 64, 64, 3, 1),
            ("kws_conv4", "FusedConv2dReLU", 64, 30, 3, 1),
            ("kws_conv5", "FusedConv2dReLU", 30, 7, 3, 1),
        )
        ai8x_blocks.add_layers(self, rows, bias=bias, **kwargs)
        self.fc = ai8x.Linear(7 * 16 * 8, num_classes, bias=bias, wide=True, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        x = self.voice_conv4(self.voice_conv3(self.voice_conv2(self.voice_conv1(x))))
        x = x.view(-1, 16, 16, 8)
        x = self.kws_conv5(self.kws_conv4(self.kws_conv3(self.kws_conv2(self.kws_conv1(x)))))
        return self.fc(x.flatten(1))


class AI85KWS20NetV3(nn.Module):
    """The third version: eight layers over time, with dropout in training.

    Input [N, num_channels, 128], output [N, num_classes] of 32 bits; 169472 parameters. Time steps:
    128, 128, 126, 63, 61, 30, 28, 14, 4.
    """

    layers: tuple[ai8x_blocks.Row, ...] = (
        #                                                in   out kernel padding
        ("voice_conv1", "FusedConv1dReLU", 128, 100, 1, 0),
        ("voice_conv2", "FusedConv1dReLU", 100, 96, 3, 0),
        ("voice_conv3", "FusedMaxPoolConv1dReLU", 96, 64, 3, 1),
        ("voice_conv4", "FusedConv1dReLU", 64, 48, 3, 0),
        ("kws_conv1", "FusedMaxPoolConv1dReLU", 48, 64, 3, 1),
        ("kws_conv2", "FusedConv1dReLU", 64, 96, 3, 0),
        ("kws_conv3", "FusedAvgPoolConv1dReLU", 96, 100, 3, 1),
        ("kws_conv4", "FusedMaxPoolConv1dReLU", 100, 64, 6, 1),
    )
    last_steps = 4

    def __init__(
        self,
        num_classes: int = 21,
        num_channels: int = 128,
        dimensions: tuple[int, int] = (128, 1),  # noqa: ARG002 - the interface of all networks
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.drop = nn.Dropout(p=0.2)
        rows = ai8x_blocks.with_inputs(self.layers, num_channels)
        ai8x_blocks.add_layers(self, rows, bias=bias, **kwargs)
        self.fc = ai8x.Linear(64 * self.last_steps, num_classes, bias=bias, wide=True, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        x = self.drop(self.voice_conv2(self.voice_conv1(x)))
        x = self.drop(self.voice_conv4(self.voice_conv3(x)))
        x = self.drop(self.kws_conv2(self.kws_conv1(x)))
        x = self.kws_conv4(self.kws_conv3(x))
        return self.fc(x.flatten(1))


class AI87KWS20NetV3(AI85KWS20NetV3):
    """The third version for MAX78002, which pads no series of many channels: 148928 parameters.

    Time steps: 128, 128, 126, 61, 59, 27, 25, 10, 3.
    """

    layers = (
        *((*row[:5], 0) for row in AI85KWS20NetV3.layers[:-1]),
        ("kws_conv4", "FusedMaxPoolConv1dReLU", 100, 64, 3, 0),
    )
    last_steps = 3


class AI85KWS20NetNAS(ai8x_blocks.Chain):
    """Found by architecture search: fourteen normalized layers over time, 425941 parameters.

    Input [N, num_channels, 128], output [N, num_classes] of 32 bits. `bias` must be True. For
    MAX78000 only, since it pads series of more than 64 channels.
    """

    layers = (
        #                                                in   out kernel padding
        ("conv1_1", "FusedConv1dBNReLU", 128, 128, 1, 0),  # 128 steps
        ("conv1_2", "FusedConv1dBNReLU", 128, 64, 3, 1),
        ("conv1_3", "FusedConv1dBNReLU", 64, 128, 3, 1),
        ("conv2_1", "FusedMaxPoolConv1dBNReLU", 128, 128, 3, 1),  # 64
        ("conv2_2", "FusedConv1dBNReLU", 128, 64, 1, 0),
        ("conv2_3", "FusedConv1dBNReLU", 64, 128, 1, 0),
        ("conv3_1", "FusedMaxPoolConv1dBNReLU", 128, 128, 3, 1),  # 32
        ("conv3_2", "FusedConv1dBNReLU", 128, 64, 5, 2),
        ("conv4_1", "FusedMaxPoolConv1dBNReLU", 64, 128, 5, 2),  # 16
        ("conv4_2", "FusedConv1dBNReLU", 128, 128, 1, 0),
        ("conv5_1", "FusedMaxPoolConv1dBNReLU", 128, 128, 5, 2),  # 8
        ("conv5_2", "FusedConv1dBNReLU", 128, 64, 3, 1),
        ("conv6_1", "FusedMaxPoolConv1dBNReLU", 64, 64, 5, 2),  # 4
        ("conv6_2", "FusedConv1dBNReLU", 64, 128, 1, 0),
    )

    def __init__(
        self,
        num_classes: int = 21,
        num_channels: int = 128,
        dimensions: tuple[int, int] = (128, 1),
        bias: bool = True,
        **kwargs: Any,
    ) -> None:
        rows = ai8x_blocks.with_inputs(self.layers, num_channels)
        features = 128 * (dimensions[0] // 32)
        super().__init__(rows, features, num_classes, bias=bias, batchnorm="NoAffine", **kwargs)


ai85kws20net = factory(AI85KWS20Net)
ai85kws20netv3 = factory(AI85KWS20NetV3)
ai87kws20netv3 = factory(AI87KWS20NetV3)
ai85kws20netnas = factory(AI85KWS20NetNAS)

models = records(1, "ai85kws20net", "ai85kws20netv3", "ai87kws20netv3", "ai85kws20netnas")
