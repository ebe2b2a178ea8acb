"""Convolution, pooling and rounding of integers, exact for all targets.

Rows and columns are the last two axes of maps; pairs are (rows, columns).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ai8xtools.values import frozen

Integers: TypeAlias = NDArray[np.int64]
Pair: TypeAlias = tuple[int, int]

_EXACT = ((1 << 24, np.float32), (1 << 53, np.float64))
"""The magnitudes up to which a floating-point type holds every integer."""
_BLOCK_VALUES = 1 << 20
"""Values that are multiplied at once."""
_LOWEST = -(1 << 62)


@frozen
class Windows:
    """Where windows lie on a map.

    There are `size` windows, `stride` apart, of `kernel` taps, `dilation` apart. The first one
    begins `pad` before the map, or behind its first pixels if that is negative. `spread` is the
    distance of the map's pixels.
    """

    size: Pair
    kernel: Pair
    stride: Pair = (1, 1)
    pad: Pair = (0, 0)
    dilation: Pair = (1, 1)
    spread: Pair = (1, 1)

    @staticmethod
    def covering(
        shape: tuple[int, ...],
        kernel: Pair,
        stride: Pair = (1, 1),
        pad: Pair = (0, 0),
        dilation: Pair = (1, 1),
        spread: Pair = (1, 1),
        extra: Pair = (0, 0),
    ) -> Windows:
        """Return the windows that fit a map with `pad` on all sides and `extra` at the ends."""
        rows, columns = (
            ((n - 1) * w + e + 2 * p - (k - 1) * d) // s + 1
            for n, k, s, p, d, w, e in zip(
                shape[-2:], kernel, stride, pad, dilation, spread, extra, strict=True
            )
        )
        return Windows((rows, columns), kernel, stride, pad, dilation, spread)

    def canvas(
        self, data: NDArray[Any], outside: int = 0, kind: type[np.generic] = np.int64
    ) -> NDArray[Any]:
        """Return what windows reach of maps, with `outside` around and between the pixels."""
        source: list[Any] = [...]
        target: list[Any] = [...]
        reach = [
            (n - 1) * s + (k - 1) * d + 1
            for n, k, s, d in zip(self.size, self.kernel, self.stride, self.dilation, strict=True)
        ]
        for n, end, pad, spread in zip(data.shape[-2:], reach, self.pad, self.spread, strict=True):
            first = max(-(pad // spread), 0)
            stop = max(min(n, -((pad - end) // spread)), first)
            start = first * spread + pad
            source.append(slice(first, stop))
            target.append(slice(start, start + (stop - first) * spread, spread))
        inside: NDArray[Any] = data[*source]
        if inside.shape[-2:] == (*reach,):
            return inside.astype(kind, copy=False)
        canvas = np.full((*data.shape[:-2], *reach), outside, kind)
        canvas[*target] = inside
        return canvas


def convolved(
    data: NDArray[Any], weights: NDArray[Any], windows: Windows, groups: int = 1
) -> Integers:
    """Return the sums [N, filter, row, column] of the products of maps [N, channel, row, column].

    `weights` are [filter, channel of the group, kernel row, kernel column]. Sums that 64 bits hold
    are exact: with a type that holds the magnitudes of all products together, any order is right.
    """
    filters, _, *kernel = weights.shape
    most = int(np.abs(weights.astype(np.int64)).reshape(filters, -1).sum(axis=1).max())
    bound = most * max(int(data.max()), -int(data.min()))
    kind: Any = next((kind for limit, kind in _EXACT if bound <= limit), np.int64)
    canvas = windows.canvas(data.swapaxes(0, 1), 0, kind)  # [channel, N, row, column]
    factors = weights.reshape(groups, filters // groups, -1).astype(kind)
    result = np.empty((*factors.shape[:2], len(data), *windows.size), np.int64)
    for images, rows, columns in _blocks(result.shape[2:], len(canvas) * kernel[0] * kernel[1]):
        block = result[:, :, images, rows, columns]
        taps = np.empty((len(canvas), *kernel, *block.shape[2:]), kind)
        for i, j in np.ndindex(*kernel):
            steps = (
                slice(first.start * s + tap * d, (first.start + n - 1) * s + tap * d + 1, s)
                for first, n, s, tap, d in zip((rows, columns), block.shape[3:], windows.stride,
                                               (i, j), windows.dilation, strict=True)
            )  # fmt: skip
            taps[:, i, j] = canvas[:, images, *steps]
        products = factors @ taps.reshape(groups, factors.shape[2], -1)
        block[...] = products.reshape(block.shape)
    return result.reshape(filters, *result.shape[2:]).swapaxes(0, 1)


def _blocks(shape: tuple[int, ...], per_pixel: int) -> Iterator[tuple[slice, ...]]:
    """Yield parts of results [N, row, column] whose taps, so many per pixel, are few enough."""
    steps, left = [], per_pixel
    for length in reversed(shape):
        steps.append(max(_BLOCK_VALUES // left, 1))
        left *= length
    starts = product(*(range(0, n, s) for n, s in zip(shape, reversed(steps), strict=True)))
    for start in starts:
        yield tuple(slice(a, a + s) for a, s in zip(start, reversed(steps), strict=True))


def multiplied(data: NDArray[Any], weights: NDArray[Any]) -> Integers:
    """Return the sums [N, output] of vectors [N, input] with weights [output, input]; exact."""
    pixels, kernels = data[:, :, None, None], weights[:, :, None, None]
    return convolved(pixels, kernels, Windows((1, 1), (1, 1)))[:, :, 0, 0]


def reduced(
    data: NDArray[Any],
    windows: Windows,
    combine: Callable[[Integers, Integers], Integers],
    outside: int = 0,
) -> Integers:
    """Combine the values of each window of maps [..., row, column], along columns and then rows."""
    result = windows.canvas(data, outside)
    for axis, behind in ((1, ()), (0, (slice(None),))):
        step, end = windows.stride[axis], (windows.size[axis] - 1) * windows.stride[axis] + 1
        starts = (tap * windows.dilation[axis] for tap in range(windows.kernel[axis]))
        parts = (result[..., slice(first, first + end, step), *behind] for first in starts)
        result = reduce(combine, parts)
    return result


def maxima(data: NDArray[Any], windows: Windows) -> Integers:
    """Return the maximum of each window; what is outside of the map does not count."""
    return reduced(data, windows, np.maximum, _LOWEST)


def averages(data: NDArray[Any], windows: Windows, *, rounds: bool = False) -> Integers:
    """Return the average of each window; what is outside of the map does not count.

    It is truncated toward zero, or rounded to nearest with halves away from zero.
    """
    total = reduced(data, windows, np.add)
    counts = reduced(np.ones(data.shape[-2:], np.int64), windows, np.add)
    count = counts if counts.min() < counts.max() else int(counts.max())
    magnitude: Integers = np.abs(total)
    if rounds:
        magnitude, count = 2 * magnitude + count, 2 * count
    means: Integers = np.sign(total) * (magnitude // count)
    return means


def rounded_shift(values: Integers, right: int) -> Integers:
    """Return values times 2^-right, of which halves are rounded up; `right` is 0 or more."""
    return (values + ((1 << right) >> 1)) >> right
