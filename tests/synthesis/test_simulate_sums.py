"""Sums, passes, shifts and pooling against loops over plain integers."""

from __future__ import annotations

from itertools import product
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ai8xtools.synthesis.network import Activation, Operator, Pooling
from ai8xtools.synthesis.simulate import operators, simulator
from ai8xtools.synthesis.simulate.passes import pass_sums
from ai8xtools.synthesis.simulate.pooling import pool
from device.chip import BIAS_UNIT

Array = NDArray[np.int64]


def layer_with(**keys: Any) -> Any:
    """Return what the arithmetic looks at of a layer."""
    usual = {"operator": Operator.CONV2D, "dilation": 1, "stride": (1, 1), "pad": (0, 0),
             "groups": 1, "kernel": (1, 1), "output_pad": 0, "output_width": 8, "bias": None,
             "weights": None}  # fmt: skip
    return SimpleNamespace(**{**usual, **keys})


def correlated(data: Array, layer: Any) -> Array:
    """Return the sums of a convolution, product by product."""
    out, ins, height, width = layer.weights.shape
    (top, left), (down, across) = layer.pad, layer.stride
    image = {(c, y + top, x + left): int(v) for (c, y, x), v in np.ndenumerate(data)}
    rows = (data.shape[1] + 2 * top - layer.dilation * (height - 1) - 1) // down + 1
    columns = (data.shape[2] + 2 * left - layer.dilation * (width - 1) - 1) // across + 1
    found = np.zeros((out, rows, columns), np.int64)
    for o, y, x in np.ndindex(*found.shape):
        group = o // (out // layer.groups)
        for i, r, c in np.ndindex(ins, height, width):
            place = (
                group * ins + i,
                y * down + r * layer.dilation,
                x * across + c * layer.dilation,
            )
            found[o, y, x] += int(layer.weights[o, i, r, c]) * image.get(place, 0)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_convolutions_add_every_product(seed: int) -> None:
    random, numbers = Random(seed), np.random.default_rng(seed)
    groups, ins, outs = (random.choice([1, 2, 3]) for _ in range(3))
    kernel = (random.choice([1, 2, 3]), random.choice([1, 2, 3]))
    layer = layer_with(
        groups=groups, kernel=kernel, dilation=random.choice([1, 2]),
        stride=(random.choice([1, 2, 3]), random.choice([1, 2, 3])),
        pad=(random.choice([0, 1, 2]), random.choice([0, 1, 2])),
        weights=numbers.integers(-128, 128, (outs * groups, ins, *kernel)).astype(np.int8),
    )  # fmt: skip
    data = numbers.integers(-128, 128, (groups * ins, random.choice([5, 6, 7]), 8))
    assert np.array_equal(operators.accumulate(data, layer), correlated(data, layer))


@pytest.mark.parametrize("count", [1023, 1025, 1030, 1031, 1033, 1041, 1500, 2047])
def test_long_sums_are_exact(count: int) -> None:
    """Around the limits of what floats hold: the products of the extremes, and one odd one."""
    data = np.full((count, 1, 1), -128)
    data[-1] = 1
    weights = np.full((1, count, 1, 1), -128, np.int8)
    weights[0, -1] = 1
    found = operators.accumulate(data, layer_with(weights=weights))
    assert found.item() == (count - 1) * 128**2 + 1


