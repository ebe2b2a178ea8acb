"""The stage as a whole: order, weights, sample, layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

import numpy as np

from checkpoint import CheckpointError
from device import Chip
from diagnostics import Diagnostic, DiagnosticError, Place, Severity, diagnostics_of
from synthesis.facts import Fact, blocked
from synthesis.layout import Layout
from synthesis.network import DataBuffer, Layer, Network, Tensor
from synthesis.options import ResolveOptions
from synthesis.parse import Description
from synthesis.parse.rules import operation
from synthesis.resolve.layers import LayerBuilder
from synthesis.resolve.layout import fixed_layout
from synthesis.resolve.sample import (
    progressing,
    progression,
    read_sample,
    sample_path,
    seen_by_camera,
)
from synthesis.resolve.sections import check_sections
from synthesis.resolve.sequence import execution_order, simulated_order
from synthesis.resolve.skipping import without_first_layers
from synthesis.resolve.tensors import LayerTensors, takes_weights
from synthesis.resolve.weights import layer_tensors
from values import frozen


@frozen
class Resolution:
    """What is known of a network: all of it, or the layers that could be resolved.

    `layers` stand in the order of execution; something is wrong with the `damaged` ones (indices),
    and of the `bare` ones the weights are missing. `layout` is that of the network or the layers.
    """

    network: Network | None
    layout: Layout
    problems: tuple[Diagnostic, ...]
    layers: tuple[Layer, ...] = ()
    damaged: frozenset[int] = frozenset()
    bare: frozenset[int] = frozenset()
    suspect: frozenset[int] = frozenset()
    """Layers whose sizes or channels contradict each other."""
    beginning: tuple[Network, Layout] | None = None
    """The layers in front of the first one with which something is wrong."""


def resolve(
    description: Description, chip: Chip | None, options: ResolveOptions
) -> tuple[Network, Layout, tuple[Diagnostic, ...]]:
    """Return the network, what is fixed of its layout, and warnings.

    Without a chip, nothing is said of layers that a chip may not have. Raises DiagnosticError with
    every problem found.
    """
    resolution = resolve_what_is_sound(description, chip, options)
    if resolution.network is None:
        raise DiagnosticError(resolution.problems)
    return resolution.network, resolution.layout, resolution.problems


def resolve_what_is_sound(
    description: Description, chip: Chip | None, options: ResolveOptions
) -> Resolution:
    """Resolve a network, or as many of its layers as can be."""
    problems = list(description.warnings)
    description = without_first_layers(description, options.skip_yaml_layers, problems)
    problems += _too_many_layers(description, chip) if chip is not None else ()
    problems += _unknown_layers(description, options)
    order, simulated = _orders(description, chip, options, problems)
    ordered = not _has_errors(problems)
    problems += check_sections(description, chip)
    tensors = _tensors(description, chip, options, problems)
    sample = _sample(description, options, problems)
    damaged = description.damaged | _blamed(description, problems)
    bare = _bare(description, tensors)
    if sample is None or not ordered:
        bare = frozenset(range(len(description.layers)))
    if sample is None:
        sample = _stand_in(description)
    found: list[Diagnostic] = []
    buffer = _data_buffer(description)
    builder = LayerBuilder(description, options, sample, tensors, order, buffer, found)
    layers = builder.layers()
    if Fact.WEIGHTS in blocked(problems):
        found = [problem for problem in found if Fact.WEIGHTS not in problem.effects.needs]
    problems += _before_damage(description, found, order, damaged | bare)
    executed = tuple(builder.built[i] for i in order if i in builder.built)

    def layout_of(known: Sequence[Layer]) -> Layout:
        has_bias = any(t.bias is not None for t in tensors.values())
        return fixed_layout(description, options, known, order, sample, file_has_bias=has_bias)

    def network_of(layers: tuple[Layer, ...], order: tuple[int, ...]) -> Network:
        return _network(description, options, layers, order, sample, buffer)

    if not _has_errors(problems) and not damaged:
        network = replace(network_of(layers, order), simulated=simulated)
        return Resolution(network, layout_of(layers), tuple(problems), executed)
    suspect = _blamed(description, found)
    unsound = damaged | bare | suspect
    sound = tuple(takewhile(lambda layer: layer.index not in unsound, layers))
    first = tuple(range(len(sound)))
    beginning = None
    if sound and tuple(layer.index for layer in executed[: len(sound)]) == first:
        beginning = network_of(sound, first), layout_of(sound)
    return Resolution(
        None, layout_of(executed), tuple(problems), executed, damaged, bare, suspect, beginning
    )


def _network(
    description: Description,
    options: ResolveOptions,
    layers: tuple[Layer, ...],
    order: tuple[int, ...],
    sample: Tensor,
    buffer: DataBuffer | None,
) -> Network:
    """Put a network together that is simulated as it is executed."""
    return Network(
        arch=description.get("arch"),
        place=description.place,
        layers=layers,
        order=order,
        simulated=order,
        sample=sample,
        sample_file=sample_path(description, options),
        buffer=buffer,
        reshapes_inputs=options.reshape_inputs,
        places={key: entry.place for key, entry in description.entries.items()},
    )


def _orders(
    description: Description, chip: Chip | None, options: ResolveOptions, problems: list[Diagnostic]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the orders of execution and simulation; with a complaint that of the file."""
    plain = tuple(range(len(description.layers)))
    if _has_errors(problems):
        return plain, plain
    order = execution_order(description, chip, options, problems)
    if _has_errors(problems):
        return plain, plain
    simulated = simulated_order(description, order, problems)
    return (plain, plain) if _has_errors(problems) else (order, simulated)


