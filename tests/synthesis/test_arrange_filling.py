"""Channels that are zero where passes have to be full: joins, flattened maps, narrow weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai8xtools.synthesis.arrange.rewrites.filling import packed
from ai8xtools.synthesis.arrange.rewrites.pooling import with_possible_pooling
from ai8xtools.synthesis.emit.report import report_page
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.network import NETWORK_INPUT, Combination, Operator, Pooling
from ai8xtools.synthesis.options import EncodeOptions, PlaceOptions
from ai8xtools.synthesis.report import build_report
from device import MAX78000, MAX78002, Chip
from device.channels import channels_per_pass, passes
from tests.arranging.loads import network_of
from tests.synthesis.arranged import ADD, CONV, ONE, PASS, arranged, kernels_of
from tests.synthesis.test_arrange import refused, written

BOTH = pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
FLAT = {"op": "Linear", "flatten": True, "output_width": 32, "activate": None}


def joined(*counts: int, outs: int = 4) -> tuple[list[dict[str, Any]], list[tuple[int, ...]]]:
    """Return a network of layers that all read one map, and one that joins their results."""
    layers = [{**CONV, "name": "stem"}]
    shapes: list[tuple[int, ...]] = [(8, 3, 3, 3)]
    for number, count in enumerate(counts):
        layers.append({**ONE, "name": f"part{number}", "in_sequences": "stem"})
        shapes.append((count, 8, 1, 1))
    parts = ", ".join(f"part{n}" for n in range(len(counts)))
    layers.append({**CONV, "name": "last", "in_sequences": f"[{parts}]"})
    return layers, [*shapes, (outs, sum(counts), 3, 3)]


@BOTH
@pytest.mark.parametrize("counts", [(32, 64), (33, 33), (48, 96), (20, 28, 40), (31, 33)])
def test_parts_that_cross_passes_are_filled(
    tmp_path: Path, chip: Chip, counts: tuple[int, ...]
) -> None:
    layers, shapes = joined(*counts)
    found = arranged(tmp_path, *layers, shape=(3, 6, 6), kernels=kernels_of(*shapes), chip=chip)
    assert {"N427", "N425"} & set(found.codes)


def test_parts_without_kernels_are_copied_by_kernels(tmp_path: Path) -> None:
    """The input, a sum of it, and a map that is delivered cannot have other channels."""
    layers = [
        {**ONE, "name": "a"}, {**ADD, "name": "sum", "in_sequences": "[a, input]"},
        {**ONE, "name": "b", "in_sequences": "sum", "output": True},
        {**ONE, "name": "c", "in_sequences": "[sum, b, input]", "output": True},
    ]  # fmt: skip
    kernels = kernels_of((36, 36, 1, 1), (48, 36, 1, 1), (8, 120, 1, 1))
    found = arranged(tmp_path, *layers, shape=(36, 4, 4), kernels=kernels)
    assert found.codes.count("N425") >= 2


def test_what_passes_on_stays_zero(tmp_path: Path) -> None:
    """Pooling, sums and depth-wise kernels pass zeros on to the join."""
    layers = [
        {**ONE, "name": "a"}, {**ONE, "name": "b", "in_sequences": "input"},
        {**ADD, "name": "sum", "in_sequences": "[a, b]"},
        {**CONV, "name": "wise", "groups": 40, "in_sequences": "sum"},
        {**ONE, "name": "other", "in_sequences": "input"},
        {**ONE, "name": "last", "in_sequences": "[wise, other]"},
        {**ONE, "name": "end"},
    ]  # fmt: skip
    kernels = kernels_of(
        (40, 8, 1, 1), (40, 8, 1, 1), (40, 1, 3, 3), (64, 8, 1, 1), (8, 104, 1, 1), (4, 8, 1, 1)
    )
    found = arranged(tmp_path, *layers, shape=(8, 6, 6), kernels=kernels, chip=MAX78002)
    wise = next(x for x in found.made.network.layers if x.name == "wise")
    assert (wise.out_channels, wise.groups) == (64, 64)


@BOTH
def test_flattened_maps_fill_their_passes(tmp_path: Path, chip: Chip) -> None:
    kernels = kernels_of((70, 3, 3, 3), (5, 70 * 16))
    found = arranged(tmp_path, CONV, FLAT, shape=(3, 4, 4), kernels=kernels, chip=chip)
    assert [layer.out_channels for layer in found.made.network.layers] == [72, 5]


@BOTH
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_narrow_weights_fill_their_passes(tmp_path: Path, chip: Chip, bits: int) -> None:
    narrow = {**CONV, "quantization": bits}
    kernels = [k.clip(-(1 << bits - 1), (1 << bits - 1) - 1)
               for k in kernels_of((66, 3, 3, 3), (8, 66, 3, 3))]  # fmt: skip
    found = arranged(tmp_path, narrow, narrow, shape=(3, 5, 5), kernels=kernels, chip=chip)
    assert "N427" in found.codes and "W318" not in found.codes


@pytest.mark.parametrize("counts", [(32, 64), (48, 96)])
def test_written_description_gives_the_same_words(tmp_path: Path, counts: tuple[int, int]) -> None:
    layers, shapes = joined(*counts)
    text, *_ = written(tmp_path, *layers, shape=(3, 6, 6), kernels=kernels_of(*shapes))
    assert ("zero_outputs: 32" in text) == (counts == (32, 64))
    assert ("copy_channels: [48, 48]" in text) == (counts == (48, 96))


def test_pooling_of_several_passes_goes_behind_or_into_kernels_that_copy(tmp_path: Path) -> None:
    pool = {**PASS, "max_pool": 2, "pool_stride": 2}
    end = {**ONE, "output_width": 32, "activate": None}
    kernels = kernels_of((96, 3, 3, 3), (4, 96, 1, 1), (4, 96, 1, 1))
    several = ({**CONV, "name": "a"}, {**pool, "name": "pool"},
               {**end, "in_sequences": "pool", "output": True},
               {**end, "in_sequences": "pool", "output": True})  # fmt: skip
    found = arranged(tmp_path, *several, shape=(3, 6, 6), kernels=kernels)
    assert [layer.pooling.active for layer in found.made.network.layers] == [False, True, True]
    flat = kernels_of((96, 3, 3, 3), (4, 96 * 9))
    found = arranged(tmp_path, CONV, pool, FLAT, shape=(3, 6, 6), kernels=flat)
    assert "N425" in found.codes and found.made.network.layers[1].has_weights


def test_pooled_rows_are_cut_off_behind_the_pooling(tmp_path: Path) -> None:
    layers = [
        {**CONV, "name": "a"}, {**PASS, "max_pool": 2, "pool_stride": 2, "name": "pool"},
        {**ONE, "in_crop": "[1, 0]"},
    ]  # fmt: skip
    kernels = kernels_of((96, 3, 3, 3), (4, 96, 1, 1))
    found = arranged(tmp_path, *layers, shape=(3, 6, 6), kernels=kernels)
    assert found.names[:2] == ["a", "pool"] and "N425" in found.codes


def test_only_what_pools_and_does_nothing_else_is_done_by_kernels() -> None:
    pooling = Pooling((2, 2), (2, 2))
    plain = network_of([96, 96, 96], [True, True])
    pool = replace(
        plain.layers[0], operator=Operator.NONE, weights=None, in_dim=(4, 4), pooling=pooling,
        sources=(NETWORK_INPUT,),
    )  # fmt: skip
    others: list[dict[str, Any]] = [
        {"combination": Combination.ADD, "operands": 2, "sources": (NETWORK_INPUT,) * 2},
        {"pooling": Pooling()}, {"in_channels": 64, "out_channels": 64}, {"in_crop": (1, 1)},
        {"channel_skip": 1}, {"bypass": True}, {"buffer_shift": 1}, {"buffer_insert": 1},
        {"operator": Operator.CONV2D, "weights": plain.layers[0].weights}, {"pooled_dim": (1, 1)},
    ]  # fmt: skip
    open_ = Layout(layers=dict.fromkeys(plain.order, LayerLayout()))
    cases = [({}, open_), *((x, open_) for x in others)]
    cases.append(({}, replace(open_, layers={**open_.layers, 0: LayerLayout(processors=1)})))
    for chip, (keys, fixed) in product((MAX78000, MAX78002), cases):
        layers = replace(pool, **keys), plain.layers[1]
        network = replace(plain, layers=layers)
        changed, _, notices = with_possible_pooling(network, fixed, chip)
        wanted = chip is MAX78000 and not keys and fixed is open_
        assert (changed is not network) == bool(notices) == wanted, keys


@BOTH
def test_ties_that_cannot_be_kept_are_cut_by_copies(tmp_path: Path, chip: Chip) -> None:
    """Maps that are joined in passes, and one after the other elsewhere."""
    layers = [{**ONE, "name": "m0"}]
    for number in range(1, 5):
        read = ", ".join(f"m{i}" for i in range(number))
        layers.append({**ONE, "name": f"m{number}", "in_sequences": f"[{read}]"})
    layers.append({**ONE, "name": "last", "in_sequences": "[m0, m1, m2, m3, m4]"})
    sizes = (24, 12, 12, 12, 12)
    shapes = [(n, sum(sizes[:i]) or 8, 1, 1) for i, n in enumerate(sizes)]
    kernels = kernels_of(*shapes, (4, 72, 1, 1))
    found = arranged(tmp_path, *layers, shape=(8, 4, 4), kernels=kernels, chip=chip)
    assert "N425" in found.codes


def test_report_tells_why_places_were_chosen(tmp_path: Path) -> None:
    layers, shapes = joined(32, 64)
    encode = EncodeOptions(PlaceOptions(explain=True))
    made = arranged(
        tmp_path, *layers, shape=(3, 6, 6), kernels=kernels_of(*shapes), encode=encode
    ).made  # fmt: skip
    report = build_report(made.network, made.placement, made.chip, encode, name="net")
    page = report_page(report)
    assert "<h2>Why the loader chose these places</h2>" in page
    assert "<td>zero_outputs</td><td>they fill a pass of a layer behind this one</td>" in page
    assert "<td>out_offset</td>" in page


@given(counts=st.lists(st.integers(1, 200), min_size=2, max_size=6))
def test_packed_parts_stand_in_one_pass_each(counts: list[int]) -> None:
    found = packed(counts)
    parts = [part for row in found for part in row]
    for count, row in zip(counts, found, strict=True):
        assert [(p.first, p.count) for p in row] == [
            (sum(q.count for q in row[:i]), p.count) for i, p in enumerate(row)
        ]
        assert sum(p.count for p in row) == count
    total = sum(p.filled for p in parts)
    share = channels_per_pass(total)
    begins = [0, *accumulate(p.filled for p in parts)]
    for begin, part in zip(begins, parts, strict=False):
        assert part.filled >= part.count and begin % share % 4 == 0
        assert begin % share + part.filled <= share
    assert total == passes(total) * share


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ({**PASS, "zero_outputs": 4}, "E136"),
        ({**CONV, "copy_channels": "[0, 4]"}, "E137"),
        ({**ONE, "copy_channels": "[0, 4]", "quantization": 1}, "E137"),
        ({**ONE, "copy_channels": "[0, 0]"}, "E137"),
        ({**ONE, "copy_channels": "[2, 4]"}, "E244"),
    ],
)
def test_keys_where_they_mean_nothing_are_refused(
    tmp_path: Path, keys: dict[str, Any], code: str
) -> None:
    assert code in refused(tmp_path, CONV, keys, shape=(3, 4, 4), kernels=kernels_of((4, 3, 3, 3)))


@pytest.mark.parametrize(
    ("shape", "loaded"), [((1, 28, 28), (56, 14)), ((3, 20, 20), (60, 20)), ((1, 300, 1), (60, 5))]
)
def test_a_long_sample_is_loaded_with_more_channels(
    tmp_path: Path, shape: tuple[int, int, int], loaded: tuple[int, int]
) -> None:
    """The description that is written loads alone, and says the same again."""
    count = shape[0] * shape[1] * shape[2]
    layers = [{**FLAT, "name": "a", "output_width": 8}, {**FLAT, "name": "b", "flatten": False}]
    kernels = kernels_of((8, count), (4, 8))
    _, found, again = written(tmp_path, *layers, shape=shape, kernels=kernels)
    first = found.made.network.first
    assert (first.in_channels, first.in_dim[0] * first.in_dim[1]) == loaded
    assert "N429" in found.codes and "N429" not in again.codes


def test_a_map_with_too_many_pixels_is_not_folded(tmp_path: Path) -> None:
    layers = [{**ONE, "name": "a"}, {**FLAT, "name": "b"}]
    kernels = kernels_of((2, 1, 1, 1), (4, 800))
    assert refused(tmp_path, *layers, shape=(1, 20, 20), kernels=kernels) == ["E306"]


def test_pooled_joins_of_a_dense_network_are_copied_by_kernels(tmp_path: Path) -> None:
    """Each map stands in several joins of other widths, the last of which is only pooled."""
    layers: list[dict[str, Any]] = [{**CONV, "name": "m0"}]
    shapes: list[tuple[int, ...]] = [(16, 3, 3, 3)]
    for number in range(1, 5):
        read = ", ".join(f"m{n}" for n in range(number))
        layers.append({**CONV, "name": f"m{number}", "in_sequences": f"[{read}]"})
        shapes.append((24, 16 + 24 * (number - 1), 3, 3))
    read = ", ".join(f"m{n}" for n in range(5))
    layers += [
        {**PASS, "name": "pool", "in_sequences": f"[{read}]", "max_pool": 2, "pool_stride": 2},
        {**FLAT, "name": "last"},
    ]
    shapes.append((4, 112 * 16))
    found = arranged(tmp_path, *layers, shape=(3, 8, 8), kernels=kernels_of(*shapes), chip=MAX78002)
    said = [str(d) for d in found.made.warnings if d.code == "N425"]
    assert any("copies its channels by kernels: the result is needed in other" in x for x in said)


def test_pooling_goes_into_plain_kernels_alone() -> None:
    plain = network_of([96, 96, 96], [False, True])
    pool = replace(
        plain.layers[0], operator=Operator.NONE, weights=None, in_dim=(4, 4),
        pooling=Pooling((2, 2), (2, 2)), sources=(NETWORK_INPUT,),
    )  # fmt: skip
    open_ = Layout(layers=dict.fromkeys(plain.order, LayerLayout()))
    others: list[dict[str, Any]] = [
        {}, {"channel_skip": 1}, {"bypass": True}, {"operator": Operator.NONE, "weights": None},
    ]  # fmt: skip
    for keys in others:
        network = replace(plain, layers=(pool, replace(plain.layers[1], sources=(0,), **keys)))
        changed, _, notices = with_possible_pooling(network, open_, MAX78000)
        assert (len(changed.layers) == 1) == (not notices) == (not keys), keys
