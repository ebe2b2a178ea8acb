"""Data that layers tie together, in places of the search's choice and in given ones.

Each network is executed on the emulated chip and must compute what the description says.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.arrange.polish import cycles, polished, simplified
from ai8xtools.synthesis.arrange.problem import problem_of
from ai8xtools.synthesis.arrange.search import search
from ai8xtools.synthesis.arrange.values import Choice
from ai8xtools.synthesis.layout import LayerLayout, Layout
from device import MAX78000, MAX78002, Chip
from tests.synthesis.arranged import ADD, CONV, ONE, PASS, Arranged, arranged, kernels_of
from tests.synthesis.networks import Keys

FIRST = {**CONV, "name": "first"}
END = {**ONE, "name": "end"}
DEPTHWISE = {**CONV, "name": "join"}


def names_of(counts: Sequence[int]) -> list[str]:
    """Return the names of the parts."""
    return [f"part{i}" for i in range(len(counts))]


def listed(names: Sequence[str]) -> str:
    """Return the value of a key that lists names."""
    return f"[{', '.join(names)}]"


def joined(
    folder: Path,
    counts: Sequence[int],
    join: Keys,
    chip: Chip,
    own: Sequence[tuple[int, ...]] = (),
    *,
    tail: bool = True,
) -> Arranged:
    """Arrange a network that joins maps of so many channels; `tail`: one more layer reads them."""
    parts = [{**ONE, "name": name, "in_sequences": "first"} for name in names_of(counts)]
    join = {"name": "join", "in_sequences": listed(names_of(counts)), **join}
    shapes = [(8, 3, 3, 3), *((n, 8, 1, 1) for n in counts), *own, (4, sum(counts), 1, 1)]
    layers = (FIRST, *parts, join, END) if tail else (FIRST, *parts, join)
    shapes = shapes if tail else shapes[:-1]
    return arranged(folder, *layers, shape=(3, 4, 4), kernels=kernels_of(*shapes), chip=chip)


@pytest.mark.parametrize("counts", [(8, 8), (5, 9, 3), (20, 12, 16)])
def test_joined_maps_are_passed_on(tmp_path: Path, counts: tuple[int, ...]) -> None:
    joined(tmp_path, counts, PASS, MAX78000)


@pytest.mark.parametrize("counts", [(40, 38), (40, 40), (20, 20, 35)])
def test_joined_passes_are_filled_up_for_narrow_weights(
    tmp_path: Path, counts: tuple[int, ...]
) -> None:
    """Inputs of narrow weights fill all passes; what is missing is added to the last part."""
    end = {**ONE, "quantization": 4}
    found = joined(tmp_path, counts, end, MAX78000, [(4, sum(counts), 1, 1)], tail=False)
    added = next(x for x in found.made.network.layers if x.name == names_of(counts)[-1])
    assert added.out_channels == 80 - sum(counts[:-1])


@pytest.mark.parametrize("counts", [(8, 20), (6, 6), (20, 12, 16)])
def test_joined_maps_are_convolved_depth_wise(tmp_path: Path, counts: tuple[int, ...]) -> None:
    count = sum(counts)
    joined(tmp_path, counts, {**CONV, "groups": count}, MAX78002, [(count, 1, 3, 3)])


@pytest.mark.parametrize(
    "counts, mask",
    [
        ((6, 6), 0x3F3F),
        ((5, 6), 0x3F1F << 16),
        ((3, 4, 5), 0x1FF7),
        ((18, 8), 0xFF << 32 | 0x3FFFF),
        ((3, 13, 4), 0xF << 32 | 0x1FFF << 16 | 7),
    ],
)
@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_parts_with_gaps_between_them_are_passed_on_from_given_processors(
    tmp_path: Path, counts: tuple[int, ...], mask: int, chip: Chip
) -> None:
    """Within one group the result closes up; otherwise what is behind a gap begins a group."""
    found = joined(tmp_path, counts, {**PASS, "processors": hex(mask)}, chip)
    assert found.layout("join").processors == mask
    assert (found.layout("end").processors or 0).bit_count() == sum(counts)


@pytest.mark.parametrize("counts, mask", [((18, 6), 0x3F << 20 | 0x3FFFF), ((6, 14), 0x3FFF3F)])
def test_parts_that_are_passed_on_across_groups_have_no_gap_within_one(
    tmp_path: Path, counts: tuple[int, ...], mask: int
) -> None:
    with pytest.raises(DiagnosticError):
        joined(tmp_path, counts, {**PASS, "processors": hex(mask)}, MAX78000)


NETWORKS: dict[str, tuple[tuple[Keys, ...], tuple[int, ...], tuple[tuple[int, ...], ...]]] = {
    "a sum": (
        (FIRST, {**ONE, "name": "a"}, {**ONE, "name": "b", "in_sequences": "first"},
         {**ADD, "name": "sum", "in_sequences": "[a, b]"}, END),
        (3, 4, 4), ((8, 3, 3, 3), (8, 8, 1, 1), (8, 8, 1, 1), (4, 8, 1, 1)),
    ),
    "a join": (
        (FIRST, {**ONE, "name": "a"}, {**ONE, "name": "b", "in_sequences": "first"},
         {**ONE, "name": "end", "in_sequences": "[a, b]"}),
        (3, 4, 4), ((8, 3, 3, 3), (10, 8, 1, 1), (5, 8, 1, 1), (4, 15, 1, 1)),
    ),
    "two passes": (
        (FIRST, *({**ONE, "name": n, "in_sequences": "first"} for n in "abc"),
         {**ONE, "name": "end", "in_sequences": "[a, b, c]"}),
        (3, 4, 4), ((8, 3, 3, 3), (20, 8, 1, 1), (20, 8, 1, 1), (40, 8, 1, 1), (4, 80, 1, 1)),
    ),
    "passed on": (
        (FIRST, {**PASS, "name": "pass"}, {**ONE, "name": "a"}, END),
        (3, 4, 4), ((8, 3, 3, 3), (6, 8, 1, 1), (4, 6, 1, 1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_places_that_were_found_are_kept_when_they_are_given(tmp_path: Path, name: str) -> None:
    """Each layer's own places, given one layer at a time, and all at once."""
    layers, shape, shapes = NETWORKS[name]
    kernels = kernels_of(*shapes)

    def with_keys(chosen: set[str]) -> Arranged:
        changed = [
            {**layer, **keys[str(layer["name"])]} if layer["name"] in chosen else layer
            for layer in layers
        ]
        return arranged(tmp_path, *changed, shape=shape, kernels=kernels, execute=False)

    keys: dict[str, dict[str, int]] = {}
    first = with_keys(set())
    for layer in map(str, first.names):  # a sum goes into the layer behind it
        for key in ("processors", "output_processors", "in_offset", "out_offset", "write_gap"):
            keys.setdefault(layer, {})[key] = getattr(first.layout(layer), key)
    for chosen in (*({name} for name in keys), set(keys)):
        again = with_keys(chosen)
        for layer in chosen:
            for key, value in keys[layer].items():
                assert getattr(again.layout(layer), key) == value, (layer, key)


