"""The log: formats that people read and scripts compare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ai8xtools.synthesis.emit import (
    check_options,
    format_footprint,
    format_latency,
    format_statistics,
    log_text,
)
from ai8xtools.synthesis.measured_energy import EnergyOptions
from ai8xtools.synthesis.program import Block, Write
from ai8xtools.synthesis.summarize.energy import energy_share, inference_counts
from ai8xtools.synthesis.summary import LatencyTerms, LayerStatistics, Operations
from device.energy import Calibration
from tests.synthesis.programs import options, program, statistics, summary

STATISTICS = """\
SUMMARY OF OPS
Hardware: 472,320 ops (425,280 macc; 47,040 comp; 0 add; 0 mul; 0 bitwise)
  Layer 0: 470,400 ops (423,360 macc; 47,040 comp; 0 add; 0 mul; 0 bitwise)
  Layer 1 (fc): 1,920 ops (1,920 macc; 0 comp; 0 add; 0 mul; 0 bitwise)

RESOURCE USAGE
Weight memory: 71,148 bytes out of 442,368 bytes total (16.1%)
Bias memory:   10 bytes out of 2,048 bytes total (0.5%)
"""


def core_memories() -> str:
    """Return the last lines: what the program takes of flash and SRAM."""
    return "".join(f"{line}\n" for line in format_footprint(program(), options()))


def test_short_log_is_command_part_name_and_statistics() -> None:
    text = log_text(program(), summary(), options(command_line="ai8xize.py -x"))
    counted, _, energy = text.partition("Energy: ")
    assert counted == (
        "ai8xize.py -x\nMAX78000, interface of SDK 2024\n\nnet\n\n" + STATISTICS + core_memories()
    )
    assert energy.endswith(", published constants; docs/energy.md\n") and energy.count("\n") == 1


def test_energy_in_the_log_follows_supply_and_counts() -> None:
    def joules(**changes: Any) -> list[str]:
        return (
            log_text(program(), summary(), options(**changes)).rpartition("Energy:")[2].split(",")
        )

    low = EnergyOptions(volts=1.0)
    spent = low.of(inference_counts(statistics(), program()), program())
    assert joules(measured=low)[0].strip() == f"{spent.inference.in_units('J')} for an inference"
    assert joules(measured=low)[2].strip().startswith(spent.weights.in_units("J"))


def test_log_of_a_test_for_rtl_simulation_has_no_memories_of_a_core() -> None:
    assert log_text(program(), summary(), options(simulated=True)).endswith(STATISTICS)


def test_core_memories_are_listed_with_their_parts() -> None:
    flash, sram = core_memories().splitlines()
    assert flash.startswith("Flash memory:  ") and " bytes out of 524,288 bytes total (" in flash
    assert "%): code " in flash and ", known answer " in flash
    assert sram.startswith("SRAM:          ") and "%): variables 792, result " in sram


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


def test_estimated_layers_make_the_total_an_estimate() -> None:
    estimated = LayerStatistics(0, None, Operations(), 5, cycles_estimated=True)
    assert format_latency(statistics(layers=(estimated,)))[-1] == "Total            6 cycles (est)"


def test_terms_of_the_latency_follow_their_layer() -> None:
    terms = LatencyTerms((("passes", 2), ("operands", 1)), (("row", 3, 7), ("none", 0, 9)))
    streaming = LayerStatistics(0, None, Operations(), 32, True, terms)
    assert format_latency(statistics(layers=(streaming,)))[2:7] == [
        "Layer 0         32 (est)",
        "    passes 2, operands 1",
        "    row                            3 x 7  21",
        "    streaming, half as much again         11",
        "        ==========",
    ]


def test_needed_products_follow_the_operations() -> None:
    layers = tuple(replace(layer, products=100) for layer in statistics().layers)
    lines = format_statistics(statistics(layers=layers, repeat=6))
    assert lines[2] == "True MACs: 1,200"
    assert lines[3].startswith("  Layer 0: ")


def test_messages_are_repeated_in_the_verbose_log() -> None:
    messages = ("option --timer: warning: x [W041]", "other")
    text = log_text(program(), summary(), options(verbose=True, messages=messages))
    assert "\nnet\n\nMessages:\noption --timer: warning: x [W041]\nother\n\nKernel map:" in text
    assert "Messages" not in log_text(program(), summary(), options(messages=messages))


def test_registers_that_belong_to_no_layer_stand_apart() -> None:
    fifo = Block("FIFO control", (Write(0x50000000, 0x1908, "FIFO control", "F00"),))
    made = program(configure=(*program().configure, fifo))
    text = log_text(made, summary(), options(verbose=True))
    layers, others = text.split("Layer register configuration:\n")[1].split("Global registers:\n")
    assert "F00" not in layers and others.startswith("F00   (00000000): 00001908 // FIFO control\n")


def test_output_is_printed_before_its_activation_too() -> None:
    (layer,) = summary().layer_logs
    told = summary(layer_logs=(replace(layer, unactivated=layer.output - 1),))
    text = log_text(program(), told, options(verbose=True))
    assert "OUTPUT BEFORE ACTIVATION, 1x4x4\n-9 -8 -7 -6\n" in text
    assert "BEFORE" not in log_text(program(), summary(), options(verbose=True))


def test_verbose_log_lists_registers_with_stars_for_suppressed_ones() -> None:
    text = log_text(program(), summary(), options(verbose=True))
    assert "R00   (00100000): 00100008 // Stop SM\n" in text
    assert "F1024 (00001000): 00000000 // AON control\n" in text
    assert "L0 G0 R01  (00100090): 00000000 // Columns *\n" in text
    assert "used quadrants" in text and "ESTIMATED LATENCY" in text
    assert text.partition("Energy: ")[0].endswith(STATISTICS + core_memories())


def test_kernel_map_has_a_line_per_processor() -> None:
    text = log_text(program(), summary(), options(verbose=True))
    lines = text.split("Kernel map:\n")[1].splitlines()
    assert lines[0] == lines[65] == "-" * 768
    assert lines[1] == "0" + "X" * 767
    assert lines[2][126:132] == "XX11XX"


def test_kernel_map_of_many_layers_has_wider_cells() -> None:
    owners = np.full((64, 768), -1, np.int16)
    owners[0, :2] = (3, 11)
    text = log_text(program(), summary(kernel_map=owners), options(verbose=True))
    assert "\n  3 11  X" in text


def test_layer_data_is_printed_as_matrices() -> None:
    text = log_text(program(), summary(), options(verbose=True))
    assert "LAYER 0 (CONV2D)...\n" in text
    assert "INPUT, 1x4x4\n-8 -7 -6 -5\n-4 -3 -2 -1\n 0  1  2  3\n 4  5  6  7\n" in text
    assert "WEIGHTS, 1x1x3x3\n0 1 2\n3 4 5\n6 7 8\n" in text
    assert "BIAS, 1\n3\n" in text
    assert "FULL-RES OUTPUT, 1x4x4\n-8000 -7000 -6000 -5000\n" in text


def test_short_log_leaves_out_data_of_inner_layers() -> None:
    text = log_text(program(), summary(), options(verbose=True, short_log=True))
    assert "INPUT, 1x4x4\n\n" in text
    assert "-8000" not in text


def test_weights_are_printed_in_the_format_that_was_asked_for() -> None:
    text = log_text(program(), summary(), options(verbose=True, kernel_format="{0:03x}"))
    assert "WEIGHTS, 1x1x3x3\n000 001 002\n003 004 005\n006 007 008\n\n" in text
    assert "BIAS, 1\n3\n" in text


@pytest.mark.parametrize("text", ["{1}", "{0:q}", "{", "{name}", "{0.x}"])
def test_format_that_prints_no_number_is_refused(text: str) -> None:
    (found,) = check_options(options(kernel_format=text))
    assert (found.code, str(found.place)) == ("E085", "option --kernel-format")


def test_shares_of_layers_add_up_to_what_is_not_start() -> None:
    totals = statistics()
    counts = inference_counts(totals, program())
    shares = [energy_share(layer, counts, None) for layer in totals.layers]
    assert sum(shares) == pytest.approx(1, abs=0.001) and sum(shares) < 1
    first, second = totals.layers
    assert shares[0] / shares[1] > first.estimate / second.estimate * 16 / 64
    by_cycles = Calibration(0.0, 770.0, 0.15)
    assert energy_share(first, counts, by_cycles) == pytest.approx(first.estimate / counts.cycles)
