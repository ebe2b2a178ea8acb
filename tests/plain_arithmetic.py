"""The arithmetic of a layer, one value at a time in Python's integers.

Written from docs/hardware/arithmetic.md alone, as an answer that no part of the product shares.
Images are nested lists [row][column].
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor

Image = Sequence[Sequence[int]]
Pair = tuple[int, int]

SHIFTS = range(-15, 16)
"""All output shifts."""


def limited(value: int, low: int = -128, high: int = 127) -> int:
    """Clip."""
    return sorted((low, value, high))[1]


def narrowed(total: int, shift: int) -> int:
    """Divide a sum by 128, shift it, round half up and clip."""
    return limited(floor(Fraction(total) * Fraction(2) ** shift / 128 + Fraction(1, 2)))


def activated(value: int, activation: str) -> int:
    """Apply an activation to a value of 8 bits."""
    return {
        "none": value,
        "ReLU": value if value > 0 else 0,
        "Abs": {-128: 127}.get(value, abs(value)),
    }[activation]


def combined(values: Sequence[int], operation: str) -> int:
    """Combine operands from the first to the last; clip once."""
    total = values[0]
    for value in values[1:]:
        total = {
            "add": total + value,
            "sub": total - value,
            "or": total | value,
            "xor": total ^ value,
        }[operation]
    return limited(total)


def average(values: Sequence[int], rounding: bool) -> int:
    """Return the mean: toward zero, or to the nearest with halves away from zero."""
    mean = abs(Fraction(sum(values), len(values)))
    size = floor(mean + Fraction(1, 2)) if rounding else floor(mean)
    return -size if sum(values) < 0 else size


def pooled(
    image: Image, window: Pair, stride: Pair, dilation: Pair, kind: str, *, rounding: bool = False
) -> list[list[int]]:
    """Pool an image; `kind` is max, avg or none, which takes single values out."""
    counts = [
        (n - (w - 1) * d - 1) // s + 1
        for n, w, s, d in zip((len(image), len(image[0])), window, stride, dilation, strict=True)
    ]
    result = []
    for y in range(counts[0]):
        row = []
        for x in range(counts[1]):
            taps = [
                image[y * stride[0] + i * dilation[0]][x * stride[1] + j * dilation[1]]
                for i in range(window[0])
                for j in range(window[1])
            ]
            row.append(
                max(taps)
                if kind == "max"
                else average(taps, rounding)
                if kind == "avg"
                else taps[0]
            )
        result.append(row)
    return result


def convolved(channels: Sequence[Image], kernels: Sequence[Image], pad: Pair) -> list[list[int]]:
    """Correlate the channels with a kernel each, zeros around them, and add up."""
    rows, columns = len(channels[0]), len(channels[0][0])
    taps = len(kernels[0]), len(kernels[0][0])
    result = [
        [0] * (columns + 2 * pad[1] - taps[1] + 1) for _ in range(rows + 2 * pad[0] - taps[0] + 1)
    ]
    for y, row in enumerate(result):
        for x in range(len(row)):
            for image, kernel in zip(channels, kernels, strict=True):
                for i in range(taps[0]):
                    for j in range(taps[1]):
                        top, left = y + i - pad[0], x + j - pad[1]
                        if 0 <= top < rows and 0 <= left < columns:
                            row[x] += image[top][left] * kernel[i][j]
    return result


def stretched(image: Image) -> list[list[int]]:
    """Put the values at the even places of an image of twice the size."""
    columns = len(image[0])
    result = [[0] * (2 * columns) for _ in range(2 * len(image))]
    for y, row in enumerate(image):
        for x, value in enumerate(row):
            result[2 * y][2 * x] = value
    return result
