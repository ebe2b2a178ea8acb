from __future__ import annotations

import pytest

from device import (
    CHIPS,
    MAX78000,
    MAX78002,
    FieldOverflowError,
    UnknownDeviceError,
    chip_named,
    chip_of_die,
    names_where,
)
from device.channels import channels_per_pass, passes
from device.registers import FAST_FIFO_REGISTERS, SHARED_REGISTERS
from tests.made_up_chips import MADE_UP

APB = 0x50000000


@pytest.mark.parametrize("name", ["MAX78000", "max78000", "78000", "AI85", "85"])
def test_every_spelling_of_a_device_is_known(name: str) -> None:
    assert chip_named(name) is MAX78000


def test_unknown_device_is_refused_with_the_choices() -> None:
    with pytest.raises(UnknownDeviceError, match="MAX78000 .or 85., MAX78002 .or 87."):
        chip_named("84")


def test_first_addresses_of_both_chips() -> None:
    assert [APB + MAX78000.control_address(g, "CTL") for g in range(4)] == [
        0x50100000,
        0x50500000,
        0x50900000,
        0x50D00000,
    ]
    assert APB + MAX78000.layer_address(0, 0, "FMAX") == 0x50100910
    assert APB + MAX78000.data_address(4) == 0x50800000
    assert APB + MAX78000.control_address(0, "IFRM") == 0x50100990
    assert APB + MAX78002.layer_address(0, 1, "RCNT") == 0x51100104
    assert APB + MAX78002.layer_address(0, 0, "STREAM2") == 0x51108020
    assert APB + MAX78002.kernel_address(0) == 0x51400000
    assert APB + MAX78002.control_address(0, "MLAT") == 0x51110000


def test_kernel_memory_sizes() -> None:
    assert MAX78000.kernel_bytes == 442_368
    assert MAX78002.kernel_bytes == 2_396_160


@pytest.mark.parametrize("chip", CHIPS, ids=lambda c: c.name)
def test_fields_stay_inside_their_word_and_unpack_what_was_packed(chip) -> None:
    shared = (*SHARED_REGISTERS.values(), *FAST_FIFO_REGISTERS.values())
    for register in (*chip.layer_registers.values(), *chip.control_registers.values(), *shared):
        for field in register.fields:
            assert field.low >= 0 and field.low + field.width <= 32
            word = register.pack(**{field.name: field.limit})
            assert register.unpack(word)[field.name] == field.limit


def test_overflow_names_register_field_value_and_limit() -> None:
    with pytest.raises(FieldOverflowError, match="RCNT.last is 1024, .* 0 to 1023"):
        MAX78000.layer_registers["RCNT"].pack(last=1024)


@pytest.mark.parametrize("chip", [*CHIPS, *MADE_UP], ids=lambda c: c.name)
def test_every_kernel_column_has_a_place_in_a_part(chip) -> None:
    places = [chip.kernel_part(column) for column in range(chip.kernel_columns_first)]
    assert len(set(places)) == len(places)
    assert [chip.kernel_column(*place) for place in places] == [*range(chip.kernel_columns_first)]


def test_parts_of_the_memories() -> None:
    assert MAX78000.kernel_part(767) == (0, 767)
    assert [MAX78002.kernel_part(c) for c in (1023, 1024, 4095, 4096, 5119)] == [
        (0, 1023), (1, 0), (3, 1023), (4, 0), (7, 255),
    ]  # fmt: skip
    assert (MAX78000.data_part_bytes, MAX78002.data_part_bytes) == (0x8000, 0x4000)


def test_numbers_and_features_lead_to_chips() -> None:
    assert (chip_of_die(87), chip_of_die(84)) == (MAX78002, None)
    assert names_where() == "MAX78000 or MAX78002"
    assert names_where(lambda chip: chip.has_depthwise) == "MAX78002"


@pytest.mark.parametrize(
    ("channels", "count", "share"),
    [(1, 1, 1), (64, 1, 64), (65, 2, 36), (130, 3, 44), (1024, 16, 64)],
)
def test_channels_are_divided_among_passes(channels: int, count: int, share: int) -> None:
    assert (passes(channels), channels_per_pass(channels)) == (count, share)
