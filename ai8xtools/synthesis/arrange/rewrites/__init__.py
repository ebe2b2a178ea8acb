"""Networks that compute the same with other layers: copies, merged poolings and sums,
channels that are zero.

Each rewrite is exact: every value that is delivered is the same, bit by bit.
Source: docs/placement.md, "Layers that are added or merged".
"""

from ai8xtools.synthesis.arrange.rewrites.copies import with_copies
from ai8xtools.synthesis.arrange.rewrites.filling import with_filled_passes
from ai8xtools.synthesis.arrange.rewrites.folding import folded
from ai8xtools.synthesis.arrange.rewrites.merging import merged
from ai8xtools.synthesis.arrange.rewrites.pooling import (
    with_possible_pooling,
    with_separate_pooling,
)
from ai8xtools.synthesis.arrange.rewrites.wider import with_wider_weights

__all__ = [
    "folded",
    "merged",
    "with_copies",
    "with_filled_passes",
    "with_possible_pooling",
    "with_separate_pooling",
    "with_wider_weights",
]
