"""Random changes of series in training, mild ones: none of them helps everywhere.

Source: docs/own-data.md, "Augmentation".
"""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from torch import Tensor

SERIES = ("jitter", "scale", "shift", "crop", "warp")
_NOISE, _SCALE = 0.02, 0.1
_SHIFT, _CROP, _BEND = 0.1, 0.2, 0.1
"""Parts of the length."""


def changed_series(x: Tensor, names: Collection[str], fold: int) -> Tensor:
    """Return series of values -1..1, [N, C, L] of which `fold` channels are neighbouring steps.

    jitter: noise; scale: each channel by up to a tenth; shift in time by up to a tenth; crop: a
    part of at least four fifths becomes the whole; warp: time runs faster and slower.
    """
    series = x.unflatten(1, (-1, fold)).transpose(2, 3).flatten(2)
    if {"shift", "crop", "warp"} & {*names}:
        series = _at(series, _times(len(x), series.shape[2], names))
    if "scale" in names:
        series = series * torch.empty(len(x), series.shape[1], 1).uniform_(1 - _SCALE, 1 + _SCALE)
    if "jitter" in names:
        series = series + _NOISE * torch.randn_like(series)
    folded = series.unflatten(2, (-1, fold)).transpose(2, 3).flatten(1, 2)
    return folded.clamp(-1, 127 / 128)


def _times(count: int, steps: int, names: Collection[str]) -> Tensor:
    """Return the time 0..1 of each step, float [count, steps]."""
    times = torch.linspace(0, 1, steps).expand(count, steps)
    if "warp" in names:
        bend = torch.empty(count, 1).uniform_(-_BEND, _BEND)
        times = times + bend * torch.sin(2 * math.pi * times) / 2
    if "crop" in names:
        part = torch.empty(count, 1).uniform_(1 - _CROP, 1)
        times = times * part + torch.rand(count, 1) * (1 - part)
    if "shift" in names:
        times = times + torch.empty(count, 1).uniform_(-_SHIFT, _SHIFT)
    return times.clamp(0, 1)


def _at(series: Tensor, times: Tensor) -> Tensor:
    """Return series [N, C, L] at other times 0..1 [N, L], in a straight line between steps."""
    places = times * (series.shape[2] - 1)
    before = places.floor().clamp(0, max(0, series.shape[2] - 2))
    share = (places - before)[:, None]
    index = before.long()[:, None].expand_as(series)
    after = (index + 1).clamp(max=series.shape[2] - 1)
    return series.gather(2, index) * (1 - share) + series.gather(2, after) * share
