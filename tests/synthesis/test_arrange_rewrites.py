"""Merged and added layers: the same values, and merged exactly where that is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from ai8xtools.synthesis.arrange.graph import Reading, channels_of, reading, sources
from ai8xtools.synthesis.arrange.rewrites import (
    merged,
    with_copies,
    with_filled_passes,
    with_possible_pooling,
    with_separate_pooling,
    with_wider_weights,
)
from ai8xtools.synthesis.arrange.rewrites.edit import inserted, removed, unique_name
from ai8xtools.synthesis.arrange.rewrites.merging import taken_in
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.network import Combination, Layer, Network, Operator, Pooling
from ai8xtools.synthesis.simulate import simulate
from device import MAX78000, MAX78002, Chip
from tests.arranging.loads import network_of

BOTH = pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)


def open_layout(network: Network) -> Layout:
    """Return the layout in which nothing is given."""
    return Layout(layers=dict.fromkeys(network.order, LayerLayout()))


def delivered(network: Network) -> list[Any]:
    """Return what a network computes."""
    found = simulate(network, average_rounding=False).outputs
    return [found[x.index] for x in network.outputs()]


def same(one: Network, other: Network) -> bool:
    """Whether two networks compute the same."""
    pairs = zip(delivered(one), delivered(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def pooling_of(random: Random) -> Pooling:
    """Return a pooling, or none."""
    if random.random() < 0.3:
        return Pooling()
    window, stride = random.choice([1, 2, 3]), random.choice([1, 2, 3])
    other = random.choice([window, 2])
    return Pooling((window, other), (stride, stride), average=random.random() < 0.2)


def drawn(random: Random) -> Network:
    """Return a network of poolings, sums and kernels in a row, with a branch here and there."""
    dims, layers = [(13, 12)], list[Layer]()
    count = random.choice([2, 2, 2, 70])
    for index in range(random.randint(3, 6)):
        read = (index - 1 if random.random() < 0.85 else random.randrange(-1, index),)
        dim = dims[read[0] + 1]
        keys: dict[str, Any] = {"operator": Operator.NONE, "pool_first": random.random() < 0.6}
        alike = [i - 1 for i, d in enumerate(dims) if d == dim and i - 1 != read[0]]
        if alike and random.random() < 0.4:
            read = (read[0], random.choice(alike))
            keys |= {"combination": random.choice([*Combination][:2]), "operands": 2}
        if random.random() < 0.4:
            values = np.random.default_rng(random.randrange(2**32)).integers(-64, 64, (count,) * 2)
            keys |= {
                "operator": Operator.CONV2D, "weight_bits": 8, "shift": 0,
                "weights": values.astype(np.int8)[:, :, None, None],
            }  # fmt: skip
        pooling = pooling_of(random)
        pooled = (
            (dim[0] - pooling.window[0]) // pooling.stride[0] + 1,
            (dim[1] - pooling.window[1]) // pooling.stride[1] + 1,
        )
        if min(pooled) < 2:
            pooling, pooled = Pooling(), dim
        layers.append(
            Layer(
                index=index, in_channels=count, out_channels=count, in_dim=dim, pooled_dim=pooled,
                out_dim=pooled, pooling=pooling, sources=read, **keys,
            )
        )  # fmt: skip
        dims.append(pooled)
    order = tuple(range(len(layers)))
    layers[-1] = replace(layers[-1], is_output=True)
    sample = np.random.default_rng(random.randrange(2**32)).integers(-128, 128, (count, *dims[0]))
    return Network(layers=tuple(layers), order=order, simulated=order, sample=sample)


@BOTH
def test_whatever_is_merged_copied_or_pooled_elsewhere_computes_the_same(chip: Chip) -> None:
    random, changes = Random(1), [0, 0, 0]
    for _ in range(60):
        network = drawn(random)
        fixed = open_layout(network)
        try:
            before = delivered(network)
        except AssertionError:
            continue
        one, fixed = merged(network, fixed, chip)
        two, fixed, _ = with_possible_pooling(one, fixed, chip)
        three, fixed, _ = with_copies(two, fixed, chip)
        for number, (old, new) in enumerate(((network, one), (one, two), (two, three))):
            changes[number] += new is not old
            after = delivered(new)
            assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
        assert [x.index for x in three.layers] == [*three.order] == [*three.simulated]
        assert sorted(fixed.layers) == [*three.order]
        # nothing is left to be merged
        assert merged(one, open_layout(one), chip)[0] is one
    assert changes[0] > 10 and changes[2] > 5


@BOTH
def test_operands_are_combined_in_front_of_kernels_where_the_chip_can(chip: Chip) -> None:
    """Many passes as rows: two operands of two passes come in either order."""
    pool = Pooling((2, 2), (2, 2))
    for operands, count, bias, before, behind in product(
        (2, 3, 4), (1, 2, 3, 4), (False, True), (False, True), (False, True)
    ):
        channels = 64 * count
        plain = network_of([channels, channels, 4], [False, True])
        sums = replace(
            plain.layers[0], operator=Operator.NONE, weights=None, operands=operands,
            combination=Combination.ADD, pooling=pool if before else Pooling(),
        )  # fmt: skip
        reader = replace(
            plain.layers[1], bias=np.arange(4) if bias else None,
            pooling=pool if behind else Pooling(),
        )  # fmt: skip
        found = taken_in(sums, reader, chip)
        wanted = chip.combines_with_bias or not bias
        if chip.combines_passes_as_rows and count > 1:
            wanted = wanted and (operands, count) == (2, 2)
        wanted = wanted and not (before and behind) and not (behind and operands > 2)
        assert (found is not None) == wanted, (operands, count, bias, before, behind)
        if found is not None:
            assert (found.operands, found.combination) == (operands, Combination.ADD)
            assert found.pooling == (pool if before or behind else Pooling())
            assert found.pool_first == (sums.pool_first if before else not behind)
            assert found.in_dim == sums.in_dim


def test_only_plain_two_dimensional_kernels_of_the_same_map_take_a_layer_in() -> None:
    plain = network_of([8, 8, 8], [False, True])
    pool = Pooling((2, 2), (2, 2))
    layer = replace(
        plain.layers[0], operator=Operator.NONE, weights=None, pooling=pool, in_dim=(4, 4)
    )
    reader = plain.layers[1]
    assert taken_in(layer, reader, MAX78000) is not None
    sums = {"combination": Combination.ADD, "operands": 2}
    others: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"out_channels": 4}, {}), ({"out_dim": (1, 2)}, {}), ({"output_width": 32}, {}),
        ({"pooling": Pooling()}, {}), ({}, sums), ({}, {"groups": 8}), ({}, {"flatten": True}),
        ({}, {"operator": Operator.CONV1D}), ({}, {"operator": Operator.CONVTRANSPOSE2D}),
        (sums, {"operator": Operator.NONE, "weights": None}), (sums, {"flatten": True}),
        (sums, {"operator": Operator.CONV1D}),
    ]  # fmt: skip
    for one, other in others:
        changed = replace(reader, **other)
        if other.get("groups"):
            changed = replace(changed, weights=np.ones((8, 1, 1, 1), np.int8))
        assert taken_in(replace(layer, **one), changed, MAX78000) is None, (one, other)
    line = {"in_dim": (4, 1), "pooled_dim": (2, 1), "out_dim": (2, 1)}
    one = replace(layer, **line, pooling=Pooling((2, 1), (2, 1)))  # type: ignore[arg-type]
    other = replace(reader, operator=Operator.CONV1D, in_dim=(2, 1))
    assert taken_in(one, other, MAX78000) is not None


def reach(window: int, stride: int, second: int, step: int) -> list[set[int]]:
    """Return the pixels of which each of the first results of two poolings is the largest."""
    return [
        {k * stride + w for k in range(n * step, n * step + second) for w in range(window)}
        for n in range(3)
    ]


def test_two_maxima_are_one_exactly_where_a_window_has_their_pixels() -> None:
    plain = network_of([4, 4, 4], [False, True])
    for window, stride, second, step in product(range(1, 9), range(1, 5), range(1, 9), range(1, 6)):
        one = replace(
            plain.layers[0], operator=Operator.NONE, weights=None,
            pooling=Pooling((window, 1), (stride, 1)),
        )  # fmt: skip
        two = replace(plain.layers[1], pooling=Pooling((second, 1), (step, 1)))
        if not (one.pooling.reduces and two.pooling.reduces):
            continue
        if not (one.pooling.active and two.pooling.active):
            continue
        found = taken_in(one, two, MAX78000)
        pixels = reach(window, stride, second, step)
        size, shift = max(pixels[0]) + 1, min(pixels[1])
        whole = all(p == {*range(n * shift, n * shift + size)} for n, p in enumerate(pixels))
        assert (found is not None) == (whole and size <= 16 and shift <= 16)
        if found is not None:
            assert found.pooling == Pooling((size, 1), (shift, 1))


# Layers that are put in or taken out


def reads(network: Network, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of what each layer reads."""
    return {
        names[x.index]: [names[s] if s >= 0 else "input" for s in sources(network, x)]
        for x in network.layers
    }


