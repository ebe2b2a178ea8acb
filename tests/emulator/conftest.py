"""Fixtures of the emulator's tests: a project written by hand, and variants of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("unicorn", reason="the emulator needs unicorn (extra `emulator`)")

from ai8xtools.commands.emulate.arguments import parse
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.emulator import EmulatorError

PROJECT = Path(__file__).resolve().parent / "project"
Emulate = Callable[..., tuple[int, str]]


@pytest.fixture(scope="session")
def project() -> Path:
    """A correct project: one layer on MAX78000."""
    return PROJECT


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Emulate:
    """Run emulate.py; return its status and what it prints, errors with their remedy included."""

    def call(*words: str | Path) -> tuple[int, str]:
        try:
            status = emulate(parse([str(word) for word in words]))
            return status, capsys.readouterr().out
        except EmulatorError as error:
            return 1, f"{capsys.readouterr().out}{error.code} {error.message}\n{error.remedy}"

    return call


@pytest.fixture
def variant(tmp_path: Path) -> Callable[..., Path]:
    """Copy the project with texts replaced: variant(("old", "new"), ...)."""

    def build(*replacements: tuple[str, str]) -> Path:
        folder = tmp_path / "variant"
        shutil.copytree(PROJECT, folder)
        for old, new in replacements:
            files = [path for path in folder.iterdir() if old in path.read_text()]
            assert files, f"{old!r} is not in the project"
            for path in files:
                path.write_text(path.read_text().replace(old, new))
        return folder

    return build


@pytest.fixture
def riscv_pair(variant: Callable[..., Path]) -> Callable[..., Path]:
    """Make the project one for the RISC-V core, with texts replaced: riscv_pair(("old", "new"))."""

    def build(*replacements: tuple[str, str]) -> Path:
        handler = '__attribute__((interrupt("machine"))) CNN_IRQHandler(void)'
        wake = "MXC_SEMA->irq0 = MXC_F_SEMA_IRQ0_EN | MXC_F_SEMA_IRQ0_CM4_IRQ;"
        folder = variant(
            ("void CNN_ISR(void)", f"void {handler}"),
            ("MXC_NVIC_SetVector(CNN_IRQn, CNN_ISR)", "NVIC_EnableIRQ(CNN_IRQn)"),
            ("MXC_LP_EnterSleepMode();", 'asm volatile("wfi");'),
            ("    cnn_disable();\n", f"    cnn_disable();\n    {wake}\n"),
        )
        (folder / "main.c").rename(folder / "main_riscv.c")
        (folder / "main.c").write_text((PROJECT.parent / "wrapper.c").read_text())
        for old, new in replacements:
            files = [path for path in folder.iterdir() if old in path.read_text()]
            assert files, f"{old!r} is not in the project"
            for path in files:
                path.write_text(path.read_text().replace(old, new))
        return folder

    return build
