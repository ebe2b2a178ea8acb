"""Random moves of pictures together with the masks or boxes that belong to them.

Source: docs/own-data.md, "Augmentation".
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from datasets.boxes import mirrored
from datasets.own.boxes import LEAST, within

MOVES = ("mirror", "shift")
_SHARE = 10
"""Pictures are shifted by up to a tenth of their size."""


def moved(pictures: Tensor, targets: Any, names: Collection[str]) -> tuple[Tensor, Any]:
    """Return pictures [N, C, H, W] of any dtype and their masks [N, H, W], or lists of boxes and
    labels, moved alike.

    mirror: left to right, half of them; shift: by up to a tenth. Pixels at the edge are repeated;
    objects of which less than half is left are none.
    """
    count, _, height, width = pictures.shape
    most = _SHARE if "shift" in names else max(height, width) + 1
    down, right = (torch.randint(-(n // most), n // most + 1, (count, 1)) for n in (height, width))
    rows = (torch.arange(height) + down).clamp(0, height - 1)
    columns = (torch.arange(width) + right).clamp(0, width - 1)
    flipped = (torch.rand(count) < 0.5) & ("mirror" in names)
    columns = torch.where(flipped[:, None], columns.flip(1), columns)
    place = torch.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]
    pictures = pictures.movedim(1, 3)[place].movedim(3, 1)
    if isinstance(targets, Tensor):
        return pictures, targets[place]
    by = torch.cat([right / width, down / height], 1).repeat(1, 2)
    each = zip(targets, by, flipped.tolist(), strict=True)
    return pictures, [_moved(b, kinds, shift, flip=flip) for (b, kinds), shift, flip in each]


def _moved(boxes: Tensor, labels: Tensor, shift: Tensor, *, flip: bool) -> tuple[Tensor, Tensor]:
    boxes = boxes - shift
    if flip:
        boxes = mirrored(boxes)
    inside, kept = within(boxes, LEAST)
    return inside[kept], labels[kept]
