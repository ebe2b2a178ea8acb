"""The area under the curve, and the threshold that follows from normal scores."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from ai8xtools.values.accuracy import combined, measured_of
from ai8xtools.values.separation import Separation, threshold_of


@pytest.mark.parametrize(("scores", "odd", "auc"), [
    ([1, 2, 3, 4], [0, 0, 1, 1], 1.0), ([1, 2, 3, 4], [1, 1, 0, 0], 0.0),
    ([1, 2, 3, 4], [0, 1, 0, 1], 0.75), ([5, 5, 5, 5], [0, 1, 0, 1], 0.5),
    ([1, 2, 2, 3], [0, 0, 1, 1], 0.875),
])  # fmt: skip
def test_the_area_counts_pairs_and_half_of_equal_ones(
    scores: list[float], odd: list[int], auc: float
) -> None:
    found = Separation.of(scores, [bool(one) for one in odd], 2.5)
    assert found.auc == auc and (found.count, found.anomalies) == (4, 2)
    above = [one for score, one in zip(scores, odd, strict=True) if score > 2.5]
    assert (found.found, found.alarms) == (sum(above), len(above) - sum(above))


def test_the_area_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(0)
    scores, odd = rng.integers(0, 20, 300), rng.random(300) < 0.2
    pairs = scores[odd][:, None] - scores[~odd]
    wanted = np.mean(pairs > 0) + np.mean(pairs == 0) / 2
    assert Separation.of(scores.tolist(), odd.tolist(), 0).auc == pytest.approx(wanted)


def test_the_text_and_the_doubt() -> None:
    found = Separation(0.9, 100, 20, 15, 4, 1.0)
    assert found.doubt is None and measured_of(asdict(found)) == found
    assert str(found).startswith("0.900 (20 of 100 are anomalies; 95 % interval 0.8")
    assert str(found).endswith("above the threshold 15 of 20 anomalies, 4 of 80 others")
    worse = Separation(0.54, 10000, 5000, 1, 1, 1.0)
    assert worse.doubt is not None and "0.540, 0.5 by chance" in worse.doubt
    assert Separation(0.8, 6, 2, 1, 1, 1.0).doubt is not None  # by so few samples


def test_parts_are_averaged() -> None:
    parts = Separation(0.9, 10, 2, 1, 1, 3.0), Separation(0.7, 20, 4, 2, 3, 5.0)
    total = combined(parts)
    assert isinstance(total, Separation) and total.auc == pytest.approx(0.8)
    assert (total.count, total.anomalies, total.found, total.alarms) == (30, 6, 3, 4)


def test_few_normal_samples_are_above_the_threshold() -> None:
    rng = np.random.default_rng(0)
    scores = np.exp(rng.normal(size=4000))
    limit = threshold_of(scores[:2000].tolist())
    assert 0.03 < np.mean(scores[2000:] > limit) < 0.07
    assert threshold_of([3.0, 1.0, 2.0]) == pytest.approx(2.9) and threshold_of([4.0]) == 4
