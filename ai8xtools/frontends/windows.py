"""Pooling windows that are larger than the chip's, as several poolings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MOST_POOLED = 16
"""Rows or columns of a pooling window, at most."""


def stages(
    settings: Mapping[str, Any], shape: tuple[int, ...], limit: int = MOST_POOLED
) -> list[Mapping[str, Any]]:
    """Return poolings of windows up to a limit that make one of a larger window.

    `settings` are its `window`, `stride`, `dilation` and `padding`, `shape` [C, ...] what it takes.
    It is the same for windows that do not overlap, of equal size: the average of averages, the
    maximum of maxima. Without such windows it is the pooling itself. The chip has one stride for
    all axes: where one stands for those that differ, it is returned.
    """
    window, sizes = settings["window"], shape[1:]
    large = [w for w in window if w > limit]
    whole: list[Mapping[str, Any]] = [{**settings, "stride": _one_stride(settings, sizes)}]
    apart = all(w in (s, n) for w, s, n in zip(window, settings["stride"], sizes, strict=True))
    plain = set(settings["dilation"]) == {1} and not any(settings["padding"])
    if not large or not apart or not plain:
        return whole
    common = math.gcd(*large)
    step = max(n for n in range(1, limit + 1) if common % n == 0)
    if step == 1:
        return whole
    first = tuple(step if w % step == 0 else w for w in window)
    if any(f not in (step, n) for f, n in zip(first, sizes, strict=True)):
        return whole
    rest = tuple(w // f for w, f in zip(window, first, strict=True))
    left = tuple(n // f for n, f in zip(sizes, first, strict=True))
    ahead = {**settings, "window": first, "stride": (step,) * len(first)}
    behind = {**settings, "window": rest, "stride": rest}
    return [ahead, *stages(behind, (shape[0], *left), limit)]


def _one_stride(settings: Mapping[str, Any], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return equal strides that leave the windows where they are, or else those that are stated.

    Along an axis with a single window any stride does that is larger than the rest of the map.
    """
    names = ("window", "stride", "dilation", "padding")
    axes = zip(sizes, *(settings[name] for name in names), strict=True)
    rests = [(n + 2 * p - d * (w - 1) - 1, s) for n, w, s, d, p in axes]
    moving = {s for rest, s in rests if rest >= s}
    least = max((rest + 1 for rest, s in rests if rest < s), default=1)
    stride = next(iter(moving), least)
    fits = len(moving) < 2 and stride >= least
    return (stride,) * len(rests) if fits else tuple(settings["stride"])
