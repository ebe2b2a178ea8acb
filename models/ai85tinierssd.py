"""Detectors that find objects in one pass: digits of house numbers (SVHN), faces, QR codes.

Source: docs/models.md, "Segmentation, detection, images as output".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

import ai8x_blocks
from ai8x_blocks import factory, records
from models.prior_boxes import in_order_of_priors, prior_boxes

CONV, POOL = "FusedConv2dBNReLU", "FusedMaxPoolConv2dBNReLU"
Layers = tuple[ai8x_blocks.Row, ...]
AUXILIARY: Layers = (("conv12_1", CONV, 32, 16, 3, 1), ("conv12_2", POOL, 16, 16, 3, 1))
THREE_WIDE = {"pool_size": 3, "pool_stride": 2}
BARE = {"bias": False, "weight_bits": None, "bias_bits": None, "quantize_activation": False}


class TinierSSD(nn.Module):
    """A chain `base`, two layers behind it (`aux_convs`), and predictors on some of the maps.

    Input [N, num_channels, H, W]; output locations [N, priors, 4] and scores
    [N, priors, num_classes] of all prior boxes, for which background is class 0. `priors_cxcy`
    [priors, 4] holds centre, width and height of the boxes as fractions of the image.
    """

    base_layers: Layers
    sources: Mapping[str, float]
    """Maps that predictors look at, and the size of their boxes."""
    are_locations_wide = False
    are_scores_wide = False

    def __init__(
        self,
        num_classes: int,
        num_channels: int = 3,
        *,
        dimensions: tuple[int, int],
        aspect_ratios: Sequence[Sequence[float]],
        device: str | torch.device = "cpu",
        bias: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.n_classes = num_classes
        self.aspect_ratios = dict(zip(self.sources, aspect_ratios, strict=True))
        self.base, self.aux_convs, self.pred_convs = nn.Module(), nn.Module(), nn.Module()
        first = self.base_layers[0]
        base = ((*first[:2], num_channels, *first[3:]), *self.base_layers[1:])
        ai8x_blocks.add_layers(self.base, base, bias=bias, **kwargs)
        ai8x_blocks.add_layers(self.aux_convs, AUXILIARY, bias=bias, **kwargs)
        channels = {row[0]: row[3] for row in (*base, *AUXILIARY)}
        for kind, numbers in (("loc", 4), ("cl", num_classes)):
            rows = (
                (f"{kind}_{name}", "FusedConv2dBN", channels[name], numbers * len(ratios), 3, 1)
                for name, ratios in self.aspect_ratios.items()
            )
            ai8x_blocks.add_layers(self.pred_convs, rows, bias=bias, **kwargs)
        priors = prior_boxes(self._map_sizes(*dimensions), self.sources, self.aspect_ratios)
        self.register_buffer("priors_cxcy", priors.to(device), persistent=False)

    def _map_sizes(self, height: int, width: int) -> dict[str, tuple[int, int]]:
        """Return rows and columns of the maps that are looked at."""
        sizes = {}
        for chain in (self.base, self.aux_convs):
            for name, layer in chain.named_children():
                if (pool := layer.pool) is not None:
                    height = (height - pool.kernel_size) // pool.stride + 1
                    width = (width - pool.kernel_size) // pool.stride + 1
                sizes[name] = (height, width)
        return {name: sizes[name] for name in self.sources}

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return locations and scores."""
        maps = {}
        for chain in (self.base, self.aux_convs):
            for name, layer in chain.named_children():
                maps[name] = x = layer(x)
        return self._predicted("loc", maps, 4), self._predicted("cl", maps, self.n_classes)

    def _predicted(self, kind: str, maps: Mapping[str, Tensor], numbers: int) -> Tensor:
        """Return one kind of prediction for the boxes of all maps, [N, priors, numbers]."""
        layers = ((n, self.pred_convs.get_submodule(f"{kind}_{n}")) for n in self.sources)
        return in_order_of_priors((layer(maps[n]) for n, layer in layers), numbers)


