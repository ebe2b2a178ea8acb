"""Kernels that nearly fill the memory are packed like rectangles."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from random import Random

import pytest

from ai8xtools.reading import progress
from ai8xtools.synthesis.arrange.blocks import groups_of
from ai8xtools.synthesis.arrange.decode import Try, decode, orders_of_cells
from ai8xtools.synthesis.arrange.packing import packer_of
from ai8xtools.synthesis.arrange.search import search
from tests.arranging.loads import instance


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_places_of_a_nearly_full_memory_are_found_in_few_tries(seed: int) -> None:
    """93 % of the kernel memory; none of the simple tries fits."""
    given = instance(Random(seed), 0.93, 0.3, Counter())
    found, tries = search(given)
    assert not found.cost
    assert 35 < tries < 150  # 35 simple tries come first


def test_a_packing_places_all_kernels_where_it_says() -> None:
    """The lowest free columns, in the order that is given, have room for each."""
    given = instance(Random(0), 0.93, 0.3, Counter())
    packer = packer_of(given, Random(3))
    assert packer is not None
    found = list(islice(packer.packings(5000), 5))
    assert found
    for packed in found:
        places = decode(given, Try(packed.starts, orders_of_cells(given)[0], packed.loads))
        assert not places.over and len(places.columns) == len(given.loads)


def test_searches_tell_how_far_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packing, and where kernels are no rectangles building and changing, up to all of it."""
    shares: dict[str, float] = {}

    def note(line: progress.Progress, steps: float = 1) -> None:
        shares[line._title] = shares.get(line._title, 0) + steps / (line._total or 0)

    monkeypatch.setattr(progress.Progress, "advance", note)
    given = instance(Random(11), 0.95, 0.3, Counter())
    assert search(given, 8)[0].cost
    assert search(replace(given, loads=(replace(given.loads[0], fixed=0), *given.loads[1:])), 8)
    names = ("Packing kernels", "Building places", "Searching for places")
    assert shares == {f"{name}, at most": pytest.approx(1, abs=0.1) for name in names}


def test_given_columns_leave_no_rectangles() -> None:
    given = instance(Random(0), 0.85, 0.3, Counter())
    assert groups_of(given) is not None
    loads = (replace(given.loads[0], fixed=0), *given.loads[1:])
    assert groups_of(replace(given, loads=loads)) is None


def test_packings_of_nearly_full_memories_take_no_more_steps_than_they_did() -> None:
    """Each of them needs several new beginnings; a step takes some 20 microseconds."""
    total = 0
    for load, seeds in ((0.93, (5, 7, 8, 9, 10)), (0.95, (3, 4, 8))):
        for seed in seeds:
            packer = packer_of(instance(Random(seed), load, 0.3, Counter()), Random(1))
            assert packer is not None
            assert next(packer.packings(12_000), None) is not None
            total += packer.steps
    assert total < 22_600  # they take 22 583


@pytest.mark.parametrize("seed", [11, 13])
def test_the_packing_ends_where_everything_has_been_tried(seed: int) -> None:
    packer = packer_of(instance(Random(seed), 0.95, 0.3, Counter()), Random(1))
    assert packer is not None
    assert not [*packer.packings(12_000)]
    assert packer.steps < 2000
