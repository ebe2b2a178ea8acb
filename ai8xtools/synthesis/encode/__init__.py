"""Sixth stage: network, placement and activations become the words of a `Program`.

Field values are computed by name; `device` packs them. C and files are unknown here.
Source: docs/hardware/registers.md; docs/hardware/memory.md.
"""

from ai8xtools.synthesis.encode.limits import check_limits
from ai8xtools.synthesis.encode.numbering import Numbering
from ai8xtools.synthesis.encode.program import encode

__all__ = ["Numbering", "check_limits", "encode"]
