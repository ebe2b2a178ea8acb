"""The log: formats that people read and scripts compare."""

from __future__ import annotations

import numpy as np
import pytest

from synthesis.emit import check_options, format_latency, format_statistics, log_text
from synthesis.program import LayerStatistics, Operations
from tests.synthesis.programs import options, program, statistics

STATISTICS = """\
SUMMARY OF OPS
Hardware: 472,320 ops (425,280 macc; 47,040 comp; 0 add; 0 mul; 0 bitwise)
  Layer 0: 470,400 ops (423,360 macc; 47,040 comp; 0 add; 0 mul; 0 bitwise)
  Layer 1 (fc): 1,920 ops (1,920 macc; 0 comp; 0 add; 0 mul; 0 bitwise)

RESOURCE USAGE
Weight memory: 71,148 bytes out of 442,368 bytes total (16.1%)
Bias memory:   10 bytes out of 2,048 bytes total (0.5%)
"""


def test_short_log_is_command_part_name_and_statistics() -> None:
    text = log_text(program(), options(command_line="ai8xize.py -x"))
    assert text == "ai8xize.py -x\nMAX78000\n\nnet\n\n" + STATISTICS


def test_repeated_layers_multiply_the_operations() -> None:
    lines = format_statistics(statistics(repeat=3))
    assert lines[1].startswith("Hardware: 1,416,960 ops")
    assert lines[3].startswith("  Layer 1 (fc): 5,760 ops")


def test_latency() -> None:
    assert format_latency(statistics()) == [
        "ESTIMATED LATENCY",
        "Startup               1",
        "Layer 0          48,956",
        "Layer 1 (fc)        192",
        "             ==========",
        "Total            49,149 cycles",
    ]


def test_estimated_and_unknown_latency() -> None:
    estimated = LayerStatistics(0, None, Operations(), 5, cycles_estimated=True)
    unknown = LayerStatistics(0, None, Operations(), None)
    assert format_latency(statistics(layers=(estimated,)))[2].endswith("5 (est)")
    assert format_latency(statistics(layers=(unknown,))) == []


def test_verbose_log_lists_registers_with_stars_for_suppressed_ones() -> None:
    text = log_text(program(), options(verbose=True))
    assert "R00   (00100000): 00100008 // Stop SM\n" in text
    assert "F1024 (00001000): 00000000 // AON control\n" in text
    assert "L0 G0 R01  (00100090): 00000000 // Columns *\n" in text
    assert "used quadrants" in text and "ESTIMATED LATENCY" in text
    assert text.endswith(STATISTICS)


def test_kernel_map_has_a_line_per_processor() -> None:
    lines = log_text(program(), options(verbose=True)).split("Kernel map:\n")[1].splitlines()
    assert lines[0] == lines[65] == "-" * 768
    assert lines[1] == "0" + "X" * 767
    assert lines[2][126:132] == "XX11XX"


def test_kernel_map_of_many_layers_has_wider_cells() -> None:
    owners = np.full((64, 768), -1, np.int16)
    owners[0, :2] = (3, 11)
    text = log_text(program(kernel_map=owners), options(verbose=True))
    assert "\n  3 11  X" in text


def test_layer_data_is_printed_as_matrices() -> None:
    text = log_text(program(), options(verbose=True))
    assert "LAYER 0 (CONV2D)...\n" in text
    assert "INPUT, 1x4x4\n-8 -7 -6 -5\n-4 -3 -2 -1\n 0  1  2  3\n 4  5  6  7\n" in text
    assert "WEIGHTS, 1x1x3x3\n0 1 2\n3 4 5\n6 7 8\n" in text
    assert "BIAS, 1\n3\n" in text
    assert "FULL-RES OUTPUT, 1x4x4\n-8000 -7000 -6000 -5000\n" in text


def test_short_log_leaves_out_data_of_inner_layers() -> None:
    text = log_text(program(), options(verbose=True, short_log=True))
    assert "INPUT, 1x4x4\n\n" in text
    assert "-8000" not in text


def test_weights_are_printed_in_the_format_that_was_asked_for() -> None:
    text = log_text(program(), options(verbose=True, kernel_format="{0:03x}"))
    assert "WEIGHTS, 1x1x3x3\n000 001 002\n003 004 005\n006 007 008\n\n" in text
    assert "BIAS, 1\n3\n" in text


@pytest.mark.parametrize("text", ["{1}", "{0:q}", "{", "{name}", "{0.x}"])
def test_format_that_prints_no_number_is_refused(text: str) -> None:
    (found,) = check_options(options(kernel_format=text))
    assert (found.code, str(found.place)) == ("E085", "option --kernel-format")
