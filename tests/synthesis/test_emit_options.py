"""Options of the text that cannot be honoured are refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from ai8xtools.synthesis.emit import check_options, check_outputs
from tests.synthesis.programs import options, program, summary


def codes(**changes: Any) -> list[tuple[str, str]]:
    return [(d.code, str(d.place)) for d in check_options(options(**changes))]


def test_defaults_are_accepted() -> None:
    assert codes() == []


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "a\nb", "-a", "a$b", 'a"b', "a "])
def test_names_must_be_plain(name: str) -> None:
    assert codes(name=name) == [("E071", "option --prefix")]
    assert codes(weight_filename=name) == [("E071", "option --weight-filename")]
    assert codes(board_name=name) == [("E071", "option --board-name")]


def test_main_file_needs_a_name() -> None:
    assert codes(c_filename="") == [("E071", "option --c-filename")]


def test_files_must_differ() -> None:
    assert codes(weight_filename="a.h", sample_filename="a.h") == [
        ("E072", "option --sample-filename")
    ]
    assert codes(c_filename="softmax") == [("E072", "option --c-filename")]
    assert codes(log_filename="Makefile") == [("E072", "option --log-filename")]


def test_none_is_no_file_name() -> None:
    assert codes(api_filename="None", sample_output_filename="NONE", log_filename=None) == []


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"timer": 6}, "--timer"),
        ({"timer": -1}, "--timer"),
        ({"boost": (4, 0)}, "--boost"),
        ({"boost": (0, 31)}, "--boost"),
        ({"debugwait": -1}, "--debugwait"),
        ({"unroll_wide": -1}, "--unroll-wide"),
        ({"max_checklines": 0}, "--max-checklines"),
        ({"clock_trim": (0x10000, 0, 0)}, "--clock-trim"),
    ],
)
def test_values_out_of_range(changes: dict[str, Any], option: str) -> None:
    assert codes(**changes) == [("E073", f"option {option}")]


def test_unrolling_needs_the_port_that_it_is_about() -> None:
    assert codes(unroll_mlator=4) == [("W041", "option --unroll-mlator")]
    assert codes(unroll_mlator=4, mlator=True) == []


def test_timer_is_dropped_with_energy() -> None:
    assert codes(timer=0, energy=True) == [("W041", "option --timer")]
    assert codes(timer=0, energy=True, no_timer=True) == []


def test_softmax_of_an_image_is_refused() -> None:
    found = [*check_outputs(options(softmax=True), program(output_count=40000), summary())]
    assert [d.code for d in found] == ["E074"]


def test_softmax_of_8_bit_outputs_warns() -> None:
    (found,) = check_outputs(options(softmax=True), program(output_width=8), summary())
    assert str(found) == (
        "option --softmax: warning: the output has 8 bits, which is coarse for softmax [W024]\n"
        "  Use output_width: 32 in the last layer."
    )
