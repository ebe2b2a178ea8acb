"""Fixed-point weights of variable length: 8 or 16 bits a layer, with a correction factor.

A layer's weights are divided by D, which is stored with the layer, and become fractions with all
bits behind the point. Inputs and outputs have the fewest integer bits that their range needs. A
layer has 8 bits where the signal-to-noise ratio of its weights suffices, or the flash demands it.
"""

from ai8xtools.quantization.fixed.division import Division, divided, divisor
from ai8xtools.quantization.fixed.layer import FixedLayer, fixed_layer
from ai8xtools.quantization.fixed.length import Lengths, choose_lengths
from ai8xtools.quantization.fixed.numbers import QFormat, q_format
from ai8xtools.quantization.fixed.ranges import (
    Rule,
    Summary,
    data_magnitude,
    summarize,
    weight_magnitude,
)

__all__ = [
    "Division",
    "FixedLayer",
    "Lengths",
    "QFormat",
    "Rule",
    "Summary",
    "choose_lengths",
    "data_magnitude",
    "divided",
    "divisor",
    "fixed_layer",
    "q_format",
    "summarize",
    "weight_magnitude",
]
