"""The text of a complete description: what a network computes and every place, with reasons.

It loads without further options and gives the same words.
Source: docs/network-description.md; docs/placement.md, "Places that are left open".
"""

from ai8xtools.synthesis.configuration.text import configuration

__all__ = ["configuration"]
