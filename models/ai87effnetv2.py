"""EfficientNetV2 for MAX78002, for CIFAR-100 and ImageNet.

Source: docs/models.md, "Images: classification".
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records

#       in out expansion fused
BLOCKS = {
    "mb_conv1": (32, 16, 1, True),
    "mb_conv2": (16, 32, 4, True),
    "mb_conv3": (32, 32, 4, True),
    "mb_conv4": (32, 48, 4, True),
    "mb_conv5": (48, 48, 4, True),
    "mb_conv6": (48, 96, 4, False),
    "mb_conv7": (96, 96, 4, False),
    "mb_conv8": (96, 128, 4, False),
    "mb_conv9": (128, 128, 4, False),
}
BLOCKS_IMAGENET = {
    **BLOCKS,
    "mb_conv6": (48, 48, 4, True),
    "mb_conv7": (48, 96, 2, False),
    "mb_conv8": (96, 96, 2, False),
    "mb_conv9": (96, 128, 2, False),
}
NORMALIZATION = {"eps": 1e-3, "momentum": 0.01}


class AI87EffNetV2(nn.Module):
    """For CIFAR-100: nine MBConv blocks on 16x16 pixels; 759188 parameters with 100 classes.

    Input [N, num_channels, 32, 32], output [N, num_classes] of 32 bits. `bias` must be True.
    """

    def __init__(
        self,
        num_classes: int = 100,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (32, 32),
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        _add_stem(self, num_channels, bias, **kwargs)
        for name, block in BLOCKS.items():
            self.add_module(name, _block(*block, bias=bias, **kwargs))
        _add_head(self, (dimensions[0] // 2, dimensions[1] // 2), num_classes, bias, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        x = self.conv_stem(x)
        for name in BLOCKS:
            x = self.get_submodule(name)(x)
        return self.fc(self.avg_pooling(self.conv_head(x)).flatten(1))


class AI87ImageNetEffNetV2(nn.Module):
    """For ImageNet: eleven blocks on 56x56, 28x28 and 14x14 pixels; 1691624 parameters.

    Input [N, num_channels, 112, 112], output [N, num_classes] of 32 bits. `bias` must be True.
    """

    def __init__(
        self,
        num_classes: int = 1000,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (112, 112),
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        _add_stem(self, num_channels, bias, **kwargs)
        for name, block in BLOCKS_IMAGENET.items():
            if name == "mb_conv7":
                self.max_pooling1 = ai8x.MaxPool2d(2, 2, **kwargs)
            self.add_module(name, _block(*block, bias=bias, **kwargs))
        self.conv10 = ai8x.FusedMaxPoolConv2dBNReLU(
            128, 128, 1, bias=bias, **NORMALIZATION, **kwargs
        )
        self.mb_conv11 = _block(128, 128, 4, False, bias=bias, **kwargs)
        _add_head(self, (dimensions[0] // 8, dimensions[1] // 8), num_classes, bias, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        x = self.conv_stem(x)
        for name in BLOCKS_IMAGENET:
            x = self.get_submodule(name)(self.max_pooling1(x) if name == "mb_conv7" else x)
        x = self.conv_head(self.mb_conv11(self.conv10(x)))
        return self.fc(self.avg_pooling(x).flatten(1))


def _add_stem(network: Any, num_channels: int, bias: bool, **kwargs: Any) -> None:
    """Give a network its first layer, which halves the size."""
    network.conv_stem = ai8x.FusedMaxPoolConv2dBNReLU(
        num_channels, 32, 3, padding=1, bias=bias, **NORMALIZATION, **kwargs
    )


def _block(
    inputs: int, outputs: int, expansion: int, fused: bool, **kwargs: Any
) -> ai8x_blocks.MBConvBlock:
    """Make a block of a table."""
    return ai8x_blocks.MBConvBlock(inputs, outputs, expand_ratio=expansion, fused=fused, **kwargs)


def _add_head(
    network: Any, size: tuple[int, int], num_classes: int, bias: bool, **kwargs: Any
) -> None:
    """Give a network its last layers: 1024 channels, their averages, and scores."""
    network.conv_head = ai8x.FusedConv2dBNReLU(128, 1024, 1, bias=bias, **NORMALIZATION, **kwargs)
    network.avg_pooling = ai8x.AvgPool2d(size, **kwargs)
    network.fc = ai8x.Linear(1024, num_classes, bias=bias, wide=True, **kwargs)


ai87effnetv2 = factory(AI87EffNetV2)
ai87imageneteffnetv2 = factory(AI87ImageNetEffNetV2)

models = records(2, "ai87effnetv2", "ai87imageneteffnetv2")
