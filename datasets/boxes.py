"""Objects in boxes: what data sets for detection have in common.

Source: docs/datasets.md, "Images in folders".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor

Objects = tuple[Tensor, Tensor]
"""Boxes float32 [n, 4] (left, top, right, bottom of 0..1) and labels int64 [n] from 1."""
Item = TypeVar("Item", bound=tuple[Tensor, ...])


def collate(items: Sequence[tuple[Tensor, Item]]) -> tuple[Tensor, list[Item]]:
    """Make a batch: the images are stacked, the objects of each image stay together in a list."""
    images, objects = zip(*items, strict=True)
    return torch.stack(images), list(objects)


def mirrored(boxes: Tensor) -> Tensor:
    """Return boxes [n, 4] of 0..1 in a picture that is mirrored, left to right."""
    return torch.stack([1 - boxes[:, 2], boxes[:, 1], 1 - boxes[:, 0], boxes[:, 3]], 1)
