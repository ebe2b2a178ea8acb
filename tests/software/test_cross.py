"""Makefiles for cores: the library, and the known-answer test if the compiler has a C library."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ai8xtools.software.plan.schemes import Scheme
from tests.software.against_simulation import files_of
from tests.software.operators import NETWORKS, network_of

OF_THE_COMPILER = {"__mulsi3", "__modsi3", "__divsi3", "__udivsi3", "__umodsi3"}
ARM, RISCV = "arm-none-eabi-", "riscv64-unknown-elf-"


@pytest.mark.parametrize(
    ("core", "cross", "words"),
    [
        ("cortex-m4", ARM, []),
        ("cortex-m0plus", ARM, ["CFLAGS=-Os", "FREESTANDING=1"]),
        ("rv32imc", RISCV, ["FREESTANDING=1"]),
        ("rv32ec", RISCV, ["CFLAGS=-Os", "FREESTANDING=1"]),
    ],
)
def test_makefile_of_a_core_makes_the_library(
    core: str, cross: str, words: list[str], tmp_path: Path
) -> None:
    """It needs nothing but memcpy, memset and what compilers bring for arithmetic."""
    if shutil.which(f"{cross}gcc") is None or shutil.which("make") is None:
        pytest.skip(f"{cross}gcc or make is not installed")
    for name, text in files_of(network_of(NETWORKS["concatenation"]), core, Scheme.ROWS).items():
        (tmp_path / name).write_text(text)
    file = "Makefile.ARM" if cross == ARM else "Makefile.RISCV"
    made = subprocess.run(
        ["make", "-f", file, f"CROSS={cross}", *words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "main.elf").exists() is ("FREESTANDING=1" not in words)
    listed = subprocess.run(
        [f"{cross}nm", "-A", "libcnn.a"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    defined = {line.split()[-1] for line in listed if " T " in line or " D " in line}
    missing = {line.split()[-1] for line in listed if " U " in line} - defined
    rest = {name for name in missing - OF_THE_COMPILER if not name.startswith("__aeabi_")}
    assert rest <= {"memcpy", "memset"}
