"""The kinds of steps of a traced network, and what is known of one."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ai8xtools.frontends.modules.tracing import Node


class Kind(enum.Enum):
    """The kinds of steps that layers of the chip can come from.

    Each says what is true of it: `sums` two results of one shape; `joins` channels; `pads` with
    zeros; `reshapes` and nothing else; `keeps_values` every one as it is; `keeps_sign`: results
    are positive where all that is taken is; `commutes` with maxima, as an activation; `is_left` to
    the application at the end. `activation` is its name in layers of ai8x, if it is one.
    """

    INPUT = "input", "is_input"
    OPERATOR = "operator", "has_operator"
    NORMALIZATION = "normalization", "normalizes"
    RELU = "ReLU", "activates commutes keeps_sign"
    ABS = "Abs", "activates keeps_sign"
    POOLING = "pooling", "pools keeps_sign"
    ADD = "add", "sums keeps_sign"
    SUB = "sub", "sums"
    CONCATENATION = "concatenation", "joins keeps_sign"
    RESHAPING = "reshaping", "reshapes keeps_values keeps_sign"
    PASSING = "passing", "keeps_values keeps_sign"
    SOFTMAX = "softmax", "is_left keeps_sign"
    DOUBLING = "doubling", "keeps_sign"
    BORDER = "border", "pads keeps_sign"

    def __init__(self, name: str, traits: str) -> None:
        true = traits.split()
        self.activation = name if "activates" in true else None
        self.is_input, self.has_operator = "is_input" in true, "has_operator" in true
        self.normalizes, self.pools = "normalizes" in true, "pools" in true
        self.sums, self.joins, self.pads = "sums" in true, "joins" in true, "pads" in true
        self.reshapes, self.keeps_values = "reshapes" in true, "keeps_values" in true
        self.keeps_sign, self.commutes = "keeps_sign" in true, "commutes" in true
        self.is_left = "is_left" in true


@dataclass(frozen=True, slots=True)
class Step:
    """A node: its kind, the module that computes it if there is one, the shapes without the batch.

    `settings` are those of pooling: `average`, `window`, `stride`, `dilation`, `padding`; pairs for
    images. Zeros around data: `border` pixels on all sides, `channels` before and behind.
    """

    node: Node
    kind: Kind
    taken: tuple[int, ...]
    given: tuple[int, ...]
    module: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """What messages call it."""
        return path_of(self.node)


def path_of(node: Node) -> str:
    """Return what messages call a node: the module's path, else the function's name."""
    return str(node.target) if node.op == "call_module" else str(node.name)


def value_of(argument: Any) -> Any:
    """Return an argument; of one that the network computes from sizes what it is for its input."""
    if isinstance(argument, list | tuple):
        return tuple(map(value_of, argument))
    return argument.meta.get("value") if hasattr(argument, "meta") else argument
