"""What the search counts is what the loader does with the places: on networks of every form.

Small memories, so that about half of the tries do not fit. The places of any try go to the loader,
which has arithmetic of its own: it accepts what costs nothing, complains about whatever does not
fit, and puts all kernels where the try has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise, product
from random import Random
from typing import Any

import numpy as np

from ai8xtools.diagnostics import DiagnosticError, Severity
from ai8xtools.synthesis.arrange.arranging import attempted
from ai8xtools.synthesis.arrange.blocks import groups_of
from ai8xtools.synthesis.arrange.bounds import witness_of
from ai8xtools.synthesis.arrange.construct import LayoutConstructor
from ai8xtools.synthesis.arrange.decode import DecodedPlaces, Try, decode
from ai8xtools.synthesis.arrange.dropping import unkept
from ai8xtools.synthesis.arrange.keeping import UnreachableError
from ai8xtools.synthesis.arrange.links import Distances
from ai8xtools.synthesis.arrange.nominal import errors_anywhere
from ai8xtools.synthesis.arrange.polish import cycles, polished, simplified
from ai8xtools.synthesis.arrange.problem import _units, problem_of
from ai8xtools.synthesis.arrange.reasons import reasons_of
from ai8xtools.synthesis.arrange.result import layout_of
from ai8xtools.synthesis.arrange.rewrites import with_copies, with_filled_passes
from ai8xtools.synthesis.arrange.search import repaired, search
from ai8xtools.synthesis.arrange.streams import obstacle, rings_of
from ai8xtools.synthesis.arrange.tensors import skipped_words, tensors_of, words_in_front
from ai8xtools.synthesis.arrange.values import Choice, Problem, StoredTensor
from ai8xtools.synthesis.check import check
from ai8xtools.synthesis.layout import InputPort, LayerLayout, Layout
from ai8xtools.synthesis.mapping import map_network
from ai8xtools.synthesis.network import (
    DATA_BUFFER,
    NETWORK_INPUT,
    Combination,
    DataBuffer,
    Layer,
    Network,
    Operator,
)
from ai8xtools.synthesis.options import PlaceOptions, StreamOptions
from ai8xtools.synthesis.place import check_streams, place_what_fits
from ai8xtools.synthesis.summarize.latency import latency_terms
from device import MAX78000, MAX78002, Chip
from device.masks import bits
from tests.arranging.loads import network_of as chain_of

SIDE = 4
COUNTS = (1, 3, 4, 5, 8, 12, 20, 40, 64, 66, 72, 100)
MISPLACED = 1_000_000
"""What costs so much is wrong whatever room there is."""


def weights(random: Random, *shape: int) -> Any:
    """Return weights of any values."""
    return np.random.default_rng(random.randrange(2**32)).integers(-2, 2, shape).astype(np.int8)


def layer_of(random: Random, index: int, counts: list[int], last: bool) -> Layer:
    """Return a layer that reads one or two of the last results."""
    kind = random.choice(["conv", "conv", "conv", "depth-wise", "pass", "sum", "join"])
    kind = random.choice(["flat", kind]) if last else kind
    first = random.randrange(max(-1, index - 3), index)
    channels = counts[first + 1]
    keys: dict[str, Any] = {"sources": (first,), "out_channels": channels}
    alike = [i - 1 for i, n in enumerate(counts) if n == channels and i != first + 1]
    if kind == "sum" and alike:
        keys |= {"sources": (first, random.choice(alike)), "combination": Combination.ADD}
        keys |= {"operands": 2}
    if kind == "join" and index:
        keys["sources"] = (first, random.choice([i for i in range(-1, index) if i != first]))
        channels = sum(counts[s + 1] for s in keys["sources"])
        keys["out_channels"] = channels
    size = random.choice([1, 3])
    if kind == "depth-wise":
        keys |= {"groups": channels, "weights": weights(random, channels, 1, size, size)}
    elif kind in ("conv", "flat") or random.random() < 0.4:
        outs = random.choice(COUNTS)
        keys |= {"out_channels": outs, "weights": weights(random, outs, channels, size, size)}
    out = (SIDE, SIDE)
    if kind == "flat":
        matrix = weights(random, keys["out_channels"], channels * SIDE**2, 1, 1)
        keys |= {"flatten": True, "weights": matrix, "output_width": random.choice([8, 32])}
        out, size = (1, 1), 1
    if "weights" in keys:
        keys |= {"weight_bits": random.choice([8, 8, 4, 2]), "kernel": (size, size)}
        keys |= {"operator": Operator.LINEAR if kind == "flat" else Operator.CONV2D}
        keys |= {"pad": (size // 2, size // 2)}
        keys["bias"] = random.choice([None, np.arange(keys["out_channels"])])
        keys["pool_first"] = random.random() < 0.5
    return Layer(
        index=index, in_channels=channels, in_dim=(SIDE, SIDE), pooled_dim=(SIDE, SIDE),
        out_dim=out, is_output=last, **{"operator": Operator.NONE, **keys},
    )  # fmt: skip


def network_of(random: Random) -> Network:
    """Return a network of a few layers that read each other in any way."""
    size = random.randint(2, 6)
    counts, layers = [random.choice([1, 3, 4, 8, 20, 70])], list[Layer]()
    for index in range(size):
        layers.append(layer_of(random, index, counts, index == size - 1))
        counts.append(layers[-1].out_channels)
    order = tuple(range(size))
    sample = np.zeros((counts[0], SIDE, SIDE), np.int64)
    return Network(layers=tuple(layers), order=order, simulated=order, sample=sample)


def small(random: Random, chip: Chip) -> Chip:
    """Return a chip with little memory of every kind."""
    columns = random.choice([32, 64, 96])
    return replace(
        chip,
        kernel_columns=columns,
        kernel_columns_first=columns,
        kernel_parts=random.choice([1, 2, 4]) if chip is MAX78002 else 1,
        instance_bytes=4 * random.choice([50, 100, 200]),
        bias_bytes=random.choice([64, 128, 200]),
    )


def open_layout(network: Network) -> Layout:
    """Return the layout in which nothing is given."""
    return Layout(layers=dict.fromkeys(network.order, LayerLayout()))


def choices(network: Network, chip: Chip) -> list[Choice]:
    """Return how the sample may arrive."""
    every = [
        *(Choice(planar) for planar in (False, True)),
        *(Choice(planar, InputPort.FIFO, n) for planar in (False, True) for n in range(4)),
        Choice(in_place=True),
    ]
    return [x for x in every if obstacle(network, chip, x) is None]


def problems(random: Random, count: int, *, streams: bool = False) -> Iterator[Problem]:
    """Yield what has to be arranged, on chips with little memory."""
    while count:
        chip = small(random, random.choice([MAX78000, MAX78002]))
        network = network_of(random)
        try:
            network, fixed, _ = with_filled_passes(network, open_layout(network))
            network, _, _ = with_copies(network, fixed, chip)
            ways = [x for x in choices(network, chip) if x.streamed or not streams]
            if not ways:
                continue
            choice = random.choice(ways)
            rings = rings_of(network, chip, choice, StreamOptions())
            problem = problem_of(network, open_layout(network), chip, choice, rings)
        except DiagnosticError:
            continue
        if all(unit.starts for unit in problem.units):
            count -= 1
            yield problem


def tries(problem: Problem, random: Random, count: int) -> Iterator[DecodedPlaces]:
    """Yield places of tries that keep the order of what is joined, where that goes."""
    for _ in range(count):
        cells, kernels = list(range(len(problem.cells))), list(range(len(problem.loads)))
        random.shuffle(cells)
        random.shuffle(kernels)
        starts = repaired(problem, [random.choice(unit.starts) for unit in problem.units])
        yield decode(
            problem, Try(starts, tuple(cells), random.choice([None, tuple(kernels)]))
        )  # fmt: skip


def complaints(problem: Problem, layout: Layout) -> tuple[set[str], dict[int, tuple[int, int]]]:
    """Return the codes of the loader's errors, and first column and length of kernels by layer."""
    network, chip = problem.network, problem.chip
    placement, found = place_what_fits(network, layout, chip, PlaceOptions())
    errors = [x for x in (*check(network, layout, chip), *found) if x.severity is Severity.ERROR]
    kernels = {i: (x.first, x.length) for i, x in placement.kernels.items() if x.length}
    return {x.code for x in errors}, kernels


