"""What can still be said of a network after an error in its description, weights or sample.

The stages end where they find errors. This module goes on with whatever is sound, so that one run
tells everything that is wrong, and leaves out what may be a mere consequence: sizes and channels
follow from the layers before, tensors belong to layers in order. What an error makes unknown is
declared where the complaint is made (`synthesis.facts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import replace
from itertools import takewhile

import numpy as np

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place, has_errors
from ai8xtools.synthesis.arrange import complete, is_left_open
from ai8xtools.synthesis.assumption import errors_as_meant
from ai8xtools.synthesis.check import CONSTRAINTS, check, check_network, errors_of_layer
from ai8xtools.synthesis.check.data import error_of_offset
from ai8xtools.synthesis.check.layout import error_of_processors
from ai8xtools.synthesis.excess import beyond_all_limits, with_judged_padding
from ai8xtools.synthesis.facts import Fact, blocked
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.mapping import MappedLayer, map_layers
from ai8xtools.synthesis.network import Layer, Network, Tensor
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import (
    Description,
    Entry,
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
from ai8xtools.values import frozen
from device import Chip

Judge = Callable[[Network, Layout], Iterable[Diagnostic]]
"""What a later stage says of a network with a complete layout."""
_STAND_IN = {"processors": Entry(1, Place())}
"""In a layer whose processors are missing or unusable, so that its size can be told."""


@frozen
class SoundPart:
    """What is known of a network in which something is wrong.

    Something is wrong with the `damaged` layers (indices); others lack their weights, or their
    sizes or channels are `contradictory`. Of `unplaced` ones sizes and channels are known.
    """

    parts: Parts
    layers: tuple[Layer, ...]
    problems: Problems
    damaged: frozenset[int]
    unplaced: frozenset[int]
    without_weights: frozenset[int]
    contradictory: frozenset[int]

    @property
    def is_whole(self) -> bool:
        """Whether no error touches a layer."""
        return not has_errors(self.problems) and not self.damaged | self.unplaced

    @property
    def executed(self) -> tuple[Layer, ...]:
        """Layers in the order of execution."""
        by_index = {layer.index: layer for layer in self.layers}
        return tuple(by_index[i] for i in self.parts.order if i in by_index)


def recover(
    source: Source, chip: Chip | None, options: ResolveOptions, judge: Judge
) -> tuple[Network, Layout, Problems]:
    """Return the network of a description with errors, if they touch no layer, and the errors.

    Raises DiagnosticError with everything that can be said of any other one.
    """
    reading = read_file(source, placed=chip is not None, limited=chip is not None)
    reading = reading if chip is None else with_judged_padding(reading)
    part = _sound_part(*_usable(reading), chip, options)
    found = (*reading.problems, *part.problems)
    if part.is_whole:
        parts = part.parts
        network = network_of(parts, part.layers, parts.order, parts.simulated)
        return network, layout_of(parts, part.layers), found
    judged = chip if reading.description.placed else None  # places follow from the whole network
    errors = [*_errors_of_layers(part, judged), *_errors_in_prefix(part, judged, judge)]
    said = dict.fromkeys((*_without_consequences(found, errors), *errors))
    if judged is not None and has_errors(reading.problems):
        said |= dict.fromkeys(errors_as_meant(reading, judged, options, said.keys()))
    if judged is not None:
        said |= dict.fromkeys(beyond_all_limits(reading.description, said.keys()))
    raise DiagnosticError(sorted(said, key=position))


def _usable(reading: Reading) -> tuple[Description, frozenset[int], frozenset[int]]:
    """Return a description of what could be read, and the indices of damaged and unplaced layers.

    Raises DiagnosticError if it is unknown which layers there are.
    """
    if Fact.LAYERS in blocked(reading.problems):
        raise DiagnosticError(reading.problems)
    description = reading.description
    layers = tuple(
        _usable_layer(layer, problems, description.placed)
        for layer, problems in zip(description.layers, reading.of_layers, strict=True)
    )
    lost = [blocked(found) for found in reading.of_layers]
    damaged, unplaced = (
        frozenset(index for index, facts in enumerate(lost) if fact in facts)
        for fact in (Fact.SIZES, Fact.PLACES)
    )
    return replace(description, layers=layers), damaged, unplaced


def _usable_layer(layer: LayerDescription, problems: Problems, placed: bool) -> LayerDescription:
    """Leave out keys that name a layer which does not exist, and a stride that a chip does not
    have: sizes are those without. Processors have a stand-in."""
    lost = {p.place for p in problems if Fact.REFERENCE in p.effects.blocks}
    wrong = {p.place for p in problems if p.severity.is_error}
    kept = {
        key: entry
        for key, entry in layer.entries.items()
        if key == "name" or entry.place not in (wrong if key == "stride" else lost)
    }
    return replace(layer, entries={**(_STAND_IN if placed else {}), **kept})


def _sound_part(
    description: Description,
    damaged: Set[int],
    unplaced: Set[int],
    chip: Chip | None,
    options: ResolveOptions,
) -> SoundPart:
    """Resolve as many layers as can be."""
    parts = gather(description, chip, options)
    skipped = len(description.layers) - len(parts.description.layers)
    description = parts.description
    lost = frozenset(i - skipped for i in damaged if i >= skipped)
    elsewhere = frozenset(i - skipped for i in unplaced if i >= skipped)
    in_front = set(range(min(lost, default=len(description.layers))))
    problems = [
        p
        for p in parts.problems
        if Fact.TENSORS not in p.effects.needs or _blamed(description, [p]) <= in_front
    ]
    lost |= _blamed(description, problems)
    without_weights = _without_weights(parts)
    if parts.sample is None:
        parts = replace(parts, sample=_any_sample(description))
    layers, found = build_layers(parts)
    if Fact.WEIGHTS in blocked(problems):
        found = tuple(p for p in found if Fact.WEIGHTS not in p.effects.needs)
    contradictory = _blamed(description, found)
    problems += _in_front(parts, found, lost | without_weights)
    return SoundPart(
        parts, layers, tuple(problems), lost, elsewhere, without_weights, contradictory
    )


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


def _errors_of_layers(part: SoundPart, chip: Chip | None) -> Iterator[Diagnostic]:
    """Yield what is wrong with each layer by itself.

    Of damaged and unplaced ones little is said. From the first one on that is damaged or lacks its
    weights, and behind the first contradictory one, only the keys themselves are judged, and the
    processors of layers whose weights tell their channels.
    """
    layers = part.executed
    fixed = layout_of(part.parts, layers) if chip is not None and layers else None
    if fixed is not None and is_left_open(layers, fixed):
        chip = None  # nothing is placed yet: constraints of networks remain
    elif fixed is not None:
        layout = complete(layers, [layer.index for layer in layers], fixed)
        layers = tuple(map_layers(layers, layout, layers[0].index))
    waiving, derived = part.parts.options.waiving, True
    for layer in layers:
        derived = derived and layer.index not in part.damaged | part.without_weights
        if layer.index not in part.damaged | part.unplaced:
            yield from errors_of_layer(layer, chip, waiving, derived=derived)
        if isinstance(layer, MappedLayer) and chip is not None:
            yield from _errors_of_processors(layer, part, derived)
            if not derived:
                yield from error_of_offset(layer, chip)
        if layer.index not in part.damaged | part.unplaced:
            derived = derived and layer.index not in part.contradictory


def _errors_of_processors(
    layer: MappedLayer, part: SoundPart, derived: bool
) -> Iterator[Diagnostic]:
    """Yield what is wrong with a layer's processors, if its own weights tell its channels.

    The processors of the first layer may be those of a group of inputs.
    """
    own = layer.weights is not None and not (layer.flatten or layer.copied)
    first = layer.index == part.executed[0].index
    written = layer.index not in part.unplaced or layer.place_of("processors").line is not None
    if (own or derived) and not first and written and layer.index not in part.contradictory:
        yield from error_of_processors(layer)


def _errors_in_prefix(part: SoundPart, chip: Chip | None, judge: Judge) -> Iterator[Diagnostic]:
    """Yield the errors of the sound layers in front that hold whatever comes behind."""
    unsound = part.damaged | part.unplaced | part.without_weights | part.contradictory
    prefix = tuple(takewhile(lambda layer: layer.index not in unsound, part.layers))
    order = tuple(range(len(prefix)))
    if not prefix or tuple(layer.index for layer in part.executed[: len(prefix)]) != order:
        return
    network = network_of(part.parts, prefix, order, order)
    layout = layout_of(part.parts, prefix)
    waiving = part.parts.options.waiving
    if chip is None or is_left_open(prefix, layout):
        complaints, judge = check_network(network, waiving), lambda _network, _layout: ()
    else:
        layout = complete(prefix, order, layout)
        complaints = check(network, layout, chip, waiving)
    errors = [d for d in complaints if d.severity.is_error]
    lasting = {entry.code for entry in CONSTRAINTS if entry.holds_for_prefix}
    yield from (d for d in errors if d.code in lasting)
    if not blocked(errors) & {Fact.PLACES, Fact.SIZES, Fact.OVERLAPS}:
        yield from (d for d in judge(network, layout) if d.severity.is_error)


def _without_consequences(
    found: Iterable[Diagnostic], errors: Iterable[Diagnostic]
) -> Iterator[Diagnostic]:
    """Leave out what needs sizes behind a layer that got another size than was meant."""
    wrong = [position(d) for d in errors if Fact.SIZES in d.effects.blocks]
    for diagnostic in found:
        behind = bool(wrong) and position(diagnostic) > min(wrong)
        if not (behind and Fact.SIZES in diagnostic.effects.needs):
            yield diagnostic
