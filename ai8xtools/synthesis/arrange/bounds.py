"""Proofs that nothing fits, each with the layers or data that prove it.

They hold wherever things are put, cost little, and come before any search.
Source: docs/placement.md, "Proofs that nothing fits".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

from ai8xtools.synthesis.arrange.values import BLOCK, KernelLoad, Problem
from ai8xtools.values import frozen
from device.channels import channels_per_pass
from device.chip import GROUPS, INSTANCES, PROCESSORS


@frozen
class Witness:
    """Why nothing fits: a sentence, the layers it is about, and whether it is about data."""

    text: str
    layers: tuple[int, ...]
    of_data: bool = False


def witness_of(problem: Problem) -> Witness | None:
    """Return the first proof that a problem has no solution; None if none is known."""
    for proof in (_starts, _order, _single, _kernel_clique, _kernel_volume, _data, _biases):
        for witness in proof(problem):
            return witness
    return None


def _names(problem: Problem, layers: tuple[int, ...]) -> str:
    shown = [str(problem.layer(i).name or f"layer {i}") for i in layers]
    return ", ".join(shown[:8]) + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")


def _width(problem: Problem, load: KernelLoad) -> int:
    return channels_per_pass(problem.layer(load.layer).in_channels)


def _capacity(problem: Problem, width: int) -> int:
    """Columns of the processors that a layer of so many channels can use."""
    chip = problem.chip
    return chip.kernel_columns_first if width <= GROUPS else chip.kernel_columns


def _single(problem: Problem) -> Iterator[Witness]:
    """Kernels, biases or data of one layer alone are too large."""
    chip = problem.chip
    for load in problem.loads:
        limit = _capacity(problem, _width(problem, load))
        if load.columns > limit:
            layer = problem.layer(load.layer)
            yield Witness(
                f"the kernels of {layer} need {load.columns} columns in each processor, "
                f"{chip.name} has {limit}",
                (load.layer,),
            )
    for bias in problem.biases:
        if bias.by_channel is None and bias.count > chip.bias_bytes:
            yield Witness(
                f"the bias of {problem.layer(bias.layer)} has {bias.count} bytes and stands in one "
                f"group, which has {chip.bias_bytes}",
                (bias.layer,),
            )
    for number, tensor in enumerate(problem.tensors):
        words = tensor.words * problem.step[number]
        if words > problem.capacity:
            yield Witness(
                f"{problem.name(number)} takes {4 * words} bytes of a data memory instance, "
                f"{chip.name} has {chip.instance_bytes}",
                (max(tensor.owner, 0),),
                of_data=True,
            )


def _stored(problem: Problem) -> list[KernelLoad]:
    """Return the kernels that need columns of their own wherever they are."""
    seen: dict[int, KernelLoad] = {}
    for load in problem.loads:
        seen.setdefault(load.content, load)
    return list(seen.values())


def _kernel_volume(problem: Problem) -> Iterator[Witness]:
    stored = _stored(problem)
    need = sum(_width(problem, load) * load.blocks * BLOCK for load in stored)
    have = sum(map(problem.chip.kernel_capacity, range(PROCESSORS)))
    have -= sum(map(int.bit_count, problem.occupied.columns))
    if need > have:
        largest = sorted(stored, key=lambda x: -_width(problem, x) * x.blocks)
        yield Witness(
            f"the kernels need {need} columns of all processors together, {problem.chip.name} has "
            f"{have}{problem.occupied.beside}; the largest are those of "
            f"{_names(problem, tuple(x.layer for x in largest[:3]))}",
            tuple(load.layer for load in largest),
        )


def _kernel_clique(problem: Problem) -> Iterator[Witness]:
    """Two layers of more than 64 channels together share a processor wherever they are."""
    stored = [(_width(problem, load), load) for load in _stored(problem)]
    cliques: list[tuple[list[tuple[int, KernelLoad]], int]] = []
    for width, load in stored:
        limit = _capacity(problem, width)
        others = [(w, x) for w, x in stored if x is not load and w > 32 and w + width > PROCESSORS]
        clique = [(width, load), *others]
        if sum(x.blocks for _, x in clique) * BLOCK <= limit:
            continue
        clique.sort(key=lambda pair: -pair[1].blocks)
        while sum(x.blocks for _, x in clique[:-1]) * BLOCK > limit:
            del clique[-1]
        cliques.append((clique, limit))
    if cliques:
        best, have = min(cliques, key=lambda one: len(one[0]))
        layers = tuple(sorted(load.layer for _, load in best))
        columns = sum(x.blocks for _, x in best) * BLOCK
        counts = {x.layer: x.columns for _, x in best}
        parts = ", ".join(f"{problem.layer(i).name or f'layer {i}'} ({counts[i]})" for i in layers)
        yield Witness(
            f"{parts} share processors wherever they are: together {columns} columns of {have}",
            layers,
        )


def _starts(problem: Problem) -> Iterator[Witness]:
    """Tensors that are tied to each other need a place at which all of them may begin."""
    for unit in problem.units:
        if not unit.starts:
            names = " and ".join(problem.name(i) for i in unit.members[:3])
            *_, last = unit.members
            yield Witness(
                f"{names} stand at fixed distances from each other, and not all of them can begin "
                "at a multiple of 4",
                (max(problem.tensors[last].owner, 0),),
            )


def _order(problem: Problem) -> Iterator[Witness]:
    """Parts of joins stand in rising order; several joins, and ties, can contradict each other.

    All units have a place.
    """
    least = [min(unit.starts) for unit in problem.units]
    moved = True
    while moved:  # each move is upward, and no unit has a place above its last one
        moved = False
        for parts in problem.joins:
            for before, after in pairwise(parts):
                span = problem.tensors[before].room
                end = least[problem.unit_of[before]] + problem.distance[before] + span
                unit = problem.unit_of[after]
                if least[unit] + problem.distance[after] < end:
                    least[unit], moved = end - problem.distance[after], True
                if least[unit] > max(problem.units[unit].starts):
                    yield _out_of_order(problem, parts, before, after)
                    return


def _out_of_order(problem: Problem, parts: tuple[int, ...], before: int, after: int) -> Witness:
    reader = next(
        layer
        for layer, reads in zip(problem.network.executed(), problem.reads, strict=True)
        if reads == parts
    )
    return Witness(
        f"{reader} joins {problem.name(before)} and {problem.name(after)}; other layers that "
        "join, combine or pass them on keep the second from standing behind the first",
        (reader.index,),
    )


def tied_in_vain(problem: Problem) -> Witness | None:
    """Return what is wrong with ties and the order of joined parts alone, None if nothing is."""
    return next(chain(_starts(problem), _order(problem)), None)


def _instances(problem: Problem, tensor: int) -> int:
    """Return in how many memory instances a tensor stands, at the least."""
    pattern = problem.tensors[tensor].pattern
    return sum(bool(pattern >> 4 * i & 0xF) for i in range(INSTANCES))


def _alive(problem: Problem, position: int) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Return what is in memory at a position: instances, words, tensor, by cell and unit."""
    alive: dict[tuple[int, int], tuple[int, int, int]] = {}
    for number, tensor in enumerate(problem.tensors):
        if tensor.born <= position <= tensor.dies:
            key = problem.cell_of[number], problem.unit_of[number]
            words = tensor.words * problem.step[number]
            entry = _instances(problem, number), words, number
            if key not in alive or alive[key][1] < words:
                alive[key] = entry
    return alive


