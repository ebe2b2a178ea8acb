"""A description that a front door made from a model: its messages name nodes of the model."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, Place
from ai8xtools.synthesis.parse.description import (
    Description,
    Entry,
    LayerDescription,
    Reading,
    Section,
)
from ai8xtools.values import frozen


@frozen
class Described:
    """The text of a description, the model that it was made from, and each layer's node in it."""

    text: str
    model: str
    nodes: tuple[str, ...]

    def __str__(self) -> str:
        return self.model


@frozen
class Edited:
    """The text of a file with a change that is only tried."""

    text: str
    file: str

    def __str__(self) -> str:
        return self.file


Source = str | Described | Edited
"""What is parsed: the path of a file, what was made from a model, or what is only tried."""

Move = Callable[[Place], Place]


def at_nodes(reading: Reading, source: Described) -> Reading:
    """Return what was read of the text with nodes of the model in place of its lines."""
    starts = [layer.place.line or 0 for layer in reading.description.layers]

    def moved(place: Place) -> Place:
        number = bisect_right(starts, place.line or 0) - 1
        node = f"{source.model}: {source.nodes[number]}" if number >= 0 else source.model
        return Place(file=node)

    return Reading(
        _description(reading.description, moved),
        _diagnostics(reading.problems, moved),
        tuple(_diagnostics(problems, moved) for problems in reading.of_layers),
        {},  # nothing that a model is read to is unusable
    )


def _description(description: Description, moved: Move) -> Description:
    entries = {
        key: replace(
            entry,
            value=tuple(_section(part, moved) for part in entry.value)
            if isinstance(entry.value, tuple) and isinstance(entry.value[0], Section)
            else entry.value,
            place=moved(entry.place),
        )
        for key, entry in description.entries.items()
    }
    return replace(
        description,
        place=moved(Place()),
        entries=entries,
        layers=tuple(_layer(layer, moved) for layer in description.layers),
        warnings=_diagnostics(description.warnings, moved),
    )


def _entries(section: Section, moved: Move) -> dict[str, Entry]:
    return {key: replace(e, place=moved(e.place)) for key, e in section.entries.items()}


def _section(section: Section, moved: Move) -> Section:
    return replace(section, place=moved(section.place), entries=_entries(section, moved))


def _layer(layer: LayerDescription, moved: Move) -> LayerDescription:
    return replace(layer, place=moved(layer.place), entries=_entries(layer, moved))


def _diagnostics(diagnostics: Iterable[Diagnostic], moved: Move) -> tuple[Diagnostic, ...]:
    return tuple(replace(d, place=d.place and moved(d.place)) for d in diagnostics)
