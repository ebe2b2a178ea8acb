"""Chips are known by several names."""

from __future__ import annotations

import argparse

import pytest

from ai8xtools import devices


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("84", 84), ("AI84", 84), ("85", 85), ("ai85", 85), ("MAX78000", 85), ("78000", 85),
        ("max85", 85), ("Max78002", 87), ("AI87", 87), ("78002", 87),
    ],
)  # fmt: skip
def test_names_of_devices(text: str, number: int) -> None:
    assert devices.device(text) == number


@pytest.mark.parametrize("text", ["", "86", "MAX78001", "85 ", "AIMAX85", "8", "maxai85x"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(
        argparse.ArgumentTypeError, match="known devices are AI84, MAX78000, MAX78002"
    ):
        devices.device(text)


def test_numbers_have_part_names() -> None:
    assert [devices.partnum(n) for n in (84, 85, 87)] == ["AI84", "MAX78000", "MAX78002"]
