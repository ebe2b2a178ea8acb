"""The stages in order, from files to a program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Severity, has_errors, refuse_errors
from ai8xtools.synthesis.arrange import complete
from ai8xtools.synthesis.check import check_chip_options, check_repetition
from ai8xtools.synthesis.encode import Numbering, check_limits, encode
from ai8xtools.synthesis.facts import Fact, blocked, effects
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.mapping import MappedNetwork, map_network
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.options import EncodeOptions, ResolveOptions
from ai8xtools.synthesis.parse import Source, parse_file, position
from ai8xtools.synthesis.place import Placement, check_streams, place_what_fits
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.resolve import resolve
from ai8xtools.synthesis.simulate import Activations, simulate
from ai8xtools.synthesis.summarize import summarize
from ai8xtools.synthesis.summary import Summary
from ai8xtools.synthesis.understand import understand
from ai8xtools.values import frozen
from device import Chip


@frozen(slots=False)
class Synthesis:
    """What each stage gave, and the warnings of all of them."""

    network: Network
    chip: Chip
    placement: Placement
    activations: Activations
    program: Program
    summary: Summary
    warnings: tuple[Diagnostic, ...]

    @cached_property
    def mapped(self) -> MappedNetwork:
        """The network with its layout on the chip."""
        return map_network(self.network, self.placement.layout, self.chip)


def examine(
    source: Source, chip: Chip, resolving: ResolveOptions, encoding: EncodeOptions
) -> tuple[Network, Placement, tuple[Diagnostic, ...]]:
    """Understand and place a network; return it with its placement and the warnings.

    Raises DiagnosticError with everything found.
    """

    def arranged(
        network: Network, layout: Layout
    ) -> tuple[Network, Layout, tuple[Diagnostic, ...]]:
        from ai8xtools.synthesis.arrange.arranging import (
            arrange,  # a complete description does without
        )

        return arrange(network, layout, chip, encoding.place)

    options = tuple(check_chip_options(chip, resolving, encoding))
    try:
        network, layout, complaints = understand(source, chip, resolving, arranged)
    except DiagnosticError as refusal:
        raise DiagnosticError((*options, *refusal.diagnostics)) from None
    if has_errors(options):
        raise DiagnosticError((*options, *complaints))
    layers = Numbering.of(network, chip, encoding.place.repeat_layers).count
    repetition = check_repetition(layers, chip, network.final.place)
    return network, *_placed(network, layout, chip, encoding, (*options, *complaints, *repetition))


def _placed(
    network: Network,
    layout: Layout,
    chip: Chip,
    encoding: EncodeOptions,
    diagnostics: tuple[Diagnostic, ...],
) -> tuple[Placement, tuple[Diagnostic, ...]]:
    """Place a network as far as what was found permits; return all warnings too."""
    options, unknown = encoding.place, blocked(diagnostics)
    if unknown & {Fact.PLACES, Fact.SIZES}:
        raise DiagnosticError(sorted(diagnostics, key=position))
    anywhere = replace(options, overlap_data=True)
    placement, problems = place_what_fits(
        network, layout, chip, anywhere if Fact.OVERLAPS in unknown else options
    )
    limits = check_limits(network, layout, chip, encoding)
    streams = check_streams(network, placement, chip, options)
    diagnostics = tuple(sorted((*diagnostics, *problems, *limits, *streams), key=position))
    refuse_errors(diagnostics)
    return placement, diagnostics


def synthesize(
    source: Source, chip: Chip, resolving: ResolveOptions, encoding: EncodeOptions
) -> Synthesis:
    """Run all stages up to the program; raise DiagnosticError where one refuses."""
    network, placement, warnings = examine(source, chip, resolving, encoding)
    if encoding.telling.cross_check:
        network.validate()
        overlaps = encoding.place.overlap_data or not encoding.place.stops_at_overlaps
        placement.validate(network, chip, overlaps=overlaps)
    activations = simulate(
        network,
        average_rounding=encoding.average_rounding,
        keep_traces=encoding.telling.keep_traces,
    )
    if encoding.telling.cross_check:
        from ai8xtools.synthesis.crosscheck import cross_check  # only for debugging

        cross_check(network, activations)
    program = encode(network, placement, activations, chip, encoding)
    summary = summarize(network, placement, activations, chip, encoding)
    complaints = (*warnings, *_all_zero(network, activations))
    return Synthesis(network, chip, placement, activations, program, summary, complaints)


def _all_zero(network: Network, activations: Activations) -> Iterator[Diagnostic]:
    """Warn of layers that compute nothing."""
    for layer in map(network.layer, network.simulated):
        if not activations.outputs[layer.index].any():
            yield layer.diagnostic(
                "W390",
                "all outputs are zero",
                "op",
                "Check weights and shifts.",
                Severity.WARNING,
                effects(silenced_by="--no-warn-zero"),
            )


def what_fits(
    source: Source, chip: Chip, resolving: ResolveOptions, encoding: EncodeOptions
) -> tuple[Network, Placement, tuple[Diagnostic, ...]]:
    """Place what fits of a network that is refused for want of room alone.

    Returns the complaints of the placement too; data may lie anywhere, even beyond the memory.
    Raises DiagnosticError if the network cannot be resolved.
    """
    network, fixed, _ = resolve(parse_file(source), chip, resolving)
    layout = complete(network.layers, network.order, fixed)
    options = replace(encoding.place, overlap_data=True)
    return network, *place_what_fits(network, layout, chip, options)
