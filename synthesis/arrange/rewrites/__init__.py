"""Networks that compute the same with other layers: copies, merged poolings, merged sums.

Each rewrite is exact: every value that is delivered is the same, bit by bit.
Source: docs/placement.md, "Layers that are added or merged".
"""

from synthesis.arrange.rewrites.copies import with_copies
from synthesis.arrange.rewrites.merging import merged

__all__ = ["merged", "with_copies"]