def test_the_loader_accepts_what_costs_nothing_and_puts_kernels_where_the_try_has_them() -> None:
    random, outcomes = Random(1), dict[tuple[bool, ...], int]()
    for problem in problems(random, 100):
        refused = witness_of(problem) is not None
        anywhere = {x.code for x in errors_anywhere(problem.network, problem.chip)}
        for found in tries(problem, random, 4):
            assert found.cost or not refused
            if found.cost >= MISPLACED:
                continue
            layout = layout_of(problem, found, open_layout(problem.network))
            errors, kernels = complaints(problem, layout)
            fifo = problem.choice.port.is_fifo  # streams have further rules
            assert anywhere <= errors
            if anywhere:
                continue
            assert bool(errors) == bool(found.cost) or fifo, errors
            assert ("E401" in errors) == bool(found.over)
            assert ("E403" in errors) == bool(found.bias_bytes)
            assert fifo or bool({"E341", "E342"} & errors) == bool(found.lost)
            for load in problem.loads:
                if not found.cost:
                    assert kernels[load.layer] == (found.columns[load.layer], load.columns)
            key = bool(found.over), bool(found.lost), bool(found.bias_bytes)
            outcomes[key] = outcomes.get(key, 0) + 1
    assert outcomes[False, False, False] > 80
    assert sum(n for key, n in outcomes.items() if sum(key) == 1) > 20