def _shared(problem: Problem, entries: list[tuple[int, int, int]]) -> int:
    """Return the words by which results may overwrite inputs among some tensors."""
    numbers = {number for _, _, number in entries}
    saved = 0
    for (result, source), apart in problem.overlaps.items():
        if result in numbers and source in numbers:
            saved += max(0, problem.tensors[result].words * problem.step[result] - apart)
    return saved


def _data(problem: Problem) -> Iterator[Witness]:
    """Data that is needed at the same time takes more words than all instances have, or than one
    has.
    """
    for position in range(len(problem.network.order)):
        entries = list(_alive(problem, position).values())
        need = sum(count * words for count, words, _ in entries)
        have = INSTANCES * problem.capacity
        saved = INSTANCES * _shared(problem, entries)
        if need - saved > have:
            yield _too_much(problem, position, [n for _, _, n in entries], need, have, "all")
        for first in entries:
            clique = [
                e
                for e in entries
                if e is first or (e[0] > INSTANCES // 2 and e[0] + first[0] > INSTANCES)
            ]
            words = sum(e[1] for e in clique) - _shared(problem, clique)
            if words > problem.capacity:
                numbers = [n for _, _, n in clique]
                yield _too_much(problem, position, numbers, words, problem.capacity, "one")


def _too_much(
    problem: Problem, position: int, tensors: list[int], need: int, have: int, where: str
) -> Witness:
    names = " and ".join(problem.name(n) for n in tensors)
    at = problem.network.layer(problem.network.order[position])
    memory = "the data memory" if where == "all" else "a data memory instance"
    return Witness(
        f"at {at}, {names} are in memory together: {4 * need} bytes, {memory} of "
        f"{problem.chip.name} has {4 * have}",
        tuple(max(problem.tensors[n].owner, 0) for n in tensors),
        of_data=True,
    )


def _biases(problem: Problem) -> Iterator[Witness]:
    total = sum(load.count for load in problem.biases)
    have = GROUPS * problem.chip.bias_bytes
    if total > have:
        yield Witness(
            f"the biases need {total} bytes, {problem.chip.name} has {have}",
            tuple(load.layer for load in problem.biases),
        )
