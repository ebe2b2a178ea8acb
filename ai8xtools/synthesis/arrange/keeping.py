"""Given keys narrow the problem before the search; what contradicts itself is refused.

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
from ai8xtools.synthesis.arrange.values import Cell, Choice, Tensor
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
    tensors: tuple[Tensor, ...],
    links: Links,
) -> tuple[tuple[Tensor, ...], dict[int, int]]:
    """Return the tensors in given processors, and the places of the origins of their sets."""
    origins: dict[int, int] = {}
    first: dict[int, Given] = {}
    changed = list(tensors)
    for given in given_masks(network, layout, number, reads):
        reason = unfit(given, tensors[given.tensor], choice)
        if reason is not None:
            raise UnreachableError(reason)
        root, distance = links.distances.find(given.tensor)
        start = lowest_bit(given.value)
        pattern = given.value >> start
        earlier = first.setdefault(root, given)
        origins.setdefault(root, start - distance)
        same = earlier.tensor == given.tensor
        differs = same and earlier.value != given.value
        if differs or origins[root] != start - distance:
            chain = shortest_chain(links.reasons, earlier.tensor, given.tensor)
            raise DiagnosticError(contradiction(earlier, given, chain))
        for i, tensor in enumerate(tensors):
            where = links.distances.find(i)
            alike = where == (root, distance) and tensor.width == tensors[given.tensor].width
            if alike and (i == given.tensor or tensor.owner != -1):
                changed[i] = replace(changed[i], pattern=pattern)
    _refuse_beyond(changed, links, origins, first)
    return tuple(changed), origins


def _refuse_beyond(
    tensors: Sequence[Tensor], links: Links, origins: Mapping[int, int], first: Mapping[int, Given]
) -> None:
    """What is tied to given processors has to be within the 64 as well."""
    for i, tensor in enumerate(tensors):
        root, distance = links.distances.find(i)
        if root not in origins:
            continue
        start = origins[root] + distance
        if start < 0 or start + tensor.span > PROCESSORS:
            given = first[root]
            raise DiagnosticError(
                contradiction(given, given, shortest_chain(links.reasons, given.tensor, i))
            )


def with_given_offsets(
    network: Network,
    layout: Layout,
    number: Mapping[int, int],
    reads: Sequence[Sequence[int]],
    slot: Sequence[int],
    tensors: Sequence[Tensor],
    links: Links,
    cell_of: Sequence[int],
    cells: tuple[Cell, ...],
) -> tuple[Cell, ...]:
    """Return the cells with the offsets that are given."""
    first: dict[int, Given] = {}
    for given in given_offsets(network, layout, number, reads, slot, tensors):
        cell = cell_of[given.tensor]
        earlier = first.setdefault(cell, given)
        if earlier.value != given.value:
            chain = shortest_chain(links.reasons, earlier.tensor, given.tensor)
            raise DiagnosticError(contradiction(earlier, given, chain))
    return tuple(
        replace(cell, fixed=first[i].value) if i in first else cell for i, cell in enumerate(cells)
    )
