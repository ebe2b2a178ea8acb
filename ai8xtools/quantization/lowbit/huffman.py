"""Codes of weights by how often they occur: canonical Huffman codes, without loss.

Source: D. A. Huffman, A Method for the Construction of Minimum-Redundancy Codes, 1952.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from ai8xtools.values import frozen


@frozen
class Coded:
    """Codes as a stream of bits, the upper bits of each byte first.

    `symbols` are the codes that occur, those with the shortest words first; `lengths[i]` counts
    those whose words have i + 1 bits. Words of the same length are successive numbers, and the
    first word of a length follows the last one that is shorter.
    """

    lengths: NDArray[np.uint8]
    symbols: NDArray[np.uint8]
    stream: NDArray[np.uint8]

    @property
    def size(self) -> int:
        """Bytes of stream and tables."""
        return len(self.lengths) + len(self.symbols) + len(self.stream)


def compressed(codes: NDArray[np.int64]) -> Coded:
    """Return codes from 0 to 255, at least one, in as few bits as words of whole bits allow."""
    values = codes.reshape(-1)
    bits = _word_lengths(np.bincount(values))
    order = sorted(bits, key=lambda symbol: (bits[symbol], symbol))
    words, word, last = {}, 0, 0
    for symbol in order:
        word <<= bits[symbol] - last
        last = bits[symbol]
        words[symbol] = format(word, f"0{last}b")
        word += 1
    text = "".join(words[value] for value in values.tolist())
    stream = np.packbits(np.array([*text.encode()], np.uint8) - ord("0"))
    counts = np.bincount([bits[symbol] for symbol in order], minlength=2)[1:]
    return Coded(counts.astype(np.uint8), np.array(order, np.uint8), stream)


def _word_lengths(counts: NDArray[np.int64]) -> dict[int, int]:
    """Return how many bits the word of each symbol that occurs has."""
    heap = [(int(n), symbol, [symbol]) for symbol, n in enumerate(counts.tolist()) if n]
    lengths = {symbol: int(len(heap) == 1) for _, symbol, _ in heap}
    heapq.heapify(heap)
    while len(heap) > 1:
        (first, tie, left), (second, _, right) = heapq.heappop(heap), heapq.heappop(heap)
        for symbol in (*left, *right):
            lengths[symbol] += 1
        heapq.heappush(heap, (first + second, tie, left + right))
    return lengths


def expanded(coded: Coded, count: int) -> NDArray[np.int64]:
    """Return the first `count` codes of a stream, found bit by bit as the engine does."""
    bits = iter(np.unpackbits(coded.stream).tolist())
    lengths, symbols = coded.lengths.tolist(), coded.symbols.tolist()
    codes = []
    for _ in range(count):
        word = base = 0
        for number in lengths:
            word = 2 * word + next(bits)
            if word < number:
                break
            word -= number
            base += number
        codes.append(symbols[base + word])
    return np.array(codes, np.int64)
