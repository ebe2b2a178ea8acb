"""The quantile of magnitudes that decides the output shift.

Source: docs/layers.md, "The steps of a layer".
"""

from __future__ import annotations

import functools
from typing import Literal

import torch
from torch import Tensor


def quantile(x: Tensor, q: float, method: Literal["linear", "lower"] = "linear") -> Tensor:
    """Return the `q` quantile of all values of `x`, a scalar tensor.

    Sample k of N stands at (k + 0.5)/N when the neighbours are chosen, at k/(N-1) when their
    distance is interpolated, in float32 throughout; this is what checkpoints were trained with and
    differs from torch.quantile. `lower` returns the lower neighbour.
    Source: docs/layers.md, "The steps of a layer".
    """
    values = x.flatten()
    last = values.numel() - 1
    if q == 1.0 or last == 0:
        return values.max()
    index, fraction = _quantile_position(last + 1, q)
    below = values.kthvalue(index + 1).values
    if method == "lower":
        return below
    return below + fraction * (values.kthvalue(index + 2).values - below)


def interp(
    x: Tensor | float, xp: Tensor, fp: Tensor, method: Literal["linear", "lower"] = "linear"
) -> Tensor:
    """Return the value at `x` of ascending samples: fp[k], for q quantiles standing at xp[k].

    The neighbours are chosen by `xp`; their distance is interpolated as if they stood at k/(N-1).
    `quantile` is this with the places of its samples. `lower` returns the lower neighbour.
    """
    last = len(fp) - 1
    x32 = torch.as_tensor(x, dtype=torch.float32)
    if last == 0 or x32 == 1:
        return fp[last]
    index = int((xp <= x32).sum().clamp(1, last)) - 1
    if method == "lower":
        return fp[index]
    return fp[index] + (x32 * last - index) * (fp[index + 1] - fp[index])


def _quantile_position(count: int, q: float) -> tuple[int, float]:
    """Return the lower neighbour's rank and the (float32) fraction of the way to the next."""
    return _computed_position(count, q)


# As torch.compiler.assume_constant_result does, which imports the compiler for over a second
setattr(_quantile_position, "_dynamo_marked_constant", True)  # noqa: B010


@functools.lru_cache(maxsize=1024)
def _computed_position(count: int, q: float) -> tuple[int, float]:
    places = torch.linspace(1 / (2 * count), (2 * count - 1) / (2 * count), count)
    q32 = torch.tensor(q, dtype=torch.float32)
    index = int((places <= q32).sum().clamp(1, count - 1)) - 1
    return index, float(q32 * (count - 1) - index)
