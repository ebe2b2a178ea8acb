"""A network that recognizes actions (Kinetics) in 15 frames: convolutions per frame, then in time.

Source: docs/models.md, "Time series".
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records


class AI85ActionTCN(nn.Module):
    """Thirteen layers per frame with three residual blocks, then three over time.

    Input [N, T, num_channels, 60, 60] with T = 15 frames, folded from 240x240 in colour; output
    [N, num_classes] of 32 bits; 376197 parameters. `bn` is the normalization of all layers but the
    first ("Affine", "NoAffine" or None); `dropout` acts in training only.
    """

    def __init__(
        self,
        num_classes: int = 5,
        num_channels: int = 96,
        dimensions: tuple[int, int] = (60, 60),  # noqa: ARG002 - the interface of all networks
        bias: bool = True,
        bn: str | None = "Affine",
        dropout: float = 0.5,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        conv, pool = "FusedConv2dReLU", "FusedMaxPoolConv2dReLU"
        rows = (
            ("prep0", conv, num_channels, 64, 1, 0, {"batchnorm": "NoAffine"}),  # 60x60
            ("conv0", conv, 64, 64, 3, 1),
            ("conv1", pool, 64, 64, 3, 1),  # 30x30
            ("conv1_2", conv, 64, 64, 3, 1),
            ("conv2", pool, 64, 64, 3, 1),  # 15x15
            ("conv2_1", conv, 64, 64, 1, 0),
            ("conv2_p", pool, 64, 64, 3, 1),
            ("conv3", pool, 64, 64, 3, 1),  # 7x7
            ("conv3_1", conv, 64, 64, 1, 0),
            ("conv3_p", pool, 64, 64, 3, 1),
            ("conv4", pool, 64, 64, 3, 1),  # 3x3
            ("conv4_1", conv, 64, 64, 1, 0),
            ("conv4_p", pool, 64, 64, 3, 1),
            ("conv5", conv, 64, 32, 3, 0),  # 1x1
        )
        series = (
            ("tcn0", "FusedConv1dReLU", 32, 32, 3, 0),  # 13 of 15 steps
            ("tcn1", "FusedConv1dReLU", 32, 32, 3, 0, {"dilation": 2}),  # 9
            ("tcn2", "Conv1d", 32, num_classes, 3, 0, {"dilation": 4, "wide": True}),  # 1
        )
        common = {"bias": bias, "batchnorm": bn, **kwargs}
        ai8x_blocks.add_layers(self, rows, **common)
        self.add = ai8x.Add()
        for level in (2, 3, 4):
            self.add_module(f"drop{level}", nn.Dropout2d(dropout))
        ai8x_blocks.add_layers(self, series, **common)

    def frame_features(self, x: Tensor) -> Tensor:
        """Return what is known of each frame: [N, num_channels, 60, 60] to [N, 32]."""
        x = self.conv1_2(self.conv1(self.conv0(self.prep0(x))))
        x = self.add(self.conv2_p(x), self.drop2(self.conv2_1(self.conv2(x))))
        x = self.add(self.conv3_p(x), self.drop3(self.conv3_1(self.conv3(x))))
        x = self.add(self.conv4_p(x), self.drop4(self.conv4_1(self.conv4(x))))
        return self.conv5(x).flatten(1)

    def classify(self, features: Tensor) -> Tensor:
        """Return the scores of the classes from the features of all frames, [N, 32, T]."""
        return self.tcn2(self.tcn1(self.tcn0(features))).flatten(1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of the classes."""
        frames = self.frame_features(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        return self.classify(frames.transpose(1, 2))


ai85actiontcn = factory(AI85ActionTCN)

models = records(2, "ai85actiontcn")
