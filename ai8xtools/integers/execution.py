"""The walk over a graph: nodes in their order, values by number, freed after their last use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ai8xtools.integers.kernels import Integers
from ai8xtools.values import frozen


@frozen
class Node:
    """How the value `target` is computed from those of `sources`."""

    target: int
    sources: tuple[int, ...]
    compute: Callable[[Sequence[Integers]], Integers]


def execute(
    nodes: Iterable[Node],
    values: Mapping[int, Integers],
    wanted: Collection[int] | None = None,
) -> dict[int, Integers]:
    """Return the given values and those that nodes compute, by number: all, or the wanted ones.

    A node may compute a number anew; later nodes read the new value.
    """
    order, results = list(nodes), dict(values)
    last = {n: place for place, node in enumerate(order) for n in (*node.sources, node.target)}
    for place, node in enumerate(order):
        results[node.target] = node.compute([results[number] for number in node.sources])
        if wanted is not None:
            for number in {*node.sources, node.target}.difference(wanted):
                if last[number] == place:
                    del results[number]
    return results
