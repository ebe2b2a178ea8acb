"""Messages and facts of a run, for files about its outcome."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ai8xtools.diagnostics.diagnostic import Diagnostic

FACTS = ("subject", "verdict", "reason", "accuracy", "cycles", "memory", "energy")
"""What a tool may find out; docs/messages.schema.json explains each."""


@dataclass
class Outcome:
    """The messages of a run, the facts that it found out, and how it ended.

    `following` is the command that people usually run next, a tool by the name of its script.
    `at_end` are called with it when it is known how the run ends, by the option that asked for it.
    """

    words: tuple[str, ...] = ()
    diagnostics: list[Diagnostic] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=lambda: dict.fromkeys(FACTS))
    following: tuple[str, ...] = ()
    status: int = 0
    at_end: dict[str, Callable[[Outcome], None]] = field(default_factory=dict)


_CURRENT: ContextVar[Outcome] = ContextVar("outcome")


def current() -> Outcome:
    """Return the outcome of the run that goes on; without one, an outcome that nobody reads."""
    return _CURRENT.get(None) or Outcome()


@contextmanager
def recorded(words: tuple[str, ...]) -> Iterator[Outcome]:
    """Keep the messages and facts of the block."""
    outcome = Outcome(words)
    token = _CURRENT.set(outcome)
    try:
        yield outcome
    finally:
        _CURRENT.reset(token)


@contextmanager
def unheard() -> Iterator[None]:
    """Drop output, messages and facts of the block: it is only a trial."""
    nowhere = io.StringIO()
    with redirect_stdout(nowhere), redirect_stderr(nowhere), recorded(()):
        yield


def note(**facts: Any) -> None:
    """Note facts by name; the last value counts."""
    names = current().facts
    assert facts.keys() <= names.keys(), facts
    names |= facts


def suggest(*following: object) -> None:
    """Keep the words of the command that usually comes next; a person is told it at the end."""
    current().following = tuple(map(str, following))
