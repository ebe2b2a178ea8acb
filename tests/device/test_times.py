"""Times of loading against published measurements; ranges of what is told."""

from __future__ import annotations

import pytest

from ai8xtools.values.estimate import Estimate
from device import MAX78000, MAX78002, Chip
from device.times import copying, inference, word_microseconds

_MEASURED_NS = {200: 181, 100: 215, 50: 285, 25: 420, 12.5: 666, 30: 382, 15: 620, 7.5: 1086}
"""Of a word of weights by the accelerator's clock in MHz: the vendor's application note 7664."""


@pytest.mark.parametrize(("mhz", "measured"), _MEASURED_NS.items())
def test_a_word_takes_what_was_measured(mhz: float, measured: float) -> None:
    assert 1000 * word_microseconds(MAX78002, mhz) == pytest.approx(measured, rel=0.06)


@pytest.mark.parametrize(
    ("chip", "words", "milliseconds"),
    [(MAX78002, 37_232, 10.9), (MAX78000, 4_096, 1.1)],
    ids=["weights of kws20_v3", "input of kws20"],
)
def test_published_loading_lies_in_the_range(chip: Chip, words: int, milliseconds: float) -> None:
    told = copying(words, chip, 50)
    assert told.low <= milliseconds <= told.high


def test_the_pipeline_takes_longer_than_its_cycles() -> None:
    plain, piped = (inference(200_000, 200, pipelined=pipelined) for pipelined in (False, True))
    assert (plain.value, piped.value) == (1.0, 1.18)
    assert piped.high == 1.43 and plain.in_milliseconds() == "1.00 ms"
    assert Estimate(1, 0.5, 2).in_milliseconds() == "1.00 ms (0.50 to 2.00)"
