"""Codes of few bits in words: the first one in the upper bits, row after row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.quantization.lowbit.encodings import Codes, Encoding

TRITS = 10
"""Ternary codes in a word of 16 bits."""
_WORD_BITS = 32
_ALL_TRITS = 3**TRITS


def packed_inputs(inputs: int, encoding: Encoding) -> int:
    """Return the number of inputs for which a row has codes: whole words."""
    per_word = TRITS if encoding.name == "Ternary" else _WORD_BITS // encoding.bits
    return -(-inputs // per_word) * per_word


def packed_words(inputs: int, outputs: int, encoding: Encoding) -> int:
    """Return the number of words of a layer: of 16 bits if it is ternary, else of 32."""
    per_word = TRITS if encoding.name == "Ternary" else _WORD_BITS // encoding.bits
    return outputs * packed_inputs(inputs, encoding) // per_word


Words = NDArray[np.uint16] | NDArray[np.uint32]


def pack(codes: Codes, encoding: Encoding) -> Words:
    """Pack codes [outputs, inputs] into words; rows end in codes of the smallest magnitude.

    Inputs beyond the last must be zero in the engine. A ternary word holds ten codes as the
    fraction of 65536 whose digits to the base 3 they are, rounded up.
    """
    outputs, inputs = codes.shape
    filler = int(np.argmin(np.abs(encoding.values)))
    width = packed_inputs(inputs, encoding)
    rows = np.full((outputs, width), filler, np.int64)
    rows[:, :inputs] = codes
    if encoding.name == "Ternary":
        number = rows.reshape(-1, TRITS) @ 3 ** np.arange(TRITS - 1, -1, -1)
        trits: NDArray[np.uint16] = (number * 65536 + _ALL_TRITS - 1) // _ALL_TRITS
        return trits.astype(np.uint16)
    places = _places(encoding)
    words: NDArray[np.int64] = (rows.reshape(-1, len(places)) << places).sum(axis=1)
    return words.astype(np.uint32)


def unpack(words: NDArray[np.unsignedinteger], inputs: int, encoding: Encoding) -> Codes:
    """Return the codes [outputs, inputs] of packed words."""
    if encoding.name == "Ternary":
        rest = words.astype(np.int64)
        digits = np.empty((len(rest), TRITS), np.int64)
        for place in range(TRITS):
            rest = rest * 3
            digits[:, place] = rest >> 16
            rest &= 0xFFFF
    else:
        digits = (words.astype(np.int64)[:, None] >> _places(encoding)) & ((1 << encoding.bits) - 1)
    return digits.reshape(-1, packed_inputs(inputs, encoding))[:, :inputs]


def _places(encoding: Encoding) -> NDArray[np.int64]:
    return np.arange(_WORD_BITS - encoding.bits, -1, -encoding.bits)