@pytest.mark.parametrize(
    "name, layer, key, value",
    [
        ("a sum", "sum", "processors", 0xFF00),
        ("a sum", "b", "output_processors", 0xFF0000),
        ("a join", "end", "processors", 0x1F << 16 | 0x3FF),
        ("a join", "end", "processors", 0x1F << 48 | 0x3FF << 4),
        ("two passes", "end", "processors", (1 << 40) - 1 << 16),
        ("two passes", "b", "output_processors", (1 << 20) - 1 << 24),
        ("passed on", "pass", "processors", 0xFF000),
        ("passed on", "a", "in_offset", 0x2000),
        ("a join", "end", "in_offset", 0x1004),
        ("two passes", "end", "in_offset", 0x100C),
    ],
)
def test_a_given_place_is_kept_and_the_others_follow(
    tmp_path: Path, name: str, layer: str, key: str, value: int
) -> None:
    layers, shape, shapes = NETWORKS[name]
    changed = [{**x, key: hex(value)} if x["name"] == layer else x for x in layers]
    found = arranged(tmp_path, *changed, shape=shape, kernels=kernels_of(*shapes))
    assert getattr(found.layout(layer), key) == value


@pytest.mark.parametrize(
    "name, keys",
    [
        ("a sum", {"sum": {"processors": "0xfff"}}),  # 8 channels
        ("a join", {"end": {"processors": "0xfff"}}),  # 15 channels
        ("a sum", {"a": {"output_processors": "0xff"}, "b": {"output_processors": "0xff0"}}),
        ("a sum", {"a": {"out_offset": 0x100}, "b": {"out_offset": 0x100}}),
        ("two passes", {"a": {"output_processors": hex((1 << 20) - 1 << 44)}}),  # c is beyond
        ("two passes", {"c": {"output_processors": hex((1 << 40) - 1)}, "b": {
            "output_processors": hex((1 << 20) - 1)}}),
        ("a join", {"end": {"in_offset": 0x1002}}),  # between two words
        ("two passes", {"b": {"out_offset": 0x1002}}),
    ],
)  # fmt: skip
def test_given_places_that_contradict_each_other_are_refused(
    tmp_path: Path, name: str, keys: dict[str, Keys]
) -> None:
    layers, shape, shapes = NETWORKS[name]
    changed = [{**x, **keys.get(str(x["name"]), {})} for x in layers]
    with pytest.raises(DiagnosticError) as caught:
        arranged(tmp_path, *changed, shape=shape, kernels=kernels_of(*shapes), execute=False)
    assert any(d.code.startswith("E") for d in caught.value.diagnostics)


