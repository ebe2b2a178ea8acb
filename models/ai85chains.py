"""Chains of 3x3 convolutions of different widths and depths, for MNIST and CIFAR.

`ai85net80expansion` has the layers of the vendor's checkpoint of that name; the others have layers
of ours under the vendor's names.
Source: docs/models.md, "Images: classification".
"""

from __future__ import annotations

from typing import Any

import ai8x_blocks
from ai8x_blocks import factory, records
from models.ai85net import initialize

Layer = tuple[int, str | None]
"""Output channels of a 3x3 convolution, and the pooling by 2 in front of it."""


class AI85Chain(ai8x_blocks.Chain):
    """3x3 convolutions `conv1`, `conv2`, ... with ReLU and a fully connected layer.

    Input [N, num_channels, H, W] with H = W, output [N, num_classes] of 32 bits. For inputs of
    28x28 the first convolution behind a pooling pads by 2, so that 16x16 pixels follow.
    """

    def __init__(
        self,
        layers: tuple[Layer, ...],
        num_classes: int = 10,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (28, 28),
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        assert dimensions[0] == dimensions[1], f"images of {dimensions} are not square"
        width, channels, pooled = dimensions[0], num_channels, False
        rows = []
        for number, (outputs, pooling) in enumerate(layers, 1):
            padding = 2 if pooling and not pooled and width == 28 else 1
            width = (width // 2 if pooling else width) + 2 * padding - 2
            pooled = pooled or pooling is not None
            kind = f"Fused{pooling or ''}Conv2dReLU"
            rows.append((f"conv{number}", kind, channels, outputs, 3, padding))
            channels = outputs
        features = channels * width * width
        super().__init__(rows, features, num_classes, bias=bias, fc_bias=True, **kwargs)
        initialize(self)


MAX, AVERAGE = "MaxPool", "AvgPool"


def _four(*widths: int) -> tuple[Layer, ...]:
    """Return four convolutions, the last three behind a pooling."""
    return tuple(zip(widths, (None, MAX, MAX, AVERAGE), strict=True))


EXPANSION = _four(16, 80, 16, 12)
EIGHTY = _four(80, 80, 80, 12)
WIDE = _four(100, 180, 100, 12)
SIX: tuple[Layer, ...] = ((32, None), (64, MAX), (64, MAX), (64, None), (64, MAX))
TWENTY: tuple[Layer, ...] = (
    *(3 * ((16, None),)),
    (24, MAX), *(3 * ((24, None),)),
    (32, MAX), *(5 * ((32, None),)),
    (48, MAX), *(5 * ((48, None),)),
)  # fmt: skip


ai85net80expansion = factory(AI85Chain, EXPANSION)
"""A chain that widens to 80 channels behind the first layer."""
ai85net80wide = factory(AI85Chain, EIGHTY)
"""A chain of 80 channels: more than the chip has processors."""
ai85netwide = factory(AI85Chain, WIDE)
"""A chain of up to 180 channels, in three passes of the processors."""
ai85net6 = factory(AI85Chain, SIX)
"""A chain of six layers."""
ai85net20 = factory(AI85Chain, TWENTY)
"""A chain of twenty layers."""

models = records(2, "ai85net80expansion", "ai85net80wide", "ai85netwide", "ai85net6", "ai85net20")
