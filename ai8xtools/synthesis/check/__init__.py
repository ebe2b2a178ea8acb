"""Third stage: every constraint of networks and of the hardware, tested on every layer at once.

A constraint is one function with a code and a docstring that says why; docs/errors.md is made from
them. Memory placement has complaints of its own, in `place`.
Source: docs/errors.md, "Operators of a layer" to "The known answer".
"""

from ai8xtools.synthesis.check import (
    data,
    exits,
    layout,
    misplaced,
    operators,
    performance,
    simulation,
    sources,
    streaming,
)
from ai8xtools.synthesis.check.constraint import (
    CONSTRAINTS,
    Constraint,
    Kind,
    check,
    check_network,
)
from ai8xtools.synthesis.check.options import check_chip_options, check_repetition

__all__ = [
    "CONSTRAINTS",
    "Constraint",
    "Kind",
    "check",
    "check_chip_options",
    "check_network",
    "check_repetition",
    "data",
    "exits",
    "layout",
    "misplaced",
    "operators",
    "performance",
    "simulation",
    "sources",
    "streaming",
]
