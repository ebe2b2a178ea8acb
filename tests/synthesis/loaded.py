"""What the C of a library loads, computed here as its comments say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.emit.library import InputWords


def words_of(words: InputWords, sample: NDArray[np.int64]) -> Iterator[NDArray[np.uint32]]:
    """Yield the words of each place for a sample [channel, row, column]."""
    values = sample.reshape(len(sample), -1).astype(np.uint8)
    for place in words.places:
        loaded = np.zeros((place.words, 4), np.uint8)
        for number in range(place.words):
            for lane in range(4):
                if words.interleaved:
                    pixel, word = divmod(number, words.period)
                    channel = place.channels[word][lane]
                    there = channel >= 0
                else:
                    at = 4 * number + lane
                    channel, pixel = place.channels[0][0], place.first + at
                    there = at < place.count and 0 <= pixel < values.shape[1]
                if there:
                    loaded[number, lane] = values[channel, pixel]
        yield loaded.view("<u4")[:, 0]
