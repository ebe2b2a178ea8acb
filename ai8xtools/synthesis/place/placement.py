"""The values of this stage and the function that makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Severity
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.mapping import map_network
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.options import PlaceOptions
from ai8xtools.synthesis.place.biases import BiasRange, place_biases
from ai8xtools.synthesis.place.data import check_overlap
from ai8xtools.synthesis.place.inplace import check_margins
from ai8xtools.synthesis.place.kernels import KernelMemory, KernelRange, place_kernels
from ai8xtools.synthesis.place.losses import check_losses, check_rounds
from ai8xtools.synthesis.place.rings import check_rings, ring_words
from ai8xtools.synthesis.place.streams import Stream, place_streams
from ai8xtools.values import frozen
from device import Chip

__all__ = [
    "BiasRange",
    "KernelMemory",
    "KernelRange",
    "PlaceOptions",
    "Placement",
    "Stream",
    "check_streams",
    "place",
    "place_what_fits",
]


@frozen
class Placement:
    """Data, kernel and bias memory of every layer (by layer index), images of the last two.

    `layout` is complete: it has the data memory and the processors of every layer.
    `bias_memory` holds, for each group, the bytes to load (uint8), `bias_start` which bias the
    first of them is. `streams` has the layers that
    take part in streaming, `rings` the words of the ring buffer that a layer reads.
    """

    layout: Layout
    kernels: Mapping[int, KernelRange]
    kernel_memory: KernelMemory
    biases: Mapping[int, BiasRange]
    bias_memory: tuple[NDArray[np.uint8], ...]
    bias_start: tuple[int, ...]
    streams: Mapping[int, Stream]
    rings: Mapping[int, int]

    def validate(self, network: Network, chip: Chip, *, overlaps: bool = False) -> None:
        """Raise InvariantError where this placement contradicts the network or itself.

        `overlaps`: data was allowed to overwrite other data.
        """
        from ai8xtools.synthesis.place.validation import validate_placement  # only for debugging

        validate_placement(self, map_network(network, self.layout, chip), overlaps=overlaps)


def place(network: Network, layout: Layout, chip: Chip, options: PlaceOptions) -> Placement:
    """Place a checked network; raise DiagnosticError naming every layer that does not fit.

    Streams are placed as they are; `check_streams` is whether they disturb each other.
    """
    placement, problems = place_what_fits(network, layout, chip, options)
    if any(p.severity.is_error for p in problems):
        raise DiagnosticError(problems)
    return placement


def place_what_fits(
    network: Network, layout: Layout, chip: Chip, options: PlaceOptions
) -> tuple[Placement, tuple[Diagnostic, ...]]:
    """Place what fits; return it with a complaint about every layer that does not."""
    problems: list[Diagnostic] = []
    mapped = map_network(network, layout, chip)
    kernels, memory = place_kernels(mapped, options, problems)
    biases, bias_memory = place_biases(mapped, options, problems)
    if not options.overlap_data:
        check_overlap(
            mapped, problems, Severity.ERROR if options.stops_at_overlaps else Severity.WARNING
        )
        check_losses(mapped, problems)
        problems += check_margins(mapped)
    streams = place_streams(mapped, options.streams)
    rings = ring_words(mapped, streams)
    placement = Placement(
        layout, kernels, memory, biases, bias_memory, options.occupied.biases, streams, rings
    )
    return placement, tuple(problems)


def check_streams(
    network: Network, placement: Placement, chip: Chip, options: PlaceOptions
) -> Iterator[Diagnostic]:
    """Complain about layers that run at the same time, and about rounds that follow each other."""
    mapped = map_network(network, placement.layout, chip)
    yield from check_rings(mapped, placement.streams, options)
    if options.repeat_layers > 1 and not options.overlap_data:
        yield from check_rounds(mapped)
