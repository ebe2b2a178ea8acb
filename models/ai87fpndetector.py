"""A detector with a feature pyramid for MAX78002: the twenty classes of PascalVOC in 256x320.

The layers are ours, under the vendor's name.
Source: docs/models.md, "Segmentation, detection, images as output".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

import ai8x
import ai8x_blocks
from ai8x_blocks import factory, records
from models.prior_boxes import in_order_of_priors, prior_boxes

CONV, POOL = "FusedConv2dBNReLU", "FusedMaxPoolConv2dBNReLU"
WIDTH = 64  # channels of the pyramid
SCALES = {"p3": 0.1, "p4": 0.2, "p5": 0.4, "p6": 0.6, "p7": 0.85}
RATIOS = (1.0, 0.5, 2.0)


class _Residual(nn.Module):
    """Two 3x3 convolutions, whose input is added to their result."""

    def __init__(self, channels: int, bias: bool, **kwargs: Any) -> None:
        super().__init__()
        rows = (
            ("conv1", CONV, channels, channels, 3, 1),
            ("conv2", "FusedConv2dBN", channels, channels, 3, 1),
        )
        ai8x_blocks.add_layers(self, rows, bias=bias, **kwargs)
        self.resid = ai8x.Add()

    def forward(self, x: Tensor) -> Tensor:
        """Run the block."""
        result: Tensor = self.resid(self.conv2(self.conv1(x)), x)
        return result


class AI87FPNDetector(nn.Module):
    """Features in six sizes, carried from the small maps to the larger ones, and predictors.

    Input [N, num_channels, H, W] with H and W multiples of 64 from 128; output locations
    [N, priors, 4] and scores [N, priors, num_classes] of all prior boxes, for which background is
    class 0. `priors_cxcy` [priors, 4] holds centre, width and height of the boxes as fractions of
    the image. `bias` must be True; 1554295 parameters with the defaults.
    """

    are_locations_wide = False
    are_scores_wide = False

    def __init__(
        self,
        num_classes: int = 21,
        num_channels: int = 3,
        dimensions: tuple[int, int] = (256, 320),
        aspect_ratios: Sequence[Sequence[float]] = 5 * (RATIOS,),
        device: str | torch.device = "cpu",
        bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        for size, what in zip(dimensions, ("rows", "columns"), strict=True):
            assert size >= 128, f"{size} {what}: it needs 128"
            assert not size % 64, f"{size} {what} are no multiple of 64"
        self.n_classes = num_classes
        self.aspect_ratios = dict(zip(SCALES, aspect_ratios, strict=True))
        common = {"bias": bias, **kwargs}
        down = (
            ("stem1", CONV, num_channels, 16, 3, 1),  # 256x320
            ("stem2", POOL, 16, 32, 3, 1),  # 128x160
            ("stem3", POOL, 32, 64, 3, 1),  # 64x80
            ("down3", POOL, 64, 96, 3, 1),  # 32x40
            ("down4", POOL, 96, 128, 3, 1),  # 16x20
            ("down5", POOL, 128, 128, 3, 1),  # 8x10
            ("down6", POOL, 128, WIDTH, 3, 1),  # 4x5
            ("down7", POOL, WIDTH, WIDTH, 3, 1),  # 2x2
        )
        ai8x_blocks.add_layers(self, down, **common)
        for level, channels in ((3, 96), (4, 128), (5, 128)):
            self.add_module(f"block{level}", _Residual(channels, **common))
            row = (f"lateral{level}", "FusedConv2dBN", channels, WIDTH, 1, 0)
            ai8x_blocks.add_layers(self, (row,), **common)
            up = ai8x.ConvTranspose2d(WIDTH, WIDTH, 3, padding=1, **common)
            self.add_module(f"up{level}", up)
            self.add_module(f"add{level}", ai8x.Add())
        self.pred_convs = nn.Module()
        for kind, numbers in (("loc", 4), ("cl", num_classes)):
            rows = (
                (f"{kind}_{name}", "FusedConv2dBN", WIDTH, numbers * len(ratios), 3, 1)
                for name, ratios in self.aspect_ratios.items()
            )
            ai8x_blocks.add_layers(self.pred_convs, rows, **common)
        sizes = {f"p{n}": (dimensions[0] >> n, dimensions[1] >> n) for n in range(3, 8)}
        priors = prior_boxes(sizes, SCALES, self.aspect_ratios)
        self.register_buffer("priors_cxcy", priors.to(device), persistent=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return locations and scores."""
        c3 = self.block3(self.down3(self.stem3(self.stem2(self.stem1(x)))))
        c4 = self.block4(self.down4(c3))
        c5 = self.block5(self.down5(c4))
        p6 = self.down6(c5)
        p7 = self.down7(p6)
        p5 = self.add5(self.lateral5(c5), self.up5(p6))
        p4 = self.add4(self.lateral4(c4), self.up4(p5))
        p3 = self.add3(self.lateral3(c3), self.up3(p4))
        maps = {"p3": p3, "p4": p4, "p5": p5, "p6": p6, "p7": p7}
        return self._predicted("loc", maps, 4), self._predicted("cl", maps, self.n_classes)

    def _predicted(self, kind: str, maps: dict[str, Tensor], numbers: int) -> Tensor:
        """Return one kind of prediction for the boxes of all maps, [N, priors, numbers]."""
        layers = ((n, self.pred_convs.get_submodule(f"{kind}_{n}")) for n in maps)
        return in_order_of_priors((layer(maps[n]) for n, layer in layers), numbers)


ai87fpndetector = factory(AI87FPNDetector)

models = records(2, "ai87fpndetector")
