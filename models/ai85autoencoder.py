"""An autoencoder of vibrations: what it reproduces badly is unlike the motors it was trained on.

Source: docs/models.md, "Time series".
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records

_INITIAL = {
    "kaiming": nn.init.kaiming_uniform_,
    "xavier": nn.init.xavier_uniform_,
    "glorot": nn.init.xavier_uniform_,
}


class AI85AutoEncoder(nn.Module):
    """Two convolutions and two fully connected layers down to the bottleneck, three up again.

    Input and output [N, num_channels, n_axes]: 256 samples of three axes of an accelerometer. With
    the defaults 136800 parameters. `batchNorm` normalizes the convolutions; `weight_init` is
    kaiming, xavier or glorot.
    """

    def __init__(
        self,
        num_channels: int = 256,
        dimensions: tuple[int, int] | None = None,  # noqa: ARG002 - the interface of all networks
        num_classes: int = 1,  # noqa: ARG002
        n_axes: int = 3,
        bias: bool = True,
        weight_init: str = "kaiming",
        batchNorm: bool = True,  # noqa: N803 - names that users have in their scripts
        bottleNeckDim: int = 4,  # noqa: N803
        **kwargs: Any,
    ) -> None:
        super().__init__()
        conv = "FusedConv1dBNReLU" if batchNorm else "FusedConv1dReLU"
        rows = (
            ("en_conv1", conv, num_channels, 128, 1, 0),
            ("en_conv2", conv, 128, 64, n_axes, 0),
        )
        ai8x_blocks.add_layers(self, rows, bias=bias, **kwargs)
        self.en_lin1 = ai8x.FusedLinearReLU(64, 32, bias=bias, **kwargs)
        self.en_lin2 = ai8x.Linear(32, bottleNeckDim, bias=False, **kwargs)
        self.de_lin1 = ai8x.FusedLinearReLU(bottleNeckDim, 32, bias=bias, **kwargs)
        self.de_lin2 = ai8x.FusedLinearReLU(32, 96, bias=bias, **kwargs)
        self.out_lin = ai8x.Linear(96, num_channels * n_axes, bias=False, **kwargs)
        self._initialize(weight_init)

    def _initialize(self, weight_init: str) -> None:
        """Draw the weights of all layers from the distribution that is named."""
        assert weight_init in _INITIAL, f"weight_init={weight_init!r}: use {', '.join(_INITIAL)}"
        for module in self.modules():
            if isinstance(module, (nn.Conv1d, nn.Linear)):
                _INITIAL[weight_init](module.weight)

    def forward(self, x: Tensor, return_bottleneck: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        """Return the reproduction, and the bottleneck [N, bottleNeckDim] if asked for."""
        y = self.en_conv2(self.en_conv1(x)).flatten(1)
        bottleneck = self.en_lin2(self.en_lin1(y))
        y = self.out_lin(self.de_lin2(self.de_lin1(bottleneck))).view(x.shape)
        return (y, bottleneck) if return_bottleneck else y


ai85autoencoder = factory(AI85AutoEncoder)

models = records(1, "ai85autoencoder")
