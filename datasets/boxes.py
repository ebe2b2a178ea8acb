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
