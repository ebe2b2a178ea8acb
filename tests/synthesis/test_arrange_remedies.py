"""What does not suit a stream, what needs stated places, and what is tried where nothing fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from ai8xtools.synthesis.arrange.defaults import complete
from ai8xtools.synthesis.arrange.problem import problem_of
from ai8xtools.synthesis.arrange.remedies import remedies
from ai8xtools.synthesis.arrange.streams import obstacle, rings_of
from ai8xtools.synthesis.arrange.suitability import unsuited
from ai8xtools.synthesis.arrange.values import Choice
from ai8xtools.synthesis.layout import InputPort, LayerLayout, Layout
from ai8xtools.synthesis.mapping import map_network
from ai8xtools.synthesis.network import (
    NETWORK_INPUT,
    Combination,
    Layer,
    Network,
    Operator,
    Pooling,
)
from ai8xtools.synthesis.options import StreamOptions
from ai8xtools.synthesis.place.streams import place_streams
from device import MAX78000, MAX78002, Chip, known_chips
from tests.arranging.loads import network_of

BOTH = pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
FIFO, MEMORY = InputPort.FIFO, InputPort.MEMORY


def with_layer(network: Network, index: int, **keys: Any) -> Network:
    """Return a network with one layer changed."""
    layers = tuple(replace(x, **keys) if x.index == index else x for x in network.layers)
    return replace(network, layers=layers)


# Streams


def test_what_keeps_a_sample_from_arriving_depends_on_its_channels_alone() -> None:
    """4 FIFOs of 4 lanes each; planar data has an instance, or a FIFO, for each channel."""
    for channels in range(1, 70):
        network = network_of([channels, 8], [True])
        for planar, port in product((False, True), (MEMORY, FIFO)):
            most = {(False, MEMORY): 1024, (True, MEMORY): 16, (False, FIFO): 16, (True, FIFO): 4}
            said = obstacle(network, MAX78000, Choice(planar, port))
            assert (said is None) == (channels <= most[planar, port]), (channels, planar, port)


def test_what_the_first_layer_does_excludes_ways_to_load_the_sample() -> None:
    plain = network_of([4, 4], [True])
    depthwise = {"groups": 4, "weights": np.ones((4, 1, 1, 1), np.int8)}
    passes = {"operator": Operator.NONE, "weights": None}
    wanted: list[tuple[dict[str, Any], set[tuple[bool, InputPort]]]] = [
        ({}, {(False, MEMORY), (True, MEMORY), (False, FIFO), (True, FIFO)}),
        ({"flatten": True}, {(False, MEMORY)}),
        ({"operands": 2, "combination": Combination.ADD}, {(False, MEMORY)}),
        (depthwise, {(False, MEMORY), (False, FIFO), (True, FIFO)}),
        (passes, {(False, MEMORY), (False, FIFO), (True, FIFO)}),
    ]
    for keys, ways in wanted:
        network = with_layer(plain, 0, **keys)
        found = {
            (planar, port)
            for planar, port in product((False, True), (MEMORY, FIFO))
            if obstacle(network, MAX78002, Choice(planar, port)) is None
        }
        assert found == ways, keys


@BOTH
def test_rows_of_a_stream_are_read_once_by_the_next_layer_and_not_delivered(chip: Chip) -> None:
    """All ways in which three layers read one or two sources each and are delivered."""
    plain = network_of([4, 4, 4, 4], [False, False, False])
    reads: list[list[tuple[int, ...] | None]] = [
        [None, (-1,)], [None, (-1,), (0,), (-1, 0)], [None, (-1,), (0,), (1,), (0, 1)],
    ]  # fmt: skip
    for read in product(*reads):
        sources = [s if s is not None else (i - 1,) for i, s in enumerate(read)]
        layers = tuple(replace(x, sources=s) for x, s in zip(plain.layers, read, strict=True))
        for delivered in product((False, True), repeat=3):
            marked = tuple(replace(x, is_output=d) for x, d in zip(layers, delivered, strict=True))
            network = replace(plain, layers=marked)
            last = delivered if any(delivered) else (False, False, True)
            for count in (1, 2, 3):
                chained = all(sources[i] == (i - 1,) for i in range(count))
                inside = range(count - 1)
                lone = not any(last[i] for i in inside) and not any(
                    i in sources[j] for i in inside for j in range(3) if j != i + 1
                )
                unread = not any(NETWORK_INPUT in s for s in sources[1:])
                said = obstacle(network, chip, Choice(port=FIFO, streamed=count))
                assert (said is None) == (chained and lone and unread), (read, delivered, count)


@BOTH
def test_as_many_layers_stream_as_the_chip_allows_and_there_are(chip: Chip) -> None:
    for layers in (1, 3, 7, 8, 9, 12):
        network = network_of([4] * (layers + 1), [False] * (layers - 1) + [True])
        for count in range(1, 14):
            said = obstacle(network, chip, Choice(port=FIFO, streamed=count))
            assert (said is None) == (count <= layers and count <= 8)


@BOTH
def test_a_layer_that_cannot_stream_is_named(chip: Chip) -> None:
    plain = network_of([4] * 4, [False, False, True])
    series: dict[str, Any] = {"in_dim": (20, 1), "pooled_dim": (20, 1), "out_dim": (10, 1)}
    series |= {"operator": Operator.CONV1D, "kernel": (3, 1), "dilation": 5}
    series |= {"weights": np.ones((4, 4, 3, 1), np.int8)}
    point = {**series, "kernel": (1, 1), "dilation": 1, "weights": np.ones((4, 4, 1, 1), np.int8)}
    sums = {"operands": 2, "combination": Combination.ADD}
    passes = {"operator": Operator.NONE, "weights": None}
    for index, count in product((0, 1, 2), (1, 2, 3)):
        padded = chip is MAX78002 or index != count - 1
        bad: list[tuple[dict[str, Any], bool]] = [
            ({"flatten": True}, True), (sums, True), (passes, chip is MAX78002), (series, True),
            (point, not padded),
        ]  # fmt: skip
        for keys, wrong in bad:
            if keys is sums and index == 0:
                continue
            network = with_layer(plain, index, **keys)
            said = obstacle(network, chip, Choice(port=FIFO, streamed=count))
            assert (said is not None) == (wrong and index < count), (keys, index, count)
            assert said is None or str(network.layer(index)) in said or index == 0


@BOTH
def test_layers_of_a_stream_get_the_rings_that_they_have_in_the_end(chip: Chip) -> None:
    """They follow from sizes, not from processors or weights; without a stream there are none."""
    plain = network_of([4] * 6, [False] * 4 + [True])
    shaped = [
        replace(x, in_dim=(20, 12), pooled_dim=(20, 12), out_dim=(20, 12)) for x in plain.layers
    ]
    pooling = Pooling((2, 2), (2, 2))
    small = {"in_dim": (10, 6), "pooled_dim": (10, 6), "out_dim": (10, 6)}
    shaped[1] = replace(shaped[1], pooling=pooling, pooled_dim=(10, 6), out_dim=(10, 6))
    shaped[2:] = [replace(x, **small) for x in shaped[2:]]  # type: ignore[arg-type]
    network = replace(plain, layers=tuple(shaped))
    assert not rings_of(network, chip, Choice(), StreamOptions())
    for count, planar in product(range(1, 6), (False, True)):
        rings = rings_of(network, chip, Choice(planar, FIFO, count), StreamOptions())
        places = {
            i: LayerLayout(
                processors=0xF << 4 * i, output_processors=0xF << 4 * i + 4,
                streaming=i < count, channels_first=planar and i == 0,
            )
            for i in network.order
        }  # fmt: skip
        layout = complete(network.layers, network.order, Layout(layers=places, input_port=FIFO))
        streams = place_streams(map_network(network, layout, chip), StreamOptions())
        assert rings == {i: streams[i].rollover for i in range(count)}


def test_results_of_a_stream_stay_as_far_below_as_the_rings_that_they_follow() -> None:
    network = network_of([4] * 6, [False] * 4 + [True])
    open_ = Layout(layers=dict.fromkeys(network.order, LayerLayout()))
    for count in range(6):
        choice = Choice(port=FIFO, streamed=count)
        rings = {i: 10 * i + 1 for i in range(count)}
        made = problem_of(network, open_, MAX78000, choice, rings)
        wanted = {}
        for i in range(count):
            result, source = made.tensor_of(i), made.tensor_of(i - 1)
            wanted[result, source] = max(made.tensors[result].words, 10 * i + 2)
        assert made.overlaps == wanted


# What needs stated places


def test_each_thing_that_needs_stated_places_is_named_by_itself() -> None:
    network = network_of([4, 4, 4], [False, True])
    fixed = Layout(layers=dict.fromkeys(network.order, LayerLayout()))
    assert not [*unsuited(network, fixed)]
    for keys in ({"calcx4": True}, {"read_ahead": True}, {"snoop_layer": 0}):
        layers = {**fixed.layers, 1: LayerLayout(**keys)}
        (said,) = unsuited(network, replace(fixed, layers=layers))
        assert str(network.layer(1)) in said.message
    for place in (LayerLayout(calcx4=False), LayerLayout(read_ahead=False)):
        layers = {**fixed.layers, 1: place}
        assert not [*unsuited(network, replace(fixed, layers=layers))]
    for order, simulated in (((1, 0), (0, 1)), ((0, 1), (1, 0)), ((0, 1), (0,))):
        assert len([*unsuited(replace(network, order=order, simulated=simulated), fixed)]) == 1
    assert len([*unsuited(replace(network, places={"unload": network.place}), fixed)]) == 1
    for port, parts, snoop in product(InputPort, (1, 2, 3), (None, (1,))):
        given = replace(fixed, input_port=port, input_parts=parts, snoop=snoop)
        wrong = port.feeds_all_groups + (parts > 1) + (snoop is not None)
        assert len([*unsuited(network, given)]) == wrong


# Remedies


def tried(
    network: Network, fits: Callable[[Network, Chip], bool], *layers: int, of_data: bool = False
) -> list[str]:
    """Return what is told of the remedies on the same chip."""
    others = len(known_chips()) - 1

    def judged(changed: Network, chip: Chip) -> bool:
        return chip is MAX78000 and fits(changed, chip)

    told = list(remedies(network, MAX78000, layers, of_data, judged))
    return told[: len(told) - others]


def test_most_of_the_channels_that_fit_are_kept_at_least_half_of_them() -> None:
    for count in [*range(1, 30), 60, 63, 64, 100]:
        network = network_of([8, count, 8], [False, True])
        layers = tuple(replace(x, weight_bits=4) for x in network.layers)
        biased = replace(layers[0], bias=np.arange(count))
        network = replace(network, layers=(biased, layers[1]))
        choices = range(count // 8 * 4, count, 4) if count // 8 else range(0)
        for most in range(count + 1):

            def fits(changed: Network, _: Chip, most: int = most) -> bool:
                first, second = changed.layers
                assert second.in_channels == first.out_channels
                assert first.bias is not None and len(first.bias) == first.out_channels
                return first.out_channels <= most

            told = tried(network, fits, 0)
            if len(choices) < 2:
                assert not told
                continue
            best = max((n for n in choices if n <= most), default=None)
            (said,) = told
            assert said.startswith(f"{best or choices[0]} instead of {count} outputs of layer 0:")
            assert ("not enough" in said) == (best is None)


def test_outputs_of_which_something_else_depends_are_not_made_fewer() -> None:
    plain = network_of([64, 64, 64, 64], [False, False, True])
    layers = tuple(replace(x, weight_bits=4) for x in plain.layers)
    plain = replace(plain, layers=layers)
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}), ({"is_output": True}, {}), ({"groups": 64}, {}), ({"buffer_insert": 1}, {}),
        ({}, {"groups": 64}), ({}, {"flatten": True}), ({}, {"operator": Operator.NONE}),
        ({}, {"sources": (-1, 0), "in_channels": 128}), ({}, {"sources": (-1,)}),
    ]  # fmt: skip
    for first, second in pairs:
        network = with_layer(with_layer(plain, 0, **first), 1, **second)
        told = tried(network, lambda *_: True, 0)
        assert bool(told) == (not first and not second), (first, second)


def test_the_largest_kernels_are_narrowed_one_by_one_until_all_fits() -> None:
    outs = [36, 360, 72, 324, 108, 288, 144, 252, 180, 216, 9]
    plain = network_of([8, *outs], [False] * 10 + [True])
    alike = tuple(replace(x, in_channels=64) for x in plain.layers)
    plain = replace(plain, layers=alike)
    largest = sorted(range(11), key=lambda i: -outs[i])
    for wide, enough, bits in product((11, 8, 5, 1), range(1, 12), (4, 2, 1, -1)):
        narrow = largest[wide:]
        layers = tuple(
            replace(x, weight_bits=bits) if x.index in narrow else x for x in plain.layers
        )
        counts: list[int] = []

        def fits(changed: Network, _: Chip) -> bool:
            now = {x.index for x in changed.layers if x.weight_bits == 4} - {*narrow}  # noqa: B023
            assert all(changed.layers[i].weight_bits == bits for i in narrow)  # noqa: B023
            if any(x.out_channels != n for x, n in zip(changed.layers, outs, strict=True)):
                return False  # a try with fewer channels
            assert now == {*largest[: len(now)]}
            counts.append(len(now))  # noqa: B023
            return len(now) >= enough  # noqa: B023

        said = [x for x in tried(replace(plain, layers=layers), fits) if "4-bit" in x]
        most = min(8, wide)
        assert counts == [*range(1, min(enough, most) + 1)]
        told = sorted({1, min(enough, most)})
        assert [x.count("layer ") for x in said] == told
        assert [x.endswith(": fits") for x in said] == [n >= enough for n in told]


def pooled(kernel: Operator = Operator.CONV2D) -> Network:
    """Return two layers, the second of which pools 8x8 pixels to 4x4."""
    plain = network_of([8, 8, 8], [False, True])
    large = {"in_dim": (8, 8), "pooled_dim": (8, 8), "out_dim": (8, 8)}
    first = replace(plain.layers[0], operator=kernel, **large)  # type: ignore[arg-type]
    small = {"in_dim": (8, 8), "pooled_dim": (4, 4), "out_dim": (4, 4)}
    second = replace(plain.layers[1], pooling=Pooling((2, 2), (2, 2)), **small)  # type: ignore[arg-type]
    return replace(plain, layers=(first, second))


def test_pooling_moves_to_the_layer_in_front_that_makes_the_data() -> None:
    def fits(changed: Network, _: Chip) -> bool:
        first, second = changed.layers
        assert (first.pooling, first.pooled_dim, first.out_dim) == (given.pooling, (4, 4), (4, 4))
        assert (second.pooling, second.in_dim, second.pooled_dim) == (Pooling(), (4, 4), (4, 4))
        return enough

    given = pooled().layers[1]
    for enough in (True, False):
        (said,) = tried(pooled(), fits, of_data=True)
        assert said.endswith("not enough") != enough
        assert "layer 1" in said.split(" in ")[0] and "layer 0" in said.split(" in ")[1]
    assert not tried(pooled(), fits, 1, of_data=True)  # nothing pools behind the last layer


def test_pooling_stays_where_moving_it_makes_no_sense() -> None:
    add = {"combination": Combination.ADD, "operands": 2, "sources": (0, -1)}
    others: list[tuple[int, dict[str, Any]]] = [
        (0, {"operator": Operator.CONVTRANSPOSE2D}), (0, {"operator": Operator.LINEAR}),
        (0, {"out_dim": (6, 6)}), (0, {"pooling": Pooling((2, 2))}), (0, {"in_dim": (9, 9)}),
        (0, {"combination": Combination.ADD, "operands": 2}), (1, {"in_dim": (7, 7)}),
        (1, {"pool_first": False}), (1, {"pooling": Pooling()}), (1, add), (1, {"sources": (-1,)}),
        (1, {"pooling": Pooling(stride=(2, 2))}), (1, {**add, "sources": (0,)}),
    ]  # fmt: skip
    for index, keys in others:
        network = with_layer(pooled(), index, **keys)
        assert not tried(network, lambda *_: True, of_data=True), (index, keys)
    third = replace(pooled().layers[1], index=2, sources=(0,), is_output=True)
    layers: tuple[Layer, ...] = (*pooled().layers, third)
    network = replace(pooled(), layers=layers, order=(0, 1, 2), simulated=(0, 1, 2))
    assert not tried(network, lambda *_: True, 0, of_data=True)


def test_the_pooling_behind_a_later_layer_is_found_and_told_once() -> None:
    first, second = pooled().layers
    front = replace(first, in_channels=8)
    again = replace(second, index=2)
    last = replace(second, index=3, in_dim=(4, 4), pooled_dim=(2, 2), out_dim=(2, 2))
    layers = (front, replace(first, index=1), again, last)
    order = tuple(range(4))
    network = replace(pooled(), layers=layers, order=order, simulated=order)
    (said,) = tried(network, lambda *_: True, 3, 0, 1, 2, of_data=True)
    assert "layer 2" in said and "layer 1" in said


def test_every_other_chip_is_tried() -> None:
    network = network_of([8, 8], [True])
    others = [chip for chip in known_chips() if chip is not MAX78000]
    assert others
    for good in (None, *others):
        told = list(remedies(network, MAX78000, (), True, lambda _, chip: chip is good))  # noqa: B023
        assert len(told) == len(others)
        for chip, said in zip(others, told, strict=True):
            assert chip.name in said and ("not enough" in said) == (chip is not good)
