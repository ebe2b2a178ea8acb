"""Facts about a network, which one complaint takes away and another one needs.

Each complaint states where it is made which facts are unknown after it (`blocks`), and without
which facts it may be a mere consequence of another one (`needs`). Nobody else keeps lists of codes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, Effects, Severity


class Fact(enum.StrEnum):
    """What a judgement about a network can rest on."""

    LAYERS = "which layers there are, and what holds for all of them"
    REFERENCE = "what a key means that names a layer"
    TENSORS = "which tensor of the weights file belongs to which layer"
    WEIGHTS = "values of weights and biases"
    SIZES = "sizes and channels of a layer and of those behind it"
    PLACES = "where the layers stand in the memories"
    OVERLAPS = "which data shares memory with other data"
    ROOM = "whether everything fits; an error that blocks nothing else leaves the network sound"


Facts = Fact | tuple[Fact, ...]


def effects(blocks: Facts = (), needs: Facts = (), silenced_by: str | None = None) -> Effects:
    """Return what follows from a complaint; a single fact needs no tuple."""
    return Effects(_set(blocks), _set(needs), silenced_by)


def _set(facts: Facts) -> frozenset[str]:
    return frozenset((facts,) if isinstance(facts, Fact) else facts)


def blocked(diagnostics: Iterable[Diagnostic]) -> frozenset[str]:
    """Return the facts that are unknown after the errors among the diagnostics."""
    errors = (d for d in diagnostics if d.severity.is_error)
    return frozenset().union(*(d.effects.blocks for d in errors))


UNSOUND = Effects(unsound=True)
"""Marks warnings that the project, which is written all the same, is not expected to work."""


def without_doubts(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield complaints; what is not expected to work is an error."""
    for d in diagnostics:
        yield replace(d, severity=Severity.ERROR) if d.effects.unsound else d


HINT = Effects(hint=True)
"""Marks notices that explain errors and are printed beside these only."""
NO_ROOM = effects(blocks=Fact.ROOM)
"""Marks complaints that some part of a sound network does not fit."""
