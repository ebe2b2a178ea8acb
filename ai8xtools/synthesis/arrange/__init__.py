"""Between resolving and placing: a layout that fixes some things becomes a complete one.

`complete` fills in what the description language assumes. What it leaves open beyond that, the
places of data and kernels, is chosen by `synthesis.arrange.arranging`, which most runs need not
load.
Source: docs/network-description.md, "What follows from other keys"; docs/placement.md, "Places that
are left open".
"""

from ai8xtools.synthesis.arrange.defaults import complete, is_left_open

__all__ = ["complete", "is_left_open"]