def test_sums_are_scaled_and_rounded_for_every_shift() -> None:
    sums = np.array([*range(-300, 301), -(2**20) - 64, 2**20 + 64, 2**20 + 63])
    for shift in range(-15, 16):
        found = operators.scale(sums, layer_with(shift=shift))
        # floor(sum * 2^shift / 128 + 1/2), all over a common denominator
        wanted = [(int(s) * 2 ** (15 + shift) + 2**21) // 2**22 for s in sums]
        assert found.tolist() == wanted, shift
        assert operators.scale(sums, layer_with(shift=shift, output_width=32)) is sums


def test_values_are_clipped_and_activated_one_by_one() -> None:
    values = np.arange(-300, 301)
    clipped = operators.clip(values, layer_with())
    assert clipped.tolist() == [max(-128, min(127, v)) for v in range(-300, 301)]
    assert operators.clip(values, layer_with(output_width=32)).tolist() == values.tolist()
    relu = operators.activate(values, layer_with(activation=Activation.RELU))
    assert relu.tolist() == [max(0, min(127, v)) for v in range(-300, 301)]
    absolute = operators.activate(values, layer_with(activation=Activation.ABS))
    assert absolute.tolist() == [min(127, abs(v)) for v in range(-300, 301)]
    assert operators.activate(values, layer_with(activation=None)).tolist() == values.tolist()


def test_bias_counts_in_its_unit() -> None:
    sums = np.arange(12).reshape(3, 2, 2)
    found = operators.add_bias(sums, layer_with(bias=np.array([1, -2, 100])))
    assert (found - sums).tolist() == [[[BIAS_UNIT * b] * 2] * 2 for b in (1, -2, 100)]


def pooled(data: Array, pooling: Pooling, size: tuple[int, int], rounding: bool) -> list[Any]:
    """Return every pixel from its window, tap by tap."""
    found = []
    for channel, y, x in product(range(len(data)), range(size[0]), range(size[1])):
        taps = [
            int(data[channel, y * pooling.stride[0] + r * pooling.dilation[0],
                     x * pooling.stride[1] + c * pooling.dilation[1]])
            for r, c in product(*map(range, pooling.window))
        ]  # fmt: skip
        if not pooling.active:
            taps = taps[:1]
        if not pooling.average:
            found.append(max(taps))
            continue
        size_of = abs(sum(taps))
        whole, rest = divmod(size_of, len(taps))
        whole += rounding and 2 * rest >= len(taps)
        found.append(whole if sum(taps) > 0 else -whole)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_every_pixel_is_pooled_from_its_window(seed: int) -> None:
    random = Random(seed)
    data = np.random.default_rng(seed).integers(-128, 128, (2, 9, 10))
    window, stride, spread = (
        tuple(random.randint(1, n) for _ in range(2)) for n in (3, 3, 2)
    )  # fmt: skip
    size = tuple((n - (w - 1) * d - 1) // s + 1
                 for n, w, d, s in zip((9, 10), window, spread, stride, strict=True))  # fmt: skip
    for average, rounding in product((False, True), repeat=2):
        pooling = Pooling(window, stride, spread, average=average)
        found = pool(data, pooling, size, rounding=rounding)
        assert found.ravel().tolist() == pooled(data, pooling, size, rounding)


@pytest.mark.parametrize("with_weights", [False, True])
def test_passes_add_up_shares_of_the_channels(with_weights: bool) -> None:
    numbers = np.random.default_rng(1)
    data = numbers.integers(-128, 128, (5, 2, 3))
    weights = numbers.integers(-128, 128, (2, 5, 1, 1)).astype(np.int8)
    used = weights if with_weights else np.ones_like(weights)
    layer = layer_with(weights=weights if with_weights else None, flatten=False, in_channels=5,
                       flat_channels=5, out_channels=2)  # fmt: skip
    for share in range(1, 7):
        found = pass_sums(data, layer, share)
        ends = [*range(share, 5, share), 5]
        wanted = [np.einsum("oi,iyx->oyx", used[:, :n, 0, 0].astype(int), data[:n]) for n in ends]
        assert np.array_equal(found, wanted), share


@pytest.mark.parametrize("with_weights", [False, True])
def test_passes_of_a_flattened_layer_take_a_pixel_of_a_share_each(with_weights: bool) -> None:
    numbers = np.random.default_rng(2)
    data = numbers.integers(-128, 128, (5, 2, 3))
    weights = numbers.integers(-128, 128, (4, 30, 1, 1)).astype(np.int8)
    products = (weights if with_weights else np.ones_like(weights)).reshape(4, 5, 6) * data.reshape(
        5, 6
    )
    layer = layer_with(weights=weights if with_weights else None, flatten=True, in_channels=5,
                       out_channels=4, pooled_dim=(2, 3))  # fmt: skip
    for share in range(1, 7):
        found = pass_sums(data.reshape(-1, 1, 1), layer, share)
        total, wanted = np.zeros(4, np.int64), []
        for pixel in range(6):
            for first in range(0, 5, share):
                total = total + products[:, first : first + share, pixel].sum(axis=1)
                wanted.append(total)
        assert np.array_equal(found[:, :, 0, 0], wanted), share


def test_rolling_buffer_drops_the_oldest_and_takes_the_newest() -> None:
    buffer = np.arange(1, 25).reshape(2, 4, 3)
    for count in range(1, 5):
        moved = simulator.shifted(buffer, count)
        assert moved[:, : 4 - count].tolist() == buffer[:, count:].tolist()
        assert not moved[:, 4 - count :].any()
        values = np.arange(100, 100 + 2 * count * 3).reshape(2, count, 3)
        filled = simulator.inserted(moved, values, count)
        assert filled.tolist() == [
            [*moved[c, : 4 - count].tolist(), *values[c].tolist()] for c in range(2)
        ]
