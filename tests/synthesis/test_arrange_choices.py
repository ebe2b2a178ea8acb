"""Decisions of the arrangement: which ways are left, which keys are in the way, what is copied."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from random import Random
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics import DiagnosticError, Place
from ai8xtools.synthesis.arrange.arranging import (
    _not_together,
    _other_ways,
    _refusal,
    arrange,
    attempted,
    attempts_of,
    choices_of,
)
from ai8xtools.synthesis.arrange.bounds import tied_in_vain, witness_of
from ai8xtools.synthesis.arrange.dropping import GivenKey, culprits, given_keys, unkept
from ai8xtools.synthesis.arrange.given import shortest_chain
from ai8xtools.synthesis.arrange.graph import channels_of, pixels_of
from ai8xtools.synthesis.arrange.problem import problem_of
from ai8xtools.synthesis.arrange.rewrites import (
    folded,
    with_copies,
    with_filled_passes,
    with_wider_weights,
)
from ai8xtools.synthesis.arrange.rewrites.copying import CopiedPart, copied
from ai8xtools.synthesis.arrange.untying import _passes_on, _State, untied
from ai8xtools.synthesis.arrange.values import Choice, Problem, Tie
from ai8xtools.synthesis.layout import InputPort, LayerLayout, Layout
from ai8xtools.synthesis.network import (
    DATA_BUFFER,
    NETWORK_INPUT,
    Combination,
    DataBuffer,
    Network,
    Operator,
    Pooling,
)
from ai8xtools.synthesis.options import PlaceOptions
from device import MAX78000, MAX78002, Chip
from tests.arranging.loads import network_of

FIFO, MEMORY = InputPort.FIFO, InputPort.MEMORY
PASSES: dict[str, Any] = {"operator": Operator.NONE, "weights": None}
SUMS: dict[str, Any] = {**PASSES, "operands": 2, "combination": Combination.ADD}


def with_layers(network: Network, **keys: dict[str, Any]) -> Network:
    """Return a network with layers changed: `_1` is that of index 1."""
    layers = tuple(replace(x, **keys.get(f"_{x.index}", {})) for x in network.layers)
    return replace(network, layers=layers)


def layout_with(network: Network, **given: LayerLayout) -> Layout:
    """Return the layout in which some layers have given places: `_1` is that of index 1."""
    return Layout(layers={i: given.get(f"_{i}", LayerLayout()) for i in network.order})


# Keys that are in the way


def test_keys_without_which_all_fits_are_named_one_by_one_else_the_first_two() -> None:
    """Any set of pairs and single keys may be what is in the way."""
    random, sizes = Random(1), set()
    for _ in range(300):
        count = random.randint(2, 5)
        keys = {k: Place(line=i + 1) for i, k in enumerate(("processors", "in_offset"))}
        network = network_of([4] * (count + 1), [False] * (count - 1) + [True])
        network = with_layers(network, **{f"_{i}": {"places": keys} for i in network.order})
        fixed = Layout(
            layers={
                i: LayerLayout(
                    processors=random.choice([None, 15]),
                    in_offset=random.choice([None, 0]),
                    out_offset=0,  # which is no key of the description
                )
                for i in network.order
            }
        )
        given = given_keys(network, fixed)
        wanted = [
            (i, name)
            for i in network.order
            for name in ("processors", "in_offset")
            if getattr(fixed.layers[i], name) is not None
        ]
        assert sorted((k.layer.index, k.field) for k in given) == sorted(wanted)
        helping = [
            set(random.sample(wanted, min(len(wanted), random.choice([1, 2, 2, 2, 3]))))
            for _ in range(random.randint(0, 3))
        ]  # fmt: skip

        def fits(layout: Layout, fixed: Layout = fixed, helping: Any = helping) -> bool:
            gone = {
                (i, name)
                for i, before in fixed.layers.items()
                for name in ("processors", "in_offset", "out_offset")
                if getattr(before, name) is not None and getattr(layout.layers[i], name) is None
            }
            return any(one and one <= gone for one in helping)

        found = [(k.layer.index, k.field) for k in culprits(network, fixed, fits)]
        alone = [k for k in wanted if {k} in helping]
        pairs = [{*p} for p in combinations(wanted, 2) if {*p} in helping]
        sizes.add((len(alone), len(pairs)))
        if alone:
            assert len(found) == min(len(alone), 3) and {*found} <= {*alone}
        else:
            assert ({*found} in pairs) if pairs else not found
    assert {(0, 0), (0, 1), (0, 2), (1, 0), (2, 0)} <= sizes


def test_the_first_of_several_keys_is_the_place_of_the_refusal() -> None:
    network = network_of([4, 4, 4], [False, True])
    keys = {k: Place(line=i + 1) for i, k in enumerate(("processors", "in_offset"))}
    network = with_layers(network, _1={"places": keys})
    pair = [GivenKey(network.layers[1], name) for name in keys]
    for order in (pair, pair[::-1]):
        said = _not_together("why", order, [])
        assert said.place == keys[order[0].field]
        assert all(str(key) in f"{said.message}{said.remedy}" for key in order)


def test_every_given_value_that_was_replaced_is_named_and_no_other() -> None:
    network = network_of([4, 4, 4], [False, True])
    values: dict[str, tuple[Any, Any]] = {
        "processors": (1, 2), "output_processors": (1, 2), "in_offset": (0, 4),
        "out_offset": (0, 4), "write_gap": (0, 1), "read_gap": (0, 1),
        "channels_first": (False, True), "streaming": (False, True), "kernel_offset": (0, 4),
    }  # fmt: skip
    for name, pair in values.items():
        for given, result in product((None, *pair), repeat=2):
            fixed = layout_with(network, _1=LayerLayout(**{name: given}))
            found = layout_with(network, _1=LayerLayout(**{name: result}))
            said = [*unkept(network, fixed, found)]
            assert len(said) == (given is not None and given != result)


# Ways in which the sample arrives


def test_samples_arrive_in_all_ways_that_are_left_open_the_simplest_first() -> None:
    network = network_of([4] * 4, [False, False, True])
    flags: tuple[bool | None, ...] = (None, False, True)
    for port, planar, *streams in product((MEMORY, FIFO), flags, flags, flags, flags):
        places = {f"_{i}": LayerLayout(streaming=s) for i, s in enumerate(streams)}
        places["_0"] = replace(places["_0"], channels_first=planar)
        fixed = replace(layout_with(network, **places), input_port=port)
        for chip in (MAX78000, replace(MAX78000, max_streaming_layers=2)):
            found = [*choices_of(network, fixed, chip)]
            every = [
                Choice(p, MEMORY if not n and port is MEMORY else FIFO, n, in_place)
                for p in (False, True)
                for n in range(4)
                for in_place in (False, True)
                if n <= chip.max_streaming_layers
                and planar in (None, p)
                and all(s is None or s == (i < n) for i, s in enumerate(streams))
                and not (in_place and (n or port is FIFO))
            ]
            assert {*found} == {*every} and len(found) == len(every)
            ranks = [(x.in_place, x.streamed, x.planar) for x in found]
            assert ranks == sorted(ranks)


def test_what_one_way_to_load_the_sample_excludes_leaves_the_others() -> None:
    """Lanes of planar data that pass through would close up; sums of one source never go."""
    plain = network_of([4, 4, 4, 4], [True, True, True])
    lanes = with_layers(plain, _1={**PASSES, "sources": (-1,)})
    fixed = layout_with(lanes)
    options = PlaceOptions()
    assert attempted(lanes, fixed, MAX78000, options, Choice()).decoded is not None
    planar = attempted(lanes, fixed, MAX78000, options, Choice(planar=True))
    assert planar.decoded is None and planar.proven and planar.failure and not planar.hopeless
    sums = with_layers(plain, _1={**SUMS, "sources": (0,)})
    for choice in (Choice(), Choice(planar=True), Choice(port=FIFO), Choice(in_place=True)):
        if choice == Choice():
            with pytest.raises(DiagnosticError):
                attempted(sums, fixed, MAX78000, options, choice)
        else:
            found = attempted(sums, fixed, MAX78000, options, choice)
            assert found.decoded is None and found.proven and found.failure


def test_kernels_that_are_too_large_end_all_attempts_and_data_does_not() -> None:
    network = network_of([64, 64, 64], [False, True])
    fixed = layout_with(network)
    options = PlaceOptions()
    little = replace(MAX78000, kernel_columns=12, kernel_columns_first=12)
    (attempt,) = attempts_of(network, fixed, little, options)
    assert attempt.decoded is None and attempt.hopeless and attempt.proven
    assert not attempt.of_data and attempt.layers
    tiny = replace(MAX78000, instance_bytes=12)
    attempts = [*attempts_of(network, fixed, tiny, options)]
    assert len(attempts) > 1 and all(x.decoded is None for x in attempts)
    assert attempts[0].of_data and attempts[0].proven and not attempts[0].hopeless
    said = [*_other_ways(attempts)]
    assert len(said) == len({x.failure for x in attempts}) - 1
    enough = [*attempts_of(network, fixed, MAX78000, options)]
    assert len(enough) == 1 and enough[0].decoded is not None


def test_what_is_no_matter_of_data_is_not_cured_by_pooling() -> None:
    """A planar sample of many channels; the second layer could pool earlier."""
    plain = network_of([20, 8, 8], [False, True])
    large = {"in_dim": (4, 4), "pooled_dim": (4, 4), "out_dim": (4, 4)}
    small = {"in_dim": (4, 4), "pooling": Pooling((2, 2), (2, 2))}
    network = with_layers(plain, _0=large, _1=small)
    for choice, words in ((LayerLayout(channels_first=True), None), (LayerLayout(), 12)):
        fixed = layout_with(network, _0=choice)
        chip = replace(MAX78000, instance_bytes=words) if words else MAX78000
        attempts = [*attempts_of(network, fixed, chip, PlaceOptions())]
        assert all(x.decoded is None for x in attempts)
        said = str(_refusal(network, fixed, chip, PlaceOptions(), attempts).remedy)
        assert ("pooling" in said) == (words is not None)
        assert ("4-bit" in said) == (words is None)


# Copies


def test_what_only_passes_on_can_be_done_by_kernels() -> None:
    plain = network_of([4, 4, 4], [False, True])
    kinds: list[tuple[dict[str, Any], bool]] = [
        ({}, False), (PASSES, True), ({**SUMS, "sources": (0, -1)}, False),
        ({**PASSES, "bypass": True}, False), ({**PASSES, "buffer_shift": 1}, False),
        ({**PASSES, "channel_skip": 1}, False), ({**PASSES, "in_crop": (1, 0)}, False),
        ({"combination": Combination.ADD, "operands": 2, "sources": (0, -1)}, False),
    ]  # fmt: skip
    for keys, wanted in kinds:
        network = with_layers(plain, _1=keys)
        for place in (LayerLayout(), LayerLayout(processors=15)):
            state = _State(network, layout_with(network, _1=place), ())
            assert _passes_on(state, network.layers[1]) == (wanted and place == LayerLayout())


def test_what_leaves_gaps_for_a_sum_is_copied_for_others_only_where_they_cannot_skip() -> None:
    for chip, channels in product((MAX78000, MAX78002), (8, 64, 72)):
        plain = network_of([8, channels, channels, channels], [False, False, True])
        network = with_layers(plain, _1={"sources": (0,)}, _2={**SUMS, "sources": (0, 1)})
        changed, _, notices = with_copies(network, layout_with(network), chip)
        skipped = chip is MAX78002 and channels <= 64
        assert len(notices) == len(changed.layers) - 3 == (not skipped)


def test_a_network_that_is_refused_for_another_reason_is_not_copied() -> None:
    network = network_of([8, 8, 8], [False, True])
    fixed = layout_with(network, _1=LayerLayout(processors=1))
    with pytest.raises(DiagnosticError):
        problem_of(network, fixed, MAX78000, Choice(), {})
    assert untied(network, fixed, MAX78000) == (network, fixed, ())


def stuck_problem(network: Network, chip: Chip = MAX78000) -> Problem | None:
    """Return the arrangement problem of a network; None if ties contradict each other."""
    whole, open_, _ = with_copies(network, layout_with(network), chip)
    try:
        problem = problem_of(whole, open_, chip, Choice(), {})
    except DiagnosticError:
        return None
    return problem if tied_in_vain(problem) is None else None


def test_one_copy_is_made_where_one_is_enough_and_more_where_they_are_needed() -> None:
    """Joins of passes tie maps; what is joined in another order elsewhere needs copies."""
    random, needed = Random(2), [0, 0, 0]
    for _ in range(14):
        plain = network_of([32] * 5 + [4, 4], [False] * 4 + [True, True])
        layers: dict[str, dict[str, Any]] = {}
        for i in range(4):
            layers[f"_{i}"] = {"sources": (-1,)}
        for i in (4, 5):
            read = tuple(random.sample(range(4), random.choice([2, 4])))
            shape = (4, 32 * len(read), 1, 1)
            weights = plain.layers[i].weights
            assert weights is not None
            kernel = weights[:1, :1].repeat(shape[0], 0).repeat(shape[1], 1)
            layers[f"_{i}"] = {
                "sources": read, "in_channels": shape[1], "out_channels": 4, "weights": kernel,
            }  # fmt: skip
        network = with_layers(plain, **layers)
        fixed = layout_with(network)
        changed, _, notices = untied(network, fixed, MAX78000)
        assert stuck_problem(changed) is not None
        assert bool(notices) == (stuck_problem(network) is None)
        assert len(changed.layers) == len(network.layers) + len(notices)
        enough = any(
            stuck_problem(one[0]) is not None
            for reader in network.layers[4:]
            for place in range(len(reader.sources or ()))
            if (one := copied(network, fixed, reader, place, (CopiedPart(0, 32, 32),), "", []))
        )
        assert (len(notices) == 1) == (enough and bool(notices))
        needed[min(len(notices), 2)] += 1
    assert min(needed) > 1


# Wider weights


def test_layers_that_share_weights_get_the_widest_that_one_of_them_needs() -> None:
    """Narrow weights for inputs that do not fill their passes get 8 bits."""
    plain = network_of([66, 66, 66, 66], [False, False, True])
    for bits, sharing in product((1, 2, 4, 8), (None, 0)):
        keys = {"weight_bits": bits}
        network = with_layers(plain, _0=keys, _1={**keys, "weight_source": sharing}, _2={})
        changed, notices = with_wider_weights(network)
        found = [x.weight_bits for x in changed.layers]
        assert found == [8, 8, 8]
        assert len(notices) == (0 if bits == 8 else 2 if sharing is None else 1)


def dense(random: Random) -> Network:
    """Return a network in which each map is joined with some of those before it."""
    count = random.randint(3, 5)
    sizes = [random.choice([12, 16, 24, 32]) for _ in range(count)]
    plain = network_of([8, *sizes, 4], [False] * count + [True])
    layers = {}
    for i in range(count + 1):
        read = tuple(range(count)) if i == count else (i - 1,)
        if 0 < i < count and random.random() < 0.8:
            read = tuple(random.sample(range(i), random.randint(1, i)))
        ins = sum(sizes[s] if s >= 0 else 8 for s in read)
        ones = np.ones((plain.layers[i].out_channels, ins, 1, 1), np.int8)
        layers[f"_{i}"] = {"sources": read, "in_channels": ins, "weights": ones}
    return with_layers(plain, **layers)


def test_dense_networks_need_no_more_copies_than_they_do() -> None:
    """All of them get a form without contradictions; more copies cost cycles and layers."""
    random, copies = Random(1), []
    for _ in range(40):
        plain = dense(random)
        network, fixed, _ = with_filled_passes(plain, layout_with(plain))
        changed, _, notices = untied(network, fixed, MAX78002)
        assert stuck_problem(changed, MAX78002) is not None
        copies.append(len(notices))
    assert sum(copies) <= 31


def test_what_comes_together_in_no_known_way_is_refused() -> None:
    """Operands of one source, a number of sources that is not theirs, joined pixels."""
    plain = network_of([8, 8, 8, 8], [False, False, True])
    kinds: list[tuple[dict[str, Any], str]] = [
        ({**SUMS, "sources": (1,)}, "of one source"),
        ({**SUMS, "sources": (0, 1, -1)}, "3 sources for 2 operands"),
        ({"sources": (0, 1)}, "pixels are joined"),
    ]
    for keys, said in kinds:
        network = with_layers(plain, _2=keys)
        with pytest.raises(DiagnosticError) as caught:
            arrange(network, layout_with(network), MAX78000, PlaceOptions())
        assert [d.code for d in caught.value.diagnostics] == ["E420"]
        assert said in str(caught.value) and str(network.layers[2]) in str(caught.value)


def test_sources_have_the_channels_and_pixels_of_what_they_are() -> None:
    plain = network_of([8, 12, 4], [False, True])
    network = replace(plain, buffer=DataBuffer("past", 20, 5, 3))
    rows, columns = plain.first.in_dim
    sizes = {NETWORK_INPUT: (8, rows * columns), DATA_BUFFER: (20, 15), 0: (12, rows * columns)}
    for owner, size in sizes.items():
        assert (channels_of(network, owner), pixels_of(network, owner)) == size


# Proofs that nothing fits


def cliques(sizes: list[tuple[int, int]], limit: int) -> int:
    """Return the most that stands in one place: of sizes (width, height) that always meet."""
    best = 0
    for count in range(1, len(sizes) + 1):
        for some in combinations(sizes, count):
            if all(a[0] + b[0] > limit for a, b in combinations(some, 2)):
                best = max(best, sum(height for _, height in some))
    return best


def test_kernels_are_refused_where_those_that_meet_or_all_of_them_are_too_many() -> None:
    random, outcomes = Random(3), [0, 0]
    for _ in range(400):
        widths = [random.choice([8, 20, 32, 36, 44, 64]) for _ in range(random.randint(1, 5))]
        network = network_of([*widths, 4], [False] * (len(widths) - 1) + [True])
        plain = problem_of(network, layout_with(network), MAX78000, Choice(), {})
        blocks = [random.randint(40, 400) for _ in widths]
        loads = tuple(replace(x, columns=4 * n) for x, n in zip(plain.loads, blocks, strict=True))
        problem = replace(plain, loads=loads)
        meeting = cliques(list(zip(widths, blocks, strict=True)), 64)
        volume = sum(w * n for w, n in zip(widths, blocks, strict=True))
        # at the border: one block less, as many as there are, one more
        for more in (-1, 0, 1):
            chip = replace(
                MAX78000,
                kernel_columns=4 * (meeting - more),
                kernel_columns_first=4 * (meeting - more),
            )
            found = witness_of(replace(problem, chip=chip))
            wanted = more > 0 or volume > 64 * (meeting - more)
            assert (found is not None) == wanted
            outcomes[wanted] += 1
            if found is not None:
                assert not found.of_data and {*found.layers} <= {*network.order}
                named = [blocks[i] for i in found.layers]
                assert sum(named) > meeting - more
                large = [i for i, n in enumerate(blocks) if n > meeting - more]
                assert not large or found.layers == (large[0],)
    assert min(outcomes) > 50


def test_data_is_refused_where_what_is_alive_together_is_too_much() -> None:
    random, outcomes = Random(4), [0, 0]
    for _ in range(200):
        widths = [random.choice([4, 20, 32, 36, 44, 64]) for _ in range(random.randint(2, 5))]
        network = network_of(widths, [random.random() < 0.5 for _ in widths[1:]])
        plain = problem_of(network, layout_with(network), MAX78000, Choice(), {})
        tensors = tuple(replace(t, words=random.randint(1, 99)) for t in plain.tensors)
        cells = tuple(replace(c, words=tensors[c.members[0]].words) for c in plain.cells)
        problem = replace(plain, tensors=tensors, cells=cells)
        most = volume = 0
        for position in range(len(network.order)):
            alive = [t for t in tensors if t.born <= position <= t.dies]
            sizes = [(-(-t.width // 4), t.words) for t in alive]
            most = max(most, cliques(sizes, 16))
            volume = max(volume, sum(w * n for w, n in sizes))
        for words in (most - 1, most, most + 1):
            chip = replace(MAX78000, instance_bytes=4 * words)
            found = witness_of(replace(problem, chip=chip))
            wanted = words < most or volume > 16 * words
            assert (found is not None) == wanted
            assert found is None or found.of_data
            large = [max(t.owner, 0) for t in tensors if t.words > words]
            assert found is None or not large or found.layers == (large[0],)
            outcomes[wanted] += 1
    assert min(outcomes) > 50


def test_biases_are_refused_where_one_or_all_of_them_are_too_long() -> None:
    for counts in product((8, 20, 33), repeat=3):
        plain = network_of([4, *counts], [False, False, True])
        keys = {f"_{i}": {"bias": np.arange(n) + i} for i, n in enumerate(counts)}
        network = with_layers(plain, **keys)
        problem = problem_of(network, layout_with(network), MAX78000, Choice(), {})
        for size in range(5, 40):
            chip = replace(MAX78000, bias_bytes=size)
            found = witness_of(replace(problem, chip=chip))
            assert (found is not None) == (max(counts) > size or sum(counts) > 4 * size)
            large = [i for i, n in enumerate(counts) if n > size]
            assert not large or (found is not None and found.layers == (large[0],))


# What is tied, and samples that are folded


def test_reasons_of_a_tie_are_those_of_a_shortest_way() -> None:
    random = Random(5)
    for _ in range(200):
        count = random.randint(2, 6)
        ties = [
            Tie(*random.sample(range(count), 2), f"reason {i}") for i in range(random.randint(0, 8))
        ]  # fmt: skip
        known = {tie.reason: {tie.first, tie.second} for tie in ties}
        for begin, end in product(range(count), repeat=2):
            lengths = {begin: 0}
            for step in range(count):
                for tie in ties:
                    for a, b in ((tie.first, tie.second), (tie.second, tie.first)):
                        if lengths.get(a) == step:
                            lengths.setdefault(b, step + 1)
            chain = shortest_chain(ties, begin, end)
            assert len(chain) == lengths.get(end, 0)
            here = begin
            for reason in chain:
                (here,) = known[reason] - {here}
            assert here == (end if end in lengths else begin)


@pytest.mark.parametrize("channels", [1, 3, 5, 64])
def test_samples_are_folded_into_the_most_channels_that_divide_them(channels: int) -> None:
    for rows, columns in product((1, 16, 17, 20, 41), (1, 16, 19, 300)):
        plain = network_of([channels, 4], [True])
        dim = (rows, columns)
        flat = {"flatten": True, "in_dim": dim, "pooled_dim": dim, "out_dim": (1, 1)}
        sample = np.arange(channels * rows * columns).reshape(channels, *dim)
        network = replace(with_layers(plain, _0=flat), sample=sample)
        changed, notices = folded(network, layout_with(network))
        total = channels * rows * columns
        most = max(n for n in range(1, 65) if total % n == 0)
        wanted = rows * columns > 256 and total // most <= 256
        assert bool(notices) == changed.folded == wanted
        if not wanted:
            assert changed is network
            continue
        first = changed.first
        assert first.in_channels == most and first.in_dim == first.pooled_dim
        high, wide = first.in_dim
        assert high * wide * most == total and high >= wide
        assert not any(high * wide % n == 0 for n in range(wide + 1, high) if n * n <= high * wide)
        assert np.array_equal(changed.sample.ravel(), sample.ravel())
        assert changed.sample.shape == (most, high, wide)
        others = (
            replace(network, layers=(replace(network.first, **keys),))
            for keys in ({"flatten": False}, {"pooled_dim": (rows, columns + 1)})
        )
        for other in others:
            assert folded(other, layout_with(other))[0] is other
        assert folded(network, layout_with(network, _0=LayerLayout(in_offset=0)))[0] is network
