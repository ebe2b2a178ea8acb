"""Where bytes of outputs stand, and where columns are free: found by looking everywhere."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from ai8xtools.synthesis.encode.data import _transposed
from ai8xtools.synthesis.encode.mlator import TransposerWords
from ai8xtools.synthesis.layout import Delivery
from ai8xtools.synthesis.place.allocation import ColumnSearch, NoRoomError
from ai8xtools.synthesis.place.outputs import _words, pieces_of, pixel_step
from ai8xtools.synthesis.place.packing import _steps
from device import MAX78000
from device.masks import bits


def drawn(random: Random) -> Delivery:
    """Return an output of any width in any processors, in as many passes as it needs."""
    channels = random.choice([1, 3, 5, 16, 40, 64, 66, 70, 100, 129, 192])
    passes = -(-channels // 64)
    most = -(-channels // passes)
    share = channels if passes == 1 else -(-most // 4) * 4
    used = sorted(random.sample(range(64), share))
    return Delivery(
        sum(1 << p for p in used), channels, (random.randint(1, 3), random.randint(1, 3)),
        4 * random.randrange(50), random.choice([8, 32]), random.randrange(3),
    )  # fmt: skip


def test_each_channel_has_a_place_of_its_own_in_the_processor_of_its_rank() -> None:
    random = Random(1)
    for _ in range(80):
        source = drawn(random)
        used, size, gap = bits(source.processors), source.width // 8, source.write_gap + 1
        passes = -(-source.channels // 64)
        assert pixel_step(source) == passes * size * gap
        found = {
            piece.channel + i: (4 * piece.instance + lane, piece.word)
            for piece in pieces_of(source)
            for i, lane in enumerate(piece.lanes)
        }
        wanted = {
            c: (used[c % len(used)], c // len(used) * size * gap) for c in range(source.channels)
        }
        assert found == wanted
        pixels = source.dim[0] * source.dim[1]
        words = {
            (p // 4, source.offset // 4 + word + pixel * passes * size * gap
             + (p % 4 if size == 4 else 0))
            for p, word in wanted.values() for pixel in range(pixels)
        }  # fmt: skip
        assert {*_words(source)} == words


def test_ports_read_outputs_whose_pixels_stand_in_successive_words() -> None:
    random, seen = Random(5), [0, 0]
    ports = TransposerWords(MAX78000, 0x50000000, 0)
    for _ in range(200):
        source = drawn(random)
        used, rows = bits(source.processors), source.channels > 64
        successive = not rows and source.width == 8 and source.write_gap == 0
        wanted = [ports.channel(*divmod(p, 4), source.offset) for p in used[: source.channels]]
        assert [*_transposed(source, ports)] == (wanted if successive else [])
        seen[successive] += 1
    assert min(seen) > 10


def test_columns_are_the_lowest_that_are_free_in_all_processors() -> None:
    random, outcomes = Random(2), [0, 0]
    for _ in range(300):
        columns, processors = 40, random.randint(1, 3)
        used = np.zeros((processors, columns), bool)
        for _ in range(random.randrange(6)):
            first = random.randrange(0, columns, 4)  # ranges begin at multiples of four
            used[random.randrange(processors), first : first + random.randint(1, 9)] = True
        length, start = random.randint(1, 12), random.randrange(12)
        if random.random() < 0.3:  # only the very end is left
            used[0, : columns - length] = True
        capacities = [columns] * processors
        search = ColumnSearch(MAX78000, used, capacities, length, within_part=False)
        free = [
            c for c in range(0, columns - length + 1, 4)
            if c >= start and not used[:, c : c + length].any()
        ]  # fmt: skip
        outcomes[bool(free)] += 1
        try:
            found = search.upward(start)
        except NoRoomError:
            found = None
        assert found == (free[0] if free else None)
    assert min(outcomes) > 20


def test_unused_processors_are_stepped_over_a_byte_of_outputs_at_a_time() -> None:
    random = Random(3)
    for _ in range(100):
        width, share = random.choice([1, 2, 4, 8]), random.randint(1, 12)
        used = sorted(random.sample(range(24), share))
        per_byte, passes = 8 // width, random.randint(1, 2)
        layer: Any = SimpleNamespace(
            weight_bits=random.choice([width, -1]) if width == 1 else width, out_passes=passes,
            output_processors=sum(1 << p for p in used), out_share=share,
        )  # fmt: skip
        for each in (1, per_byte):
            left = [(p - used[0]) // per_byte for p in used]
            skips, at = [], 0
            for _ in range(-(-share // each)):
                following = [x for x in left if x >= at]
                skips.append(following[0] - at if following else 0)
                at = following[0] + 1 if following else at
            assert _steps(layer, each) == tuple(skips * passes)
