"""The stages in order, from files to a program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property

from device import Chip
from diagnostics import Diagnostic, DiagnosticError, Severity, has_errors
from synthesis.arrange import complete
from synthesis.check import (
    CONSTRAINTS,
    check,
    check_chip_options,
    check_repetition,
    check_sound_layers,
)
from synthesis.encode import Numbering, check_limits, encode
from synthesis.facts import Fact, blocked, effects
from synthesis.layout import Layout
from synthesis.mapping import MappedNetwork, map_network
from synthesis.network import Network
from synthesis.options import EncodeOptions, ResolveOptions
from synthesis.parse import parse_file, parse_sound_parts_of, position
from synthesis.place import Placement, PlaceOptions, check_streams, place_what_fits
from synthesis.program import Program
from synthesis.resolve import resolve, resolve_what_is_sound
from synthesis.simulate import Activations, simulate
from synthesis.summarize import summarize
from synthesis.summary import Summary
from values import frozen


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


def _checked(
    config_file: str, chip: Chip, options: ResolveOptions, placing: PlaceOptions
) -> tuple[Network, Layout, tuple[Diagnostic, ...]]:
    """Return a network that is complete, its layout, and everything that is to be said about it.

    Of one that is not, everything that can be told is in the DiagnosticError.
    """
    description = parse_sound_parts_of(config_file)
    known = resolve_what_is_sound(description, chip, options)
    found = (*description.errors, *known.problems)
    if known.network is not None:
        layout = complete(known.network.layers, known.network.order, known.layout)
        found += tuple(check(known.network, layout, chip, options.waiving))
        return known.network, layout, found
    order = [layer.index for layer in known.layers]
    layout = complete(known.layers, order, known.layout)
    rest = check_sound_layers(
        known.layers, layout, chip, known.damaged, known.bare, known.suspect, options.waiving
    )
    if known.beginning is not None:
        rest += _of_the_beginning(*known.beginning, chip, options, placing)
    raise DiagnosticError(
        sorted(dict.fromkeys((*_no_consequences(found, rest), *rest)), key=position)
    )


def _no_consequences(
    found: Iterable[Diagnostic], constraints: Iterable[Diagnostic]
) -> Iterator[Diagnostic]:
    """Leave out contradictions of sizes behind a layer that got another size than was meant."""
    wrong = [position(d) for d in constraints if Fact.SIZES in d.effects.blocks]
    for diagnostic in found:
        late = bool(wrong) and position(diagnostic) > min(wrong)
        if not (late and Fact.SIZES in diagnostic.effects.needs):
            yield diagnostic


def _of_the_beginning(
    network: Network,
    fixed: Layout,
    chip: Chip,
    options: ResolveOptions,
    placing: PlaceOptions,
) -> list[Diagnostic]:
    """Return the errors of the sound layers in front that hold whatever comes behind."""
    layout = complete(network.layers, network.order, fixed)
    complaints = check(network, layout, chip, options.waiving)
    errors = [d for d in complaints if d.severity is Severity.ERROR]
    lasting = {entry.code for entry in CONSTRAINTS if entry.holds_for_prefix}
    found = [d for d in errors if d.code in lasting]
    if not blocked(errors) & {Fact.PLACES, Fact.SIZES, Fact.OVERLAPS}:
        _, problems = place_what_fits(network, layout, chip, placing)
        found += [p for p in problems if p.severity is Severity.ERROR]
    return found


def examine(
    config_file: str, chip: Chip, resolving: ResolveOptions, encoding: EncodeOptions
) -> tuple[Network, Placement, tuple[Diagnostic, ...]]:
    """Run all stages that judge the network; return it with its placement and the warnings.

    Raises DiagnosticError with everything found.
    """
    found = tuple(check_chip_options(chip, resolving, encoding))
    options = encoding.placing
    try:
        network, layout, complaints = _checked(config_file, chip, resolving, options)
    except DiagnosticError as refusal:
        raise DiagnosticError((*found, *refusal.diagnostics)) from None
    if has_errors(found):
        raise DiagnosticError((*found, *complaints))
    layers = Numbering.of(network, chip, encoding.repeat_layers).count
    found = (*found, *complaints, *check_repetition(layers, chip, network.final.place))
    unknown = blocked(found)
    if unknown & {Fact.PLACES, Fact.SIZES}:
        raise DiagnosticError(sorted(found, key=position))
    anywhere = replace(options, overlap_data=True)
    placement, problems = place_what_fits(
        network, layout, chip, anywhere if Fact.OVERLAPS in unknown else options
    )
    found = (
        *found,
        *problems,
        *check_limits(network, layout, chip, encoding),
        *check_streams(network, placement, chip, options),
    )
    found = tuple(sorted(found, key=position))
    if has_errors(found):
        raise DiagnosticError(found)
    return network, placement, found


def synthesize(
    config_file: str, chip: Chip, resolving: ResolveOptions, encoding: EncodeOptions
) -> Synthesis:
    """Run all stages up to the program; raise DiagnosticError where one refuses."""
    network, placement, warnings = examine(config_file, chip, resolving, encoding)
    if encoding.cross_check:
        network.validate()
        overlaps = encoding.overlap_data or not encoding.stops_at_overlaps
        placement.validate(network, chip, overlaps=overlaps)
    activations = simulate(
        network,
        average_rounding=encoding.average_rounding,
        keep_traces=encoding.keep_traces,
    )
    if encoding.cross_check:
        from synthesis.crosscheck import cross_check  # only for debugging

        cross_check(network, activations)
    silent = tuple(
        layer.diagnostic(
            "W390",
            "all outputs are zero",
            "op",
            "Check weights and shifts.",
            Severity.WARNING,
            effects(silenced_by="--no-warn-zero"),
        )
        for layer in map(network.layer, network.simulated)
        if not activations.outputs[layer.index].any()
    )
    program = encode(network, placement, activations, chip, encoding)
    summary = summarize(network, placement, activations, chip, encoding.telling)
    found = (*warnings, *silent)
    return Synthesis(network, chip, placement, activations, program, summary, found)


def what_fits(
    config_file: str, chip: Chip, resolving: ResolveOptions, encoding: EncodeOptions
) -> tuple[Network, Placement, tuple[Diagnostic, ...]]:
    """Place what fits of a network that is refused for want of room alone.

    Returns the complaints of the placement too; data may lie anywhere, even beyond the memory.
    Raises DiagnosticError if the network cannot be resolved.
    """
    network, fixed, _ = resolve(parse_file(config_file), chip, resolving)
    layout = complete(network.layers, network.order, fixed)
    options = replace(encoding.placing, overlap_data=True)
    return network, *place_what_fits(network, layout, chip, options)
