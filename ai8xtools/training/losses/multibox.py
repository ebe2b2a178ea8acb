"""Detectors with prior boxes: their loss, and the objects their outputs mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ai8xtools.training.losses.boxes import (
    decode,
    encode,
    keep_best,
    overlap,
    to_centres,
    to_corners,
)
from ai8xtools.training.policies.complaints import Complaints
from ai8xtools.training.policies.yaml_file import read_section

_CODE = "E604"
_MATCH = 0.5
"""A prior box that overlaps every object by less than this is background."""
_RANGES = {
    "multi_box_loss": {"alpha": (0, 1e6), "neg_pos_ratio": (0, 1e6)},
    "nms": {"min_score": (0, 1), "max_overlap": (0, 1), "top_k": (1, 1e6)},
}


@dataclass(frozen=True, slots=True)
class Parameters:
    """Weights of the loss, and which boxes count as detected.

    `alpha` is the weight of locations, `neg_pos_ratio` how many background boxes count for each
    box with an object. Found are boxes with a score above `min_score`, of those that overlap by
    more than `max_overlap` only the best, at most `top_k` in an image.
    """

    alpha: float
    neg_pos_ratio: float
    min_score: float
    max_overlap: float
    top_k: int


def read_parameters(path: str) -> Parameters:
    """Return the parameters in a YAML file; InputError naming line, key, value and limit."""
    complaints = Complaints(_CODE, path)
    content = read_section(complaints)
    complaints.keys(content, _RANGES, "the parameters")
    numbers: dict[str, Any] = {}
    for section, ranges in _RANGES.items():
        part = content.get(section)
        if not isinstance(part, dict):
            complaints.wrong(content, section, f"a section of {', '.join(ranges)}")
            continue
        complaints.keys(part, ranges, section)
        for key, (low, high) in ranges.items():
            value: Any = part.get(key)
            if type(value) not in (int, float) or not low <= value <= high:
                expected = f"a number from {low} to {high:g}"
                complaints.wrong(part, key, expected, name=f"{section}: {key}")
            numbers[key] = value
    complaints.refuse()
    return Parameters(**numbers | {"top_k": int(numbers["top_k"])})


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects of a batch: corners [N, most, 4] and labels [N, most] from 1, 0 where none is."""

    boxes: Tensor
    labels: Tensor

    @staticmethod
    def of(targets: Any) -> Objects:
        """Collect the targets of a batch: a list of (boxes, ..., labels), or (list, ..., list)."""
        if isinstance(targets[0][0], Tensor) and targets[0][-1].ndim == 1:
            pairs = [(target[0], target[-1]) for target in targets]
        else:
            pairs = list(zip(targets[0], targets[-1], strict=True))
        most = max(1, *(len(labels) for _, labels in pairs))
        boxes = torch.zeros(len(pairs), most, 4)
        kinds = torch.zeros(len(pairs), most, dtype=torch.int64)
        for i, (coordinates, labels) in enumerate(pairs):
            boxes[i, : len(labels)] = coordinates.reshape(-1, 4)
            kinds[i, : len(labels)] = labels
        return Objects(boxes, kinds)

    def to(self, device: torch.device) -> Objects:
        """Return the objects on another device."""
        return Objects(self.boxes.to(device), self.labels.to(device))

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield boxes [n, 4] and labels [n] of each image."""
        for boxes, labels in zip(self.boxes, self.labels, strict=True):
            yield boxes[labels > 0], labels[labels > 0]


class MultiBoxLoss(nn.Module):
    """Cross entropy of the classes plus `alpha` times the smooth L1 distance of the locations.

    Each prior box belongs to the object it overlaps most, if by at least half, and each object has
    at least the prior box that overlaps it most. Locations count where an object is; classes there
    and in the background boxes with the greatest loss, `neg_pos_ratio` for each with an object.
    Without any object in the batch all boxes count. `priors` [P, 4]: centres and sizes.
    """

    priors: Tensor

    def __init__(self, priors: Tensor, alpha: float, neg_pos_ratio: float) -> None:
        super().__init__()
        self.register_buffer("priors", priors.detach().clone(), persistent=False)
        self.alpha = alpha
        self.neg_pos_ratio = neg_pos_ratio

    def forward(self, outputs: tuple[Tensor, Tensor], targets: Objects) -> Tensor:
        """Return the loss of locations [N, P, 4] and scores [N, P, classes]."""
        locations, scores = outputs
        offsets, labels = self.match(targets)
        present = labels > 0
        count = present.sum()
        least = count.clamp(min=1)
        distances = functional.smooth_l1_loss(locations, offsets, reduction="none").sum(-1)
        located = torch.where(present, distances, 0).sum() / (4 * least)
        each = functional.cross_entropy(scores.transpose(1, 2), labels, reduction="none")
        background = torch.where(present, 0, each)
        hardest = background.sort(dim=1, descending=True).values
        ranks = torch.arange(hardest.shape[1], device=hardest.device)
        among = ranks < self.neg_pos_ratio * present.sum(1, keepdim=True)
        classified = (
            torch.where(present, each, 0).sum() + torch.where(among, hardest, 0).sum()
        ) / least
        return torch.where(count > 0, classified + self.alpha * located, each.mean())

    @torch.no_grad()
    def match(self, targets: Objects) -> tuple[Tensor, Tensor]:
        """Return locations [N, P, 4] and labels [N, P] that the prior boxes should have."""
        valid = targets.labels > 0
        shares = overlap(targets.boxes, to_corners(self.priors))  # [N, objects, P]
        shares = torch.where(valid.unsqueeze(-1), shares, -1.0)
        share, owner = shares.max(dim=1)
        numbers = torch.arange(valid.shape[1], device=valid.device).expand_as(valid)
        forced = torch.full_like(owner, -1)
        forced.scatter_reduce_(1, shares.argmax(2), torch.where(valid, numbers, -1), "amax")
        owner = torch.where(forced >= 0, forced, owner)
        matched = (share >= _MATCH) | (forced >= 0)
        labels = torch.where(matched, targets.labels.gather(1, owner), 0)
        boxes = targets.boxes.gather(1, owner.unsqueeze(-1).expand(-1, -1, 4))
        boxes = torch.where(matched.unsqueeze(-1), to_centres(boxes), self.priors)
        return encode(boxes, self.priors), labels


@torch.no_grad()
def detect(
    outputs: tuple[Tensor, Tensor], priors: Tensor, parameters: Parameters
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return corners [n, 4], labels [n] and scores [n] found in each image, the best first.

    An image without objects has one box of the whole image with label 0 and score 0.
    """
    locations, scores = outputs
    boxes = to_corners(decode(locations, priors))
    shares = functional.softmax(scores, dim=-1)
    return [_detections(*image, parameters) for image in zip(boxes, shares, strict=True)]


def _detections(
    boxes: Tensor, shares: Tensor, parameters: Parameters
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what is found among boxes [P, 4] with scores [P, classes]."""
    likely = shares > parameters.min_score
    parts = []
    for label in likely[:, 1:].any(0).nonzero().flatten().tolist():
        candidates = likely[:, label + 1].nonzero().flatten()
        scores = shares[candidates, label + 1]
        kept = keep_best(boxes[candidates], scores, parameters.max_overlap)
        labels = torch.full_like(kept, label + 1)
        parts.append((boxes[candidates[kept]], labels, scores[kept]))
    if not parts:
        nothing = torch.zeros(1, device=boxes.device)
        return boxes.new_tensor([[0.0, 0.0, 1.0, 1.0]]), nothing.long(), nothing
    detected, labels, scores = (torch.cat(part) for part in zip(*parts, strict=True))
    best = scores.argsort(descending=True, stable=True)[: parameters.top_k]
    return detected[best], labels[best], scores[best]