def test_layers_are_put_in_and_taken_out_and_all_others_read_what_they_did() -> None:
    random = Random(2)
    for _ in range(100):
        size = random.randint(2, 5)
        plain = network_of([4] * (size + 1), [False] * (size - 1) + [True])
        layers = [
            replace(
                x, name=f"n{x.index}",
                sources=random.choice([
                    None, tuple(random.randrange(-1, x.index) for _ in range(random.randint(1, 2))),
                ]) if x.index else random.choice([None, (-1,)]),
                weight_source=random.randrange(x.index)
                if x.index and random.random() < 0.3 else None,
            )
            for x in plain.layers
        ]  # fmt: skip
        network = replace(plain, layers=tuple(layers))
        fixed = Layout(layers={i: LayerLayout(in_offset=4 * i) for i in network.order})
        names = [str(x.name) for x in layers]
        before = random.randrange(size)
        new = replace(layers[0], name="new", sources=(random.randrange(-1, before),))
        reader = random.randrange(before, size)
        place = random.randrange(len(sources(network, layers[reader])))
        wanted = reads(network, names)
        wanted["new"] = [names[new.sources[0]] if new.sources[0] >= 0 else "input"]  # type: ignore[index]
        wanted[names[reader]][place] = "new"
        changed, layout = inserted(network, fixed, new, before, {reader: place})
        order = [str(x.name) for x in changed.layers]
        assert order == [*names[:before], "new", *names[before:]]
        assert reads(changed, order) == wanted
        shared = {
            str(x.name): None if x.weight_source is None else order[x.weight_source]
            for x in changed.layers
        }
        assert all(
            shared[str(x.name)] == (None if x.weight_source is None else names[x.weight_source])
            for x in layers
        )
        assert [x.next_layer for x in changed.layers] == [*range(1, size + 1), None]
        given = {order[i]: x.in_offset for i, x in layout.layers.items()}
        assert given == {**{n: 4 * i for i, n in enumerate(names)}, "new": None}
        taken = {x.name for x in changed.layers}
        assert unique_name(changed, "other") == "other" and unique_name(changed, "new") not in taken


