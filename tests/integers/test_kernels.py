"""Convolution, pooling and rounding against loops over plain integers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import floor, trunc
from random import Random
from typing import Any

import numpy as np
import pytest

from ai8xtools.integers import kernels
from ai8xtools.integers.kernels import Pair, Windows

INT64 = np.iinfo(np.int64)


def taps(windows: Windows, shape: Pair) -> Iterator[tuple[Pair, Pair, Pair]]:
    """Yield (row, column) of the windows, of their taps, and of the pixels at which these are."""
    for at, tap in product(np.ndindex(windows.size), np.ndindex(windows.kernel)):
        places = [
            divmod(at[i] * windows.stride[i] + tap[i] * windows.dilation[i] - windows.pad[i],
                   windows.spread[i])
            for i in (0, 1)
        ]  # fmt: skip
        pixel = (places[0][0], places[1][0])
        between = places[0][1] or places[1][1]
        if not between and all(0 <= pixel[i] < shape[i] for i in (0, 1)):
            yield (at[0], at[1]), (tap[0], tap[1]), pixel


def random_windows(random: Random, *, spread: bool) -> Windows:
    def pair(low: int, high: int) -> Pair:
        return random.randint(low, high), random.randint(low, high)

    return Windows(pair(1, 4), pair(1, 3), pair(1, 3), pair(-3, 9 if spread else 2), pair(1, 2),
                   pair(1, 3) if spread else (1, 1))  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_sums_are_those_of_all_products(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random, numbers = Random(seed), np.random.default_rng(seed)
    windows = random_windows(random, spread=True)
    groups, own, each = (random.randint(1, 3) for _ in range(3))
    data = numbers.integers(-99, 99, (random.randint(1, 3), groups * own, 4, 5))
    weights = numbers.integers(-99, 99, (groups * each, own, *windows.kernel))
    expected = np.zeros((len(data), len(weights), *windows.size), np.int64)
    for (y, x), (i, j), (row, column) in taps(windows, (4, 5)):
        for n, o, c in np.ndindex(len(data), len(weights), own):
            value = data[n, o // each * own + c, row, column]
            expected[n, o, y, x] += value * weights[o, c, i, j]
    for block in (1 << 20, 1, 60, 300):
        monkeypatch.setattr(kernels, "_BLOCK_VALUES", block)
        found = kernels.convolved(data, weights, windows, groups)
        assert np.array_equal(found, expected), block


@pytest.mark.parametrize("bits", [22, 23, 24, 25, 51, 52, 53, 54, 60])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_are_exact_whatever_they_need(bits: int, sign: int) -> None:
    """Around what floats hold: 2^bits and one more, of one product or of two."""
    large = 1 << bits // 2
    data = np.array([[large, large, 1]]) * sign
    once, twice = (1 << bits) // large, (1 << bits - 1) // large
    weights = np.array([[once, 0, 1], [twice, twice, 1]])
    for some in (weights, weights[:1], weights[1:], -weights):
        expected = [[int(row[2]) * sign * ((1 << bits) + 1) for row in some]]
        assert kernels.multiplied(data, some).tolist() == expected


def test_blocks_bound_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images, or rows of one, are multiplied together as far as a block holds their taps."""
    sizes: list[int] = []

    def empty(shape: Any, kind: Any) -> Any:
        made = np.zeros(shape, kind)
        sizes.append(made.size)
        return made

    data, weights = np.ones((3, 2, 8, 8), int), np.ones((1, 2, 3, 3), int)
    windows = Windows((6, 6), (3, 3))
    monkeypatch.setattr(kernels, "_BLOCK_VALUES", 2 * 9 * 36 * 2)
    monkeypatch.setattr(kernels.np, "empty", empty)
    kernels.convolved(data, weights, windows)
    assert sizes[1:] == [2 * 9 * 36 * 2, 2 * 9 * 36]
    sizes.clear()
    monkeypatch.setattr(kernels, "_BLOCK_VALUES", 2 * 9 * 6 * 4)
    kernels.convolved(data[:1], weights, windows)
    assert sizes[1:] == [2 * 9 * 6 * 4, 2 * 9 * 6 * 2]


@pytest.mark.parametrize("seed", range(30))
def test_what_is_outside_of_a_map_is_not_pooled(seed: int) -> None:
    windows = random_windows(Random(seed), spread=False)
    rows, columns = (min(p, k - 1) for p, k in zip(windows.pad, windows.kernel, strict=True))
    windows = replace(windows, pad=(rows, columns))  # no window is beside the map
    data = np.random.default_rng(seed).integers(-99, 99, (2, 13, 14))
    inside: dict[Pair, list[Any]] = {}
    for at, _, pixel in taps(windows, (13, 14)):
        inside.setdefault(at, []).append(data[:, *pixel])
    largest, cut, rounded = (
        kernels.maxima(data, windows),
        kernels.averages(data, windows),
        kernels.averages(data, windows, rounds=True),
    )
    assert len(inside) == windows.size[0] * windows.size[1]
    for (y, x), values in inside.items():
        for c in (0, 1):
            mean = Fraction(sum(int(v[c]) for v in values), len(values))
            assert largest[c, y, x] == max(int(v[c]) for v in values)
            assert cut[c, y, x] == trunc(mean)
            nearest = floor(abs(mean) + Fraction(1, 2))
            assert rounded[c, y, x] == (nearest if mean > 0 else -nearest)


def test_windows_that_cover_a_map_end_within_it() -> None:
    for n, k, s, p, d, w, e in product(
        (1, 5, 8), (1, 3), (1, 2, 3), (0, 2), (1, 2), (1, 3), (0, 1)
    ):
        length, reach = (n - 1) * w + 1 + e + 2 * p, (k - 1) * d + 1
        if reach > length:
            continue
        shape, pairs = (n, n), [(one, one) for one in (k, s, p, d, w, e)]
        size = Windows.covering(shape, *pairs).size[0]
        assert (size - 1) * s + reach <= length < size * s + reach


def test_halves_are_rounded_up() -> None:
    values = np.array([*range(-40, 41), INT64.max >> 1, INT64.min >> 1])
    for right in range(6):
        expected = [floor(Fraction(int(v), 1 << right) + Fraction(1, 2)) for v in values]
        assert kernels.rounded_shift(values, right).tolist() == expected