def test_places_differ_by_the_cycles_that_the_estimate_of_the_latency_has_of_them() -> None:
    random, differing = Random(9), 0
    for problem in problems(random, 70):
        totals = set()
        parts = set()
        for found in tries(problem, random, 5):
            if found.cost or problem.choice.streamed:
                continue
            layout = layout_of(problem, found, open_layout(problem.network))
            placed, _ = place_what_fits(problem.network, layout, problem.chip, PlaceOptions())
            mapped = map_network(problem.network, layout, problem.chip).executed()
            total = sum(latency_terms(x, placed.kernels[x.index]).total for x in mapped)
            part = cycles(problem, found)
            totals.add(total - part)
            parts.add(part)
        assert len(totals) <= 1
        differing += len(parts) > 1
    assert differing > 2


def test_what_is_built_up_or_searched_is_as_good_as_its_surplus_says() -> None:
    random, outcomes, wrong = Random(4), [0, 0], 0
    for problem in problems(random, 110):
        order = list(range(len(problem.units)))
        random.shuffle(order)
        built = LayoutConstructor(problem).build(order)
        found = decode(problem, built.tried)
        for a, known in enumerate(LayoutConstructor(problem).meeting):
            words = {b: (under, over) for b, _, under, over in known}
            for b, (under, over) in words.items():
                one, other = (problem.tensors[i].words * problem.step[i] for i in (a, b))
                assert under == problem.overlaps.get((a, b), one)
                assert over == problem.overlaps.get((b, a), other)
        fits = not (found.over or found.lost)
        outcomes[fits] += 1
        assert fits or built.surplus or not found.over
        wrong += fits != (not built.surplus)
        exists = any(not x.cost for x in tries(problem, random, 6))
        assert not (exists and search(problem)[0].cost)
    assert min(outcomes) > 30 and wrong < 9