def _stand_in(description: Description) -> Tensor:
    """Return a sample in place of one that cannot be read; nothing is said of its size."""
    series = operation(description.layers[0])[0].one_dimensional
    return np.zeros((1, 64, 1 if series else 64), np.int64)


def _tensors(
    description: Description, chip: Chip | None, options: ResolveOptions, problems: list[Diagnostic]
) -> dict[int, LayerTensors]:
    """Return the tensors by layer; without the ones that a complaint is about.

    From a damaged layer on, tensors that do not belong to a layer are no news; nothing follows from
    those of another network.
    """
    found: list[Diagnostic] = []
    try:
        tensors = layer_tensors(description, chip, options, found)
    except (DiagnosticError, CheckpointError) as refusal:
        found += diagnostics_of(refusal)
        tensors = {}
    if Fact.TENSORS in blocked(found):
        found, tensors = [p for p in found if Fact.TENSORS in p.effects.blocks], {}
    sound = set(range(min(description.damaged, default=len(description.layers))))
    problems += [
        p
        for p in found
        if Fact.TENSORS not in p.effects.needs or _blamed(description, [p]) <= sound
    ]
    return tensors


def _sample(
    description: Description, options: ResolveOptions, problems: list[Diagnostic]
) -> Tensor | None:
    """Return the sample, or None with a complaint."""
    try:
        sample = read_sample(description, options)
    except DiagnosticError as refusal:
        problems += refusal.diagnostics
        return None
    sample = seen_by_camera(sample, options)
    made = progression(sample, options)
    return progressing(sample, made) if made else sample


def _has_errors(problems: Iterable[Diagnostic]) -> bool:
    return any(p.severity is Severity.ERROR for p in problems)


def _blamed(description: Description, problems: Iterable[Diagnostic]) -> frozenset[int]:
    """Return the indices of the layers in which errors stand."""
    owner = {
        place: layer.index
        for layer in description.layers
        for place in (layer.place, *(entry.place for entry in layer.entries.values()))
    }
    places = (p.place for p in problems if p.severity is Severity.ERROR and p.place is not None)
    return frozenset(owner[place] for place in places if place in owner)


def _bare(description: Description, tensors: Mapping[int, LayerTensors]) -> frozenset[int]:
    """Return the layers that lack their weights."""
    return frozenset(
        layer.index
        for layer in description.layers
        if (takes_weights(layer) or "weight_source" in layer) and layer.index not in tensors
    )


def _before_damage(
    description: Description,
    problems: Sequence[Diagnostic],
    order: tuple[int, ...],
    damaged: frozenset[int],
) -> list[Diagnostic]:
    """Return the problems that are no consequences of an earlier one.

    Sizes and channels follow from the layers before, so nothing is said of a damaged layer and of
    those behind it.
    """
    sound = set(takewhile(lambda index: index not in damaged, order))
    return [
        p
        for p in problems
        if p.severity is not Severity.ERROR or not damaged or _blamed(description, [p]) <= sound
    ]


def _data_buffer(description: Description) -> DataBuffer | None:
    """Return the rolling buffer; the first one if there are several."""
    for section in description.get("data_buffer", ()):
        entries, width = section.get("dim")
        return DataBuffer(section.get("name"), section.get("channels"), entries, width)
    return None


def _unknown_layers(description: Description, options: ResolveOptions) -> list[Diagnostic]:
    """Lists of layers in options should name layers that exist."""
    last = len(description.layers) - 1
    return [
        Diagnostic(
            "W224",
            f"names layer {index}, the last layer is {last}",
            Place(option=option),
            severity=Severity.WARNING,
        )
        for option, layers in (
            ("--no-bias", options.no_bias or ()),
            ("--streaming-layers", options.streaming_layers),
        )
        for index in sorted(layers)
        if not 0 <= index <= last
    ]


def _too_many_layers(description: Description, chip: Chip) -> list[Diagnostic]:
    """The chip has registers for a fixed number of layers."""
    return [
        layer.error(
            "E209",
            f"sequence {layer.get('sequence', layer.index)} is beyond the last layer "
            f"{chip.max_layers - 1} of {chip.name}",
            "sequence",
            remedy="Merge layers: pooling and combining share one with a convolution.",
        )
        for layer in description.layers
        if layer.get("sequence", layer.index) >= chip.max_layers
    ]
