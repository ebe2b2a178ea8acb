"""The walk over a graph: order, values that change, memory."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np

from ai8xtools.integers.execution import Node, execute
from ai8xtools.integers.kernels import Integers


def total(values: Sequence[Integers]) -> Integers:
    return np.sum(values, axis=0) + 1


NODES = [
    Node(1, (0,), total),
    Node(2, (1, 0), total),
    Node(9, (9, 2), total),
    Node(3, (9, 9), total),
]
START = {0: np.array([10]), 9: np.array([100])}


def test_nodes_read_what_was_computed_last() -> None:
    found = execute(NODES, START)
    assert {number: value.item() for number, value in found.items()} == {
        0: 10, 1: 11, 2: 22, 9: 123, 3: 247,
    }  # fmt: skip
    assert [value.item() for value in START.values()] == [10, 100], "what was given stays"


def test_only_wanted_values_are_kept() -> None:
    assert {*execute(NODES, START, (3,))} == {3}
    assert {*execute(NODES, START, (0, 2))} == {0, 2}


def test_values_are_freed_after_their_last_use() -> None:
    alive: list[weakref.ref[Integers]] = []

    def watched(values: Sequence[Integers]) -> Integers:
        assert all(one() is None for one in alive[:-1]), "only the last one is read"
        made = np.array(values[0]) + 1
        alive.append(weakref.ref(made))
        return made

    nodes = (Node(number + 1, (number,), watched) for number in range(4))
    assert execute(nodes, {0: np.zeros(3, np.int64)}, (4,))[4].tolist() == [4, 4, 4]
    assert len(alive) == 4
