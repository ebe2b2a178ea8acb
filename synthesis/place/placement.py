"""The values of this stage and the function that makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device import Chip
from diagnostics import Diagnostic, DiagnosticError, Severity
from synthesis.layout import Layout
from synthesis.mapping import map_network
from synthesis.network import Network
from synthesis.place.biases import BiasRange, place_biases
from synthesis.place.data import check_overlap
from synthesis.place.kernels import KernelMemory, KernelRange, place_kernels
from synthesis.place.losses import check_losses
from synthesis.place.validation import validate_placement

__all__ = [
    "BiasRange",
    "KernelMemory",
    "KernelRange",
    "PlaceOptions",
    "Placement",
    "place",
    "place_what_fits",
]


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """Choices that move things.

    First kernel column, sharing of equal weights, whether data may overlap or a complaint about it
    is an error, and the loader with one array per processor, which places layers that begin in an
    upper lane earlier.
    """

    weight_start: int = 0
    deduplicate: bool = True
    overlap_data: bool = False
    stops_at_overlaps: bool = True
    old_kernel_loader: bool = False


@dataclass(frozen=True)
class Placement:
    """Data, kernel and bias memory of every layer (by layer index), images of the last two.

    `layout` is complete: it has the data memory and the processors of every layer.
    `bias_memory` holds, for each group, the bytes to load (uint8).
    """

    layout: Layout
    kernels: Mapping[int, KernelRange]
    kernel_memory: KernelMemory
    biases: Mapping[int, BiasRange]
    bias_memory: tuple[NDArray[np.uint8], ...]

    def validate(self, network: Network, chip: Chip, *, overlaps: bool = False) -> None:
        """Raise InvariantError where this placement contradicts the network or itself.

        `overlaps`: data was allowed to overwrite other data.
        """
        validate_placement(self, map_network(network, self.layout, chip), overlaps=overlaps)


def place(network: Network, layout: Layout, chip: Chip, options: PlaceOptions) -> Placement:
    """Place a checked network; raise DiagnosticError naming every layer that does not fit."""
    placement, problems = place_what_fits(network, layout, chip, options)
    if any(p.severity is Severity.ERROR for p in problems):
        raise DiagnosticError(problems)
    return placement


def place_what_fits(
    network: Network, layout: Layout, chip: Chip, options: PlaceOptions
) -> tuple[Placement, tuple[Diagnostic, ...]]:
    """Place what fits; return it with a complaint about every layer that does not."""
    problems: list[Diagnostic] = []
    mapped = map_network(network, layout, chip)
    kernels, memory = place_kernels(
        mapped,
        options.weight_start,
        options.deduplicate,
        options.old_kernel_loader,
        problems,
    )
    biases, bias_memory = place_biases(mapped, options.deduplicate, problems)
    if not options.overlap_data:
        check_overlap(
            mapped, problems, Severity.ERROR if options.stops_at_overlaps else Severity.WARNING
        )
        check_losses(mapped, problems)
    return Placement(layout, kernels, memory, biases, bias_memory), tuple(problems)
