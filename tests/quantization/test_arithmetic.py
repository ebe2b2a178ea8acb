"""The arithmetic is that of torch, to the last bit where torch's own result is defined."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ai8xtools.quantization import arithmetic


@given(
    st.integers(1, 3000),
    st.sampled_from([1.0, 0.995, 0.985, 0.6, 0.5, 0.0]) | st.floats(0, 1, width=32),
    st.integers(0, 2**32),
    st.integers(-20, 10),
)
@settings(max_examples=300, deadline=None)
def test_quantile_is_that_of_torch(count: int, q: float, seed: int, exponent: int) -> None:
    values = np.random.default_rng(seed).standard_normal(count).astype(np.float32)
    values = np.abs(values) * np.float32(2.0**exponent)
    expected = torch.quantile(torch.from_numpy(values), torch.tensor([q])).numpy()
    assert arithmetic.quantile(values, np.float32(q)) == expected[0]


@pytest.mark.parametrize("q", [0.25, 0.5, 0.75, 0.125])
def test_quantile_of_few_values_is_that_of_torch_at_every_weight(q: float) -> None:
    """At weights of just one half, too: from above, which differs where the step is rounded."""
    random = np.random.default_rng(8)
    for count in (1, 2, 3, 4, 5, 9):
        for _ in range(200):
            values = np.abs(random.standard_normal(count) * 2.0 ** random.integers(-12, 3, count))
            some = values.astype(np.float32)
            expected = torch.quantile(torch.from_numpy(some), torch.tensor([q])).numpy()[0]
            assert arithmetic.quantile(some, np.float32(q)) == expected


@given(st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=6), st.floats(0.125, 3, width=16))
@settings(max_examples=200, deadline=None)
def test_deviations_are_those_of_a_sample(weights: list[float], count: float) -> None:
    """One less than the number of values divides: statistics.stdev in exact fractions."""
    middle = np.float32(float(statistics.mean(map(Fraction, weights))))
    spread = np.float32(statistics.stdev(map(Fraction, weights))) * np.float32(count)
    values = np.array(weights, np.float32)
    wanted = max(abs(max(min(weights), middle - spread)), abs(min(max(weights), middle + spread)))
    found = float(arithmetic.magnitude_within_deviations(values, count))
    assert math.isclose(found, wanted, rel_tol=2e-6, abs_tol=1e-30)


def shift_of_torch(largest: float, bits: int) -> float:
    exponent = torch.floor(torch.log2(1.0 / torch.tensor(largest, dtype=torch.float32)))
    return float(exponent.clamp(-7 - bits, 23 - bits))


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_shift_beside_powers_of_two_is_that_of_torch(bits: int) -> None:
    for exponent in range(-30, 31):
        value = np.float32(2.0**exponent)
        below, above = np.nextafter(value, np.float32(0)), np.nextafter(value, np.float32(np.inf))
        for largest in (below, value, above):
            shift = arithmetic.shift_of_range(largest, bits)
            assert shift == shift_of_torch(float(largest), bits), (exponent, largest)
            assert shift.dtype == np.float32


def test_shift_of_a_layer_without_weights_is_the_largest() -> None:
    assert arithmetic.shift_of_range(np.float32(0), 8) == 15


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_rounding_is_half_up_and_limited(bits: int) -> None:
    limit = 2 ** (bits - 1)
    steps = np.array([-limit - 1, -limit, -0.51, -0.5, 0.49, 0.5, limit - 1, limit], np.float32)
    integers = arithmetic.quantize_weights(steps / np.float32(limit), np.float32(1), bits)
    low, high = -limit, limit - 1
    middle = [-1, 0, 0, min(1, high)]
    assert integers.tolist() == [low, low, *middle, high, high]
    assert integers.dtype == np.float32


@pytest.mark.parametrize(("bits", "unit"), [(8, 128), (4, 8), (2, 2), (1, 1)])
def test_bias_is_stored_in_units_of_its_bits(bits: int, unit: int) -> None:
    bias = np.array([-2, -0.5, 2], np.float32)
    limit = 2 ** (bits - 1)
    stored = arithmetic.quantize_bias(bias, np.float32(1), bits)
    expected = [-limit * unit, np.floor(-0.5 * limit + 0.5) * unit, (limit - 1) * unit]
    assert stored.tolist() == expected


def test_ranges_of_the_clip_methods() -> None:
    weights = np.array([[[-4.0, 1]], [[2, 3]]], np.float32)  # two output channels
    assert arithmetic.largest_magnitude(weights) == 4
    assert arithmetic.mean_channel_magnitude(weights) == 2  # minima -4, 2; maxima 1, 3
    one = 0.5 - np.std([-4.0, 1, 2, 3], ddof=1)  # the lower end; the upper is the maximum 3
    assert arithmetic.magnitude_within_deviations(weights, 1) == max(3, -np.float32(one))
    assert arithmetic.magnitude_within_deviations(weights, 10) == 4
    assert arithmetic.magnitude_within_deviations(np.array([[-3.0]], np.float32), 2) == 3


@given(st.integers(1, 3000), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_reductions_are_the_nearest_float32(count: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(count).astype(np.float32)
    assert arithmetic.mean(values) == np.float32(torch.from_numpy(values).double().mean().item())
