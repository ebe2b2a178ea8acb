"""The second version of the keyword network: eight layers over time.

Source: docs/models.md, "Keywords".
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records

_LAYERS = (
    #                                             in   out kernel padding, steps of 128 behind it
    ("conv1", "FusedConv1d{}ReLU", 128, 100, 1, 0),  # 128
    ("conv2", "FusedConv1d{}ReLU", 100, 48, 3, 0),  # 126
    ("conv3", "FusedMaxPoolConv1d{}ReLU", 48, 96, 3, 1),  # 63
    ("conv4", "FusedConv1d{}ReLU", 96, 128, 3, 0),  # 61
    ("conv5", "FusedMaxPoolConv1d{}ReLU", 128, 160, 3, 1),  # 30
    ("conv6", "FusedConv1d{}ReLU", 160, 192, 3, 0),  # 28
    ("conv7", "FusedAvgPoolConv1d{}ReLU", 192, 192, 3, 1),  # 14
    ("conv8", "FusedConv1d{}ReLU", 192, 32, 3, 0),  # 12
)


class AI85KWS20NetV2(nn.Module):
    """Eight layers over time and a fully connected one, with dropout in training.

    Input [N, num_channels, 128], output [N, num_classes] of 32 bits; 368576 parameters. With
    `batchnorm` all convolutions are normalized and `bias` must be True. For MAX78000 only, since it
    pads series of more than 64 channels.
    """

    def __init__(
        self,
        num_classes: int = 21,
        num_channels: int = 128,
        dimensions: tuple[int, int] = (128, 1),
        bias: bool = False,
        batchnorm: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.drop = nn.Dropout(p=0.2)
        fused = "BN" if batchnorm else ""
        rows = [(name, kind.format(fused), *rest) for name, kind, *rest in _LAYERS]
        rows[0] = (*rows[0][:2], num_channels, *rows[0][3:])
        ai8x_blocks.add_layers(self, rows, bias=bias, **kwargs)
        steps = (((dimensions[0] - 2) // 2 - 2) // 2 - 2) // 2 - 2
        self.fc = ai8x.Linear(32 * steps, num_classes, bias=bias, wide=True, **kwargs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        x = self.drop(self.conv2(self.conv1(x)))
        x = self.drop(self.conv4(self.conv3(x)))
        x = self.drop(self.conv6(self.conv5(x)))
        return self.fc(self.conv8(self.conv7(x)).flatten(1))


ai85kws20netv2 = factory(AI85KWS20NetV2)
ai85kws20netv2batchnorm = factory(AI85KWS20NetV2, batchnorm=True)
"""An `AI85KWS20NetV2` with batch normalization."""

models = records(1, "ai85kws20netv2", "ai85kws20netv2batchnorm")
