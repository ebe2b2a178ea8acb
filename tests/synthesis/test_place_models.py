"""Outputs, biases, columns and steps of the start-up, compared with slow models of their own."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np
import pytest

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.layout import Delivery, InputPort
from ai8xtools.synthesis.network import Operator
from ai8xtools.synthesis.options import EncodeOptions, Occupied, StreamOptions
from ai8xtools.synthesis.place import PlaceOptions
from ai8xtools.synthesis.place.allocation import ColumnSearch, NoRoomError
from ai8xtools.synthesis.place.biases import _BiasMemory
from ai8xtools.synthesis.place.data import _free_offset, _missing_gap, input_words, output_words
from ai8xtools.synthesis.place.inplace import distance
from ai8xtools.synthesis.place.outputs import delivered_scale, delivery_of, pieces_of, pixel_step
from ai8xtools.synthesis.place.streams import place_streams
from ai8xtools.synthesis.place.validation import validate_placement
from ai8xtools.synthesis.program import Block, Wait, Write
from device import MAX78000, MAX78002, Chip
from tests.synthesis.emulated import emulated
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.stages import encode, place, place_what_fits, simulate
from tests.synthesis.test_encode import program

APB = 0x50000000
CONV: dict[str, Any] = {
    "op": "Conv2d", "kernel_size": "3x3", "pad": 1, "activate": "none", "output_shift": -2,
}  # fmt: skip


def runs(
    folder: Path, *layers: dict[str, Any], data: Any, kernels: Any, biases: Any = (),
    chip: Chip = MAX78000, **options: Any,
) -> Any:  # fmt: skip
    """Return the placement of a network that the emulated chip computes right."""
    network, _ = build(folder, describe(*layers), data, kernels, biases, chip, **options)
    placement = place(network, PlaceOptions())
    validate_placement(placement, network)
    made = encode(network, placement, simulate(network, average_rounding=False), EncodeOptions())
    run = emulated(made)
    assert (run.wrong, list(run.run.errors)) == ([], [])
    return placement


# outputs in data memory


@pytest.mark.parametrize("width", [8, 32])
@pytest.mark.parametrize(
    "processors, channels", [(0xFF, 8), (0xF0, 4), (0x7F8, 7), (0x3F << 10, 12), (mask(64), 100)]
)
@pytest.mark.parametrize("gap", [0, 2])
def test_channels_stand_in_the_lanes_of_their_processors(
    processors: int, channels: int, width: Literal[8, 32], gap: int
) -> None:
    """Channel by channel: its pass, processor, lane, and the word for a pixel."""
    used = [p for p in range(64) if processors >> p & 1]
    count = -(-channels // 64) if channels > 64 else -(-channels // len(used))
    if count != -(-channels // 64):
        count, channels = 1, len(used)
    share = channels if count == 1 else -(-channels // (4 * count)) * 4
    used = used[:share]
    source = Delivery(mask_of(used), channels, (2, 3), 0x40, width, gap)
    found = {}
    for piece in pieces_of(source):
        for number, lane in enumerate(piece.lanes):
            found[piece.channel + number] = piece.instance, lane, piece.word
    assert found == {
        c: (
            used[c % share] // 4,
            used[c % share] % 4,
            c // share * (width // 8) * (gap + 1),
        )
        for c in range(channels)
    }
    assert pixel_step(source) == count * (width // 8) * (gap + 1)


def mask_of(processors: list[int]) -> int:
    """Return the mask of some processors."""
    return sum(1 << p for p in processors)


@pytest.mark.parametrize("gap, width", list(product([0, 1, 3], [8, 32])))
def test_words_of_an_output_are_those_that_are_delivered(
    tmp_path: Path, gap: int, width: int
) -> None:
    layer = {**CONV, "processors": 7, "output_width": width, "out_offset": 0x2000}
    layer |= {"write_gap": gap} if gap else {}
    network, _ = build(tmp_path, describe(layer), sample(3, 2, 3), [weights(72, 3, 3, 3)])
    final = network.final
    words = output_words(final)
    delivery = delivery_of(final)
    size = width // 8
    assert words.shape == (6, 2, size)
    starts = {(pixel, piece.word) for pixel in range(6) for piece in pieces_of(delivery)}
    wanted = {
        0x800 + p * pixel_step(delivery) + w + lane for p, w in starts for lane in range(size)
    }
    assert set(words.ravel().tolist()) == wanted
    assert (np.diff(words.ravel()) > 0).all()
    assert input_words(network.first).tolist() == list(range(6))


@pytest.mark.parametrize("chw, pixels, words", [(True, (3, 3), 3), (False, (3, 3), 9)])
def test_a_sample_takes_a_word_for_each_pixel_or_for_four(
    tmp_path: Path, chw: bool, pixels: tuple[int, int], words: int
) -> None:
    layer = {**CONV, "processors": 1, "in_offset": 0x100, "out_offset": 0x2000}
    layer |= {"data_format": "CHW"} if chw else {}
    network, _ = build(tmp_path, describe(layer), sample(1, *pixels), [weights(2, 1, 3, 3)])
    assert input_words(network.first).tolist() == list(range(0x40, 0x40 + words))


@pytest.mark.parametrize("last_covers, scale", [(True, 0), (False, None)])
def test_the_scale_of_a_delivery_is_that_of_all_who_write_there(
    tmp_path: Path, last_covers: bool, scale: int | None
) -> None:
    layers = (
        {**CONV, "processors": 1, "out_offset": 0x1000},
        {**CONV, "processors": 0xF, "out_offset": 0x2000},
    )
    network, _ = build(
        tmp_path, describe(*layers), sample(1, 2, 2), [weights(4, 1, 3, 3), weights(4, 4, 3, 3)]
    )
    first, second = network.layers
    own = delivery_of(second)
    assert delivered_scale(own, network) == delivered_scale(delivery_of(first), network) == 0
    nowhere = replace(own, offset=0x6000)
    assert delivered_scale(nowhere, network) == 0
    network = replace(
        network,
        network=replace(
            network.network,
            layers=tuple(
                replace(x, final_scale=3) if x.index == 0 else x for x in network.network.layers
            ),
        ),
    )
    both = Delivery(own.processors, 4, (1, 2), own.offset if last_covers else 0x1FFC, 8, 0)
    both = both if last_covers else replace(own, offset=0x1008, dim=(32, 32))
    assert delivered_scale(both, network) == scale


def test_the_lowest_free_offset_has_room_for_the_whole_output(tmp_path: Path) -> None:
    layer = {**CONV, "processors": 7, "out_offset": 0x1C, "output_processors": 0x3F0}
    network, _ = build(tmp_path, describe(layer), sample(3, 3, 3), [weights(6, 3, 3, 3)])
    (one,) = network.layers
    random, full = Random(1), 0
    for _ in range(60):
        live = np.full((16, 60), -2, np.int16)
        for _ in range(random.choice((0, 2, 4, 6))):
            live[random.randrange(4), random.randrange(60)] = random.choice((-1, 0, 3))
        held = (live[1:3] != -2).any(axis=0)  # instances of processors 4 to 9
        free = [4 * word for word in range(60 - 9 + 1) if not held[word : word + 9].any()]
        assert _free_offset(live, one) == (free[0] if free else None)
        full += free[:1] != [0]
    assert full > 10


@pytest.mark.parametrize("gaps", [*product((0, 1), repeat=2)])
def test_gaps_are_missed_by_layers_whose_results_are_combined(
    tmp_path: Path, gaps: tuple[int, int]
) -> None:
    """Word by word: one word is free between two of an operand; others need no gaps."""
    plain = {**CONV, "processors": 7, "output_processors": 7}
    layers = (
        {**plain, "write_gap": gaps[0] or None},
        {**plain, "write_gap": gaps[1] or None, "in_sequences": "input"},
        {**plain, "in_sequences": "[0, 1]", "eltwise": "add"},
        plain,
    )
    kernels = [weights(3, 3, 3, 3, seed=i) for i in range(4)]
    network, _ = build(tmp_path, describe(*layers), sample(3, 4, 4), kernels)
    for index, owner in product(range(4), range(-1, 4)):
        found = _missing_gap(network, network.layer(index), owner)
        lacking = [i for i in (index, owner) if i in (0, 1) and not gaps[i]] if index < 2 else []
        assert (found and found[0].index) == (lacking[0] if lacking else None)


# biases


def test_biases_of_one_word_for_all_groups_stand_in_turn(tmp_path: Path) -> None:
    layer = {**CONV, "processors": 1, "out_offset": 0x2000}
    bias = np.arange(1, 11)
    network, _ = build(
        tmp_path, describe(layer), sample(1, 4, 4), [weights(10, 1, 3, 3)], [bias],
        input_port=InputPort.FAST_FIFO_QUAD,
    )  # fmt: skip
    placement, _ = place_what_fits(network, PlaceOptions())
    validate_placement(placement, network)
    assert [group.tolist() for group in placement.bias_memory] == [
        bias[g::4].tolist() for g in range(4)
    ]
    assert placement.biases[0].offsets == (0, 0, 0, 0)


@pytest.mark.parametrize("flatten_last", [True, False])
@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_biases_of_several_layers_are_added_where_they_stand(
    tmp_path: Path, flatten_last: bool, chip: Chip
) -> None:
    """Long ones, a flattened one and one that is bound to a group; all groups are in use."""
    last = {"op": "Linear", "flatten": True, "activate": "none", "output_shift": -6}
    last = last if flatten_last else CONV
    layers = (
        {**CONV, "processors": mask(3), "out_offset": 0x2000},
        {**CONV, "processors": hex(mask(64)), "out_offset": 0, "bias_group": 3},
        {**CONV, "processors": hex(mask(20, 4)), "out_offset": 0x2000},
        {**last, "processors": hex(mask(12, 48)), "out_offset": 0},
    )
    kernels = [weights(64, 3, 3, 3), weights(20, 64, 3, 3), weights(12, 20, 3, 3)]
    kernels.append(weights(7, 12 * 4, 1, 1) if flatten_last else weights(7, 12, 3, 3))
    biases = [weights(len(k), seed=i) for i, k in enumerate(kernels)]
    placement = runs(
        tmp_path, *layers, data=sample(3, 2, 2), kernels=kernels, biases=biases, chip=chip
    )
    assert placement.biases[1].group == 3
    first = flatten_last and chip.places_flatten_bias_first
    assert placement.biases[3].offsets[0] == 0 if first else placement.biases[0].offsets[0] == 0


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_a_bias_of_a_flattened_layer_is_first_where_the_chip_needs_it(
    tmp_path: Path, chip: Chip
) -> None:
    """Even before that of a layer bound to the only group."""
    layers = (
        {**CONV, "processors": 1, "out_offset": 0x2000, "bias_group": 0},
        {"op": "Linear", "flatten": True, "activate": "none", "output_shift": -6,
         "processors": 0xF, "out_offset": 0},
    )  # fmt: skip
    kernels = [weights(4, 1, 3, 3), weights(3, 16, 1, 1)]
    biases = [weights(len(k), seed=i) for i, k in enumerate(kernels)]
    placement = runs(
        tmp_path, *layers, data=sample(1, 2, 2), kernels=kernels, biases=biases, chip=chip
    )
    begins = [placement.biases[i].offsets[0] for i in range(2)]
    assert begins == ([3, 0] if chip.places_flatten_bias_first else [0, 4])


def test_biases_find_room_as_long_as_no_group_has_more_bytes_than_its_memory(
    tmp_path: Path,
) -> None:
    """In one group, in those of the channels, or in all in turn: up to the last byte."""
    depthwise = {
        **CONV, "processors": hex(mask(20)), "groups": 20, "output_processors": hex(mask(20)),
        "output_shift": 0,
    }  # fmt: skip
    kinds: list[tuple[dict[str, Any], int, int, dict[str, Any]]] = [
        ({**CONV, "processors": 7}, 3, 3, {}),
        (depthwise, 20, 1, {}),
        ({**CONV, "processors": 1}, 1, 1, {"input_port": InputPort.FAST_FIFO_QUAD}),
    ]
    for number, (layer, channels, ins, options) in enumerate(kinds):
        folder = tmp_path / str(number)
        folder.mkdir()
        network, _ = build(
            folder, describe(layer), sample(channels, 4, 4), [weights(20, ins, 3, 3)],
            [np.arange(1, 21)], MAX78000, **options,
        )  # fmt: skip
        (one,) = network.layers
        for capacity in range(24):
            problems: list[Diagnostic] = []
            memory = _BiasMemory(network, Occupied(), problems)
            memory.capacity = capacity
            if number == 0:
                assert (memory.add_in_one_group(one, (0,)) is None) == (capacity < 20)
            elif number == 1:
                memory.add_by_channel(one)
            else:
                memory.add_in_turn(one)
            assert bool(problems) == ((20, 16, 5)[number] > capacity)


@pytest.mark.parametrize(
    "processors", [mask(6), mask(6, 4), mask(16), mask(20), mask(24, 8), mask(12, 24), mask(64)]
)
@pytest.mark.parametrize("moved", [0, 16])
def test_biases_of_depth_wise_layers_are_those_of_their_channels(
    tmp_path: Path, processors: int, moved: int
) -> None:
    count = processors.bit_count()
    behind = processors << moved & mask(64)
    behind = behind if behind.bit_count() == count else processors
    layers = (
        {**CONV, "processors": mask(3), "out_offset": 0x2000},
        {**CONV, "processors": hex(processors), "groups": count, "out_offset": 0,
         "output_processors": hex(behind), "output_shift": 0},
        {**CONV, "processors": hex(behind), "out_offset": 0x2000},
    )  # fmt: skip
    kernels = [weights(count, 3, 3, 3), weights(count, 1, 3, 3), weights(5, count, 3, 3)]
    biases = [weights(len(k), seed=i) for i, k in enumerate(kernels)]
    placement = runs(
        tmp_path, *layers, data=sample(3, 3, 3), kernels=kernels, biases=biases, chip=MAX78002
    )
    used = [p for p in range(64) if processors >> p & 1]
    own = used[-1] + 1  # bytes from the first group on, also where it takes no part
    if behind == processors:  # broadcast: the lanes of a group take turns
        own = 1 + max(p // 16 * 16 + p % 4 * 4 + p % 16 // 4 for p in used)
    elif used[0] // 16 == used[-1] // 16:
        own -= used[0]
    assert sum(m.size for m in placement.bias_memory) == count + own + 5


# kernels


def test_kernels_along_one_axis_begin_behind_the_lanes_that_are_left_out(tmp_path: Path) -> None:
    for number, (taps, lane) in enumerate(((2, 3), (5, 1), (9, 2))):
        folder = tmp_path / str(number)
        folder.mkdir()
        conv = {"op": "Conv1d", "kernel_size": taps, "pad": 0, "output_shift": -2}
        outputs = hex(mask(4, lane))
        layers = (
            {**conv, "processors": 7, "output_processors": outputs, "out_offset": 0x2000},
            {**conv, "processors": outputs, "out_offset": 0},
        )
        kernels = [weights(4, 3, taps), weights(4, 4, taps)]
        runs(folder, *layers, data=sample(3, 20, 1), kernels=kernels)


def test_columns_are_the_lowest_that_are_free_within_a_part() -> None:
    random = Random(1)
    chip = replace(MAX78002, kernel_columns=64, kernel_columns_first=96)
    part, found_some = 16, 0
    for _ in range(600):
        capacity = random.choice([64, 96])
        used = np.zeros((2, 96), np.bool_)
        for _ in range(random.randint(0, 4)):
            first = random.randrange(0, 80, 4)
            used[random.randrange(2), first : first + random.randint(1, 12)] = True
        length, start = random.randint(1, 20), random.randint(0, 20)
        search = ColumnSearch(chip, used, [capacity, capacity], length, False)
        free = [c for c in range(0, capacity - length + 1, 4) if not used[:, c : c + length].any()]
        wanted = [c for c in free if c >= start]
        if wanted:
            assert search.upward(start) == wanted[0]
        else:
            with pytest.raises(NoRoomError):
                search.upward(start)
        try:
            last = search.downward()
        except NoRoomError:
            continue
        assert last in free
        found_some += 1
        if not used.any():
            assert last == free[-1]
        inside = ColumnSearch(chip, used[:, :64], [64, 64], length, True)
        if length == part:
            continue  # longer than any depth-wise layer
        try:
            column = inside.upward(0)
        except NoRoomError:
            continue
        # whether the last column is free is seen when the kernels are written
        assert not used[:, column : column + length - 1].any()
        assert column // part == (column + length - 1) // part
    assert found_some > 200


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_an_empty_memory_is_filled_from_either_end(chip: Chip) -> None:
    end = chip.kernel_columns_first
    for length in (1, 4, 5, 40, 200):
        search = ColumnSearch(chip, np.zeros((1, end), np.bool_), [end], length, False)
        assert search.upward(0) == 0
        assert search.downward() == (end - length) // 4 * 4


# results over inputs


def slow_distance(layer: Any, read: int, written: int) -> int:
    """Write word by word, and look what the windows of later outputs still reach."""
    rows, columns = layer.out_dim
    width = layer.in_dim[1]
    (down, across), pad = layer.pooling.stride, layer.pad
    reach = []
    for y, x in product(range(rows), range(columns)):
        top, left = max(y - pad[0], 0) * down, max(x - pad[1], 0) * across
        reach.append(top * width + left)
    least = 0
    for number in range(rows * columns):
        later = min([*reach[number + 1 :], layer.in_dim[0] * width])
        last = (number + 1) * written - 1
        least = max(least, last - read * later + 1)
    return least


def test_outputs_begin_below_all_that_is_still_read() -> None:
    from ai8xtools.synthesis.network import Layer, Pooling

    random = Random(2)
    for _ in range(150):
        stride = random.choice([(1, 1), (2, 2), (1, 2)])
        pad = random.choice([(0, 0), (1, 1), (2, 2)])
        pooled = (random.randint(3, 7), random.randint(3, 7))
        size = pooled[0] * stride[0], pooled[1] * stride[1]
        out = pooled[0] + 2 * pad[0] - 2, pooled[1] + 2 * pad[1] - 2
        layer = Layer(
            index=0, operator=Operator.CONV2D, in_channels=4, out_channels=4, kernel=(3, 3),
            pad=pad, in_dim=size, pooled_dim=pooled, out_dim=out,
            pooling=Pooling(stride, stride),
        )  # fmt: skip
        read = random.choice([1, 2])
        assert distance(layer, read, 1) == slow_distance(layer, read, 1)
        assert distance(layer, read, 1, 5) <= slow_distance(layer, read, 1) + 5


# steps of the start-up


def steps_of(blocks: tuple[Block, ...]) -> list[Any]:
    """Return all steps that do something."""
    steps = [step for block in blocks for step in block.steps]
    return [s for s in steps if not (isinstance(s, Write) and s.skipped)]


POINT: dict[str, Any] = {**CONV, "processors": 1, "kernel_size": "1x1", "pad": 0}


@pytest.mark.parametrize(
    "chip, options", [(MAX78002, {}), (MAX78000, {"zero_sram": True}), (MAX78002, {"zero_sram": 1})]
)
def test_self_tests_are_waited_for_and_switched_off(
    tmp_path: Path, chip: Chip, options: dict[str, Any]
) -> None:
    """Whatever is started there is waited for and then written 0."""
    made = program(tmp_path, [POINT], sample(1, 1, 1), [weights(1, 1, 1, 1)], chip=chip, **options)
    tests = {APB + chip.control_address(g, "SRAM_TEST") for g in range(4)}
    running: dict[int, bool] = {}
    started = 0
    for step in steps_of(made.init):
        if isinstance(step, Wait) and step.address in tests:
            assert running[step.address] is False
            running[step.address] = True
        if isinstance(step, Write) and step.address in tests:
            if step.value:
                assert step.address not in running
                running[step.address] = False
                started += 1
            else:
                assert running.pop(step.address) is True
    assert started and not running


def test_registers_of_the_loop_are_written_even_if_they_are_zero(tmp_path: Path) -> None:
    """They keep what was there before."""
    layer = {**POINT, "out_offset": 0x2000}
    made = program(
        tmp_path, [layer], sample(1, 1, 1), [weights(1, 1, 1, 1)], chip=MAX78002, snoop_loop=True
    )
    written = {s.address for s in steps_of(made.start) if isinstance(s, Write)}
    for name in ("SNP1_HIT", "SNP1_A1", "SNP1_X1", "SNP1_C2", "SNP1_C1"):
        assert APB + MAX78002.control_address(0, name) in written


# streams


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_options_add_to_what_streams_start_and_advance_by(tmp_path: Path, chip: Chip) -> None:
    """Every option of a distance moves that distance of later layers by as much as it says."""
    layers = [
        {**CONV, "processors": 1, "streaming": True, "out_offset": 0x2000},
        {**CONV, "processors": 0xF, "streaming": True, "out_offset": 0x4000,
         "max_pool": 2, "pool_stride": 2},
    ]  # fmt: skip
    network, _ = build(
        tmp_path, describe(*layers), sample(1, 12, 12), [weights(4, 1, 3, 3), weights(4, 4, 3, 3)],
        chip=chip, input_port=InputPort.FIFO,
    )  # fmt: skip
    plain = place_streams(network, StreamOptions())
    for by in range(1, 5):
        one = place_streams(network, StreamOptions(increase_delta1=by))[1]
        two = place_streams(network, StreamOptions(increase_delta2=by))[1]
        assert one.delta1 == plain[1].delta1 + by
        assert two.delta2 == plain[1].delta2 + by
        assert two.delta1 == plain[1].delta1


def test_layers_behind_a_collision_are_judged_as_if_it_were_mended(tmp_path: Path) -> None:
    """What is advised for the first offset does not meet the next layer's complaint."""
    layers = [
        {**CONV, "processors": 1, "in_offset": 0, "out_offset": 0},
        {**CONV, "processors": 0xF, "in_offset": 0, "out_offset": 0x40},
    ]
    network, _ = build(
        tmp_path, describe(*layers), sample(1, 4, 4), [weights(4, 1, 3, 3), weights(4, 4, 3, 3)]
    )
    with pytest.raises(DiagnosticError) as caught:
        place(network, PlaceOptions())
    # the first output, moved to 0x40, is then what the second one overwrites
    errors = [d for d in caught.value.diagnostics if d.severity == "error"]
    assert [d.code for d in errors] == ["E404", "E404"]
    assert "layer 1" in errors[1].message
    apart = [layers[0], {**layers[1], "out_offset": 0x80}]
    network, _ = build(
        tmp_path, describe(*apart), sample(1, 4, 4), [weights(4, 1, 3, 3), weights(4, 4, 3, 3)]
    )
    with pytest.raises(DiagnosticError) as caught:
        place(network, PlaceOptions())
    errors = [d for d in caught.value.diagnostics if d.severity == "error"]
    assert [d.code for d in errors] == ["E404"]
