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
    maximum of maxima. Without such windows the pooling itself is returned.
    """
    window, sizes = settings["window"], shape[1:]
    large = [w for w in window if w > limit]
    apart = all(w in (s, n) for w, s, n in zip(window, settings["stride"], sizes, strict=True))
    plain = set(settings["dilation"]) == {1} and not any(settings["padding"])
    if not large or not apart or not plain:
        return [settings]
    common = math.gcd(*large)
    step = max(n for n in range(1, limit + 1) if common % n == 0)
    if step == 1:
        return [settings]
    first = tuple(step if w % step == 0 else w for w in window)
    if any(f not in (step, n) for f, n in zip(first, sizes, strict=True)):
        return [settings]
    rest = tuple(w // f for w, f in zip(window, first, strict=True))
    left = tuple(n // f for n, f in zip(sizes, first, strict=True))
    ahead = {**settings, "window": first, "stride": (step,) * len(first)}
    moves = rest if any(n >= 2 * w for n, w in zip(left, rest, strict=True)) else (1,) * len(rest)
    behind = {**settings, "window": rest, "stride": moves}
    return [ahead, *stages(behind, (shape[0], *left), limit)]
