"""A project for a microcontroller, and the memory it needs."""

from __future__ import annotations

from dataclasses import field

from ai8xtools.software.emit.interface import PLAIN, Interface
from ai8xtools.software.plan.plan import Plan
from ai8xtools.values import frozen

CODE_BYTES = 6144
"""Estimated flash for the code of the network without its weights."""


@frozen
class Need:
    """The memory that a plan needs, in bytes; `code` and `stack` are estimates.

    Weights are read from flash if they are `in_place`. `counters` are those of rows, or pointers.
    """

    arena: int
    counters: int
    stack: int
    weights: int
    code: int = CODE_BYTES
    in_place: bool = True

    @property
    def ram(self) -> int:
        """Bytes of RAM, or of L1."""
        return self.arena + self.counters + self.stack

    @property
    def flash(self) -> int:
        """Bytes of flash."""
        return self.code + (self.weights if self.in_place else 0)


@frozen(slots=False)
class Built:
    """A project: its plan, the memory it needs, its interface, and its files by path.

    It has no files while it is only planned.
    """

    plan: Plan
    need: Need
    files: dict[str, str] = field(default_factory=dict)
    interface: Interface = PLAIN
