"""SimpleNet for CIFAR-100: fourteen convolutions, plain, wider, and with three additions.

Source: docs/models.md, "Images: classification".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records

#           conv1 2   3   4   5   6   7   8   9   10  11   12   13
CHANNELS = (16, 20, 20, 20, 20, 20, 44, 48, 48, 96, 512, 128, 128)
CHANNELS_WIDE = (24, 32, 32, 32, 32, 32, 64, 64, 64, 128, 512, 192, 192)
POOLED = (5, 8, 10, 11, 13)  # layers behind a maximum pooling by 2
ONE_BY_ONE = (11, 12)  # layers of 1x1 kernels, all others have 3x3


class AI85SimpleNet(nn.Module):
    """Fourteen normalized convolutions; the result has 32 bits. `bias` must be True.

    Input [N, num_channels, 32, 32], output [N, num_classes]. With the defaults 383012 parameters.
    """

    channels: Sequence[int] = CHANNELS
    normalized = "BN"

    def __init__(
        self,
        num_classes: int = 100,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (32, 32),  # noqa: ARG002 - the interface of all networks
        bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        rows: list[ai8x_blocks.Row] = []
        for number, (inputs, outputs) in enumerate(pairwise((num_channels, *self.channels)), 1):
            pooled = "MaxPool" if number in POOLED else ""
            kernel, padding = (1, 0) if number in ONE_BY_ONE else (3, 1)
            kind = f"Fused{pooled}Conv2d{self.normalized}ReLU"
            rows.append((f"conv{number}", kind, inputs, outputs, kernel, padding))
        rows.append(("conv14", "Conv2d", self.channels[-1], num_classes, 1, 0, {"wide": True}))
        ai8x_blocks.add_layers(self, rows, bias=bias, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        for number in range(1, 15):
            x = self.get_submodule(f"conv{number}")(x)
        return x.flatten(1)


class AI85SimpleNetWide2x(AI85SimpleNet):
    """The same chain with more channels: 726628 parameters."""

    channels = CHANNELS_WIDE


class AI85ResSimpleNet(AI85SimpleNet):
    """The chain without normalization but with three additions: 381792 parameters without bias.

    The inputs of conv3, conv6 and conv9 are added to their outputs.
    """

    normalized = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.resid1 = ai8x.Add()
        self.resid2 = ai8x.Add()
        self.resid3 = ai8x.Add()

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        x = self.conv2(self.conv1(x))
        x = self.conv5(self.conv4(self.resid1(self.conv3(x), x)))
        x = self.conv8(self.conv7(self.resid2(self.conv6(x), x)))
        x = self.resid3(self.conv9(x), x)
        x = self.conv13(self.conv12(self.conv11(self.conv10(x))))
        return self.conv14(x).flatten(1)


ai85simplenet = factory(AI85SimpleNet)
ai85simplenetwide2x = factory(AI85SimpleNetWide2x)
ai85ressimplenet = factory(AI85ResSimpleNet)

models = records(2, "ai85simplenet", "ai85simplenetwide2x", "ai85ressimplenet")
