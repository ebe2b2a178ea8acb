"""The error of numbers, beside that of always answering their mean."""

from __future__ import annotations

import numpy as np
import pytest

from ai8xtools.values.accuracy import combined
from ai8xtools.values.error import Error


def test_the_error_and_that_of_the_mean() -> None:
    found = Error.of([3, -4], [6, 8])
    assert (found.rmse, found.trivial) == pytest.approx((12.5**0.5, 50**0.5))
    assert found.low < found.rmse < found.high and found.count == 2
    assert str(found).startswith("3.536 (2 numbers; 95 % interval ")
    assert str(found).endswith("; the mean of training has 7.071)")


@pytest.mark.parametrize(("noise", "doubted"), [(0.3, False), (0.9, False), (1.0, True), (2, True)])
def test_a_network_that_says_no_more_than_the_mean_is_called_so(
    noise: float, doubted: bool
) -> None:
    rng = np.random.default_rng(0)
    wanted = rng.normal(size=1000)
    errors = noise * rng.normal(size=1000) if noise > 1 else noise * wanted
    found = Error.of(errors.tolist(), wanted.tolist())
    assert (found.doubt is not None) == doubted


def test_few_numbers_prove_little() -> None:
    assert Error.of([1, 1.1, 0.9], [1.2, 1.0, 1.4]).doubt is not None
    assert Error.of([0.0], [0.0]).doubt is not None


def test_the_interval_holds_the_true_error() -> None:
    rng, held = np.random.default_rng(1), 0
    for _ in range(300):
        errors = rng.normal(size=100).tolist()
        found = Error.of(errors, errors)
        held += found.low <= 1 <= found.high
    assert 270 <= held <= 297


def test_parts_make_the_error_of_the_whole() -> None:
    rng = np.random.default_rng(2)
    wanted = rng.normal(size=(4, 500))
    errors = 0.5 * wanted + 0.1 * rng.normal(size=(4, 500))
    whole = Error.of(errors.ravel().tolist(), wanted.ravel().tolist())
    parts = [Error.of(e.tolist(), w.tolist()) for e, w in zip(errors, wanted, strict=True)]
    found = combined(parts)
    assert isinstance(found, Error) and found.count == 2000
    assert (found.rmse, found.trivial) == pytest.approx((whole.rmse, whole.trivial))
    assert (found.low, found.high, found.least_gain) == pytest.approx(
        (whole.low, whole.high, whole.least_gain), rel=0.01
    )