MERGED = [
    pytest.param({"max_pool": 2, "pool_stride": 2}, {"max_pool": 3, "pool_stride": 1}, 1,
                 id="two maxima"),
    pytest.param({"avg_pool": 2, "pool_stride": 2}, {"max_pool": 2, "pool_stride": 2}, 2,
                 id="average and maximum"),
    pytest.param({"max_pool": 2, "pool_stride": 2}, {"avg_pool": 2, "pool_stride": 2}, 2,
                 id="maximum and average"),
    pytest.param({"max_pool": 6, "pool_stride": 2}, {"max_pool": 7, "pool_stride": 1}, 2,
                 id="17 wide"),
    pytest.param({"max_pool": 4, "pool_stride": 2}, {"max_pool": 7, "pool_stride": 1}, 1,
                 id="16 wide"),
]  # fmt: skip


@pytest.mark.parametrize("one, other, layers", MERGED)
def test_poolings_in_a_row_are_one_where_that_is_the_same(
    tmp_path: Path, one: Keys, other: Keys, layers: int
) -> None:
    """One pooling goes into the convolution behind it, and the one before too if it can."""
    found = arranged(
        tmp_path, FIRST, {**PASS, **one, "name": "p"}, {**PASS, **other, "name": "q"}, END,
        shape=(3, 24, 24), kernels=kernels_of((8, 3, 3, 3), (4, 8, 1, 1)),
    )  # fmt: skip
    assert len(found.names) == layers + 1


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
@pytest.mark.parametrize("before, behind", [(2, 2), (2, 1), (1, 2)])
def test_sums_and_poolings_go_into_a_convolution_where_it_has_room(
    tmp_path: Path, before: int, behind: int, chip: Chip
) -> None:
    def pooled(size: int) -> Keys:
        return {"max_pool": 2, "pool_stride": 2} if size == 2 else {}

    layers = (
        FIRST, {**CONV, "name": "b"},
        {**ADD, "in_sequences": "[first, b]", **pooled(before), "name": "sum"},
        {**CONV, **pooled(behind), "name": "end"},
    )  # fmt: skip
    kernels = kernels_of((8, 3, 3, 3), (8, 8, 3, 3), (4, 8, 3, 3))
    found = arranged(tmp_path, *layers, shape=(3, 12, 12), kernels=kernels, chip=chip)
    assert ("sum" in found.names) == (before == behind == 2)


def test_operands_of_two_sums_take_turns_or_are_copied(tmp_path: Path) -> None:
    layers = (
        FIRST, {**CONV, "name": "b"}, {**ADD, "in_sequences": "[first, b]", "name": "s"},
        {**CONV, "name": "c"}, {**ADD, "in_sequences": "[first, c]", "name": "t"},
        {**CONV, "name": "d"},
    )  # fmt: skip
    found = arranged(tmp_path, *layers, shape=(8, 6, 6), kernels=kernels_of(*[(8, 8, 3, 3)] * 4))
    assert len(found.names) > 4


