"""Conditional execution: units that watch data memory count, add up, stop and jump."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.emulator import Accelerator
from ai8xtools.emulator.machine.snoop import is_configured, result_words
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
