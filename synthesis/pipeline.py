"""The stages in order, from files to a program."""

from __future__ import annotations

from dataclasses import dataclass, replace

from device import Chip
from diagnostics import Diagnostic, DiagnosticError, Severity
from synthesis.check import check, check_chip_options, check_repetition
from synthesis.encode import Numbering, encode
from synthesis.network import Network
from synthesis.options import EncodeOptions, ResolveOptions
from synthesis.parse import parse_file
from synthesis.place import Placement, PlaceOptions, place, place_what_fits
from synthesis.program import Program
from synthesis.resolve import resolve
from synthesis.simulate import Activations, simulate

MEMORY_CODES = frozenset({"E341", "E342", "E401", "E402", "E403", "E404"})
"""Complaints that something does not fit: the network itself is sound."""


@dataclass(frozen=True)
class Synthesis:
    """What each stage gave, and the warnings of all of them."""

    network: Network
    placement: Placement
    activations: Activations
    program: Program
    warnings: tuple[Diagnostic, ...]


def load(
    config_file: str, chip: Chip, options: ResolveOptions
) -> tuple[Network, tuple[Diagnostic, ...]]:
    """Parse, resolve and check: return the network and its warnings.

    Raises DiagnosticError with every error and warning found.
    """
    network, found = resolve(parse_file(config_file), chip, options)
    complaints = check(network, options.tolerated)
    if any(c.severity is Severity.ERROR for c in complaints):
        raise DiagnosticError((*found, *complaints))
    return network, (*found, *complaints)


def synthesize(
    config_file: str, chip: Chip, resolving: ResolveOptions, encoding: EncodeOptions
) -> Synthesis:
    """Run all stages up to the program; raise DiagnosticError where one refuses."""
    refused = tuple(check_chip_options(chip, resolving, encoding))
    if refused:
        raise DiagnosticError(refused)
    network, warnings = load(config_file, chip, resolving)
    layers = Numbering.of(network, encoding.repeat_layers).count
    refused = tuple(check_repetition(layers, chip))
    if refused:
        raise DiagnosticError((*warnings, *refused))
    placement = place(network, _place_options(encoding))
    activations = simulate(
        network,
        average_rounding=encoding.average_rounding,
        keep_traces=encoding.keep_traces,
    )
    if encoding.cross_check:
        from synthesis.crosscheck import cross_check  # only for debugging

        cross_check(network, placement, activations)
    silent = tuple(
        layer.diagnostic(
            "W390", "all outputs are zero", "op", "Check weights and shifts.", Severity.WARNING
        )
        for layer in map(network.layer, network.simulated)
        if not activations.outputs[layer.index].any()
    )
    program = encode(network, placement, activations, encoding)
    return Synthesis(network, placement, activations, program, (*warnings, *silent))


def what_fits(
    config_file: str, chip: Chip, resolving: ResolveOptions, encoding: EncodeOptions
) -> tuple[Network, Placement, tuple[Diagnostic, ...]]:
    """Place what fits of a network that is refused for MEMORY_CODES alone.

    Returns the complaints of the placement too; data may lie anywhere, even beyond the memory.
    Raises DiagnosticError if the network cannot be resolved.
    """
    network, _ = resolve(parse_file(config_file), chip, resolving)
    options = replace(_place_options(encoding), overlap_data=True)
    return network, *place_what_fits(network, options)


def _place_options(encoding: EncodeOptions) -> PlaceOptions:
    return PlaceOptions(
        encoding.weight_start,
        encoding.deduplicate,
        encoding.overlap_data,
        encoding.old_kernel_loader,
    )