@pytest.mark.parametrize("one, other", [*product(("[a, b]", "[b, a]"), ("[a, c]", "[c, a]"))])
def test_an_operand_of_two_sums_is_copied_if_its_words_are_others(
    tmp_path: Path, one: str, other: str
) -> None:
    """It is alone where it leaves the words of the first sum's operand free for the second's."""
    layers = (
        {**ONE, "name": "a"}, {**ONE, "name": "b", "in_sequences": "input"},
        {**ADD, "in_sequences": one, "name": "s", "output": True},
        {**ONE, "name": "c"}, {**ADD, "in_sequences": other, "name": "t"}, END,
    )  # fmt: skip
    found = arranged(tmp_path, *layers, shape=(8, 4, 4), kernels=kernels_of(*[(8, 8, 1, 1)] * 4))
    same = one.index("a") == other.index("a")
    assert ("N425" in found.codes) == (not same)


@pytest.mark.parametrize("dilation", [1, 4, 5])
def test_operands_behind_words_that_are_not_valid_are_copied(tmp_path: Path, dilation: int) -> None:
    """Three taps that are far apart become rows, with words in front of the result."""
    line = {"op": "Conv1d", "kernel_size": 3, "pad": 0, "activate": "ReLU"}
    wide = {**line, "dilation": dilation}
    layers = (
        {**wide, "name": "a"}, {**wide, "name": "b", "in_sequences": "input"},
        {**ADD, "in_sequences": "[a, b]"}, {**line, "name": "end"},
    )  # fmt: skip
    found = arranged(tmp_path, *layers, shape=(8, 32), kernels=kernels_of(*[(8, 8, 3)] * 3))
    assert found.codes.count("N425") == 2 * (dilation == 5)


def passing(count: int, columns: int) -> Any:
    """Return the problem of two layers that pass a map on, then convolve it."""
    from dataclasses import replace

    from ai8xtools.synthesis.network import Operator
    from tests.arranging.loads import network_of

    plain = network_of([count] * 4, [False, False, True])
    layers = tuple(
        replace(x, operator=Operator.NONE, weights=None) if x.index < 2 else x for x in plain.layers
    )
    network = replace(plain, layers=layers)
    layout = Layout(layers={i: LayerLayout() for i in network.order})
    problem = problem_of(network, layout, MAX78000, Choice(), {})
    loads = tuple(replace(x, columns=columns) for x in problem.loads)
    return replace(problem, loads=loads)


@pytest.mark.parametrize("count", [12, 20, 28, 40, 60])
def test_polished_places_take_the_fewest_steps_that_any_start_takes(count: int) -> None:
    """Passing a map on takes a step for every four channels of the fullest group."""
    from ai8xtools.synthesis.arrange.decode import Try, decode

    problem = passing(count, 40)
    found = search(problem)[0]
    better = polished(problem, found)

    def steps(starts: tuple[int, ...]) -> int:
        total = 0
        for begin in {problem.unit_of[t]: starts[problem.unit_of[t]] for t in (0, 1)}.values():
            full = max(
                sum(16 * g <= p < 16 * g + 16 for p in range(begin, begin + count))
                for g in range(4)
            )
            total += 2 * 4 * -(-full // 4)  # two layers, four pixels
        return total

    all_starts = list(product(*(unit.starts for unit in problem.units)))
    every = [
        steps(starts) for starts in all_starts
        if not decode(problem, Try(starts, found.tried.cells)).cost
    ]  # fmt: skip
    assert cycles(problem, found) == steps(found.tried.starts)
    assert cycles(problem, better) == min(every)
    assert better.cost == 0
    simple = simplified(problem, better)
    assert not simple.cost and cycles(problem, simple) == min(every)
    assert simple.tried.kernels is None


def test_simplified_places_begin_as_low_as_they_can() -> None:
    """No unit alone can begin lower without losing its place or taking more steps."""
    from dataclasses import replace
    from random import Random

    from ai8xtools.synthesis.arrange.decode import decode
    from tests.synthesis.test_arrange_memory import random_try, small_problem

    random, tried_some = Random(11), 0
    for _ in range(40):
        problem = small_problem(random, MAX78000)
        found = decode(problem, random_try(problem, random))
        if found.cost:
            continue
        tried_some += 1
        simple = simplified(problem, found)
        assert not simple.cost and cycles(problem, simple) <= cycles(problem, found)
        last = len(problem.units) - 1  # what is moved last sees all others where they stay
        for start in (s for s in problem.units[last].starts if s < simple.tried.starts[last]):
            starts = (*simple.tried.starts[:-1], start)
            assert decode(problem, replace(simple.tried, starts=starts)).cost
        plain = decode(problem, replace(found.tried, kernels=None))
        assert plain.cost or simple.tried.kernels is None
    assert tried_some > 4
