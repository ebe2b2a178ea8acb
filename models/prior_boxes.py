"""What detectors with prior boxes share: the boxes themselves, and the order of predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor


def prior_boxes(
    sizes: Mapping[str, tuple[int, int]],
    scales: Mapping[str, float],
    aspect_ratios: Mapping[str, Sequence[float]],
) -> Tensor:
    """Return the boxes of all maps [boxes, 4]: centre, width and height as fractions of the image.

    `sizes` are rows and columns of the maps that predictors look at, `scales` the size of their
    boxes. Row by row, each pixel has one box of each aspect ratio.
    """
    boxes = []
    for name, (rows, columns) in sizes.items():
        for i, j in ((i, j) for i in range(rows) for j in range(columns)):
            for ratio in map(math.sqrt, aspect_ratios[name]):
                scale = scales[name]
                boxes.append(((j + 0.5) / columns, (i + 0.5) / rows, scale * ratio, scale / ratio))
    return torch.tensor(boxes, dtype=torch.float32).clamp_(0, 1)


def in_order_of_priors(maps: Iterable[Tensor], numbers: int) -> Tensor:
    """Return predictions [N, boxes, numbers] of maps [N, boxes of a pixel * numbers, H, W]."""
    parts = [p.permute(0, 2, 3, 1).flatten(1) for p in maps]
    return torch.cat(parts, dim=1).unflatten(1, (-1, numbers))
