"""How long runs of a packed kernel may be, told by trying every place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
_LANE = np.iinfo(np.int16)
_LONGEST = 256


def flush_interval(
    weights: NDArray[np.int8], low: Int64, high: Int64, *, anywhere: bool = False
) -> int:
    """Return the longest run, up to 256, of which all sums are 16-bit numbers.

    `weights` int8 [filter, input]; `low` and `high` int64 [input], the least and greatest value of
    each input. Runs begin at multiples of their length, or `anywhere`.
    """
    wide = weights.astype(np.int64)
    most = np.maximum(wide * low, wide * high)
    least = np.minimum(wide * low, wide * high)
    for length in range(_LONGEST, 1, -1):
        starts = range(0, weights.shape[1], 1 if anywhere else length)
        runs = [slice(start, start + length) for start in starts]
        if all(most[:, run].sum(axis=1).max(initial=0) <= _LANE.max for run in runs) and all(
            least[:, run].sum(axis=1).min(initial=0) >= _LANE.min for run in runs
        ):
            return length
    return 1
