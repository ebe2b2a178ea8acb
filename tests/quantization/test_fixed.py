"""Fixed-point weights: formats, correction factors, arithmetic, lengths."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.quantization.fixed import (
    Division,
    Rule,
    choose_lengths,
    divided,
    divisor,
    fixed_layer,
    q_format,
    weight_magnitude,
)
from ai8xtools.quantization.formats import ceil_log2, power_of_two_fraction, sqnr_db, to_fixed
from tests.software.fixed_answers import fixed_cases


@given(st.floats(5e-324, 1e308))
def test_logarithm_is_exact(magnitude: float) -> None:
    exponent = ceil_log2(magnitude)
    assert Fraction(2) ** (exponent - 1) < Fraction(magnitude) <= Fraction(2) ** exponent


@pytest.mark.parametrize("magnitude", [0.0, -1.0, math.inf, math.nan])
def test_what_has_no_logarithm_is_refused(magnitude: float) -> None:
    with pytest.raises(ValueError, match="no logarithm"):
        ceil_log2(magnitude)


def test_range_of_31_needs_five_integer_bits() -> None:
    assert str(q_format(31.3, 16)) == "Q5.10"
    assert str(q_format(0.99, 16)) == "Q0.15"
    assert q_format(31.3, 16).bits == 16


def test_weight_of_minus_3_9_is_divided_by_4() -> None:
    by = divisor(3.9, Division.POWER_OF_TWO)
    assert by == 4
    assert int(divided(-3.9, by, 16)) == -31949
    assert divisor(2.1, Division.INTEGER) == 3


def test_small_weights_use_all_bits() -> None:
    assert divisor(0.3, Division.POWER_OF_TWO) == 0.5
    assert divisor(0.3, Division.INTEGER) == 1
    assert divisor(0.0, Division.POWER_OF_TWO) == divisor(0.0, Division.INTEGER) == 1


def test_power_of_two_saturates_by_one_step() -> None:
    assert int(to_fixed(2.0, q_format(2.0, 8).fraction, 8)) == 127
    assert int(to_fixed(-2.0, q_format(2.0, 8).fraction, 8)) == -128
    assert power_of_two_fraction(0.0, 16) == 15


def test_rounding_is_half_to_even() -> None:
    assert to_fixed([0.5, 1.5, -0.5, -1.5, 2.5], 0, 8).tolist() == [0, 2, 0, -2, 2]


def test_percentile_of_weights_is_interpolated() -> None:
    assert weight_magnitude([-1.0, 2.0], Rule("percentile", 50)) == 1.5


def test_ranges_too_far_apart_are_refused() -> None:
    with pytest.raises(InputError, match="shifted by") as refused:
        fixed_layer([[1.0]], None, bits=16, division=Division.INTEGER, magnitude=1.0,
                    in_fraction=15, out_fraction=-5)  # fmt: skip
    assert refused.value.code == "E741"


@pytest.mark.parametrize("halved", range(3))
@pytest.mark.parametrize("distance", range(-3, 4))
def test_shifts_reach_as_far_as_30(distance: int, halved: int) -> None:
    """Of sums, with what a D below 1 adds to it, and of biases."""

    def sums() -> None:
        fixed_layer(
            [[0.5**halved]],
            None,
            bits=16,
            division=Division.POWER_OF_TWO,
            magnitude=0.5**halved,
            in_fraction=15,
            out_fraction=-distance + halved,
        )

    def biases() -> None:
        fixed_layer(
            [[0.5**halved]],
            [2.0 ** (15 + distance - halved)],
            bits=16,
            division=Division.POWER_OF_TWO,
            magnitude=0.5**halved,
            in_fraction=15,
            out_fraction=15,
        )

    for made in (sums, biases):
        if distance > 0:
            with pytest.raises(InputError) as refused:
                made()
            assert refused.value.code == "E741"
        else:
            made()


def test_ratio_without_error_is_infinite() -> None:
    assert sqnr_db([1.0, 2.0], [1.0, 2.0]) == math.inf
    assert sqnr_db([0.0], [1.0]) == -math.inf


def test_nothing_fits_a_budget_below_eight_bits() -> None:
    made = choose_lengths([30.0, math.inf], [10, 10], 35.0, 19)
    assert made.bits == (8, 8)
    assert (made.threshold, made.fits) == (None, False)


def test_arithmetic_equals_exact_fractions() -> None:
    rng = np.random.default_rng(3)
    weights, bias = rng.normal(0, 0.2, (5, 12)), rng.normal(0, 1, 5)
    for division in Division:
        made = fixed_layer(weights, bias, bits=16, division=division, magnitude=0.45,
                           in_fraction=12, out_fraction=13)  # fmt: skip
        x = rng.integers(-(1 << 15), 1 << 15, (4, 12))
        y = made.finish(x @ made.weights.T)
        assert made.bias is not None
        for row, outputs in zip(x, y, strict=True):
            for out, (w, b) in enumerate(zip(made.weights, made.bias, strict=True)):
                total = Fraction(made.by) * int(row @ w) / 2**15 / 2**12
                total += Fraction(int(b)) / Fraction(2) ** made.bias_fraction
                exact = math.floor(total * 2**made.out_fraction + Fraction(1, 2))
                assert outputs[out] == min(max(exact, -(1 << 15)), (1 << 15) - 1)


def test_known_answers(shared: Path) -> None:
    cases = [*fixed_cases(shared / "kat-software" / "fixed")]
    assert len(cases) == 9
    assert not [case for case in cases if case[1]]