def test_a_layer_that_is_taken_out_leaves_the_others_what_they_read_and_their_places() -> None:
    plain = network_of([4] * 5, [False] * 3 + [True])
    layers = [replace(x, name=f"n{x.index}", sources=(x.index - 1,)) for x in plain.layers]
    layers[3] = replace(layers[3], sources=(0, 2), weight_source=0)
    network = replace(plain, layers=tuple(layers))
    fixed = Layout(layers={i: LayerLayout(in_offset=4 * i) for i in network.order})
    for gone in (1, 2):
        reader = layers[gone + 1]
        read = tuple(gone - 1 if s == gone else s for s in reader.sources or ())
        changed, layout = removed(network, fixed, gone, replace(reader, sources=read))
        left = [x for x in range(4) if x != gone]
        assert [x.name for x in changed.layers] == [f"n{i}" for i in left]
        assert [layout.layers[i].in_offset for i in range(3)] == [4 * i for i in left]
        wanted = {1: [["input"], ["n0"], ["n0", "n2"]], 2: [["input"], ["n0"], ["n0", "n1"]]}
        names = [str(x.name) for x in changed.layers]
        assert [*reads(changed, names).values()] == wanted[gone]
        assert changed.layers[2].weight_source == 0 and changed.layers[1].weight_source is None
        assert [*changed.order] == [*changed.simulated] == [0, 1, 2]


# Passes that are filled


