"""Weights of 1 to 8 bits for cores without a multiplier: encodings, clipping, packing, statistics.

The formats are those of networks for the smallest RISC-V cores: a code of few bits stands for an
integer that the engine multiplies by, and codes are packed into words of 32 bits, row by row.
"""

from ai8xtools.quantization.lowbit.clipping import clip_scalar, clip_scalars, octav, proportional
from ai8xtools.quantization.lowbit.encodings import (
    BY_IDENTIFIER,
    ENCODINGS,
    SIGNED,
    STORED,
    TRAINING_ONLY,
    Encoding,
    encode,
    quantized,
)
from ai8xtools.quantization.lowbit.huffman import Coded, compressed, expanded
from ai8xtools.quantization.lowbit.packing import TRITS, pack, packed_inputs, packed_words, unpack
from ai8xtools.quantization.lowbit.statistics import Statistics, statistics

__all__ = [
    "BY_IDENTIFIER",
    "SIGNED",
    "STORED",
    "Coded",
    "ENCODINGS",
    "Encoding",
    "TRAINING_ONLY",
    "TRITS",
    "Statistics",
    "clip_scalar",
    "clip_scalars",
    "compressed",
    "encode",
    "expanded",
    "octav",
    "pack",
    "packed_inputs",
    "packed_words",
    "proportional",
    "quantized",
    "statistics",
    "unpack",
]