def test_places_are_wrong_whatever_room_there_is_if_parts_groups_or_words_are() -> None:
    random, outcomes = Random(5), [0, 0]
    for problem in problems(random, 150):
        starts = tuple(random.choice(unit.starts) for unit in problem.units)
        found = decode(problem, Try(starts, tuple(range(len(problem.cells)))))
        tensors, held = problem.tensors, [bits(mask) for mask in found.masks]
        rising = all(
            max(held[a]) // 4 < min(held[b]) // 4
            for parts in problem.joins
            for a, b in pairwise(parts)
        )
        shared = any(
            {p // 4 for p in held[a]} & {p // 4 for p in held[b]}
            and max(tensors[a].born, tensors[b].born) <= min(tensors[a].dies, tensors[b].dies)
            and (problem.cell_of[a], problem.slot[a]) == (problem.cell_of[b], problem.slot[b])
            for a, b in combinations(range(len(tensors)), 2)
        )
        read = {t for parts in problem.reads for t in parts}
        final = problem.tensor_of(problem.network.final.index)
        used = {p // 16 for t in {*read, final} for p in held[t]}
        groups = 0 in used and used >= {p // 16 for ps in held for p in ps}
        right = rising and not shared and groups
        assert right == (found.cost < MISPLACED)
        outcomes[right] += 1
    assert min(outcomes) > 30


def test_kernels_of_a_stream_and_right_behind_it_take_the_columns_of_larger_ones() -> None:
    """The loader runs 1x1 kernels as 3x3 there, in the first eight layers."""
    random = Random(2)
    for chip in (MAX78000, MAX78002):
        layers = []
        for index in range(11):
            size = random.choice([1, 1, 3])
            layers.append(
                Layer(
                    index=index, in_channels=8, out_channels=8, operator=Operator.CONV2D,
                    in_dim=(SIDE, SIDE), pooled_dim=(SIDE, SIDE), out_dim=(SIDE, SIDE),
                    kernel=(size, size), pad=(size // 2, size // 2), weight_bits=8,
                    weights=weights(random, 8, 8, size, size), next_layer=index + 1,
                )
            )  # fmt: skip
        layers[-1] = replace(layers[-1], is_output=True, next_layer=None)
        order = tuple(range(11))
        sample = np.zeros((8, SIDE, SIDE), np.int64)
        network = Network(layers=tuple(layers), order=order, simulated=order, sample=sample)
        for count in range(9):
            port = InputPort.FIFO if count else InputPort.MEMORY
            choice = Choice(port=port, streamed=count)
            rings = rings_of(network, chip, choice, StreamOptions())
            problem = problem_of(network, open_layout(network), chip, choice, rings)
            found, _ = search(problem, 60)
            _, kernels = complaints(problem, layout_of(problem, found, open_layout(network)))
            assert not found.over
            for load in problem.loads:
                assert kernels[load.layer] == (found.columns[load.layer], load.columns)


def test_only_the_first_processors_of_groups_have_their_larger_memory() -> None:
    """A sample of up to four channels stands in them if each has a FIFO of its own."""
    extra = MAX78002.kernel_columns_first - MAX78002.kernel_columns
    for channels, planar, more in product(range(1, 7), (False, True), (0, 1, extra, extra + 1)):
        network = chain_of([channels, 4], [True])
        choice = Choice(planar, InputPort.FIFO)
        if obstacle(network, MAX78002, choice) is not None:
            assert planar and channels > 4
            continue
        plain = problem_of(network, open_layout(network), MAX78002, choice, {})
        columns = MAX78002.kernel_columns + more
        (load,) = plain.loads
        problem = replace(plain, loads=(replace(load, columns=columns),))
        alone = channels == 1 or planar
        fits = not more or (alone and more <= extra)
        assert (not search(problem, 20)[0].cost) == fits
        if fits or channels > 4 or more > extra:  # elsewhere it is no proof
            assert (witness_of(problem) is None) == fits


def test_units_begin_where_all_of_their_members_can() -> None:
    """Members stand at hidden places; nothing begins before the first of them."""
    random, behind = Random(3), 0
    for _ in range(300):
        count = random.randint(1, 6)
        hidden = [random.randrange(-16, 17, 4) for _ in range(count)]
        ties, sets = Distances(count), [{i} for i in range(count)]
        for _ in range(random.randint(0, 6)):
            a, b = random.randrange(count), random.randrange(count)
            ties.tie(a, b, hidden[b] - hidden[a])
            one, other = (next(s for s in sets if i in s) for i in (a, b))
            if one is not other:
                sets = [s for s in sets if s is not one and s is not other] + [one | other]
        tensors = tuple(
            StoredTensor(
                i, 0xF, tuple(random.sample(range(0, 61, 4), 12)), 1, 0, 1, 4, 1, 1
            )
            for i in range(count)
        )  # fmt: skip
        given = {
            ties.find(min(s))[0]: random.randrange(0, 20)
            for s in sets if random.random() < 0.3
        }  # fmt: skip
        unit_of, distance, units = _units(tensors, ties, given)
        assert {frozenset(u.members) for u in units} == {frozenset(s) for s in sets}
        for number, unit in enumerate(units):
            first = min(hidden[i] for i in unit.members)
            assert [distance[i] for i in unit.members] == [hidden[i] - first for i in unit.members]
            assert all(unit_of[i] == number for i in unit.members)
            root = ties.find(unit.members[0])[0]
            behind += hidden[root] > first
            legal = [
                s for s in range(64)
                if all(s + distance[i] in tensors[i].starts for i in unit.members)
            ]  # fmt: skip
            wanted = [given[root] - distance[root]] if root in given else legal
            assert list(unit.starts) == wanted
    assert behind > 50


def test_maps_are_alive_from_their_writer_to_the_last_reader_and_take_their_words() -> None:
    random = Random(6)
    for _ in range(80):
        network = network_of(random)
        last = len(network.order)
        marked = random.randrange(last)
        layers = [replace(x, is_output=x.is_output or x.index == marked) for x in network.layers]
        network = replace(network, layers=tuple(layers))
        found = {t.owner: t for t in tensors_of(network, Choice(), {})}
        assert sorted(found) == [NETWORK_INPUT, *network.order]
        for owner, tensor in found.items():
            size = 1
            if owner == NETWORK_INPUT:
                channels, pixels, born, delivered = network.first.in_channels, SIDE**2, -1, False
            else:
                layer = network.layers[owner]
                channels, born, delivered = layer.out_channels, owner, layer.is_output
                pixels = layer.out_dim[0] * layer.out_dim[1]
                size = 4 if layer.output_width == 32 else 1
            count = -(-channels // 64)
            share = -(-channels // count)
            share = share if count == 1 else -(-share // 4) * 4
            readers = [x.index for x in layers if owner in (x.sources or ())]
            dies = max([*readers, born + 1]) if not delivered else last
            assert (tensor.born, tensor.dies) == (born, dies)
            assert (tensor.words, tensor.pixels, tensor.passes) == (
                pixels * count * size, pixels, count,
            )  # fmt: skip
            assert (tensor.width, tensor.pattern, tensor.leading) == (share, (1 << share) - 1, 0)
            assert tensor.starts == tuple(s for s in range(0, 64, 4) if s + share <= 64)


def test_samples_stand_where_memory_or_the_fifos_have_their_channels() -> None:
    """Planar data has an instance for each channel; of the FIFOs each feeds one group."""
    for channels in range(1, 17):
        network = chain_of([channels, 4], [True])
        for choice in choices(network, MAX78000):
            sample = tensors_of(network, choice, {0: 7, 1: 7, 2: 7})[0]
            fifo = choice.port.is_fifo
            step = (16 if fifo else 4) if choice.planar else 1
            lanes = [i * step for i in range(channels)]
            if fifo and not choice.planar and channels > 4:
                lanes = [i // 4 * 16 + i % 4 for i in range(channels)]
            assert bits(sample.pattern) == tuple(lanes)
            one_group = fifo and not choice.planar and channels <= 4
            starts = range(0, 64 - lanes[-1], 16 if one_group else 4)
            assert sample.starts == ((0,) if fifo and not one_group else tuple(starts))
            words = 1 if choice.planar else 4
            assert sample.words == (8 if choice.streamed else words)
            assert (sample.born, sample.dies) == (-1, max(choice.streamed - 1, 0))


def test_a_rolling_buffer_is_one_map_that_is_always_alive() -> None:
    plain = chain_of([4, 8, 8, 8], [False, False, True])
    rolling: list[dict[str, Any]] = [
        {}, {"buffer_shift": 1, "sources": (DATA_BUFFER,)},
        {"buffer_insert": 1, "sources": (0,)},
    ]  # fmt: skip
    layers = tuple(replace(x, **keys) for x, keys in zip(plain.layers, rolling, strict=True))
    for channels, share, count in ((8, 8, 1), (64, 64, 1), (65, 36, 2), (130, 44, 3)):
        buffer = DataBuffer("past", channels, 5, 3)
        network = replace(plain, layers=layers, buffer=buffer)
        found = tensors_of(network, Choice(), {})
        assert [t.owner for t in found] == [NETWORK_INPUT, DATA_BUFFER, 0]
        made = problem_of(network, open_layout(network), MAX78000, Choice(), {})
        names = [made.name(i) for i in range(3)]
        assert "input" in names[0] and "buffer" in names[1] and str(layers[0]) in names[2]
        assert len(set(names)) == 3
        tried = Try(tuple(u.starts[-1] for u in made.units), (0, 1, 2))
        places = decode(made, tried)
        buffered = layout_of(made, places, open_layout(network)).buffer_place
        assert buffered is not None and buffered.processors == places.masks[1]
        assert buffered.offset == 4 * places.offsets[made.cell_of[1]] > 0
        past = found[1]
        assert (past.born, past.dies, past.words) == (-1, 3, 15 * count)
        assert (past.pattern, past.passes) == ((1 << share) - 1, count)
        assert [words_in_front(network, x) for x in layers] == [0, 0, 4 * 3]
        assert [skipped_words(network, x) for x in layers] == [0, 3, 0]


def compacted(mask: int) -> int:
    """Return lanes as they are passed on: those of a group close up behind the lowest one."""
    found = 0
    for group in range(4):
        lanes = [p for p in bits(mask) if p // 16 == group]
        found |= sum(1 << min(lanes) + i for i in range(len(lanes)))
    return found


def test_parts_that_are_passed_on_together_stand_where_their_lanes_close_up() -> None:
    random, outcomes = Random(7), [0, 0, 0]
    for _ in range(200):
        counts = [random.choice([1, 3, 4, 5, 8, 12, 16, 18, 20]) for _ in range(2)]
        depthwise = random.random() < 0.3
        plain = chain_of([4, *counts, sum(counts)], [False, False, True])
        first, second, last = plain.layers
        second = replace(second, sources=(-1,), in_channels=4)
        total = sum(counts)
        kernel: dict[str, Any] = {"operator": Operator.NONE, "weights": None}
        if depthwise:
            kernel = {"groups": total, "weights": np.ones((total, 1, 1, 1), np.int8)}
        last = replace(last, sources=(0, 1), in_channels=total, out_channels=total, **kernel)
        network = replace(plain, layers=(first, second, last))
        try:
            problem = problem_of(network, open_layout(network), MAX78000, Choice(), {})
        except DiagnosticError:
            assert sum(-(-n // 16) for n in counts) > 4
            continue
        parts = [problem.tensor_of(i) for i in (0, 1)]
        result = problem.tensor_of(2)
        assert len({problem.unit_of[i] for i in (*parts, result)}) == 1
        unit = problem.units[problem.unit_of[result]]
        every = []
        for start in range(0, 64, 4):
            read = [problem.tensors[i].pattern << start + problem.distance[i] for i in parts]
            out = problem.tensors[result].pattern << start + problem.distance[result]
            union = read[0] | read[1]
            alone = not read[0] & read[1] and max(union, out) < 1 << 64
            if alone and (union if depthwise else compacted(union)) == out:
                every.append(start)
        gaps = counts[0] % 4 > 0
        outcomes[2 if depthwise else gaps] += 1
        assert {*unit.starts} <= {*every}
        end = max(problem.distance[i] + problem.tensors[i].span for i in parts)
        inside = [s for s in every if depthwise or not gaps or s % 16 + end <= 16]
        assert unit.starts and {*inside} <= {*unit.starts}
    assert min(outcomes) > 10


KEYS = (
    "processors", "output_processors", "in_offset", "out_offset", "write_gap", "read_gap",
    "kernel_offset",
)  # fmt: skip


def given_some(layout: Layout, random: Random, share: float) -> Layout:
    """Return a layout in which some keys of a complete one are given."""
    layers = {
        i: LayerLayout(**{k: getattr(x, k) for k in KEYS if random.random() < share})
        for i, x in layout.layers.items()
    }
    return Layout(layers=layers)


def with_keys(problem: Problem, given: Layout) -> Problem | None:
    """Return the problem with given places; None if they are refused."""
    choice = problem.choice
    rings = rings_of(problem.network, problem.chip, choice, StreamOptions())
    try:
        changed = problem_of(problem.network, given, problem.chip, choice, rings)
    except (DiagnosticError, UnreachableError):
        return None
    return changed if all(unit.starts for unit in changed.units) else None


def test_places_that_fit_can_be_given_and_others_are_kept_or_refused() -> None:
    random, outcomes = Random(8), dict[str, int]()
    for problem in problems(random, 90):
        found = next((x for x in tries(problem, random, 3) if not x.cost), None)
        if found is None or problem.choice.port.is_fifo:
            continue
        if any(errors_anywhere(problem.network, problem.chip)):
            continue
        layout = layout_of(problem, found, open_layout(problem.network))
        placed, _ = place_what_fits(problem.network, layout, problem.chip, PlaceOptions())
        layers = {
            i: replace(x, kernel_offset=placed.kernels[i].first if i in found.columns else None)
            for i, x in layout.layers.items()
        }
        layout = replace(layout, layers=layers)
        given = given_some(layout, random, random.choice([0.2, 0.5, 1.0]))
        changed = with_keys(problem, given)
        assert changed is not None
        again = decode(changed, found.tried)
        assert not again.cost or any(x.fixed is not None for x in (*changed.cells, *changed.loads))
        kept = layout_of(changed, replace(again, columns=found.columns), given)
        assert not [*unkept(problem.network, given, kept)]
        assert all(
            start in unit.starts
            for unit, start in zip(changed.units, found.tried.starts, strict=True)
        )
        assert all(
            cell.fixed in (None, offset)
            for cell, offset in zip(changed.cells, found.offsets, strict=True)
        )
        for layer in given.layers.values():
            assert layer.processors is None or changed.units != problem.units
        # one value is another one
        index, key = random.choice([*given.layers]), random.choice(KEYS[:4])
        value = getattr(layout.layers[index], key)
        step = 4 * random.randint(1, 8)
        value = value << step if "processors" in key else value + step
        if value.bit_length() > 64:
            continue
        alone = {index: replace(LayerLayout(), **{key: value})}
        moved = Layout(layers={**open_layout(problem.network).layers, **alone})
        changed = with_keys(problem, moved)
        if changed is None:
            outcomes["refused"] = outcomes.get("refused", 0) + 1
            continue
        better, _ = search(changed, 40)
        if not better.cost:
            outcomes["kept"] = outcomes.get("kept", 0) + 1
            kept = layout_of(changed, better, moved)
            assert getattr(kept.layers[index], key) == value
            assert not complaints(changed, kept)[0]
    assert outcomes["kept"] > 10, outcomes


def test_groups_for_packing_are_rectangles_of_what_is_read_together() -> None:
    random, blocks, several = Random(10), 0, 0
    for problem in problems(random, 70):
        groups = groups_of(problem)
        if groups is None:
            continue
        assert sorted(u for g in groups for u, _ in g.units) == [*range(len(problem.units))]
        loads = {(x.content, x.reads) for x in problem.loads}
        assert sum(len(g.blocks) for g in groups) == len(loads)
        for number, group in enumerate(groups):
            several += len(group.units) > 1
            assert min(place for _, place in group.units) == 0
            legal = [
                s for s in range(16)
                if all(4 * s + place in problem.units[u].starts for u, place in group.units)
            ]  # fmt: skip
            assert [*group.starts] == legal
            covered: dict[int, list[set[int]]] = {}
            for start in group.starts:
                starts = [unit.starts[0] for unit in problem.units]
                for unit, place in group.units:
                    starts[unit] = 4 * start + place
                masks = decode(problem, Try(tuple(starts), tuple(range(len(problem.cells))))).masks
                for block in group.blocks:
                    load = problem.loads[block.load]
                    lanes = [p for t in load.reads for p in bits(masks[t])]
                    low, high = min(lanes) // 4, max(lanes) // 4 + 1
                    assert (start + block.left, block.width) == (low, high - low)
                    assert (block.height, block.group) == (load.blocks, number)
                    instances = {*range(low, high)}
                    covered.setdefault(block.load, []).append(instances)
                    if len(load.reads) > 1:
                        tops = [max(bits(masks[t])) // 4 for t in load.reads]
                        lows = [min(bits(masks[t])) // 4 for t in load.reads]
                        assert all(a + 1 >= b for a, b in zip(tops, lows[1:], strict=False))
                    blocks += 1
                held = [
                    (t.words * problem.step[i], t.born, t.dies, {p // 4 for p in bits(masks[i])})
                    for i, t in enumerate(problem.tensors)
                    if problem.unit_of[i] in dict(group.units)
                    and len(problem.cells[problem.cell_of[i]].members) == 1
                ]  # fmt: skip
                found = [
                    (x.words, x.born, x.dies, {*range(start + x.left, start + x.left + x.width)})
                    for x in group.data
                ]
                spread = [(*x[:3], {*range(min(x[3]), max(x[3]) + 1)}) for x in held]
                assert found == ([] if problem.overlaps else spread)
            for block in group.blocks:
                every = set.intersection(*covered[block.load])
                assert {*block.always(group.starts)} == every
    assert blocks > 100 and several > 1


def test_reasons_are_given_for_what_a_layout_has_and_nobody_asked_for() -> None:
    random, seen = Random(11), set[str]()
    choices_of_layers = ("out_offset", "write_gap", "read_gap", "kernel_offset", "in_place")
    for problem in problems(random, 50):
        found = next((x for x in tries(problem, random, 4) if not x.cost), None)
        if found is None:
            continue
        layout = layout_of(problem, found, open_layout(problem.network))
        for obstacles in ((), ("there is no room",)):
            given = given_some(layout, random, 0.3)
            reasons = reasons_of(problem, found, layout, given, obstacles)
            assert sorted(reasons) == [*problem.network.order]
            for i, told in reasons.items():
                for key in choices_of_layers:
                    value = getattr(layout.layers[i], key)
                    fixed = getattr(given.layers[i], key) is not None
                    wanted = bool(value) if key != "kernel_offset" else value is not None
                    if key == "out_offset":  # or nothing is below it
                        assert key not in told or (wanted and not fixed)
                    else:
                        assert (key in told) == (wanted and not fixed)
                assert not any(getattr(given.layers[i], k, None) is not None for k in told)
                seen |= {*told}
            first = reasons[problem.network.first.index]
            choice = problem.choice
            assert ("data_format" in first) == (bool(obstacles) and choice.planar)
            assert ("input_port" in first) == (bool(obstacles) and choice.port.is_fifo)
            result = problem.tensor_of(problem.network.first.index)
            unit = problem.unit_of[result]
            lowest = found.tried.starts[unit] == problem.units[unit].starts[0]
            asked = given.layers[problem.network.first.index].output_processors is not None
            assert ("output_processors" in first) == (not lowest and not asked)
    assert {"out_offset", "kernel_offset", "output_processors", "processors"} <= seen


def test_maps_of_a_stream_are_rings_from_its_begin_on_but_the_last_one() -> None:
    network = chain_of([4] * 6, [False] * 4 + [True])
    for count in range(1, 6):
        rings = {i: 10 + i for i in range(count)}
        found = tensors_of(network, Choice(port=InputPort.FIFO, streamed=count), rings)
        for tensor in found:
            inside, last = tensor.owner < count - 1, tensor.owner == count - 1
            plain = max(tensor.owner + 1, 0), 5 if tensor.owner == 4 else tensor.owner + 1
            words = 11 + tensor.owner + 1 if inside else 4 + last
            assert tensor.words == words
            assert tensor.born == (-1 if inside or last else tensor.owner)
            assert tensor.dies == (count - 1 if inside else plain[1])


def test_words_are_left_free_and_cut_off_as_keys_say() -> None:
    plain = chain_of([4, 8, 70, 8], [False, False, True])
    for gap in range(4):
        layout = replace(
            open_layout(plain),
            layers={**open_layout(plain).layers, 0: LayerLayout(write_gap=gap)},
        )
        made = problem_of(plain, layout, MAX78002, Choice(), {})
        result = made.tensor_of(0)
        assert made.step[result] == gap + 1
        assert made.cells[made.cell_of[result]].words == 4 * (gap + 1)
        found, _ = search(made, 20)
        done = layout_of(made, found, layout).layers
        assert (done[0].write_gap, done[1].read_gap, done[2].read_gap) == (gap, gap, 0)
    for rows, columns, operands in product(range(3), (1, 5), (1, 2)):
        for index, passes in ((1, 1), (2, 2)):
            layer = replace(
                plain.layers[index], in_dim=(4, columns), in_crop=(rows, 1), operands=operands
            )
            assert skipped_words(plain, layer) == rows * columns * passes * operands


def test_streams_are_found_where_the_loader_has_nothing_against_them() -> None:
    random, outcomes = Random(12), [0, 0]
    options = PlaceOptions()
    for given in problems(random, 70, streams=True):
        network, chip, fixed = given.network, given.chip, open_layout(given.network)
        if any(errors_anywhere(network, chip)):
            continue
        attempt = attempted(network, fixed, chip, options, given.choice, 40)
        if attempt.problem is None or search(attempt.problem, 40)[0].cost:
            assert attempt.decoded is None
            continue
        problem = attempt.problem
        places = simplified(problem, polished(problem, search(problem, 40)[0]))
        layout = layout_of(problem, places, fixed)
        placed, found = place_what_fits(network, layout, chip, options)
        told = (*check(network, layout, chip), *found)
        told = (*told, *check_streams(network, placed, chip, options))
        wrong = any(x.severity is Severity.ERROR for x in told)
        assert (attempt.decoded is None) == wrong
        outcomes[wrong] += 1
    assert outcomes[0] > 15


def test_rings_are_those_that_the_loader_makes_of_the_places() -> None:
    plain = chain_of([4, 8, 8, 4], [False, False, True])
    layers = tuple(
        replace(
            x, kernel=(3, 3), pad=(1, 1),
            weights=np.ones((x.out_channels, x.in_channels, 3, 3), np.int8),
        )
        for x in plain.layers
    )  # fmt: skip
    network = replace(plain, layers=layers)
    first = []
    for chip, planar in product((MAX78000, MAX78002), (False, True)):
        choice = Choice(planar, InputPort.FIFO, 2)
        assert obstacle(network, chip, choice) is None
        rings = rings_of(network, chip, choice, StreamOptions())
        problem = problem_of(network, open_layout(network), chip, choice, rings)
        found, _ = search(problem, 20)
        layout = layout_of(problem, found, open_layout(network))
        placement, _ = place_what_fits(network, layout, chip, PlaceOptions())
        assert rings == placement.rings and [*rings] == [0, 1]
        first.append(rings[0])
    assert first[0] != first[1] and first[2] != first[3]
