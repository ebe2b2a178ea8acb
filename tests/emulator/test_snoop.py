"""Conditional execution: units that watch data memory count, add up, stop and jump."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.emulator import Accelerator
from ai8xtools.emulator.machine.snoop import (
    Decision,
    WrittenWords,
    is_configured,
    result_words,
    watch,
)
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.recording import read_words
from device import MAX78002
from device.chip import DEFAULT_APB_BASE, GROUPS
from device.registers import SNOOP_CONDITION
from tests.emulator.by_hand import Words

WATCHED = 0x1001  # the word of pixel 1 of the output
ONE, SPAN = 2, 5  # comparisons
BYTE, WORD = 6, 8  # units


def network(hit: int, **condition: int) -> Words:
    """Two pass-through layers of four channels; `hit` is the value that the unit looks for."""
    words = Words(MAX78002)
    image = np.arange(16).reshape(4, 2, 2) - 4
    words.pixels(image)
    for layer, source, target in ((0, 0, 0x1000), (1, 0x1000, 0x1800), (2, 0x1000, 0x1C00)):
        words.layer(layer, "RCNT", last=1, skip=1)
        words.layer(layer, "CCNT", last=1, skip=1)
        words.layer(layer, "ONED", kernel_length=1)
        words.layer(layer, "STRIDE", words=1)
        words.layer(layer, "RPTR_BASE", word=source)
        words.layer(layer, "WPTR_BASE", pointer=target)
        words.layer(layer, "WPTR_TOFFS", words=0x2000)
        words.layer(layer, "LCTL", always=1, max_pool=1, shared_output=1)
        words.layer(layer, "ENA", group=0, processors=0xF)
        words.layer(layer, "POST", time_slots=1, one_by_one=1)
    link = MAX78002.layer_registers["NXTLYR"].pack(layer=2, jump=1)
    words.layer_word(0, "NXTLYR", link)
    words.control("LCNT_MAX", last=2)
    fields = {"enable": 1, "compare_address": ONE, "compare_data": ONE, "unit": WORD, **condition}
    for group in range(GROUPS):
        words.control("CTL", group, enable=1, clock_enable=1, snoop=1)
    words.control("SNP1_A1", value=0x200000 | WATCHED)
    words.control("SNP1_D1", value=hit)
    words.control("SNP1_C1", value=SNOOP_CONDITION.pack(**fields))
    for name, value in (("ACC", 100), ("HIT", 5), ("MAX", 7), ("AM", 9)):
        words.control(f"SNP1_{name}", value=value)
    return words


def layers(words: Words) -> list[int]:
    return [layer.config.layer for layer in words.run()[0].layers]


def results(words: Words) -> list[int]:
    _, accelerator = words.run()
    return [
        accelerator.memory.control_register(f"SNP1_{name}")["value"]
        for name in ("ACC", "HIT", "MAX", "AM")
    ]


PRESENT = 0x090501FD  # channels 0 to 3 of pixel 1: -3, 1, 5, 9
ABSENT = 0x090501FE


@pytest.mark.parametrize(
    ("hit", "condition", "wanted"),
    [
        (PRESENT, {"jump": 1}, [0, 2]),
        (ABSENT, {"jump": 1}, [0, 1, 2]),
        (PRESENT, {"stop": 1}, [0]),
        (ABSENT, {"stop": 1}, [0, 2]),
        (PRESENT, {"count": 1}, [0, 2]),
        (ABSENT, {"enable": 0, "jump": 1}, [0, 2]),
    ],
)
def test_match_decides_what_follows(hit: int, condition: dict[str, int], wanted: list[int]) -> None:
    assert layers(network(hit, **condition)) == wanted


@pytest.mark.parametrize(
    ("hit", "condition", "wanted"),
    [
        (PRESENT, {"accumulate": 1}, [100 + PRESENT, 5, 7, 9]),
        (PRESENT, {"count": 1}, [100, 6, 7, 9]),
        (PRESENT, {"maximum": 1}, [100, 5, PRESENT, 0x200000 | WATCHED]),
        (ABSENT, {"accumulate": 1, "count": 1, "maximum": 1}, [100, 5, 7, 9]),
        (PRESENT, {"jump": 1}, [100, 5, 7, 9]),
    ],
)
def test_results_are_those_that_are_asked_for(
    hit: int, condition: dict[str, int], wanted: list[int]
) -> None:
    assert results(network(hit, **condition)) == wanted


def test_ranges_of_addresses_and_bytes() -> None:
    """Channel 3 of pixels 0 to 2 is 8, 9 and 10; 9 and 10 are in the range."""
    words = network(
        9, compare_address=SPAN, compare_data=SPAN, unit=BYTE, count=1, accumulate=1, maximum=1
    )
    words.control("SNP1_A1", value=0x201000)
    words.control("SNP1_A2", value=0x201002)
    words.control("SNP1_D2", value=20)
    assert results(words) == [100 + 9 + 10, 7, 10, 0x201002]


@pytest.mark.parametrize("units", [(1,), (2,), (1, 2)])
def test_units_of_all_groups_that_watch_are_in_use(units: tuple[int, ...]) -> None:
    """Whichever of the groups watch, also if those before or between them do not."""
    for groups in product((0, 1), repeat=GROUPS):
        memory = Memory(MAX78002)
        for group, snoop in enumerate(groups):
            address = MAX78002.control_address(group, "CTL")
            word = MAX78002.control_registers["CTL"].pack(snoop=snoop)
            memory.registers[DEFAULT_APB_BASE + address] = word
            for unit in units:
                address = MAX78002.control_address(group, f"SNP{unit}_C1")
                memory.registers[DEFAULT_APB_BASE + address] = SNOOP_CONDITION.pack(enable=1)
        wanted = {
            DEFAULT_APB_BASE + MAX78002.control_address(group, f"SNP{unit}_{name}")
            for group in range(GROUPS)
            for unit in units
            for name in ("ACC", "HIT", "MAX", "AM")
            if groups[group]
        }
        assert set(result_words(memory)) == wanted
        assert is_configured(memory) == bool(wanted)


def number_of(word: int, unit: int) -> int:
    """Return what a unit compares of a word: its uppermost byte or all of it, signed."""
    value, bits = (word >> 24, 8) if unit == BYTE else (word, 32)
    return value - (1 << bits) if value >> bits - 1 else value


def test_units_decide_and_note_as_their_registers_say() -> None:
    """Against a loop over words; what the last unit decides counts."""
    draw, seen = random.Random(8), Counter[object]()
    edges = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFF000001, 0x7F000000, 0xFFFFFFFF]
    for _ in range(250):
        memory = Memory(MAX78002)

        def put(group: int, name: str, value: int, memory: Memory = memory) -> None:
            address = MAX78002.control_address(group, name)
            memory.registers[DEFAULT_APB_BASE + address] = value

        def get(group: int, unit: int, name: str, memory: Memory = memory) -> int:
            address = MAX78002.control_address(group, f"SNP{unit}_{name}")
            return memory.registers[DEFAULT_APB_BASE + address]

        pointers = sorted(draw.sample(range(12), draw.choice([0, 6, 8])))
        words = [draw.choice(edges) for _ in pointers]
        decision, complaints = None, 0
        wanted: dict[tuple[int, int], list[int]] = {}
        watching = {group: draw.random() < 0.8 for group in (0, 2)}
        for group, watches in watching.items():
            put(group, "CTL", MAX78002.control_registers["CTL"].pack(snoop=int(watches)))
        for group, unit in product(watching, (1, 2)):
            enabled = draw.random() < 0.8
            names = ("stop", "jump", "accumulate", "count", "maximum")
            bits = {name: draw.randrange(2) for name in names}
            compared = draw.choice([ONE, SPAN, SPAN]), draw.choice([ONE, SPAN, SPAN])
            kind, counts = draw.choice([BYTE, WORD]), int(draw.random() < 0.1)
            first, last = draw.randrange(6), draw.randrange(12)
            low, high = draw.choice([*edges, *(w >> 24 for w in words)]), draw.choice(edges)
            old = [draw.choice(edges) for _ in range(4)]
            wrong = draw.choice(["", "", "", "", "address", "data", "unit", "writes"])
            fields = {
                "enable": int(enabled), **bits, "compare_count": counts,
                "compare_address": draw.choice([1, 3, 4, 6]) if wrong == "address" else compared[0],
                "compare_data": draw.choice([1, 3, 4, 6]) if wrong == "data" else compared[1],
                "unit": draw.choice([5, 7, 9]) if wrong == "unit" else kind,
            }  # fmt: skip
            put(group, f"SNP{unit}_C1", SNOOP_CONDITION.pack(**fields))
            put(group, f"SNP{unit}_A1", first | (wrong != "writes") << 21)
            put(group, f"SNP{unit}_A2", last)
            put(group, f"SNP{unit}_D1", low)
            put(group, f"SNP{unit}_D2", high)
            for name, value in zip(("ACC", "HIT", "MAX", "AM"), old, strict=True):
                put(group, f"SNP{unit}_{name}", value)
            # What follows is the description of the unit, word by word
            wanted[group, unit] = now = [*old]
            if not (watching[group] and enabled):
                continue
            if wrong:
                complaints += 1
                continue
            end = last if compared[0] == SPAN else first
            watched = [(p, w) for p, w in zip(pointers, words, strict=True) if first <= p <= end]
            bottom = number_of(low << 24 & 0xFF000000 if kind == BYTE else low, kind)
            top = number_of(high << 24 & 0xFF000000 if kind == BYTE else high, kind)
            top = top if compared[1] == SPAN else bottom
            hits = [(p, w) for p, w in watched if bottom <= number_of(w, kind) <= top]
            for pointer, word in hits:
                value = word >> 24 if kind == BYTE else word
                largest = now[2] << 24 & 0xFF000000 if kind == BYTE else now[2]
                now[0] = (now[0] + value * bits["accumulate"]) % 2**32
                now[1] = (now[1] + bits["count"]) % 2**32
                if bits["maximum"] and number_of(word, kind) > number_of(largest, kind):
                    now[2:] = value, pointer | 1 << 21
            if not watched:
                continue
            if counts and (bits["stop"] or bits["jump"]):
                complaints += 1
            elif bits["stop"] and hits:
                decision = Decision.STOP
            elif bits["jump"] and not hits:
                decision = Decision.NEXT_IN_ORDER
        written = WrittenWords(np.array(pointers, np.int64), np.array(words, np.int64))
        told: list[str] = []
        assert watch(memory, lambda written=written: written, told.append) is decision
        assert len(told) == complaints
        for (group, unit), results in wanted.items():
            assert [get(group, unit, name) for name in ("ACC", "HIT", "MAX", "AM")] == results
        seen[decision] += 1
    assert all(seen[decision] > 15 for decision in (None, *Decision)), seen


def test_what_is_not_emulated_is_said() -> None:
    run, _ = network(PRESENT, compare_data=1, jump=1).run()
    assert [str(finding) for finding in run.findings] == [
        "layer 0: conditional execution, unit 1: its comparison is not emulated, nothing is counted"
    ]
    run, _ = network(PRESENT, compare_count=5, jump=1).run()
    assert "it compares counts" in str(run.findings[0])


@pytest.mark.parametrize(
    ("name", "unit", "wanted"),
    [
        ("snoop-count-ai87", 1, (0x7F49BAFD, 23, 0x7F49BAEC, 0x201001)),
        ("snoop-xval-ai87", 1, (17, 25, 55, 22)),
        ("snoop-noxval-ai87", 1, (17, 25, 0x56, 0x201003)),
        ("snoop-norange-ai87", 1, (0, 0, 0, 0)),
        ("snoop2-count-ai87", 2, (0x7F49BAFD, 23, 0x7F49BAEC, 0x201001)),
        ("snoop2-xval-ai87", 2, (17, 25, 55, 22)),
    ],
)
def test_results_of_the_vendors_networks(
    name: str, unit: int, wanted: tuple[int, ...], shared: Path
) -> None:
    """The values are those that the descriptions of these networks expect."""
    recording = read_words(shared / "kat" / "cases" / name / "golden.npz")
    accelerator = Accelerator(MAX78002)
    accelerator.write(recording.writes)
    accelerator.run()
    for group in range(GROUPS):
        found = tuple(
            accelerator.memory.control_register(f"SNP{unit}_{register}", group)["value"]
            for register in ("ACC", "HIT", "MAX", "AM")
        )
        assert found == wanted
    base = DEFAULT_APB_BASE + MAX78002.control_address(0, f"SNP{unit}_ACC")
    assert accelerator.result_words()[base] == wanted[0]
