"""From a description to a network that is understood: parse, resolve, check.

This is all that a target without the accelerator needs of this room, besides the simulation.
"""

from __future__ import annotations

from collections.abc import Callable

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, has_errors
from ai8xtools.synthesis.arrange import complete, is_left_open
from ai8xtools.synthesis.check import check, check_network
from ai8xtools.synthesis.facts import without_doubts
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Source, parse_file
from ai8xtools.synthesis.resolve import resolve
from device import Chip

Arranger = Callable[[Network, Layout], tuple[Network, Layout, tuple[Diagnostic, ...]]]
"""Chooses what a layout leaves open; may add layers that only move data."""


def understand(
    source: Source,
    chip: Chip | None,
    options: ResolveOptions,
    arrange: Arranger | None = None,
) -> tuple[Network, Layout, tuple[Diagnostic, ...]]:
    """Return the network of a description, its layout, and every complaint about it.

    Constraints may be violated: there can be errors among the complaints. With a chip the layout is
    complete; without one, nothing has to be placed, kernels and strides may have every size, and
    only constraints of networks are tested. `arrange` chooses the places that a description leaves
    open. No words of another tool are to be kept then, and what is not expected to work is an
    error. Raises DiagnosticError, with all messages, if there is no network.
    """
    try:
        description = parse_file(source, placed=chip is not None, limited=chip is not None)
        network, layout, complaints = resolve(description, chip, options)
    except DiagnosticError:
        from ai8xtools.synthesis.recovery import recover  # most descriptions are sound

        network, layout, complaints = recover(source, chip, options)
    if chip is None:
        return network, layout, shown((*complaints, *check_network(network, options.waiving)))
    chosen = arrange is not None and is_left_open(network.layers, layout)
    if arrange is not None and chosen:
        wrong = check_network(network, options.waiving)
        if has_errors(wrong):
            raise DiagnosticError((*complaints, *wrong))
        network, layout, notes = arrange(network, layout)
        complaints = (*complaints, *notes)
    layout = complete(network.layers, network.order, layout)
    checked = check(network, layout, chip, options.waiving)
    return network, layout, shown((*complaints, *(without_doubts(checked) if chosen else checked)))


def shown(complaints: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """Return the complaints to show; hints are shown beside errors only."""
    wrong = has_errors(complaints)
    return tuple(d for d in complaints if wrong or not d.effects.hint)