@BOTH
def test_passes_are_full_where_they_have_to_be_and_the_values_are_the_same(chip: Chip) -> None:
    """Joins of maps of any size, narrow weights and flattened maps."""
    random, changes = Random(3), 0
    for _ in range(25):
        counts = [random.choice([3, 8, 20, 33, 40, 70]) for _ in range(random.randint(1, 3))]
        total = sum(counts)
        plain = network_of([4, *counts, 4], [False] * len(counts) + [True])
        values = np.random.default_rng(random.randrange(2**32))
        layers = [
            replace(
                x, sources=(-1,), in_channels=4, shift=2,
                weights=values.integers(-128, 128, (x.out_channels, 4, 1, 1)).astype(np.int8),
            )
            for x in plain.layers[:-1]
        ]  # fmt: skip
        flat = random.random() < 0.3
        ins = total * 4 if flat else total
        layers.append(
            replace(
                plain.layers[-1], sources=tuple(range(len(counts))), in_channels=total,
                weights=values.integers(-2, 2, (4, ins, 1, 1)).astype(np.int8), shift=5,
                weight_bits=random.choice([2, 4, 8]), flatten=flat,
                operator=Operator.LINEAR if flat else Operator.CONV2D,
                out_dim=(1, 1) if flat else (2, 2), output_width=32,
            )
        )  # fmt: skip
        network = replace(plain, layers=tuple(layers), sample=values.integers(-128, 128, (4, 2, 2)))
        changed, fixed, notices = with_filled_passes(network, open_layout(network))
        assert same(network, changed)
        assert bool(notices) == (changed is not network)
        changes += changed is not network
        last = changed.layers[-1]
        parts = [channels_of(changed, s) for s in sources(changed, last)]
        assert last.in_channels == sum(parts)
        passes = -(-last.in_channels // 64)
        share = -(-last.in_channels // passes)
        share = share if passes == 1 else -(-share // 4) * 4
        if reading(changed, last) is Reading.PASS_BY_PASS or passes > 1:
            begin = 0
            for part in parts:
                assert len(parts) == 1 or begin // share == (begin + part - 1) // share
                begin += part
        if last.flatten or last.weight_bits < 8:
            assert share * passes == last.in_channels
        assert sorted(fixed.layers) == [*changed.order]
        again, _, more = with_filled_passes(changed, fixed)
        assert again is changed and not more
    assert changes > 5


# Transposed convolutions, and weights


def test_strides_in_front_of_transposed_kernels_become_a_layer_where_they_are_taken() -> None:
    plain = network_of([4, 4, 4], [False, True])
    large = {"in_dim": (4, 4), "pooled_dim": (4, 4), "out_dim": (4, 4)}
    for window, stride, given in product((1, 2, 4), (1, 2, 4), (False, True)):
        pooled = ((4 - window) // stride + 1,) * 2
        layers = (
            replace(plain.layers[0], **large),  # type: ignore[arg-type]
            replace(
                plain.layers[1], operator=Operator.CONVTRANSPOSE2D, in_dim=(4, 4),
                pooling=Pooling((window,) * 2, (stride,) * 2), pooled_dim=pooled,
                stride=(2, 2), kernel=(3, 3), pad=(1, 1), output_pad=1,
                weights=np.ones((4, 4, 3, 3), np.int8), out_dim=(2 * pooled[0],) * 2,
            ),
        )  # fmt: skip
        network = replace(plain, layers=layers, sample=np.arange(64).reshape(4, 4, 4) - 30)
        fixed = open_layout(network)
        if given:
            fixed = replace(fixed, layers={**fixed.layers, 1: LayerLayout(processors=15)})
        taken = stride > 1 and window < 4
        changed, layout, notices = with_separate_pooling(network, fixed, MAX78000)
        assert len(changed.layers) == 2 + (taken and not given)
        assert len(notices) == (taken and not given)
        assert sorted(layout.layers) == [*changed.order]
        last = changed.layers[-1]
        assert last.pooling.stride == (1, 1) or given
        assert same(network, changed)


def test_binary_weights_between_which_zeros_come_get_two_bits() -> None:
    line: dict[str, Any] = {"in_dim": (20, 1), "pooled_dim": (20, 1), "operator": Operator.CONV1D}
    plain = network_of([4, 4], [True])
    for dilation, taps, bits in product((1, 2, 8), (1, 2), (-1, 1, 2, 4, 8)):
        rows = 20 - dilation * (taps - 1)
        layer = replace(
            plain.layers[0], **line, kernel=(taps, 1), dilation=dilation, weight_bits=bits,
            weights=np.ones((4, 4, taps, 1), np.int8), out_dim=(rows, 1),
        )  # fmt: skip
        changed, notices = with_wider_weights(replace(plain, layers=(layer,)))
        spread = bits == -1 and dilation > 1 and taps > 1
        assert changed.layers[0].weight_bits == (2 if spread else bits)
        assert len(notices) == spread
