"""Sums in floats are integers: the type is chosen so that none of them can be rounded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai8xtools.emulator.decode.config import ActivationFunction, Output, WritePointer
from ai8xtools.emulator.machine.arithmetic import exact_type

NOWHERE = (WritePointer(0, 0),) * 4


def output(shift: int = 0) -> Output:
    return Output(1, 1, 0, True, shift, ActivationFunction.NONE, (None,) * 4, NOWHERE)


def test_float32_serves_as_long_as_the_largest_sum_fits() -> None:
    limit = (2**24 - 64) // 128
    none = np.zeros(1, np.int64)
    assert exact_type(np.array([limit]), none, output()) is np.float32
    assert exact_type(np.array([limit + 1]), none, output()) is np.float64
    assert exact_type(np.array([limit]), np.array([-128]), output()) is np.float64
    assert exact_type(np.array([0]), none, output(-15)) is np.float32


@given(
    terms=st.integers(1, 3000),
    magnitude=st.sampled_from([1, 7, 127, 128]),
    seed=st.integers(0, 2**16),
)
def test_sums_at_the_bound_are_exact(terms: int, magnitude: int, seed: int) -> None:
    """The worst case: every product has the same sign and the largest magnitude."""
    random = np.random.default_rng(seed)
    kernel = random.choice([-magnitude, magnitude], terms)
    kernel[0] = 1 - magnitude  # an odd sum
    values = np.where(kernel < 0, -128, 127)
    wanted = math.fsum((kernel * values).tolist())
    kind = exact_type(np.array([np.abs(kernel).sum()]), np.zeros(1, np.int64), output())
    assert (kernel.astype(kind) @ values.astype(kind)).item() == wanted


def test_float32_would_round_what_float64_is_chosen_for() -> None:
    kernel = np.full(1042, 127)
    values = np.full(1042, 127)
    values[0] = 126
    wanted = int(kernel @ values)
    assert float(np.float32(wanted)) != wanted
    kind = exact_type(np.array([kernel.sum()]), np.zeros(1, np.int64), output())
    assert kind is np.float64
    assert (kernel.astype(kind) @ values.astype(kind)).item() == wanted


@pytest.mark.parametrize("shift", range(-15, 16))
def test_the_half_that_rounds_counts(shift: int) -> None:
    half = 1 << max(6 - shift, 0)
    room = (2**24 - half) // 128
    none = np.zeros(1, np.int64)
    assert exact_type(np.array([room]), none, output(shift)) is np.float32
    assert exact_type(np.array([room + 1]), none, output(shift)) is np.float64
