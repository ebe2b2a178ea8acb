"""What can be said of a network with an unusable value, judged as it was probably meant.

Without the value of a key, others that follow from it are unknown: channels, and with them the
processors that a layer needs. Here such a value is the nearest that can be used, or the default. If
the network can be put together then, without another complaint about its parts, what does not
depend on sizes is told as well, so that one run tells all mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place, has_errors
from ai8xtools.synthesis.arrange import complete, is_left_open
from ai8xtools.synthesis.check import CONSTRAINTS, Constraint
from ai8xtools.synthesis.facts import Fact
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork, map_network
from ai8xtools.synthesis.network import MAX_TAPS, Network
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Description, Entry, LayerDescription, Problems, Reading
from ai8xtools.synthesis.parse.closest import closest
from ai8xtools.synthesis.parse.keys import OPERATIONS
from ai8xtools.synthesis.parse.rules import errors as rule_errors
from ai8xtools.synthesis.resolve import build_layers, gather, layout_of, network_of
from device import Chip

_REFERENCES = ("in_sequences", "next_sequence", "simulated_sequence", "weight_source")
_MASK = "processors"
_NOWHERE = Place()
_OTHERS: dict[str, tuple[object, ...]] = {
    "op": tuple(dict.fromkeys(OPERATIONS.values())),
    "kernel_size": ((1, 1), (3, 3), *((length, 0) for length in range(1, MAX_TAPS + 1))),
}


def errors_as_meant(
    reading: Reading, chip: Chip, options: ResolveOptions, complaints: Set[Diagnostic]
) -> Iterator[Diagnostic]:
    """Yield errors that hold whatever the sizes are, if the network is plausible as it was meant.

    `complaints` are those about the description as it stands.
    """
    tried = (_put_together(description, chip, options) for description in _as_meant(reading))
    network, layout = next(filter(None, tried), (None, None))
    if network is None or layout is None or is_left_open(network.layers, layout):
        return
    layout = complete(network.layers, network.order, layout)
    mapped = map_network(network, layout, chip)
    lines = {d.place.line for d in complaints if d.place is not None and d.severity.is_error}
    for layer in mapped.layers:
        if layer.flatten:
            layer = _with_channels_before(layer, mapped)
        judged = [x for x in CONSTRAINTS if x.without_sizes and _is_judged(layer, x)]
        for entry in judged:
            for finding in entry.findings(layer, mapped, chip):
                complaint = entry.complain(layer, finding, options.waiving)
                if complaint.place is not None and complaint.place.line not in lines:
                    yield complaint


def _with_channels_before(layer: MappedLayer, network: MappedNetwork) -> MappedLayer:
    """Return a flattened layer with the channels of the one before, whatever its size is."""
    previous = network.predecessor(layer)
    if previous is None or layer.sources is not None:
        return layer
    return replace(layer, in_channels=previous.out_channels)


def _is_judged(layer: MappedLayer, entry: Constraint) -> bool:
    """Whether the key that a constraint judges is stated, and what it needs is not unknown."""
    stated = layer.places.get(entry.without_sizes, _NOWHERE) != _NOWHERE
    joined = layer.flatten and layer.sources is not None
    return stated and (Fact.SIZES not in entry.effects.needs or not (joined or layer.copied))


def _put_together(
    description: Description, chip: Chip, options: ResolveOptions
) -> tuple[Network, Layout] | None:
    """Return the network, or None if anything is wrong with its parts, and weights may be others'.

    That inputs of flattened layers are others follows from sizes.
    """
    try:
        parts = gather(description, chip, options)
        masks = _masks_of_sections(description)
        problems = [p for p in parts.problems if p.place not in masks]
        if parts.sample is None or not parts.ordered or has_errors(problems):
            return None
        layers, complaints = build_layers(parts)
    except DiagnosticError:
        return None
    flattened = [layer for layer in description.layers if layer.get("flatten", False)]
    places = {layer.place for layer in flattened}
    places |= {entry.place for layer in flattened for entry in layer.entries.values()}
    wrong = any(p.place not in places for p in complaints if p.severity.is_error)
    if wrong or len(layers) < len(parts.description.layers):
        return None
    network = network_of(parts, layers, parts.order, parts.simulated)
    return network, layout_of(parts, layers)


def _masks_of_sections(description: Description) -> set[Place]:
    """Return the places of processors of data that is delivered or buffered: no layer's follow."""
    sections = (*description.get("unload", ()), *description.get("data_buffer", ()))
    return {section.place_of(_MASK) for section in sections}


def _as_meant(reading: Reading) -> Iterator[Description]:
    """Yield descriptions in which each unusable value is another one, or left out.

    An operator or a kernel that cannot be used is what it resembles, the default, or another one.
    """
    layers = [
        _usable(layer, problems, reading)
        for layer, problems in zip(reading.description.layers, reading.of_layers, strict=True)
    ]
    yield _without_broken_rules(reading.description, layers)
    yield _without_broken_rules(
        reading.description, [_usable(x, (), reading) for x in reading.description.layers]
    )
    for number, problems in enumerate(reading.of_layers):
        unsure = [key for key in _OTHERS if any(f"'{key}'" in p.message for p in problems)]
        if unsure:
            for value in _OTHERS[unsure[0]]:
                changed = {unsure[0]: Entry(value, layers[number].place)}
                other = replace(layers[number], entries={**layers[number].entries, **changed})
                several = [*layers[:number], other, *layers[number + 1 :]]
                yield _without_broken_rules(reading.description, several)
            return


def _usable(layer: LayerDescription, problems: Problems, reading: Reading) -> LayerDescription:
    """Return a layer with what was meant; processors have a stand-in."""
    places = [p.place for p in problems if p.place is not None]
    meant = dict(reading.meant[place] for place in places if place in reading.meant)
    return replace(layer, entries={_MASK: Entry(1, _NOWHERE), **layer.entries, **meant})


def _without_broken_rules(
    description: Description, layers: Sequence[LayerDescription]
) -> Description:
    """Put layers together without keys that break a rule; references lead to the nearest names."""
    names = [layer.name for layer in layers if layer.name]
    names += [name for b in description.get("data_buffer", ()) if (name := b.get("name"))]
    named = tuple(_with_names(layer, names) for layer in layers)
    whole = replace(description, layers=named)
    sound = []
    for layer in named:
        blamed = {problem.place for problem in rule_errors(layer, whole)}
        kept = {key: entry for key, entry in layer.entries.items() if entry.place not in blamed}
        sound.append(replace(layer, entries=kept))
    return replace(whole, layers=tuple(sound))


def _with_names(layer: LayerDescription, names: list[str]) -> LayerDescription:
    """Return a layer whose references have the nearest names that exist."""
    existing = {name.lower() for name in names}

    def nearest(reference: int | str) -> int | str | None:
        right = not isinstance(reference, str) or reference.lower() in existing
        return reference if right else closest(str(reference), names)

    entries = dict(layer.entries)
    for key in _REFERENCES:
        if key in layer:
            value = layer.get(key)
            better = tuple(map(nearest, value)) if isinstance(value, tuple) else nearest(value)
            entries[key] = replace(entries[key], value=better)
            if better is None or (isinstance(better, tuple) and None in better):
                del entries[key]
    return replace(layer, entries=entries)
