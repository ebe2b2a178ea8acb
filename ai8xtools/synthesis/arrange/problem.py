"""The arrangement problem of a network: everything that the search has to keep.

Source: docs/placement.md, "Places that are left open".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from ai8xtools.synthesis.arrange.graph import sources
from ai8xtools.synthesis.arrange.inplace import overlaps_of
from ai8xtools.synthesis.arrange.keeping import (
    leave_gaps,
    with_given_offsets,
    with_given_processors,
)
from ai8xtools.synthesis.arrange.linking import Links, link_sources, tie_result
from ai8xtools.synthesis.arrange.links import Distances, Offsets
from ai8xtools.synthesis.arrange.tensors import owner_of, tensors_of, widens
from ai8xtools.synthesis.arrange.values import (
    BiasLoad,
    Cell,
    Choice,
    KernelLoad,
    Problem,
    StoredTensor,
    Unit,
)
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.mapping.hardware import hardware_for, widened
from ai8xtools.synthesis.network import Layer, Network
from device import Chip
from device.channels import kernel_columns, passes
from device.masks import lowest_bit


def problem_of(
    network: Network, layout: Layout, chip: Chip, choice: Choice, rings: Mapping[int, int]
) -> Problem:
    """Return what has to be arranged; raise DiagnosticError for what has no arrangement."""
    tensors = tensors_of(network, choice, rings)
    number = {tensor.owner: i for i, tensor in enumerate(tensors)}
    links = Links(len(tensors))
    reads = []
    for layer in network.executed():
        parts = tuple(number[_written(network, s)] for s in sources(network, layer))
        reads.append(parts)
        link_sources(network, layer, parts, tensors, links)
        result = number[owner_of(layer)]
        changed = tie_result(network, layer, parts, result, tensors, links)
        tensors = (*tensors[:result], changed, *tensors[result + 1 :])
    leave_gaps(network, layout, number, links)
    tensors, origins = with_given_processors(network, layout, choice, number, reads, tensors, links)
    unit_of, distance, units = _units(tensors, links.distances, origins)
    cell_of, slot, step, cells = _cells(tensors, links.offsets)
    cells = with_given_offsets(network, layout, number, reads, slot, tensors, links, cell_of, cells)
    pairs, twins = _meetings(tensors, cell_of, slot)
    return Problem(
        network, chip, choice, tensors, unit_of, distance, units, cell_of, slot, step, cells,
        tuple(reads), tuple(links.joins), _loads(network, layout, choice, reads),
        tuple(_biases(network, layout, chip, choice, reads)), pairs, twins,
        _nearness(network, tensors, number, step, slot, choice, rings),
    )  # fmt: skip


def _nearness(
    network: Network,
    tensors: tuple[StoredTensor, ...],
    number: Mapping[int, int],
    step: tuple[int, ...],
    slot: tuple[int, ...],
    choice: Choice,
    rings: Mapping[int, int],
) -> dict[tuple[int, int], int]:
    """Return how far results must stay below inputs where that is not the size of the result.

    A layer that streams must leave as much room below its ring as the ring itself takes.
    """
    if choice.in_place:
        return overlaps_of(network, tensors, number, step, slot)
    gaps = {}
    for layer in list(network.executed())[: choice.streamed]:
        (owner,) = sources(network, layer)
        source, result = number[owner], number[layer.index]
        gaps[result, source] = max(tensors[result].words * step[result], rings[layer.index] + 1)
    return gaps


def _written(network: Network, owner: int) -> int:
    """Return in whose tensor a source stands."""
    return owner_of(network.layer(owner)) if owner >= 0 else owner


def _units(
    tensors: tuple[StoredTensor, ...], ties: Distances, origins: Mapping[int, int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[Unit, ...]]:
    """Return unit and distance by tensor, and the units with their starts.

    `origins` are given places of the origins of sets in `ties`.
    """
    places = [ties.find(i) for i in range(len(tensors))]
    roots = list(dict.fromkeys(root for root, _ in places))
    numbers = {root: n for n, root in enumerate(roots)}
    units = []
    for root in roots:
        members = [i for i, (r, _) in enumerate(places) if r == root]
        least = min(places[i][1] for i in members)
        starts = set(range(64))
        for i in members:
            starts &= {s - places[i][1] + least for s in tensors[i].starts}
        if root in origins:
            starts = {origins[root] + least}
        units.append((least, Unit(tuple(members), tuple(sorted(starts)))))
    distance = tuple(d - units[numbers[root]][0] for root, d in places)
    return tuple(numbers[root] for root, _ in places), distance, tuple(u for _, u in units)


def _cells(
    tensors: tuple[StoredTensor, ...], offsets: Offsets
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[Cell, ...]]:
    """Return cell, slot and step by tensor, and the cells with their sizes."""
    roots = [offsets.find(i) for i in range(len(tensors))]
    numbers = {root: n for n, root in enumerate(dict.fromkeys(roots))}
    roles = [offsets.role(i) for i in range(len(tensors))]
    cells = []
    for root in numbers:
        members = tuple(i for i, r in enumerate(roots) if r == root)
        words = max(tensors[i].words * roles[i].step for i in members)
        cells.append(Cell(members, words))
    return (
        tuple(numbers[root] for root in roots),
        tuple(role.slot for role in roles),
        tuple(role.step for role in roles),
        tuple(cells),
    )


def _meetings(
    tensors: tuple[StoredTensor, ...], cell_of: tuple[int, ...], slot: tuple[int, ...]
) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Return pairs that are alive together: in different cells, and in one place of a cell."""
    meeting = [
        (a, b) for a, b in combinations(range(len(tensors)), 2) if tensors[a].meets(tensors[b])
    ]
    pairs = tuple((a, b) for a, b in meeting if cell_of[a] != cell_of[b])
    twins = tuple((a, b) for a, b in meeting if cell_of[a] == cell_of[b] and slot[a] == slot[b])
    return pairs, twins


