"""Given keys narrow the problem before the search; contradictions are refused.

Source: docs/placement.md, "Keys that are given".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.arrange.given import (
    Given,
    contradiction,
    given_masks,
    given_offsets,
    shortest_chain,
    unfit,
)
from ai8xtools.synthesis.arrange.linking import Links
from ai8xtools.synthesis.arrange.links import Role, TiedError
from ai8xtools.synthesis.arrange.tensors import owner_of
from ai8xtools.synthesis.arrange.values import Cell, Choice, StoredTensor
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.network import Network
from device.chip import PROCESSORS
from device.masks import lowest_bit


class UnreachableError(Exception):
    """Given processors cannot hold what a choice needs there; another choice may do."""


def leave_gaps(network: Network, layout: Layout, number: Mapping[int, int], links: Links) -> None:
    """Let results leave words free where a key says so and nothing else does."""
    for layer in network.executed():
        gap, result = layout.layers[layer.index].write_gap, number[owner_of(layer)]
        if gap and links.offsets.role(result) == Role():
            try:
                links.offsets.join({result: Role(gap + 1)})
            except TiedError:
                continue  # it is compared with the result later


def with_given_processors(
    network: Network,
    layout: Layout,
    choice: Choice,
    number: Mapping[int, int],
    reads: Sequence[Sequence[int]],
    tensors: tuple[StoredTensor, ...],
    links: Links,
) -> tuple[tuple[StoredTensor, ...], dict[int, int]]:
    """Return the tensors in given processors, and the places of the origins of their sets."""
    origins: dict[int, int] = {}
    first: dict[int, Given] = {}
    changed = list(tensors)
    for entry in given_masks(network, layout, number, reads):
        reason = unfit(entry, tensors[entry.tensor], choice)
        if reason is not None:
            raise UnreachableError(reason)
        root, distance = links.distances.find(entry.tensor)
        start = lowest_bit(entry.value)
        pattern = entry.value >> start
        earlier = first.setdefault(root, entry)
        origins.setdefault(root, start - distance)
        same = earlier.tensor == entry.tensor
        differs = same and earlier.value != entry.value
        if differs or origins[root] != start - distance:
            chain = shortest_chain(links.reasons, earlier.tensor, entry.tensor)
            raise DiagnosticError(contradiction(earlier, entry, chain))
        for i, tensor in enumerate(tensors):
            where = links.distances.find(i)
            alike = where == (root, distance) and tensor.width == tensors[entry.tensor].width
            if alike and (i == entry.tensor or tensor.owner != -1):
                changed[i] = replace(changed[i], pattern=pattern)
    _refuse_beyond(changed, links, origins, first)
    return tuple(changed), origins


def _refuse_beyond(
    tensors: Sequence[StoredTensor],
    links: Links,
    origins: Mapping[int, int],
    first: Mapping[int, Given],
) -> None:
    """What is tied to given processors has to be within the 64 as well."""
    for i, tensor in enumerate(tensors):
        root, distance = links.distances.find(i)
        if root not in origins:
            continue
        start = origins[root] + distance
        if start < 0 or start + tensor.span > PROCESSORS:
            entry = first[root]
            raise DiagnosticError(
                contradiction(entry, entry, shortest_chain(links.reasons, entry.tensor, i))
            )


def with_given_offsets(
    network: Network,
    layout: Layout,
    number: Mapping[int, int],
    reads: Sequence[Sequence[int]],
    slot: Sequence[int],
    tensors: Sequence[StoredTensor],
    links: Links,
    cell_of: Sequence[int],
    cells: tuple[Cell, ...],
) -> tuple[Cell, ...]:
    """Return the cells with the offsets that are given."""
    first: dict[int, Given] = {}
    for entry in given_offsets(network, layout, number, reads, slot, tensors):
        cell = cell_of[entry.tensor]
        earlier = first.setdefault(cell, entry)
        if earlier.value != entry.value:
            chain = shortest_chain(links.reasons, earlier.tensor, entry.tensor)
            raise DiagnosticError(contradiction(earlier, entry, chain))
    return tuple(
        replace(cell, fixed=first[i].value) if i in first else cell for i, cell in enumerate(cells)
    )
