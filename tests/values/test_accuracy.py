"""What an accuracy is worth: its interval, and what chance would do."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from ai8xtools.values.accuracy import Accuracy, Mean, Measured, combined, doubt_of, measured_of
from ai8xtools.values.error import Error


@pytest.mark.parametrize(
    ("right", "count", "low", "high"),
    [(14, 15, 70.18, 98.81), (0, 10, 0, 27.75), (10, 10, 72.25, 100), (500, 1000, 46.91, 53.09)],
)
def test_the_interval_is_that_of_wilson(right: int, count: int, low: float, high: float) -> None:
    found = Accuracy(right, count, 0.5).interval
    assert found == pytest.approx((low / 100, high / 100), abs=1e-4)


def test_a_confusion_matrix_tells_what_is_right_and_what_chance_would_do() -> None:
    found = Accuracy.of([[30, 10], [5, 5]])
    assert (found.right, found.count) == (35, 50)
    assert found.chance == pytest.approx((40 * 35 + 10 * 15) / 2500)


@pytest.mark.parametrize(
    ("matrix", "doubted"),
    [
        ([[5, 0, 0], [5, 0, 0], [5, 0, 0]], True),
        ([[980, 0], [20, 0]], True),  # always the class of nearly all
        ([[882, 98], [2, 18]], False),  # nine tenths of each class
        ([[5, 0, 0], [0, 5, 0], [0, 0, 5]], False),
        ([[2, 0], [1, 1]], True),  # four samples tell nothing
        ([[5200, 4800], [4800, 5200]], True),  # surely better, and hardly
        ([[0, 9], [9, 0]], True),
        ([[7]], True),
    ],
)
def test_a_network_that_chance_equals_is_called_so(matrix: list[list[int]], doubted: bool) -> None:
    assert (Accuracy.of(matrix).doubt is not None) == doubted


def test_answers_at_random_are_hardly_ever_believed() -> None:
    rng = np.random.default_rng(0)
    believed = 0
    for _ in range(400):
        actual, found = rng.integers(0, 3, (2, 60))
        matrix = np.bincount(actual * 3 + found, minlength=9).reshape(3, 3)
        believed += Accuracy.of(matrix.tolist()).doubt is None
    assert believed <= 20


@pytest.mark.parametrize(("value", "chance", "doubted"), [
    (0.3, 0.28, True), (0.4, 0.28, False), (0.05, 0, True), (0.2, 0, False), (1, 1, True),
])  # fmt: skip
def test_a_mean_that_chance_equals_is_called_so(value: float, chance: float, doubted: bool) -> None:
    found = Mean("mIoU", value, 7, chance)
    assert (found.doubt is not None) == doubted
    if found.doubt is not None:
        assert f"its mIoU on 7 test pictures is {100 * value:.1f} %" in found.doubt


@pytest.mark.parametrize(
    "measured",
    [
        Accuracy(3, 4, 0.25),
        Accuracy.of([[3, 1], [0, 2]], ["a", "b"]),
        Mean("mAP", 0.5, 9, 0.0),
        Error(0.5, 0.25, 0.75, 1.0, 0.125, 7),
    ],
)
def test_what_was_measured_survives_in_a_file(measured: Measured) -> None:
    assert measured_of(asdict(measured)) == measured
    assert measured_of(None) is None and doubt_of(None) is None


def test_parts_count_by_their_samples() -> None:
    parts = Accuracy(1, 2, 0.5), Accuracy(8, 8, 0.25)
    assert combined(parts) == Accuracy(9, 10, 0.3)
    means = Mean("mIoU", 0.5, 10, 0.0), Mean("mIoU", 1.0, 30, 0.2)
    total = combined(means)
    assert isinstance(total, Mean) and (total.share, total.count) == (0.875, 40)
    assert total.chance == pytest.approx(0.15)


def test_confusion_is_kept_of_few_classes_with_names() -> None:
    named = Accuracy.of([[3, 1], [0, 2]], ["cat", "dog"])
    assert named.confusion == ((3, 1), (0, 2)) and named.classes == ("cat", "dog")
    many = [[1] * 33] * 33
    for without in (Accuracy.of([[3, 1], [0, 2]]), Accuracy.of(many, list(map(str, range(33))))):
        assert without.confusion == without.classes == ()