def columns_of(layer: Layer, mask: int | None = None) -> int:
    """Return the kernel columns of a layer; unless given, its outputs leave no processor out.

    Kernels of processors in front of the first output, in its instance, and in between are empty.
    """
    rows, columns = hardware_for(layer, None).kernel
    in_passes = passes(layer.in_channels)
    if layer.depthwise:
        kernels = in_passes
    elif layer.flatten:
        pixels = layer.pooled_dim[0] * layer.pooled_dim[1]
        kernels = layer.out_channels * pixels * in_passes
    else:
        share = -(-layer.out_channels // passes(layer.out_channels))
        share = share if passes(layer.out_channels) == 1 else min(-(-share // 4) * 4, 64)
        if mask is not None:
            share = (mask >> lowest_bit(mask) // 4 * 4).bit_length()
        kernels = share * passes(layer.out_channels) * in_passes
    return kernel_columns(kernels, rows * columns, abs(layer.weight_bits))


def _loads(
    network: Network, layout: Layout, choice: Choice, reads: list[tuple[int, ...]]
) -> tuple[KernelLoad, ...]:
    """Return the kernels of the layers that have any, in the order of the layers."""
    contents: dict[tuple[object, ...], int] = {}
    loads = []
    for layer, parts in zip(network.executed(), reads, strict=True):
        if layer.weights is None or layer.bypass:
            continue
        hardware = widened(layer) if widens(layer, choice) else layer
        key = (
            layer.weights.shape, layer.weights.tobytes(), layer.weight_bits, layer.flatten,
            hardware.kernel, layer.dilation, layer.in_channels,
        )  # fmt: skip
        content = contents.setdefault(key, layer.index)
        fixed = layout.layers[layer.index].kernel_offset
        mask = layout.layers[layer.index].output_processors
        loads.append(
            KernelLoad(
                layer.index, parts, columns_of(hardware, mask), layer.depthwise, content, fixed
            )
        )
    return tuple(loads)


def _biases(
    network: Network,
    layout: Layout,
    chip: Chip,
    choice: Choice,
    reads: list[tuple[int, ...]],
) -> Iterator[BiasLoad]:
    """Yield the biases that need bytes of their own, in the order of the layers."""
    seen: set[tuple[object, ...]] = set()
    for layer, parts in zip(network.executed(), reads, strict=True):
        if layer.bias is None:
            continue
        lead = layer.index == 0 and choice.streamed > 0 and chip.skips_stream_bias
        key = layer.bias.tobytes(), layer.depthwise and parts, lead
        if key in seen:
            continue
        seen.add(key)
        yield BiasLoad(
            layer.index,
            layer.out_channels + lead,
            layer.flatten and chip.places_flatten_bias_first,
            layout.layers[layer.index].bias_groups,
            parts if layer.depthwise else None,
            passes(layer.out_channels),
        )
