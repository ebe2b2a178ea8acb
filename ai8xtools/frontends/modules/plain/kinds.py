"""The kinds of steps of a traced network, and what is known of one."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ai8xtools.frontends.modules.tracing import Node


class Kind(enum.Enum):
    """The kinds of steps that layers of the chip can come from."""

    INPUT = enum.auto()
    OPERATOR = enum.auto()
    NORMALIZATION = enum.auto()
    RELU = enum.auto()
    ABS = enum.auto()
    POOLING = enum.auto()
    ADD = enum.auto()
    SUB = enum.auto()
    CONCATENATION = enum.auto()
    RESHAPING = enum.auto()
    PASSING = enum.auto()
    SOFTMAX = enum.auto()
    DOUBLING = enum.auto()
    BORDER = enum.auto()


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
