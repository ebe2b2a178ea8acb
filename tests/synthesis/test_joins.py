"""Joins and sums: warned of exactly if the emulated chip computes another answer."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, event, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ai8xtools.diagnostics import DiagnosticError, Severity
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import PlaceOptions
from device import MAX78000, MAX78002, Chip
from device.channels import channels_per_pass
from tests.synthesis.emulated import emulated
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.stages import check, encode, place, simulate

FACTOR = float(os.environ.get("AI8X_PROPERTIES", "1"))
BASE = 0x1000
Keys = dict[str, Any]
PART: Keys = {
    "op": "Conv2d",
    "kernel_size": "1x1",
    "pad": 0,
    "activate": "none",
    "quantization": 8,
    "processors": 7,
    "in_offset": 0,
    "in_sequences": (-1,),
}


@dataclass(frozen=True)
class Part:
    """A layer whose output is joined with others."""

    channels: int
    first: int
    offset: int = BASE
    gap: int = 0


@dataclass(frozen=True)
class Join:
    """Parts in the order of the join, the order in which they are executed, and the reader.

    With an `operation`, they are combined.
    """

    chip: Chip
    parts: tuple[Part, ...]
    order: tuple[int, ...]
    processors: int
    read_gap: int = 0
    operation: str | None = None


def judged(join: Join, folder: Path) -> tuple[set[str], bool]:
    """Return the codes of warnings of the join, and whether the chip computes the known answer.

    Raises DiagnosticError where it is refused.
    """
    layers: list[Keys] = []
    kernels: list[NDArray[Any]] = []
    for index in join.order:
        part = join.parts[index]
        outputs = {
            "output_processors": hex(mask(channels_per_pass(part.channels), part.first)),
            "out_offset": hex(part.offset),
            "write_gap": part.gap,
        }
        layers.append({**PART, **outputs})
        kernels.append(weights(part.channels, 3, 1, 1, seed=index + 1))
    sources = tuple(join.order.index(index) for index in range(len(join.parts)))
    reader = {
        **PART,
        "kernel_size": "3x3",
        "pad": 1,
        "processors": hex(join.processors),
        "in_offset": hex(BASE),
        "in_sequences": sources,
        "read_gap": join.read_gap or None,
        "output_processors": 15,
        "out_offset": 0x6000,
    }
    channels = sum(part.channels for part in join.parts)
    if join.operation:
        reader |= {"eltwise": join.operation, "operands": len(join.parts)}
        channels //= len(join.parts)
    kernels.append(weights(4, channels, 3, 3, seed=99))
    text = describe(*layers, reader)
    network, _ = build(folder, text, sample(3, 4, 4), kernels, chip=join.chip)
    found = check(network)
    errors = [d for d in found if d.severity is Severity.ERROR]
    if errors:
        raise DiagnosticError(errors)
    program = encode(
        network,
        place(network, PlaceOptions(overlap_data=True)),
        simulate(network, average_rounding=False),
        EncodeOptions(),
    )
    assert all(d.effects.unsound for d in found if d.severity is Severity.WARNING)
    return {d.code for d in found if d.severity is Severity.WARNING}, not emulated(program).wrong


def single_pass(random: Random) -> tuple[list[Part], int]:
    """Draw parts side by side, now and then in a common instance or in another order."""
    parts, place = [], 0
    for _ in range(random.choice((2, 2, 3))):
        channels = random.randint(1, 9)
        first = -(-place // 4) * 4 + random.choice((0, 0, 4))
        if random.random() < 0.3:
            first = place
        parts.append(Part(channels, first))
        place = first + channels
    processors = sum(mask(part.channels, part.first) for part in parts)
    if random.random() < 0.25:
        random.shuffle(parts)
    return parts, processors


def several_passes(random: Random) -> tuple[list[Part], int]:
    """Draw parts that fill two or three passes, one or several parts in each."""
    passes = random.choice((2, 2, 3))
    share = random.choice((36, 40, 64) if passes == 2 else (44, 64))
    parts = []
    for number in range(passes):
        cuts = random.choice(([share], [share // 2 // 4 * 4, 0], [4, 8, 0]))
        cuts[-1] = share - sum(cuts[:-1])
        first = 0
        for channels in cuts:
            parts.append(Part(channels, first, BASE + 4 * number, passes - 1))
            first += channels
    return parts, mask(share)


def disturbed(part: Part, random: Random) -> Part:
    """Move a part, or write it with another gap."""
    if random.random() < 0.6:
        return Part(
            part.channels, part.first, part.offset + random.choice((-4, 4, 0x400)), part.gap
        )
    return Part(part.channels, part.first, part.offset, random.choice((0, 1, 2)))


@st.composite
def joins(draw: st.DrawFn) -> Join:
    """Draw a join: right, or wrong in some way."""
    random = draw(st.randoms(use_true_random=False))
    chip = random.choice((MAX78000, MAX78002))
    parts, processors = random.choice((single_pass, several_passes))(random)
    if random.random() < 0.4:
        index = random.randrange(len(parts))
        parts[index] = disturbed(parts[index], random)
    order = list(range(len(parts)))
    if random.random() < 0.3:
        random.shuffle(order)
    return Join(chip, tuple(parts), tuple(order), processors)


@st.composite
def sums(draw: st.DrawFn) -> Join:
    """Draw a sum or difference, whose operands stand word by word behind each other, or not."""
    random = draw(st.randoms(use_true_random=False))
    chip = random.choice((MAX78000, MAX78002))
    count, channels = random.choice((2, 2, 3)), random.choice((3, 8, 20, 64, 80, 128))
    pass_channels = channels_per_pass(channels)
    parts = [Part(channels, 0, BASE + 4 * i, count - 1) for i in range(count)]
    read_gap = random.choice((0, 0, 1)) if chip.has_read_gap and channels == pass_channels else 0
    if read_gap and random.random() < 0.7:
        parts = [Part(channels, 0, BASE + 4 * i, 2 * count - 1) for i in range(count)]
    order = list(range(count))
    if random.random() < 0.4:
        index = random.randrange(count)
        parts[index] = disturbed(parts[index], random)
    elif random.random() < 0.3:
        random.shuffle(parts)
    if random.random() < 0.3:
        random.shuffle(order)
    operation = random.choice(("add", "sub", "xor"))
    return Join(chip, tuple(parts), tuple(order), mask(pass_channels), read_gap, operation)


@settings(
    max_examples=max(1, round(35 * FACTOR)),
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(join=joins() | sums())
def test_sources_are_warned_of_exactly_if_the_chip_computes_another_answer(join: Join) -> None:
    assume(join.processors < 1 << 64)
    with TemporaryDirectory() as folder:
        try:
            codes, same = judged(join, Path(folder))
        except DiagnosticError:
            event("refused")
            return
    event("right" if same else f"wrong: {' '.join(sorted(codes))}")
    assert same == (not codes), (join, codes)


RIGHT = [
    Join(MAX78000, (Part(6, 0), Part(6, 8)), (0, 1), mask(6) | mask(6, 8)),
    Join(MAX78000, (Part(8, 0), Part(8, 40)), (1, 0), mask(8) | mask(8, 40)),
    Join(  # two parts in each pass
        MAX78000,
        tuple(Part(32, first, BASE + 4 * n, 1) for n in (0, 1) for first in (0, 32)),
        (0, 1, 2, 3),
        mask(64),
    ),
]


@pytest.mark.parametrize("join", RIGHT, ids=["apart", "far apart", "passes of two parts"])
def test_joins_that_compute_correctly_draw_no_warning(join: Join, tmp_path: Path) -> None:
    assert judged(join, tmp_path) == (set(), True)


@pytest.mark.parametrize(
    ("parts", "order", "code"),
    [
        ((Part(4, 8), Part(4, 0)), (0, 1), "W365"),
        ((Part(2, 0), Part(2, 2)), (0, 1), "W383"),
        ((Part(4, 0), Part(4, 4, BASE + 0x400)), (0, 1), "W366"),
        ((Part(4, 0), Part(4, 4, BASE + 4)), (0, 1), "W383"),
        ((Part(4, 0, gap=1), Part(4, 4)), (0, 1), "W362"),
    ],
    ids=["descending", "one instance", "offsets", "next word", "gaps"],
)
def test_joins_that_compute_something_else_are_named(
    parts: tuple[Part, ...], order: tuple[int, ...], code: str, tmp_path: Path
) -> None:
    processors = 0
    for part in parts:
        processors |= mask(part.channels, part.first)
    codes, same = judged(Join(MAX78000, parts, order, processors), tmp_path)
    assert code in codes and not same


def test_lanes_behind_a_part_that_is_written_later_are_left_alone(tmp_path: Path) -> None:
    """Two parts share an instance; the later one stands in front, so nothing is lost."""
    join = Join(MAX78000, (Part(2, 0), Part(2, 2)), (1, 0), mask(4))
    assert judged(join, tmp_path) == (set(), True)
