"""Options that the chip or other options rule out, each with its message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ai8xtools.diagnostics import Place
from ai8xtools.synthesis.check import check_chip_options, check_repetition
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.options import ResolveOptions
from device import MAX78000, MAX78002, Chip
from tests.synthesis.stages import encoding as encoded


def complaints(chip: Chip, *, resolving: Any = None, encoding: Any = None) -> list[str]:
    """Return what is said about options that differ from their defaults."""
    found = check_chip_options(
        chip,
        replace(ResolveOptions(), **(resolving or {})),
        encoded(**(encoding or {})),
    )
    return [str(d) for d in found]


NEWER = [
    ("--start-layer", {"start_layer": 1}, {}),
    ("--read-ahead", {"read_ahead": True}, {}),
    ("--calcx4", {"calcx4": True}, {}),
    ("--link-layer", {}, {"link_layer": True}),
    ("--one-shot", {}, {"one_shot": True}),
    ("--snoop-loop", {}, {"snoop_loop": True}),
    ("--debug-snoop", {}, {"check_snoop": True}),
    ("--fifo-go", {}, {"fifo_go": True}),
    ("--pipeline", {}, {"pipeline": True}),
    ("--pll", {}, {"pll": True}),
]


@pytest.mark.parametrize(("option", "resolving", "encoding"), NEWER, ids=lambda x: str(x))
def test_features_of_the_newer_chip_are_refused_on_the_older(
    option: str, resolving: dict[str, Any], encoding: dict[str, Any]
) -> None:
    assert complaints(MAX78000, resolving=resolving, encoding=encoding) == [
        f"option {option}: error: MAX78000 does not support it [E080]\n"
        "  Leave the option out, or use --device MAX78002."
    ]
    assert complaints(MAX78002, resolving=resolving, encoding=encoding) == []


RANGES = [
    ("--apb-base", {}, {"apb_base": -4096}, 0, "0 and 4194304000"),
    ("--input-offset", {"input_offset": 0x8000}, {}, 0x7FFF, "0 and 32767"),
    ("--skip-checkpoint-layers", {"skip_checkpoint_layers": -1}, {}, 0, "0 and 65536"),
    ("--weight-start", {}, {"weight_start": 768}, 767, "0 and 767"),
    ("--repeat-layers", {}, {"repeat_layers": 0}, 1, "1 and 32"),
    ("--switch-delay", {}, {"switch_delay_ms": -1}, 0, "0 and 60000"),
    ("--ready-sel", {}, {"ready_select": 4}, 3, "0 and 3"),
    ("--ready-sel-fifo", {}, {"ready_select_fifo": 4}, 3, "0 and 3"),
    ("--ready-sel-aon", {}, {"ready_select_aon": 0x1000}, 0xFFF, "0 and 4095"),
    ("--override-start", {}, {"override_start": -1}, 0, "0 and 65535"),
    ("--override-rollover", {}, {"override_rollover": -1}, 0, "0 and 1048575"),
    ("--override-delta1", {}, {"override_delta1": 32}, 31, "0 and 31"),
    ("--override-delta2", {}, {"override_delta2": -1}, 0, "0 and 65535"),
    ("--increase-start", {}, {"increase_start": -1}, 0, "0 and 65535"),
    ("--increase-delta1", {}, {"increase_delta1": 32}, 31, "0 and 31"),
    ("--increase-delta2", {}, {"increase_delta2": -1}, 0, "0 and 65535"),
]


@pytest.mark.parametrize(
    ("option", "resolving", "encoding", "nearest", "limits"), RANGES, ids=[r[0] for r in RANGES]
)
def test_numbers_have_limits(
    option: str, resolving: dict[str, int], encoding: dict[str, int], nearest: int, limits: str
) -> None:
    (value,) = (resolving | encoding).values()
    assert complaints(MAX78000, resolving=resolving, encoding=encoding) == [
        f"option {option}: error: is {value}, the limits are {limits} [E073]\n"
        f"  The nearest valid value is {nearest}."
    ]


def test_first_layer_has_limits_on_the_newer_chip() -> None:
    assert complaints(MAX78002, resolving={"start_layer": 128}) == [
        "option --start-layer: error: is 128, the limits are 0 and 127 [E073]\n"
        "  The nearest valid value is 127."
    ]


def test_base_address_is_aligned() -> None:
    assert complaints(MAX78000, encoding={"apb_base": 0x50000800}) == [
        "option --apb-base: error: is 0x50000800, not a multiple of 0x1000 [E073]\n"
        "  Use such a multiple."
    ]


def test_full_speed_needs_the_pll() -> None:
    assert complaints(MAX78002, encoding={"max_speed": True, "pll": False}) == [
        "option --max-speed: error: it cannot be used together with --no-pll [E092]\n"
        "  Leave out --max-speed or --no-pll."
    ]
    assert complaints(MAX78000, encoding={"max_speed": True}) == [
        "option --max-speed: error: it needs a PLL, MAX78000 has none [E080]\n"
        "  Leave the option out, or use --device MAX78002."
    ]


def test_fifo_feeds_the_first_layer_only() -> None:
    found = complaints(MAX78002, resolving={"start_layer": 2, "input_port": InputPort.FIFO})
    assert found == [
        "option --start-layer: error: it cannot be used together with a FIFO [E092]\n"
        "  Leave out --start-layer or a FIFO."
    ]


def test_input_is_synthesized_for_a_fifo() -> None:
    assert complaints(MAX78000, resolving={"synthesize_input": 1}) == [
        "option --synthesize-input: error: it needs --fifo [E095]\n"
        "  Add --fifo or leave out --synthesize-input."
    ]


def test_words_are_counted_for_a_synthesized_input_only() -> None:
    assert complaints(MAX78000, resolving={"synthesize_words": 4}) == [
        "option --synthesize-words: warning: it has no effect without --synthesize-input [W041]\n"
        "  Leave the option out."
    ]


def test_streaming_from_memory_is_allowed_with_a_warning() -> None:
    assert complaints(MAX78000, resolving={"allow_streaming": True}) == [
        "option --allow-streaming: warning: the vendor does not specify layers that stream from "
        "memory [W037]\n  Use --fifo."
    ]


def test_repetitions_fit_the_chip() -> None:
    assert [str(d) for d in check_repetition(33, MAX78000, Place("net.yaml", 9, 3))] == [
        "net.yaml:9:3: option --repeat-layers: error: makes 33 layers, MAX78000 has 32 [E086]\n"
        "  Repeat the network less often."
    ]
    assert list(check_repetition(32, MAX78000, Place())) == []
