"""What the loader functions write is recorded, decoded and compared word by word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ai8xtools.emulator import (
    PHASES,
    Effect,
    EmulatorError,
    LoaderRecord,
    WordDifference,
    compare,
    count_words,
    run_loader,
)
from device import MAX78000

BASE = 0x50000000
POST = BASE + MAX78000.layer_address(0, 0, "POST")
CTL = BASE + MAX78000.control_address(0, "CTL")


@pytest.fixture(scope="module")
def record(project: Path) -> LoaderRecord:
    return run_loader(project, "MAX78000")


@pytest.fixture
def effect(record: LoaderRecord) -> dict[str, Effect]:
    return record.effect()


def differences(
    record: LoaderRecord, wanted: dict[str, Effect | tuple[object, ...]]
) -> list[WordDifference]:
    return compare(record.effect(), wanted, record.addresses)


def test_every_phase_is_recorded_in_order(effect: dict[str, Effect]) -> None:
    assert tuple(effect) == PHASES
    assert [len(e.words) + len(e.control) for e in effect.values()] == [5, 3, 24, 2, 10, 4, 2]


def test_registers_hold_packed_fields(effect: dict[str, Effect]) -> None:
    registers = MAX78000.layer_registers
    assert effect["cnn_configure"].words[POST] == registers["POST"].pack(bias=1)
    ena = BASE + MAX78000.layer_address(0, 0, "ENA")
    assert effect["cnn_configure"].words[ena] == registers["ENA"].pack(processors=15, kernels=15)
    fields = MAX78000.control_registers["CTL"].unpack(effect["cnn_start"].control[-1][1])
    assert {name for name, value in fields.items() if value} == {
        "enable",
        "clock_enable",
        "express",
    }


def test_packed_kernels_become_the_words_of_plain_columns(effect: dict[str, Effect]) -> None:
    words = effect["cnn_load_weights"].words
    loaded = {address: value for address, value in words.items() if value}
    assert loaded == {
        BASE + MAX78000.kernel_address(0, 0) + 4: 0x40,
        BASE + MAX78000.kernel_address(3, 1) + 4: 0x40,
    }
    assert len(words) == 4 * 2 * 3


def test_order_of_control_writes_is_kept(effect: dict[str, Effect]) -> None:
    assert effect["cnn_start"].control == [(CTL, 0x00100808), (CTL, 0x00100009)]
    assert [value for _, value in effect["cnn_enable"].control] == [0xF, 1, 1, 0xE, 0]


def test_equal_words_have_no_differences(record: LoaderRecord, effect: dict[str, Effect]) -> None:
    plain = {phase: (dict(e.words), list(e.control)) for phase, e in effect.items()}
    assert differences(record, plain) == []
    assert count_words(plain) == 50


def test_differences_name_phase_place_and_both_values(
    record: LoaderRecord, effect: dict[str, Effect]
) -> None:
    effect["cnn_configure"].words[POST] = 0x3000  # type: ignore[index]
    del effect["load_input"].words[0x50400004]  # type: ignore[attr-defined]
    effect["cnn_load_bias"].words[0x50108008] = 7  # type: ignore[index]
    assert [str(d) for d in differences(record, dict(effect))] == [
        "cnn_load_bias: 0x50108008 (group 0 bias 2): wanted 0x00000007, found nothing",
        "cnn_configure: 0x50100790 (group 0 layer 0 POST): wanted 0x00003000, found 0x00001000",
        "load_input: 0x50400004 (data memory instance 0 word 1): wanted nothing, found 0x14000004",
    ]


def test_missing_and_wrong_control_writes_differ(
    record: LoaderRecord, effect: dict[str, Effect]
) -> None:
    wanted = {**effect, "cnn_start": ({}, [(CTL, 0x00100808), (CTL, 0x00100809), (CTL, 1)])}
    assert [str(d) for d in differences(record, wanted)] == [
        "cnn_start: 0x50100000 (group 0 CTL, write 2 of 3): wanted 0x00100809, found 0x00100009",
        "cnn_start: 0x50100000 (group 0 CTL, write 3 of 3): wanted 0x00000001, found nothing",
    ]


def test_missing_phase_differs(record: LoaderRecord, effect: dict[str, Effect]) -> None:
    del effect["cnn_load_bias"]
    assert {d.phase for d in differences(record, dict(effect))} == {"cnn_load_bias"}


def test_network_runs_and_firmware_agrees(project: Path) -> None:
    record = run_loader(project, "MAX78000")
    assert not record.check_output()
    run = record.execute()
    assert run.findings == []
    assert run.layers[0].output.tolist() == [[[1, 2], [3, 0]], [[10, 15], [20, 25]]]
    assert record.check_output()
    assert record.check_is_alive()
    assert record.unload().tolist() == [1, 2, 3, 0, 10, 15, 20, 25]


def test_check_that_notices_nothing_is_found_out(variant: Callable[..., Path]) -> None:
    record = run_loader(variant(("& 0xffff) != sample", "& 0) != 0 * sample")), "MAX78000")
    record.execute()
    assert record.check_output()
    assert not record.check_is_alive()


def test_loader_of_a_riscv_project_runs_too(
    riscv_pair: Callable[..., Path], effect: dict[str, Effect]
) -> None:
    """The wrapper for the Arm core is left aside; the words are the same."""
    record = run_loader(riscv_pair(), "MAX78000")
    assert differences(record, dict(effect)) == []
    assert record.core.architecture.title == "RISC-V"
    record.execute()
    assert record.check_output()


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("void load_input(void)", "static void load_input(void)", "E821", "load_input()"),
        ("cnn_time = 0;", "return CNN_FAIL;", "E823", "cnn_start() returns 0 instead of 1"),
    ],
)
def test_functions_that_are_missing_or_fail_are_named(
    old: str, new: str, code: str, message: str, variant: Callable[..., Path]
) -> None:
    with pytest.raises(EmulatorError) as caught:
        run_loader(variant((old, new)), "MAX78000")
    assert caught.value.code == code
    assert message in caught.value.message
