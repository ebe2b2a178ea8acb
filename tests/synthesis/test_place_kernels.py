"""Kernels: how many there are, and where they stand if they are spread over parts or groups.

Source: docs/hardware/memory.md, "Kernel counts" and "Four outputs at a time";
docs/hardware/streaming.md, "The fast FIFO"; docs/placement.md, "Kernels: finding columns".
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest

from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.place import PlaceOptions
from ai8xtools.synthesis.place.allocation import ColumnSearch, NoRoomError
from ai8xtools.synthesis.place.kernels import kernel_counts
from device import MAX78000, MAX78002, Chip
from tests.synthesis.manual import Facts
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.random_mapped import random_network
from tests.synthesis.stages import place, place_what_fits

CONV = {"op": "Conv2d", "kernel_size": "3x3", "pad": 1, "activate": "none"}


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_kernels_and_columns_are_counted_as_the_manual_says(chip: Chip) -> None:
    """A lane in front of several passes counts twice, as the vendor's tool has it."""
    rng = Random(f"kernels of {chip.name}")
    seen = set()
    for _ in range(500):
        network = random_network(rng, chip)
        for layer in network.layers:
            facts = Facts(network, layer.index)
            if facts.passing or layer.bypass:
                continue
            lane = min(n for n in range(64) if facts.O >> n & 1) % 4
            each = facts.flat if layer.flatten else facts.in_passes
            several = facts.out_passes > 1
            twice = lane * facts.out_passes * each if several and not facts.depthwise else 0
            found, count = kernel_counts(layer), facts.kernel_count + twice
            assert found.count == count, (layer, lane)
            # columns begin behind the lane, which is stepped over
            stored = count - lane * each * (1 if facts.depthwise else facts.out_passes)
            per_byte = 8 // abs(layer.weight_bits)
            bits = stored * facts.taps * abs(layer.weight_bits)
            bits += stored % per_byte * (per_byte - 1) * facts.taps
            assert found.length == -(-bits // 72)
            seen.add((facts.depthwise, layer.flatten, several, lane > 0))
    assert len(seen) >= (6 if chip is MAX78000 else 9)


@pytest.mark.parametrize("outputs", [4, 8, 12, 64])
@pytest.mark.parametrize("offset", [None, 40])
def test_four_outputs_at_a_time_stand_in_four_parts(
    tmp_path: Path, outputs: int, offset: int | None
) -> None:
    """Outputs 0, 4, 8, ..., 1, 5, ...; each quarter in a part of the memory, at a quarter."""
    layer = {**CONV, "processors": 0x2D, "output_processors": hex(mask(outputs)),
             "calcx4": True, "kernel_offset": offset}  # fmt: skip
    kernels = weights(outputs, 4, 3, 3)
    network, _ = build(tmp_path, describe(layer), sample(4, 4, 4), [kernels], chip=MAX78002)
    placement = place(network, PlaceOptions())
    data, wanted = placement.kernel_memory.data, np.zeros_like(placement.kernel_memory.data)
    order = [n for first in range(4) for n in range(first, outputs, 4)]
    for number, output in enumerate(order):
        part, place_in_part = divmod(number, outputs // 4)
        column = part * 1024 + (offset or 0) // 4 + place_in_part
        for channel, processor in enumerate((0, 2, 3, 5)):
            wanted[processor, column] = kernels[output, channel].reshape(9).astype(np.uint8)
    assert (data == wanted).all()
    assert ((placement.kernel_memory.owner >= 0) == wanted.any(axis=2)).all()
    assert placement.kernels[0].first == (offset or 0)


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
@pytest.mark.parametrize("outputs", [4, 6, 16, 21])
def test_kernels_for_one_word_of_all_groups_take_turns_in_them(
    tmp_path: Path, chip: Chip, outputs: int
) -> None:
    """Column t of processor p stands in column t / 4 of processor p + 16 * (t mod 4)."""
    layer = {**CONV, "processors": 7, "output_processors": hex(mask(outputs))}
    kernels = weights(outputs, 3, 3, 3)
    network, _ = build(
        tmp_path, describe(layer), sample(3, 6, 6), [kernels], chip=chip,
        input_port=InputPort.FAST_FIFO_QUAD,
    )  # fmt: skip
    placement = place(network, PlaceOptions(overlap_data=True))
    wanted = np.zeros_like(placement.kernel_memory.data)
    for output, channel in product(range(outputs), range(3)):
        values = kernels[output, channel].reshape(9).astype(np.uint8)
        wanted[channel + 16 * (output % 4), output // 4] = values
    assert (placement.kernel_memory.data == wanted).all()
    found = placement.kernels[0]
    assert (found.first, found.length, found.count) == (0, -(-outputs // 4), -(-outputs // 4))


@pytest.mark.parametrize("channels", [4, 70])
@pytest.mark.parametrize("lane", range(4))
def test_kernels_of_the_old_loader_reach_from_the_lane_to_their_last_column(
    tmp_path: Path, channels: int, lane: int
) -> None:
    outputs = hex(mask(4, lane))
    inputs = hex(mask(channels if channels < 64 else 36))
    layers = (
        {**CONV, "processors": inputs, "output_processors": outputs},
        {**CONV, "processors": outputs},
    )
    kernels = [weights(4, channels, 3, 3), weights(4, 4, 3, 3)]
    network, _ = build(tmp_path, describe(*layers), sample(channels, 3, 3), kernels, chip=MAX78000)
    placement, _ = place_what_fits(network, PlaceOptions(old_kernel_loader=True))
    columns = np.flatnonzero(placement.kernel_memory.owner[0] == 0)
    found = placement.kernels[0]
    assert found.first + lane + found.length == columns[-1] + 1
    assert found.length >= 4


def test_columns_found_from_the_end_are_free_and_whole_steps() -> None:
    """All patterns of taken blocks of four columns in two processors, all lengths.

    A memory with one free end has its range there; a full one has none.
    """
    found_some = 0
    for pattern in range(1 << 10):
        taken = [[pattern >> 5 * row + block & 1 for block in range(5)] for row in range(2)]
        used = np.repeat(np.array(taken, np.bool_), 4, axis=1)
        last = max([0, *(np.flatnonzero(used.any(axis=0)) + 1)])
        for length in range(1, 20, 3):
            search = ColumnSearch(MAX78002, used, [20, 20], length, False)
            free = [c for c in range(0, 21 - length, 4) if not used[:, c : c + length].any()]
            at_end = [c for c in free if c >= last]
            try:
                found = search.downward()
            except NoRoomError:
                assert not at_end or used[0].any()
                continue
            found_some += 1
            assert found in free
            if at_end:
                assert found == max(free)
    assert found_some > 1000
