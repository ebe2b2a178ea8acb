"""Between resolving and placing: a layout that fixes some things becomes a complete one.

Source: docs/network-description.md, "What follows from other keys".
"""

from synthesis.arrange.defaults import complete

__all__ = ["complete"]
