"""What can still be said of a network after an error in its description, weights or sample.

The stages end where they find errors. This module goes on with whatever is sound, so that one run
tells everything that is wrong, and leaves out what may be a mere consequence: sizes and channels
follow from the layers before, tensors belong to layers in order. What an error makes unknown is
declared where the complaint is made (`synthesis.facts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from itertools import takewhile

import numpy as np

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, has_errors
from ai8xtools.synthesis.assumption import errors_as_meant
from ai8xtools.synthesis.excess import with_judged_padding
from ai8xtools.synthesis.facts import Fact, blocked
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.network import Layer, Network, Tensor
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import (
    Description,
    LayerDescription,
    Problems,
    Reading,
    Source,
    position,
    read_file,
)
from ai8xtools.synthesis.parse.rules import operation
from ai8xtools.synthesis.resolve import Parts, build_layers, gather, layout_of, network_of
from ai8xtools.synthesis.resolve.tensors import takes_weights
from device import Chip


def recover(
    source: Source, chip: Chip | None, options: ResolveOptions
) -> tuple[Network, Layout, Problems]:
    """Return the network of a description whose errors concern no layer, and the errors.

    For other descriptions, raises DiagnosticError with all messages about them.
    """
    reading = read_file(source, placed=chip is not None, limited=chip is not None)
    reading = reading if chip is None else with_judged_padding(reading)
    description, damaged, unplaced = _usable(reading)
    parts = gather(description, chip, options)
    skipped = len(description.layers) - len(parts.description.layers)
    parts, layers, problems = _sound_part(parts, frozenset(i - skipped for i in damaged))
    complaints = (*reading.problems, *problems)
    if not has_errors(problems) and max(damaged | unplaced, default=-1) < skipped:
        network = network_of(parts, layers, parts.order, parts.simulated)
        return network, layout_of(parts, layers), complaints
    messages = dict.fromkeys(complaints)
    if chip is not None and reading.description.placed and has_errors(reading.problems):
        messages |= dict.fromkeys(errors_as_meant(reading, chip, options, messages.keys()))
    raise DiagnosticError(sorted(messages, key=position))


def _usable(reading: Reading) -> tuple[Description, frozenset[int], frozenset[int]]:
    """Return a description of what could be read, and the indices of damaged and unplaced layers.

    Raises DiagnosticError if it is unknown which layers there are.
    """
    if Fact.LAYERS in blocked(reading.problems):
        raise DiagnosticError(reading.problems)
    description = reading.description
    layers = tuple(
        _usable_layer(layer, problems)
        for layer, problems in zip(description.layers, reading.of_layers, strict=True)
    )
    lost = [blocked(complaints) for complaints in reading.of_layers]
    damaged, unplaced = (
        frozenset(index for index, facts in enumerate(lost) if fact in facts)
        for fact in (Fact.SIZES, Fact.PLACES)
    )
    return replace(description, layers=layers), damaged, unplaced


def _usable_layer(layer: LayerDescription, problems: Problems) -> LayerDescription:
    """Leave out keys that name a layer which does not exist, and a stride that a chip does not
    have: sizes are those without."""
    lost = {p.place for p in problems if Fact.REFERENCE in p.effects.blocks}
    wrong = {p.place for p in problems if p.severity.is_error}
    kept = {
        key: entry
        for key, entry in layer.entries.items()
        if key == "name" or entry.place not in (wrong if key == "stride" else lost)
    }
    return replace(layer, entries=kept)


def _sound_part(
    parts: Parts, damaged: frozenset[int]
) -> tuple[Parts, tuple[Layer, ...], list[Diagnostic]]:
    """Resolve as many layers as can be; return them with what is wrong with them."""
    description = parts.description
    lost = frozenset(index for index in damaged if index >= 0)
    in_front = set(range(min(lost, default=len(description.layers))))
    problems = [
        p
        for p in parts.problems
        if Fact.TENSORS not in p.effects.needs or _blamed(description, [p]) <= in_front
    ]
    lost |= _blamed(description, problems) | _without_weights(parts)
    if parts.sample is None:
        parts = replace(parts, sample=_any_sample(description))
    layers, complaints = build_layers(parts)
    if Fact.WEIGHTS in blocked(problems):
        complaints = tuple(p for p in complaints if Fact.WEIGHTS not in p.effects.needs)
    return parts, layers, [*problems, *_in_front(parts, complaints, lost)]


def _any_sample(description: Description) -> Tensor:
    """Return a sample in place of one that cannot be read; nothing is said of its size."""
    series = operation(description.layers[0])[0].one_dimensional
    return np.zeros((1, 64, 1 if series else 64), np.int64)


def _without_weights(parts: Parts) -> frozenset[int]:
    """Return the layers that lack their weights; all, if what they read is unknown anyway."""
    if parts.sample is None or not parts.ordered:
        return frozenset(range(len(parts.description.layers)))
    return frozenset(
        layer.index
        for layer in parts.description.layers
        if (takes_weights(layer) or "weight_source" in layer) and layer.index not in parts.tensors
    )


def _blamed(description: Description, problems: Iterable[Diagnostic]) -> frozenset[int]:
    """Return the indices of the layers in which errors stand."""
    owner = {
        place: layer.index
        for layer in description.layers
        for place in (layer.place, *(entry.place for entry in layer.entries.values()))
    }
    places = (p.place for p in problems if p.severity.is_error and p.place is not None)
    return frozenset(owner[place] for place in places if place in owner)


def _in_front(parts: Parts, problems: Problems, damaged: Set[int]) -> Iterator[Diagnostic]:
    """Yield the problems that do not stand in or behind a damaged layer."""
    sound = set(takewhile(lambda index: index not in damaged, parts.order))
    for problem in problems:
        error = problem.severity.is_error
        if not error or not damaged or _blamed(parts.description, [problem]) <= sound:
            yield problem
