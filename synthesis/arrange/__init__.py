"""Between resolving and placing: a layout that fixes some things becomes a complete one.

Source: spec/network-description.md section 1.4.
"""

from synthesis.arrange.defaults import complete

__all__ = ["complete"]
