"""What a core sees beside its memories: areas of addresses where something answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ai8xtools.values import frozen


def _everything(_address: int) -> bool:
    return True


@frozen
class IoArea:
    """Addresses from `base` on, `size_bytes` of them, where every access reaches a function.

    `read(address, width)` returns a value of `width` bytes, `write(address, width, value)` takes
    one; `has_something_at(address)` tells whether anything can be read there. If the area overlaps
    another, the message calls it `name` and shows `option` and `remedy`. `peek(address)` returns a
    byte for a debugger, without any effect; None if there is nothing to see.
    """

    name: str
    base: int
    size_bytes: int
    read: Callable[[int, int], int]
    write: Callable[[int, int, int], None]
    has_something_at: Callable[[int], bool] = _everything
    option: str | None = None
    remedy: str | None = None
    peek: Callable[[int], int] | None = None


class Peripherals(Protocol):
    """A device on the bus of a core."""

    @property
    def areas(self) -> Sequence[IoArea]:
        """The addresses that belong to it."""


class CoreObserver(Protocol):
    """An observer of what a program does."""

    def text(self, character: str) -> None:
        """The program prints a character."""

    def stand_in(self, name: str) -> None:
        """The program calls a function that has no hardware behind it."""

    def wait(self, sleeping: bool) -> int:
        """The program waits for an interrupt; return the number of the one that comes, or 0."""

    def measured(self, microseconds: int) -> None:
        """The program has measured a time."""

    @property
    def device_microseconds(self) -> float:
        """Time since the start of the program that the devices on its bus have taken."""

    def asleep(self, alone: bool) -> None:
        """The program sleeps; either its timers have called their handlers, or it has none."""

    @property
    def expecting(self) -> bool:
        """Whether an interrupt will come, so that a program without accesses may wait for it."""

    @property
    def due(self) -> bool:
        """Whether an interrupt comes as soon as the program waits, whatever else happens."""

    @property
    def live(self) -> bool:
        """Whether anything may still happen that the program does not do itself."""

    def spins(self, place: str, variables: Sequence[str]) -> None:
        """The program, in a function, repeats a loop for ever that reads these; nothing is live."""

    @property
    def satisfied(self) -> bool:
        """Whether the program may be ended, since nothing new is expected of it."""


class Unobserved:
    """Takes no notice of what a program does, and raises no interrupt."""

    def text(self, character: str) -> None:
        """Take no notice."""

    def stand_in(self, name: str) -> None:
        """Take no notice."""

    def measured(self, microseconds: int) -> None:
        """Take no notice."""

    @property
    def device_microseconds(self) -> float:
        """Know of no devices that take time."""
        return 0.0

    def asleep(self, alone: bool) -> None:
        """Take no notice."""

    def wait(self, sleeping: bool) -> int:  # noqa: ARG002
        """Raise no interrupt."""
        return 0

    @property
    def expecting(self) -> bool:
        """Expect none."""
        return False

    @property
    def due(self) -> bool:
        """Expect none."""
        return False

    @property
    def live(self) -> bool:
        """Do not know."""
        return True

    def spins(self, place: str, variables: Sequence[str]) -> None:
        """Take no notice."""

    @property
    def satisfied(self) -> bool:
        """Let it run."""
        return False
