"""The stages for a network that is mapped onto a chip, as `networks.build` gives it."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import fields
from typing import Any

import ai8xtools.synthesis.check
import ai8xtools.synthesis.encode
import ai8xtools.synthesis.place
import ai8xtools.synthesis.simulate
import ai8xtools.synthesis.summarize
from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.options import EncodeOptions, StreamOptions, SummaryOptions
from ai8xtools.synthesis.place import Placement, PlaceOptions
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.simulate import Activations
from ai8xtools.synthesis.summary import Summary


def encoding(**options: Any) -> EncodeOptions:
    """Return options of any stage, each where it belongs."""

    def own(kind: type) -> dict[str, Any]:
        names = [one.name for one in fields(kind) if one.name in options]
        return {name: options.pop(name) for name in names}

    streams = StreamOptions(**own(StreamOptions))
    place = PlaceOptions(**own(PlaceOptions), streams=streams)
    return EncodeOptions(place, SummaryOptions(**own(SummaryOptions)), **options)


def check(
    network: MappedNetwork, waiving: Container[str] = (), *, consequences: bool = False
) -> list[Diagnostic]:
    """Return the complaints of all constraints."""
    return ai8xtools.synthesis.check.check(
        network.network, network.layout, network.chip, waiving, consequences=consequences
    )


def place(network: MappedNetwork, options: PlaceOptions) -> Placement:
    """Place a network; raise DiagnosticError where something does not fit."""
    return ai8xtools.synthesis.place.place(network.network, network.layout, network.chip, options)


def place_what_fits(
    network: MappedNetwork, options: PlaceOptions
) -> tuple[Placement, tuple[Diagnostic, ...]]:
    """Place what fits; return complaints about the rest."""
    return ai8xtools.synthesis.place.place_what_fits(
        network.network, network.layout, network.chip, options
    )


def simulate(
    network: MappedNetwork, *, average_rounding: bool, keep_traces: bool = False
) -> Activations:
    """Compute all layers."""
    return ai8xtools.synthesis.simulate.simulate(
        network.network, average_rounding=average_rounding, keep_traces=keep_traces
    )


def encode(
    network: MappedNetwork,
    placement: Placement,
    activations: Activations,
    options: EncodeOptions,
) -> Program:
    """Return the words."""
    return ai8xtools.synthesis.encode.encode(
        network.network, placement, activations, network.chip, options
    )


def check_limits(network: MappedNetwork, options: EncodeOptions) -> Iterator[Diagnostic]:
    """Return the complaints about clocks and streams."""
    placement, _ = place_what_fits(network, options.place)
    of_streams = ai8xtools.synthesis.place.check_streams(
        network.network, placement, network.chip, options.place
    )
    yield from ai8xtools.synthesis.encode.check_limits(
        network.network, network.layout, network.chip, options
    )
    yield from of_streams


def summarize(
    network: MappedNetwork,
    placement: Placement,
    activations: Activations,
    options: EncodeOptions,
) -> Summary:
    """Return what people are told."""
    return ai8xtools.synthesis.summarize.summarize(
        network.network, placement, activations, network.chip, options
    )
