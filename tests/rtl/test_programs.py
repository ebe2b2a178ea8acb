"""Programs of tests for RTL simulation: they compile without warnings, and run to their end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("unicorn", reason="needs the emulator (extra `emulator`)")

from ai8xtools.emulator.cpu.architecture import CORTEX_M4, RISCV
from ai8xtools.emulator.cpu.compiler import compiler
from ai8xtools.emulator.firmware.compiling import SDK
from ai8xtools.synthesis.emit.rtl import emit_rtl
from ai8xtools.synthesis.program import Program
from device import chip_named
from tests.conftest import ROOT
from tests.rtl.by_hand import FIFO, MODERN, camera, rtl_options, stored
from tests.synthesis.programs import program, summary
from tools.rtl_program import SDK as RTL_SDK
from tools.rtl_program import TestProgram, camera_words

STRICT = ["-std=gnu11", "-O2", "-ffreestanding", "-Wall", "-Wextra", "-Wcast-align", "-Werror"]
VARIANTS: dict[str, tuple[Program, dict[str, Any], dict[str, Any]]] = {
    "plain": (program(), {}, {}),
    "verified": (program(), {"verify_writes": True, "verify_kernels": True}, {}),
    "headers": (program(), {"sample_output_filename": "sampleoutput.h"}, {}),
    "stored": (program(), {"stop_start": True, "kat": False}, {"compact_data": False}),
    "preloaded": (program(), {}, {"preload_data": True, "preload_weights": True}),
    "FIFO, stored": (FIFO, {"no_fifo_wait": True}, {"compact_data": False, "slow_load": 2}),
    "camera": (FIFO, {}, {"camera": camera()}),
    "camera, ring": (FIFO, {}, {"camera": camera(use_fifo=True)}),
    "RISC-V": (program(), {"riscv": True, "deepsleep": True, "riscv_exclusive": True}, {}),
    "RISC-V, flash": (program(), {"riscv": True, "riscv_cache": False, "no_wfi": True}, {}),
    "MAX78002": (MODERN, {"one_shot": True}, {"result_output": True}),
    "MAX78002, RISC-V": (MODERN, {"riscv": True, "deepsleep": True}, {}),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_compiles_without_warnings(variant: str, tmp_path: Path) -> None:
    made, shared, changes = VARIANTS[variant]
    folder = stored(made, rtl_options(shared, **changes), tmp_path / "test")
    for source in sorted(folder.glob("*.c")):
        assert "\n\n\n" not in source.read_text(), source.name
        core = RISCV if source.stem.endswith("_riscv") else CORTEX_M4
        folders = [str(folder), str(RTL_SDK), str(SDK / "include")]
        includes = [word for name in folders for word in ("-I", name)]
        command = [*compiler(core), *STRICT, *includes, "-c", str(source)]
        command += ["-o", str(tmp_path / "out.o")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("variant", VARIANTS)
def test_statements_are_indented_by_depth(variant: str) -> None:
    made, shared, changes = VARIANTS[variant]
    for name, text in emit_rtl(made, summary(), rtl_options(shared, **changes)).items():
        if not name.endswith(".c"):
            continue
        depth = 0
        for line in text.split("/*")[0].splitlines():
            if line.strip().startswith("}"):
                depth -= 1
            if line and not line.startswith("#"):
                indent = len(line) - len(line.lstrip())
                goes_on = line.lstrip().startswith("|")
                assert goes_on or indent in (4 * depth, 4 * depth + 7), f"{name}: {line}"
            depth += line.rstrip().endswith("{")


RUNS = (
    ("MAX78000", ""),
    ("MAX78000", "--no-compact-data --no-mexpress"),
    ("MAX78000", "--old-kernel-loader --init-tram"),
    ("MAX78000", "--verify-writes --verify-kernels --zero-sram"),
    ("MAX78000", "--sample-output-filename expected.h --stop-start"),
    ("MAX78000", "--riscv --deepsleep --riscv-exclusive"),
    ("MAX78000", "--riscv --no-riscv-cache"),
    ("MAX78000", "--riscv --fast-fifo"),
    ("MAX78000", "--riscv --no-wfi"),
    ("MAX78000", "--fifo --no-compact-data --slow-load 2"),
    ("MAX78000", "--fifo --input-csv cam.csv"),
    ("MAX78002", ""),
    ("MAX78002", "--one-shot"),
    ("MAX78002", "--no-pll --no-wfi"),
    ("MAX78002", "--riscv --no-riscv-cache --deepsleep"),
    ("MAX78002", "--fifo --input-csv cam.csv"),
)


def generated(device: str, options: str, folder: Path) -> Path:
    """Return the folder of a test of a small network."""
    words = ["ai8xize.py", "--device", device, "--config-file", "networks/digits-chw-ai85.yaml",
             "--checkpoint-file", "trained/digits-ai85digitsnet-qat8-q.pth.tar", "--rtl",
             "--prefix", "net", "--test-dir", str(folder), *options.split()]  # fmt: skip
    subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, check=True)
    return next(folder.iterdir())


@pytest.mark.parametrize(("device", "options"), RUNS)
def test_program_passes_on_the_emulated_chip(device: str, options: str, tmp_path: Path) -> None:
    test = generated(device, options, tmp_path)
    samples = test / "cam.csv"
    words = camera_words(samples.read_text(), channels=1) if samples.exists() else []
    running = TestProgram(test, chip_named(device), camera=words)
    assert running.run(), running.console
    assert len(running.bus.run_positions) == (4 if "one-shot" in options else 1)


def test_ring_buffer_brings_the_camera_to_the_fast_fifo(tmp_path: Path) -> None:
    """Input whose pixels lie together, which each word of the camera is one of."""
    text = (ROOT / "networks/digits-chw-ai85.yaml").read_text()
    description = tmp_path / "net.yaml"
    description.write_text(text.replace("data_format: CHW", "data_format: HWC"))
    options = f"--riscv --fast-fifo --input-csv cam.csv --input-fifo --config-file {description}"
    test = generated("MAX78000", options, tmp_path / "tests")
    words = camera_words((test / "cam.csv").read_text(), channels=1)
    running = TestProgram(test, chip_named("MAX78000"), camera=words)
    assert len(words) == 64 and running.run(), running.console


def test_wrong_result_fails(tmp_path: Path) -> None:
    test = generated("MAX78000", "", tmp_path)
    text = (test / "test.c").read_text()
    before, after = text.split("int check_output(void)", 1)
    changed = after.replace("!= 0x", "!= 0x1", 1)
    (test / "test.c").write_text(f"{before}int check_output(void){changed}")
    running = TestProgram(test, chip_named("MAX78000"))
    assert not running.run() and "FAIL" in running.console
