"""Transforms of images on their way into a network.

Source: docs/layers.md, "Images".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class normalize:
    """Bring an image of 0..1 to the range of the accelerator.

    The result holds integers -128..127 when `args.act_mode_8bit` is set, else the same divided by
    128.
    Source: docs/layers.md, "Images".
    """

    def __init__(self, args: Any) -> None:
        self.divisor = 1 if args.act_mode_8bit else 128

    def __call__(self, img: Tensor) -> Tensor:
        """Return the normalized image; shape and dtype stay."""
        return img.sub(0.5).mul(256.0).round().clamp(-128, 127).div(self.divisor)


class fold:
    """Turn blocks of pixels into channels: (C, H, W) to (C*r*r, H/r, W/r) with r = `fold_ratio`.

    Pixel (i, j) of a block and channel c go to channel (i*r + j)*C + c.
    """

    def __init__(self, fold_ratio: int) -> None:
        self.fold_ratio = fold_ratio

    def __call__(self, img: Tensor) -> Tensor:
        """Return the folded image."""
        r = self.fold_ratio
        return torch.cat([img[:, i::r, j::r] for i in range(r) for j in range(r)])


def unfold_batch(img_batch: Tensor, fold_ratio: int) -> Tensor:
    """Undo `fold` for a batch: (N, C*r*r, h, w) to (N, C, h*r, w*r)."""
    r = fold_ratio
    n, channels, height, width = img_batch.shape
    blocks = img_batch.view(n, r, r, channels // (r * r), height, width)
    return blocks.permute(0, 3, 4, 1, 5, 2).reshape(n, channels // (r * r), height * r, width * r)


class bayer_filter:
    """Keep what a Bayer sensor sees of an image: (3, H, W) to (1, H, W).

    Rows alternate green, blue and red, green.
    """

    def __call__(self, img: Tensor) -> Tensor:
        """Return the mosaic."""
        mosaic = img[1:2].clone()
        mosaic[:, ::2, 1::2] = img[2:3, ::2, 1::2]
        mosaic[:, 1::2, ::2] = img[0:1, 1::2, ::2]
        return mosaic
