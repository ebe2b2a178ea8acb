"""The MNIST networks of the MAX78000: ai85net5 and its small sister.

Source: docs/models.md, "Images: classification".
"""

from __future__ import annotations

from typing import Any

from torch import nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records


def initialize(network: nn.Module) -> None:
    """Draw the weights of all two-dimensional convolutions from Kaiming's normal distribution."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


class AI85Net5(ai8x_blocks.Chain):
    """Four convolutions and a fully connected layer; the result has 32 bits.

    Input [N, num_channels, H, W] with H = W, output [N, num_classes]. With the defaults `planes`=60
    and `fc_inputs`=12 it has 71158 parameters for 1x28x28 images.
    """

    def __init__(
        self,
        num_classes: int = 10,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (28, 28),
        planes: int = 60,
        pool: int = 2,
        fc_inputs: int = 12,
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        assert ai8x.dev is not None
        assert dimensions[0] == dimensions[1], f"images of {dimensions} are not square"
        assert planes + num_channels <= ai8x.dev.WEIGHT_INPUTS
        assert planes + fc_inputs <= ai8x.dev.WEIGHT_DEPTH - 1
        padding = 2 if dimensions[0] == 28 else 1
        width = dimensions[0] // 2 + 2 * padding - 2  # after the first pooling and conv2
        width = width // 2 // pool
        kernels = 128 - planes - fc_inputs
        rows = (
            ("conv1", "FusedConv2dReLU", num_channels, planes, 3, 1),
            ("conv2", "FusedMaxPoolConv2dReLU", planes, planes, 3, padding),
            ("conv3", "FusedMaxPoolConv2dReLU", planes, kernels, 3, 1),
            ("conv4", "FusedAvgPoolConv2dReLU", kernels, fc_inputs, 3, 1, {"pool_size": pool}),
        )
        features = fc_inputs * width * width
        super().__init__(rows, features, num_classes, bias=bias, fc_bias=True, **kwargs)
        initialize(self)


class AI85NetExtraSmall(ai8x_blocks.Chain):
    """Three convolutions of 8 channels and a fully connected layer: 2514 parameters for MNIST.

    Input [N, num_channels, H, W] with H = W, output [N, num_classes].
    """

    def __init__(
        self,
        num_classes: int = 10,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (28, 28),
        fc_inputs: int = 8,
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        assert dimensions[0] == dimensions[1], f"images of {dimensions} are not square"
        padding = 2 if dimensions[0] == 28 else 1
        width = (dimensions[0] // 2 + 2 * padding - 2) // 4
        by_four = {"pool_size": 4, "pool_stride": 4}
        rows = (
            ("conv1", "FusedConv2dReLU", num_channels, 8, 3, 1),
            ("conv2", "FusedMaxPoolConv2dReLU", 8, 8, 3, padding),
            ("conv3", "FusedMaxPoolConv2dReLU", 8, fc_inputs, 3, 1, by_four),
        )
        features = fc_inputs * width * width
        super().__init__(rows, features, num_classes, bias=bias, fc_bias=True, **kwargs)
        initialize(self)


ai85net5 = factory(AI85Net5)
ai85netextrasmall = factory(AI85NetExtraSmall)

models = records(2, "ai85net5", "ai85netextrasmall")
