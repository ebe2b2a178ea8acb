"""What is known of a layer, and what follows from it for a field of its registers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.values import frozen
from device import Chip


@frozen
class LayerFacts:
    """A layer, and those that are executed before and behind it, in order."""

    memory: Memory
    config: LayerConfig
    before: tuple[LayerConfig, ...] = ()
    behind: tuple[LayerConfig, ...] = ()
    is_start: bool = True

    @property
    def earlier(self) -> tuple[LayerConfig, ...]:
        """The layers before it whose registers come before its own."""
        return tuple(layer for layer in self.before if layer.layer < self.config.layer)

    @property
    def following(self) -> LayerConfig | None:
        """The layer that is executed next."""
        return self.behind[0] if self.behind else None

    @property
    def chip(self) -> Chip:
        """The chip."""
        return self.memory.chip

    @property
    def is_quad(self) -> bool:
        """Whether the four groups share the outputs of the layer."""
        return self.is_start and bool(self.memory.control_register("CTL")["fifo_quad"])

    def read(self, register: str, group: int | None = None) -> dict[str, int]:
        """Return the fields of a register in a group, by default the base group."""
        chosen = self.config.base_group if group is None else group
        return self.memory.register(self.config.layer, register, chosen)

    def field(self, register: str, field: str) -> int:
        """Return a field in the base group."""
        return self.read(register)[field]


@frozen
class Expectation:
    """The values that a field may have, the likeliest first, and why."""

    register: str
    field: str
    allowed: Collection[int]
    reason: str


Rule = Callable[[LayerFacts], Iterator[Expectation]]
"""Yields what the other registers of a layer imply for some of its fields, in all its groups."""
GroupRule = Callable[[LayerFacts, int], Iterator[Expectation]]
"""The same for the fields that each group has for itself."""


def zero(register: str, reason: str, *fields: str) -> Iterator[Expectation]:
    """Yield that fields are zero."""
    for field in fields:
        yield Expectation(register, field, (0,), reason)
