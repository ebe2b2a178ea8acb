"""Rewrites of networks change no value that is delivered; copies and overlaps, by brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from typing import Any, Literal

import numpy as np
import pytest

from ai8xtools.synthesis.arrange.graph import sources
from ai8xtools.synthesis.arrange.links import Role
from ai8xtools.synthesis.arrange.problem import problem_of
from ai8xtools.synthesis.arrange.rewrites.copies import _taking_turns, roles_wanted, with_copies
from ai8xtools.synthesis.arrange.rewrites.copying import CopiedPart, copied, copying, copying_layer
from ai8xtools.synthesis.arrange.rewrites.zero_outputs import makers, with_zero_outputs
from ai8xtools.synthesis.arrange.values import Choice
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.network import (
    NETWORK_INPUT,
    Combination,
    Layer,
    Network,
    Operator,
    Pooling,
)
from ai8xtools.synthesis.simulate import simulate
from device import MAX78000, MAX78002
from device.channels import passes
from tests.arranging.loads import network_of

DIM = (2, 2)


def weighted(random: Random, *shape: int, low: int = -100, high: int = 100) -> Any:
    """Return weights none of which is zero."""
    values = np.random.default_rng(random.randrange(2**32)).integers(low, high, shape)
    return np.where(values == 0, 1, values).astype(np.int8)


def layer_of(random: Random, index: int, counts: list[int]) -> Layer:
    """Return a layer that reads what there is: a kernel, a depth-wise one, a sum or a join."""
    kind = random.choice(["conv", "conv", "depth-wise", "pass", "sum", "join"])
    first = random.randrange(-1, index)
    channels = counts[first + 1]
    alike = [i - 1 for i, n in enumerate(counts) if n == channels and i != first + 1]
    keys: dict[str, Any] = {"sources": (first,), "out_channels": channels}
    if kind == "sum" and alike:
        keys |= {"sources": (first, random.choice(alike)), "combination": Combination.ADD}
        keys |= {"operands": 2}
    if kind == "join" and index:
        keys["sources"] = (first, random.randrange(-1, index))
        channels = sum(counts[s + 1] for s in keys["sources"])
        keys["out_channels"] = channels
    if kind == "depth-wise":
        weights = weighted(random, channels, 1, 1, 1)
        keys |= {"groups": channels, "weights": weights}
    elif kind == "conv" or random.random() < 0.3:
        outs = random.randint(2, 5)
        weights = weighted(random, outs, channels, 1, 1)
        keys |= {"out_channels": outs, "weights": weights}
    if "weights" in keys:
        keys |= {"weight_bits": 8, "operator": Operator.CONV2D}
        if random.random() < 0.5:
            keys["bias"] = np.arange(1, keys["out_channels"] + 1)
    return Layer(
        index=index, in_channels=channels, in_dim=DIM, pooled_dim=DIM, out_dim=DIM,
        **{"operator": Operator.NONE, **keys},
    )  # fmt: skip


def random_network(random: Random, size: int = 6) -> Network:
    """Return a network of small layers that read each other."""
    counts = [random.randint(2, 5)]
    layers: list[Layer] = []
    for index in range(size):
        layers.append(layer_of(random, index, counts))
        counts.append(layers[-1].out_channels)
    order = tuple(range(size))
    sample = np.random.default_rng(random.randrange(2**32)).integers(-128, 128, (counts[0], *DIM))
    return Network(layers=tuple(layers), order=order, simulated=order, sample=sample)


def results(network: Network) -> dict[int, Any]:
    """Return what every layer computes."""
    every = tuple(replace(x, is_output=True) for x in network.layers)
    return dict(simulate(replace(network, layers=every), average_rounding=False).outputs)


def open_layout(network: Network) -> Layout:
    """Return the layout in which nothing is given."""
    return Layout(layers=dict.fromkeys(network.order, LayerLayout()))


def test_a_copy_has_the_image_of_its_source() -> None:
    first, second = network_of([4, 4, 4], [False, True]).layers
    first = replace(first, in_dim=(4, 6), pooled_dim=(4, 6))
    network = replace(network_of([4, 4, 4], [False, True]), layers=(first, second))
    for owner, dim in ((NETWORK_INPUT, (4, 6)), (0, first.out_dim)):
        found = copying_layer(network, owner, second, CopiedPart(0, 4, 4), 0)
        assert found.in_dim == found.out_dim == dim


def test_combinations_take_turns_if_the_words_beside_a_source_are_free_again() -> None:
    """Two sums read a source, each with something else in the words that it leaves free."""
    random, outcomes = Random(9), [0, 0]
    plain = network_of([4] * 9, [False] * 7 + [True])
    for _ in range(300):
        layers = [
            replace(x, sources=(random.randrange(-1, x.index),)) if x.index else x
            for x in plain.layers
        ]
        first, second = random.choice([(2, 4), (3, 6), (4, 5), (1, 6)])
        for place in (first, second):
            read = [random.randrange(-1, place) for _ in range(random.choice([2, 2, 3]))]
            read[random.choice([0, 1])] = 0
            layers[place] = replace(
                layers[place], sources=tuple(read), combination=Combination.ADD, operands=len(read)
            )
        network = replace(plain, layers=tuple(layers))
        sums = network.layer(first), network.layer(second)
        beside = [sources(network, x) for x in sums]
        free = len(beside[0]) == len(beside[1])
        for a, b in zip(*beside, strict=False):
            readers = [n for n, x in enumerate(network.layers) if a in sources(network, x)]
            if a != b and 0 not in (a, b):
                free = free and b in range(max(readers) + 1, second)
        assert _taking_turns(network, 0, *sums) == free
        outcomes[free] += 1
    assert min(outcomes) > 20


def masks_with(network: Network, added: dict[int, int]) -> dict[int, list[bool]] | None:
    """Return, by layer, which channels were there before; None where operands do not agree."""
    masks = {NETWORK_INPUT: [True] * network.first.in_channels}
    for layer in network.executed():
        read = [masks[s] for s in sources(network, layer)]
        if layer.combination and read[0] != read[1]:
            return None
        if layer.has_weights and not layer.depthwise:
            extra = added.get(layer.index, 0)
            masks[layer.index] = [True] * layer.out_channels + [False] * extra
        else:
            masks[layer.index] = (
                read[0] if layer.combination else [m for part in read for m in part]
            )
            if added.get(layer.index):
                return None
    return masks


def test_channels_of_zeros_change_nothing_and_are_refused_only_where_they_would() -> None:
    random, outcomes = Random(1), [0, 0]
    for _ in range(150):
        network = random_network(random)
        added = {i: random.randint(1, 3) for i in network.order if random.random() < 0.25}
        found = with_zero_outputs(network, open_layout(network), added)
        masks = masks_with(network, added)
        possible = masks is not None and all(masks[network.order[-1]])
        assert (found is not None) == possible
        outcomes[possible] += 1
        if found is None or masks is None:
            continue
        before, after = results(network), results(found)
        for layer in found.layers:
            mask = masks[layer.index]
            assert layer.out_channels == len(mask)
            assert layer.zero_outputs == (added.get(layer.index, 0))
            assert np.array_equal(after[layer.index][mask], before[layer.index])
            if not all(mask):
                assert not after[layer.index][[not m for m in mask]].any()
    assert min(outcomes) > 20


def test_makers_of_the_last_channels_make_more_of_them() -> None:
    random, outcomes = Random(2), [0, 0]
    for _ in range(100):
        network = random_network(random)
        end = layer_of(Random(0), 6, [2] * 7)  # a kernel that reads what is looked at
        owner = random.randrange(6)
        outs = network.layers[owner].out_channels
        last = replace(
            end, operator=Operator.CONV2D, sources=(owner,), in_channels=outs, out_channels=1,
            groups=1, weight_bits=8, weights=weighted(random, 1, outs, 1, 1), bias=None,
            combination=None, operands=1,
        )  # fmt: skip
        order = tuple(range(7))
        network = replace(network, layers=(*network.layers, last), order=order, simulated=order)
        found = makers(network, owner)
        outcomes[found is not None] += 1
        if found is None:
            continue
        assert all(network.layer(i).has_weights for i in found)
        assert not any(network.layer(i).depthwise for i in found)
        masks = masks_with(network, dict.fromkeys(found, 2))
        assert masks is None or masks[owner][-2:] == [False, False]
        for layer in found:
            assert masks is None or masks_with(network, {layer: 2}) != masks or len(found) == 1
    assert min(outcomes) > 20


def test_what_has_no_kernels_of_its_own_to_add_to_makes_nothing() -> None:
    plain = network_of([4, 4, 4], [False, True])
    assert makers(plain, 0) == {0} and makers(plain, NETWORK_INPUT) is None
    for keys in ({"weights": None}, {"weight_bits": -1}, {"weight_source": 1}):
        layers = (replace(plain.layers[0], **keys), plain.layers[1])
        assert makers(replace(plain, layers=layers), 0) is None
    sums = replace(
        plain.layers[1], operator=Operator.NONE, weights=None, combination=Combination.ADD,
        operands=2,
    )  # fmt: skip
    for read, wanted in (((0, 0), {0}), ((0, -1), None), ((-1, 0), None)):
        layers = (plain.layers[0], replace(sums, sources=read))
        assert makers(replace(plain, layers=layers), 1) == wanted
    join = replace(sums, combination=None, operands=1, in_channels=8, out_channels=8)
    for read, wanted in (((0, 0), {0}), ((0, -1), None), ((-1, 0), {0})):
        layers = (plain.layers[0], replace(join, sources=read))
        assert makers(replace(plain, layers=layers), 1) == wanted


def test_what_is_special_or_has_a_place_gets_no_channels_of_zeros() -> None:
    plain = network_of([4, 4, 4], [False, True])
    open_ = open_layout(plain)
    assert with_zero_outputs(plain, open_, {0: 4}) is not None
    assert with_zero_outputs(replace(plain, reshapes_inputs=True), open_, {0: 4}) is None
    special: list[dict[str, Any]] = [
        {"channel_skip": 1}, {"bypass": True}, {"buffer_shift": 1}, {"buffer_insert": 1},
        {"in_channels": 3},
    ]  # fmt: skip
    for keys in special:
        layers = (plain.layers[0], replace(plain.layers[1], **keys))
        assert with_zero_outputs(replace(plain, layers=layers), open_, {0: 4}) is None
    given = LayerLayout(processors=15), LayerLayout(output_processors=15)
    for place, index in product(given, (0, 1)):
        fixed = replace(open_, layers={**open_.layers, index: place})
        assert with_zero_outputs(plain, fixed, {0: 4}) is None
    fixed = replace(open_, layers={**open_.layers, 1: LayerLayout(processors=15)})
    assert with_zero_outputs(plain, fixed, {1: 4}) is None  # it is delivered
    three = network_of([4, 4, 4, 4], [False, False, True])
    fixed = replace(open_layout(three), layers={0: LayerLayout(processors=15)})
    assert with_zero_outputs(three, fixed, {1: 4}) is not None


def test_shared_weights_are_still_the_same_or_nothing_is_added() -> None:
    plain = network_of([4, 4, 4, 4], [False, False, True])
    one, two, three = plain.layers
    two = replace(two, weights=one.weights)
    for sharing, added in product(((2, 0), (1, 0), (2, 1)), (0, 1, 2)):
        index, source = sharing
        layers = [one, two, replace(three, weights=one.weights)]
        layers[index] = replace(layers[index], weight_source=source)
        network = replace(plain, layers=tuple(layers))
        found = with_zero_outputs(network, open_layout(network), {added: 4})
        touched = {added, added + 1}  # who makes and who reads them
        assert (found is not None) == (added < 2 and not touched & {*sharing})


def test_zeros_elsewhere_leave_shared_weights_alone() -> None:
    plain = network_of([4, 4, 4, 4, 4, 4], [False] * 4 + [True])
    shared = plain.layers[0].weights
    layers = (*plain.layers[:1], replace(plain.layers[1], weights=shared, weight_source=0))
    network = replace(plain, layers=(*layers, *plain.layers[2:]))
    assert with_zero_outputs(network, open_layout(network), {3: 4}) is not None
    assert with_zero_outputs(network, open_layout(network), {1: 4}) is None


def test_copies_of_channels_are_followed_where_zeros_come_between() -> None:
    """A layer that copies reads what a join of other layers has become."""
    for first, count, place in product(range(4), range(1, 5), (0, 1)):
        if first + count > 4:
            continue
        plain = network_of([4, 2, 2, 4], [False, False, True])
        one, two, three = plain.layers
        rng = Random(first)
        one = replace(one, weights=weighted(rng, 2, 4, 1, 1))
        two = replace(two, sources=(-1,), in_channels=4, weights=weighted(rng, 2, 4, 1, 1))
        three = replace(three, sources=(0, 1), in_channels=4, out_channels=4, weights=None)
        three = copying(replace(three, operator=Operator.NONE, kernel=(1, 1)))
        assert three.weights is not None
        part = three.weights[first : first + count]
        three = replace(three, out_channels=count, weights=part, copied=(first, count))
        sample = np.arange(16).reshape(4, 2, 2) * 7 - 50
        network = replace(plain, layers=(one, two, three), sample=sample)
        found = with_zero_outputs(network, open_layout(network), {place: 3})
        torn = place == 0 and first < 2 < first + count
        assert (found is None) == torn
        if found is not None:
            moved = first + 3 if place == 0 and first >= 2 else first
            assert found.layers[2].copied == (moved, count)
            assert np.array_equal(results(found)[2], results(network)[2])


@pytest.mark.parametrize("channels", [3, 4, 40, 64, 70, 100])
def test_kernels_that_copy_leave_every_value_as_it_is(channels: int) -> None:
    """All values of 8 bits, whole maps and parts of them, with zeros behind them."""
    dims: tuple[tuple[int, int], ...] = ((16, 16), (256, 1))
    for dim in dims:
        shape = {"in_dim": dim, "pooled_dim": dim, "out_dim": dim}
        plain = network_of([channels, channels, 2], [False, True])
        source = replace(plain.layers[0], operator=Operator.NONE, weights=None, **shape)  # type: ignore[arg-type]
        end = replace(plain.layers[1], weights=weighted(Random(1), 2, channels, 1, 1), **shape)  # type: ignore[arg-type]
        values = np.resize(np.arange(-128, 128), (channels, *dim))
        sample = values + np.zeros((channels, 1, 1), np.int64)
        network = replace(plain, layers=(source, end), sample=sample)
        by_kernels = replace(network, layers=(copying(source), end))
        assert np.array_equal(results(by_kernels)[0], sample)
        parts = [CopiedPart(0, channels // 2, channels // 2 + 2), CopiedPart(channels // 2, 0, 0)]
        parts[1] = CopiedPart(channels // 2, channels - channels // 2, channels)
        notices: list[Any] = []
        changed = copied(network, open_layout(network), end, 0, parts, "why", notices)
        assert changed is not None and len(notices) == 2
        kernel = Operator.CONV1D if dim[1] == 1 else Operator.CONV2D
        kinds = [x.operator for x in (by_kernels.layers[0], *changed[0].layers[1:3])]
        assert kinds == [kernel] * 3
        made = results(changed[0])
        half = channels // 2
        assert [len(made[i]) for i in (1, 2)] == [half + 2, channels]
        assert np.array_equal(made[1][:half], sample[:half]) and not made[1][half:].any()
        assert np.array_equal(made[2][: channels - half], sample[half:])
        assert not made[2][channels - half :].any()
        assert np.array_equal(made[3], results(network)[1])


# Copies: whose words stand between those of a source


def clash(network: Network) -> bool:
    """Whether two operands that stand in the same words are alive at the same time.

    Sums of two operands; who is in two sums has to be the same operand in both.
    """
    readers = {
        i: [p for p, x in enumerate(network.layers) if i in sources(network, x)]
        for i in network.order
    }
    sums = [x for x in network.layers if x.combination]
    for one, other in product(sums, repeat=2):
        shared = {*sources(network, one)} & {*sources(network, other)}
        for a, b in zip(sources(network, one), sources(network, other), strict=True):
            alive = max(a, b) <= min(max(readers[a]), max(readers[b]))
            if shared and a != b and not {a, b} & shared and alive:
                return True
        if any(sources(network, one).index(s) != sources(network, other).index(s) for s in shared):
            return True
    return False


def test_a_source_of_two_sums_is_copied_where_the_others_would_meet() -> None:
    random, outcomes = Random(4), [0, 0]
    sums: dict[str, Any] = {"operator": Operator.NONE, "weights": None, "operands": 2}
    sums["combination"] = Combination.ADD
    for _ in range(120):
        plain = network_of([4] * 8, [False] * 6 + [True])
        first, second = sorted(random.sample(range(2, 7), 2))
        layers = [replace(x, sources=(x.index - 1,)) for x in plain.layers]
        pairs = []
        for place in (first, second):
            pairs.append(tuple(random.sample(range(place), 2)))
            layers[place] = replace(layers[place], **sums, sources=pairs[-1])
        if not {*pairs[0]} & {*pairs[1]}:
            continue
        # operands are read by sums alone, as others could not skip the words between
        used = {*pairs[0], *pairs[1]}
        layers = [
            replace(x, sources=(NETWORK_INPUT,))
            if not x.combination and x.index and {*(x.sources or ())} & used
            else x
            for x in layers
        ]
        network = replace(plain, layers=tuple(layers))
        changed, _, notices = with_copies(network, open_layout(network), MAX78000)
        assert bool(notices) == clash(network), pairs
        assert np.array_equal(results(changed)[len(changed.layers) - 1], results(network)[6])
        assert len(changed.layers) == 7 + len(notices)
        outcomes[bool(notices)] += 1
    assert min(outcomes) > 10


def test_what_writes_without_gaps_or_is_there_once_is_copied_for_a_sum() -> None:
    plain = network_of([4, 4, 4, 4, 4], [False] * 3 + [True])
    sums: dict[str, Any] = {"operator": Operator.NONE, "weights": None, "operands": 2}
    sums |= {"combination": Combination.ADD, "sources": (0, 1)}
    series: dict[str, Any] = {
        "in_dim": (20, 1),
        "pooled_dim": (20, 1),
        "out_dim": (10, 1),
        "dilation": 5,
    }
    series |= {"operator": Operator.CONV1D, "kernel": (3, 1)}  # begins with invalid outputs
    series |= {"weights": np.ones((4, 4, 3, 1), np.int8)}
    cases: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], int]] = [
        ({}, {}, {}, 0), ({"buffer_shift": 1}, {}, {}, 1), ({"buffer_insert": 1}, {}, {}, 1),
        (series, {}, {}, 1), ({}, {"sources": (0, 0)}, {}, 2), ({}, {"sources": (-1, 0)}, {}, 1),
        ({}, {}, {"sources": (0,)}, 1),  # reads one operand without gaps
        ({}, {}, {**sums, "sources": (0, 1)}, 0), ({}, {}, {**sums, "sources": (1, 0)}, 2),
        ({}, {}, {**sums, "operands": 3, "sources": (0, 1, 2)}, 2),
    ]  # fmt: skip
    for first, second, third, count in cases:
        layers = list(plain.layers)
        layers[0] = replace(layers[0], **first)
        layers[1] = replace(layers[1], sources=(-1,))
        layers[2] = replace(layers[2], **{**sums, **second})
        layers[3] = replace(layers[3], **third)
        network = replace(plain, layers=tuple(layers))
        _, _, notices = with_copies(network, open_layout(network), MAX78000)
        assert bool(notices) == bool(count), (first, second, third)


def test_a_copy_has_the_size_of_what_it_copies() -> None:
    plain = network_of([4, 4, 4, 4], [False, False, True])
    pooling = Pooling((2, 2), (2, 2))
    first = replace(plain.layers[0], in_dim=(4, 4), pooling=pooling)
    last = replace(
        plain.layers[2], operator=Operator.NONE, weights=None, operands=2, sources=(0, 0),
        combination=Combination.ADD,
    )  # fmt: skip
    sample = np.arange(64).reshape(4, 4, 4)
    network = replace(plain, layers=(first, plain.layers[1], last), sample=sample)
    changed, _, notices = with_copies(network, open_layout(network), MAX78000)
    copies = [x for x in changed.layers if x.name]
    assert len(copies) == len(notices) > 0
    assert all(x.in_dim == x.pooled_dim == x.out_dim == (2, 2) for x in copies)
    whole = replace(last, sources=(-1, -1), in_dim=(4, 4), pooled_dim=(4, 4), out_dim=(4, 4))
    network = replace(network, layers=(first, plain.layers[1], whole))
    changed, _, _ = with_copies(network, open_layout(network), MAX78000)
    copies = [x for x in changed.layers if x.name]
    assert copies and all(x.in_dim == x.pooled_dim == x.out_dim == (4, 4) for x in copies)


def test_operands_have_the_places_of_their_order_and_passes_those_of_their_channels() -> None:
    plain = network_of([32, 32, 32, 32, 32], [False] * 3 + [True])
    sums = {"operator": Operator.NONE, "weights": None, "combination": Combination.ADD}
    for count in (2, 3):
        read = tuple(range(count))
        layer = replace(plain.layers[3], sources=read, operands=count, **sums)  # type: ignore[arg-type]
        network = replace(plain, layers=(*plain.layers[:3], layer))
        assert roles_wanted(network, layer) == {i: Role(count, i) for i in range(count)}
    join = replace(plain.layers[3], sources=(0, 1, 2, -1), in_channels=128)
    network = replace(plain, layers=(*plain.layers[:3], join))
    wanted = {0: Role(2, 0), 1: Role(2, 0), 2: Role(2, 1), 3: Role(2, 1)}
    assert roles_wanted(network, join) == wanted
    assert not roles_wanted(network, plain.layers[1])


# Results over inputs


def least(layer: Layer, read: int, written: int) -> int:
    """Return how far below its input an output must begin, so that later outputs read it whole.

    Every output is written as soon as it is computed, in the order of rows.
    """
    rows, columns = layer.out_dim
    tall, wide = layer.in_dim
    down, across = layer.pad
    needs = [
        [
            r * wide + c
            for r in range(y - down, y - down + layer.kernel[0])
            for c in range(x - across, x - across + layer.kernel[1])
            if 0 <= r < tall and 0 <= c < wide
        ]
        for y in range(rows)
        for x in range(columns)
    ]
    low = [min(p) for p in needs]
    size = layer.output_width // 8
    ends = [
        t * written + written - written // (size * passes(layer.out_channels)) * size + size
        for t in range(len(low))
    ]
    distance, later = 0, tall * wide
    for end, lowest in zip(reversed(ends), reversed(low), strict=True):
        distance = max(distance, end - read * later)
        later = min(later, lowest)
    return distance


@pytest.mark.parametrize("ins, outs", [(4, 4), (40, 4), (100, 4), (100, 100), (4, 100), (200, 64)])
def test_outputs_stay_below_what_is_still_read_with_a_margin(ins: int, outs: int) -> None:
    widths: tuple[Literal[8, 32], ...] = (8, 32)
    for kernel, pad, width, side in product((1, 3), (0, 1), widths, (6, 24)):
        if pad >= kernel:
            continue
        plain = network_of([4, ins, outs], [False, True])
        dim, out = (side, side), (side + 2 * pad - kernel + 1,) * 2
        first = replace(plain.layers[0], in_dim=dim, pooled_dim=dim, out_dim=dim)
        ones = np.ones((outs, ins, kernel, kernel), np.int8)
        last = replace(
            plain.layers[1], in_dim=dim, pooled_dim=dim, out_dim=out, kernel=(kernel, kernel),
            pad=(pad, pad), output_width=width, weights=ones,
        )  # fmt: skip
        network = replace(plain, layers=(first, last))
        given = problem_of(network, open_layout(network), MAX78000, Choice(in_place=True), {})
        source, result = given.tensor_of(0), given.tensor_of(1)
        read, written = passes(ins), passes(outs) * width // 8
        words = out[0] * out[1] * written
        if written > read:
            assert (result, source) not in given.overlaps
        else:
            wanted = min(words, least(last, read, written) + 64 * read)
            assert given.overlaps[result, source] == wanted
        assert given.overlaps.keys() <= {(result, source), (source, given.tensor_of(-1))}


def test_only_what_reads_its_whole_input_last_and_row_by_row_may_overwrite_it() -> None:
    plain = network_of([4, 4, 4, 4], [False, False, True])
    wide = {"in_dim": (16, 16), "pooled_dim": (16, 16), "out_dim": (16, 16)}
    layers = tuple(replace(x, **wide) for x in plain.layers)  # type: ignore[arg-type]
    series: dict[str, Any] = {"in_dim": (256, 1), "pooled_dim": (256, 1), "out_dim": (246, 1)}
    series |= {"operator": Operator.CONV1D, "kernel": (3, 1), "dilation": 5}
    series |= {"weights": np.ones((4, 4, 3, 1), np.int8)}
    sums: dict[str, Any] = {"operator": Operator.NONE, "weights": None, "operands": 2}
    sums["combination"] = Combination.ADD
    cases: list[tuple[int, dict[str, Any], bool]] = [
        (1, {}, True), (1, {"flatten": True}, False), (1, series, False),
        (1, {"pooling": Pooling((2, 2), (2, 2)), "pooled_dim": (8, 8), "out_dim": (8, 8)}, False),
        (1, {"pooling": Pooling(stride=(1, 2)), "pooled_dim": (16, 8), "out_dim": (16, 8)}, False),
        (2, {"sources": (0,)}, False), (2, {"sources": (0, 1), **sums}, False),
        (1, {"sources": (0, -1), **sums}, False), (0, {"is_output": True}, False),
        (1, {"operator": Operator.CONVTRANSPOSE2D, "out_dim": (32, 32)}, False),
    ]  # fmt: skip
    for index, keys, wanted in cases:
        changed = list(layers)
        changed[index] = replace(changed[index], **keys)
        network = replace(plain, layers=tuple(changed))
        given = problem_of(network, open_layout(network), MAX78002, Choice(in_place=True), {})
        assert ((given.tensor_of(1), given.tensor_of(0)) in given.overlaps) == wanted, keys
        if keys == {"flatten": True}:
            assert (given.tensor_of(2), given.tensor_of(1)) in given.overlaps
    planar = problem_of(
        replace(plain, layers=layers), open_layout(plain), MAX78000,
        Choice(planar=True, in_place=True), {},
    )  # fmt: skip
    assert (planar.tensor_of(0), planar.tensor_of(-1)) not in planar.overlaps
