"""What is said of `unload` and `data_buffer` that memory cannot hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ai8xtools.synthesis.parse import read
from ai8xtools.synthesis.resolve.sections import check_sections
from device import MAX78000
from tests.synthesis.networks import build, describe, sample

LAYER: dict[str, Any] = {"processors": 7, "op": "none", "name": "one"}
PIECE: dict[str, Any] = {"processors": 7, "channels": 3, "dim": 4, "offset": 0x4000}
RING: dict[str, Any] = {"name": "ring", **PIECE}


def said(key: str, *sections: dict[str, Any], **layer: Any) -> list[tuple[str, str]]:
    """Return codes and messages for a description with these sections."""
    text = describe({**LAYER, **layer}, **{key: str([*sections]).replace("'", "")})
    found = check_sections(read(text).description, MAX78000)
    return [(d.code, d.message) for d in found]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"channels": 2}, []),
        ({"offset": 0x7FF0}, []),
        (
            {"channels": 4},
            [("E228", "unload: 'processors' names 3, 4 channels need 4")],
        ),
        (
            {"channels": 66, "processors": "0xffffffffff"},
            [("E228", "unload: 'processors' names 40, 66 channels need 36")],
        ),
        (
            {"offset": 0x1002},
            [("E229", "unload: 'offset' is 0x1002, words begin at multiples of 4")],
        ),
        (
            {"offset": 0x7FF4},
            [
                (
                    "E229",
                    "unload: the data ends at 0x8003, the last byte of a memory instance is 0x7fff",
                )
            ],
        ),
    ],
)
def test_delivered_data_stands_in_memory(
    changes: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert said("unload", {**PIECE, **changes}) == expected


def test_wide_data_with_gaps_takes_more_memory() -> None:
    wide = {**PIECE, "width": 32, "write_gap": 1, "offset": 0x7F90}
    assert said("unload", wide) == []
    assert [code for code, _ in said("unload", {**wide, "offset": 0x7F94})] == ["E229"]


def test_rolling_buffers_have_names_of_their_own() -> None:
    taken = "data_buffer: the name '{}' already has another meaning"
    assert said("data_buffer", RING) == []
    assert said("data_buffer", {**RING, "name": "one"}) == [("E230", taken.format("one"))]
    assert said("data_buffer", RING, RING) == [("E230", taken.format("ring"))]


def test_second_rolling_buffer_is_not_used() -> None:
    other = {**RING, "name": "other"}
    message = "data_buffer: only the first one can be used, 'other' is number 2"
    assert said("data_buffer", RING, other) == [("W281", message)]
    assert said("data_buffer", RING, other, in_sequences="other") == [("E231", message)]


def test_width_of_a_rolling_buffer_has_no_effect() -> None:
    (found,) = said("data_buffer", {**RING, "width": 32})
    assert found == ("W282", "data_buffer: 'width' is 32, which has no effect")


def test_sections_are_checked_with_the_network(tmp_path: Path) -> None:
    text = describe(
        LAYER, data_buffer="[{name: a, processors: 7, channels: 3, dim: 4, offset: 0, width: 32}]"
    )
    _, warnings = build(tmp_path, text, sample(3, 4, 4))
    assert "W282" in {d.code for d in warnings}
