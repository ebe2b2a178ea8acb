"""The clip scalar of a layer: weights beyond it take the outermost level.

OCTAV: Sakr et al., Optimal Clipping and Magnitude-aware Differentiation, ICML 2022.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ai8xtools.quantization.lowbit.encodings import Encoding

STEPS = 10
"""Iterations of OCTAV."""
Algorithm = Literal["octav", "octav_cb", "prop"]


def clip_scalar(
    weights: NDArray[np.floating],
    encoding: Encoding,
    algorithm: Algorithm,
    present: float = 1.0,
    scale: float = 0.25,
) -> float:
    """Return the clip scalar of a layer by an algorithm that begins with the present one."""
    if encoding.name == "None":
        return float(np.abs(weights).max())
    if algorithm == "prop":
        return proportional(weights, scale)
    return octav(weights, encoding, present, by_levels=algorithm == "octav_cb")


def proportional(weights: NDArray[np.floating], scale: float = 0.25) -> float:
    """Return the mean magnitude over `scale`, for checkpoints that do not say what was used."""
    return max(float(np.abs(weights).mean()), 1e-5) / scale


def clip_scalars(
    weights: NDArray[np.floating],
    encoding: Encoding,
    algorithm: Algorithm,
    present: NDArray[np.floating],
    scale: float = 0.25,
) -> NDArray[np.float64]:
    """Return a clip scalar for each row of weights [outputs, ...], as [outputs, 1]."""
    rows = weights.reshape(len(weights), -1)
    if algorithm == "prop" and encoding.name != "None":
        greatest: NDArray[np.float64] = np.abs(rows).max(axis=1, keepdims=True).astype(np.float64)
        return np.maximum(greatest, 1e-5) / scale
    pairs = zip(rows, present.reshape(-1).tolist(), strict=True)
    return np.array([[clip_scalar(row, encoding, algorithm, one, scale)] for row, one in pairs])


def octav(
    weights: NDArray[np.floating],
    encoding: Encoding,
    present: float = 1.0,
    *,
    by_levels: bool = False,
) -> float:
    """Return the clip scalar with the least mean squared error, by ten steps of Newton's method.

    The error of a weight in range is that of uniform rounding, or with `by_levels` what the levels
    of the encoding leave.
    """
    magnitudes = np.abs(weights.astype(np.float64)).reshape(-1)
    uniform = 4.0**-encoding.bits_per_weight / 3
    clip = present
    for _ in range(STEPS):
        clipped = magnitudes > clip
        noise = _noise(magnitudes[~clipped], clip, encoding, uniform) if by_levels else uniform
        weight = max(noise * (~clipped).sum() + clipped.sum(), 1.0)  # below 1 nothing is clipped
        clip = float(magnitudes[clipped].sum() / weight)
    return clip


def _noise(inside: NDArray[np.float64], clip: float, encoding: Encoding, uniform: float) -> float:
    """Return the mean squared distance to the nearest level, for a clip scalar of one."""
    if not inside.size or clip <= 0:
        return uniform
    levels = np.unique(np.abs(encoding.levels))
    scaled = inside * encoding.limit / clip
    nearest = np.abs(scaled[:, None] - levels).min(axis=1)
    return float((nearest**2).mean() / encoding.limit**2)
