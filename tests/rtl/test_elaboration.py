"""Every variant of run_test.sv parses and elaborates in the open test bench without warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyslang", reason="needs pyslang (extra `dev`)")

from ai8xtools.synthesis.program import Program
from tests.rtl.by_hand import FIFO, MODERN, camera, rtl_options, stored
from tests.rtl.elaboration import complaints
from tests.synthesis.programs import program

PRELOADED = {"preload_data": True, "preload_weights": True, "result_output": True}
VARIANTS: dict[str, tuple[Program, dict[str, Any], dict[str, Any]]] = {
    "plain": (program(), {}, {}),
    "preloaded": (program(), {}, PRELOADED),
    "RISC-V": (program(), {"riscv": True}, PRELOADED),
    "logged": (program(), {"log_intermediate": True}, {"result_output": True}),
    "camera": (FIFO, {}, {"camera": camera()}),
    "camera, synchronous": (FIFO, {}, {"camera": camera(synchronous=True, retrace=0)}),
    "MAX78002": (MODERN, {}, {}),
    "MAX78002, preloaded, RISC-V": (MODERN, {"riscv": True}, PRELOADED),
    "MAX78002, logged": (MODERN, {"log_intermediate": True}, {}),
    "MAX78002, camera": (MODERN, {}, {"camera": camera(synchronous=True, use_fifo=True)}),
    "block level": (program(), {}, {"top_level": None}),
    "block level, time-out": (MODERN, {}, {"top_level": None, "timeout_ms": 5}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_parser_has_nothing_to_say(variant: str, tmp_path: Path) -> None:
    made, shared, changes = VARIANTS[variant]
    test = stored(made, rtl_options(shared, **changes), tmp_path / "test")
    bench = "tb_block.sv" if "block" in variant else "tb.sv"
    assert complaints(test, made.chip, tmp_path / "work", bench) == ""


def test_gate_level_names_are_chosen_by_a_macro(tmp_path: Path) -> None:
    test = stored(MODERN, rtl_options(), tmp_path / "test")
    found = complaints(test, MODERN.chip, tmp_path / "work", "tb.sv", "gate_sims")
    assert "x16proc_0__xproc_xuut" in found


def test_gate_level_netlist_is_not_looked_into(tmp_path: Path) -> None:
    """Names inside a data memory are those of the sources: a netlist has others."""
    test = stored(MODERN, rtl_options({"log_intermediate": True}), tmp_path / "test")
    found = complaints(test, MODERN.chip, tmp_path / "work", "tb.sv", "gate_sims")
    assert found.count("error:") == found.count("x16proc_0__xproc_xuut'") > 0, found


def test_parser_notices_what_the_bench_does_not_have(tmp_path: Path) -> None:
    test = stored(program(), rtl_options(result_output=True), tmp_path / "test")
    text = (test / "run_test.sv").read_text()
    (test / "run_test.sv").write_text(text.replace("close_files;", "close_all_files;"))
    found = complaints(test, program().chip, tmp_path / "work")
    assert "close_all_files" in found and "error" in found