class AI85TinierSSD(TinierSSD):
    """Digits in images of 74x74: 1700 prior boxes; with 11 classes 336336 parameters."""

    base_layers = (
        #                in   out kernel padding
        ("fire1", CONV, 3, 32, 3, 1),  # 74x74
        ("fire2", CONV, 32, 32, 3, 1),
        ("fire3", POOL, 32, 64, 3, 1),  # 37x37
        ("fire4", CONV, 64, 64, 3, 1),
        ("fire5", POOL, 64, 64, 3, 1, THREE_WIDE),  # 18x18
        ("fire6", CONV, 64, 64, 3, 1),
        ("fire7", CONV, 64, 128, 3, 1),
        ("fire8", CONV, 128, 32, 3, 1),
        ("fire9", POOL, 32, 32, 3, 1),  # 9x9
        ("fire10", POOL, 32, 32, 3, 1, THREE_WIDE),  # 4x4, behind it conv12_2 of 2x2
    )
    sources = {"fire8": 0.15, "fire9": 0.35, "fire10": 0.55, "conv12_2": 0.725}  # noqa: RUF012


class AI85TinierSSDFace(TinierSSD):
    """Faces in images of 224 rows and 168 columns: 1246 prior boxes, 275720 parameters."""

    base_layers = (
        #                in   out kernel padding
        ("fire1", "FusedMaxPoolConv2dReLU", 3, 16, 3, 1, BARE),  # 112x84
        ("fire2", "FusedMaxPoolConv2dReLU", 16, 32, 3, 1, BARE),  # 56x42
        ("fire3", CONV, 32, 64, 3, 1),
        ("fire4", CONV, 64, 64, 3, 1),
        ("fire5", CONV, 64, 64, 3, 1),
        ("fire6", CONV, 64, 64, 3, 1),
        ("fire7", CONV, 64, 128, 3, 1),
        ("fire8", CONV, 128, 32, 3, 1),
        ("fire9", POOL, 32, 32, 3, 1),  # 28x21
        ("fire10", POOL, 32, 32, 3, 1),  # 14x10, behind it conv12_2 of 7x5
    )
    sources = {"fire9": 0.35715, "conv12_2": 0.7143}  # noqa: RUF012


class AI85TinierSSDQR(TinierSSD):
    """QR codes in images of 120 rows and 160 columns: 6340 prior boxes, 294848 parameters.

    The layers are ours, under the vendor's name.
    """

    base_layers = (
        #                in   out kernel padding
        ("fire1", CONV, 3, 16, 3, 1),  # 120x160
        ("fire2", POOL, 16, 32, 3, 1),  # 60x80
        ("fire3", POOL, 32, 64, 3, 1),  # 30x40
        ("fire4", CONV, 64, 64, 3, 1),
        ("fire5", CONV, 64, 64, 3, 1),
        ("fire6", CONV, 64, 64, 3, 1),
        ("fire7", CONV, 64, 128, 3, 1),
        ("fire8", CONV, 128, 32, 3, 1),
        ("fire9", POOL, 32, 32, 3, 1),  # 15x20
        ("fire10", POOL, 32, 32, 3, 1),  # 7x10, behind it conv12_2 of 3x5
    )
    sources = {"fire8": 0.15, "fire9": 0.3, "fire10": 0.5, "conv12_2": 0.75}  # noqa: RUF012


ai85tinierssd = factory(
    AI85TinierSSD, dimensions=(74, 74), aspect_ratios=4 * ((0.85, 0.6, 0.4, 0.25),)
)
ai85tinierssdface = factory(
    AI85TinierSSDFace, num_classes=2, dimensions=(224, 168), aspect_ratios=2 * ((0.9, 0.75),)
)
ai85tinierssdqr = factory(
    AI85TinierSSDQR, num_classes=2, dimensions=(120, 160),
    aspect_ratios=4 * ((1.0, 0.75, 0.5, 1.4),),
)  # fmt: skip

models = records(2, "ai85tinierssd", "ai85tinierssdface", "ai85tinierssdqr")
