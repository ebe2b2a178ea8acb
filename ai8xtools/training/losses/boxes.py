"""Boxes around objects: their forms, overlap, and non-maximum suppression.

A box is (x0, y0, x1, y1), or with centre and size (cx, cy, w, h), in fractions of the image.
torchvision's compiled operators are not used: they are missing where its build differs from
PyTorch's.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

_CENTRE, _SIZE = 10, 5
"""Scales of locations relative to a prior box, so that usual ones are of the order of 1."""
_TINY = 1e-7


def to_corners(boxes: Tensor) -> Tensor:
    """Return boxes [..., 4] of centres and sizes as corners."""
    centres, sizes = boxes[..., :2], boxes[..., 2:]
    return torch.cat([centres - sizes / 2, centres + sizes / 2], dim=-1)


def to_centres(boxes: Tensor) -> Tensor:
    """Return boxes [..., 4] of corners as centres and sizes."""
    low, high = boxes[..., :2], boxes[..., 2:]
    return torch.cat([(low + high) / 2, high - low], dim=-1)


def encode(boxes: Tensor, priors: Tensor) -> Tensor:
    """Return boxes [..., 4] relative to the priors; both with centres and sizes."""
    centres = (boxes[..., :2] - priors[..., :2]) * _CENTRE / priors[..., 2:]
    sizes = torch.log(boxes[..., 2:] / priors[..., 2:] + _TINY) * _SIZE
    return torch.cat([centres, sizes], dim=-1)


def decode(locations: Tensor, priors: Tensor) -> Tensor:
    """Return the boxes, with centres and sizes, that `encode` made locations [..., 4] of."""
    centres = locations[..., :2] * priors[..., 2:] / _CENTRE + priors[..., :2]
    sizes = torch.exp(locations[..., 2:] / _SIZE) * priors[..., 2:]
    return torch.cat([centres, sizes], dim=-1)


def overlap(a: Tensor, b: Tensor) -> Tensor:
    """Return intersection over union [..., A, B] of boxes [..., A, 4] and [..., B, 4]."""
    a, b = a.unsqueeze(-2), b.unsqueeze(-3)
    sides = torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])
    common = sides.clamp(min=0).prod(-1)
    areas = [(boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(-1) for boxes in (a, b)]
    return common / (areas[0] + areas[1] - common).clamp(min=_TINY)


def keep_best(boxes: Tensor, scores: Tensor, max_overlap: float) -> Tensor:
    """Return the indices of boxes [n, 4] to keep, the best first (non-maximum suppression).

    A box is dropped when it overlaps a better one that is kept by more than `max_overlap`.
    """
    order = scores.argsort(descending=True, stable=True)
    ranked = boxes[order]
    apart = (~(overlap(ranked, ranked) > max_overlap)).cpu().numpy()
    kept = np.ones(len(order), np.bool_)
    for rank, others in enumerate(apart):
        if kept[rank]:
            kept[rank + 1 :] &= others[rank + 1 :]
    return order[torch.from_numpy(kept).to(order.device)]
