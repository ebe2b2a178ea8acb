"""Compiling a generated project, unmodified, for the emulated cores.

The C files are compiled against `emulator/sdk`, a stand-in for the vendor's SDK.
Source: spec/sdk-stubs.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from device import Chip, UnknownDeviceError, chip_named
from emulator.cpu.architecture import CORTEX_M4, RISCV, Architecture
from emulator.cpu.compiler import compile_program
from emulator.cpu.elf import Image
from emulator.cpu.port import PORT
from emulator.errors import EmulatorError

SDK = Path(__file__).resolve().parents[1] / "sdk"
RISCV_MAINS = "*_riscv.c"  # the program of the RISC-V core; the wrapper drops the ending

_TARGET = re.compile(r"^\s*TARGET\s*[?:]?=\s*(\w+)", re.MULTILINE)
_FLAGS = (
    *("-std=gnu11", "-O2", "-ffreestanding", "-fno-builtin", "-fno-strict-aliasing"),
    *("-Wno-everything", "-Werror=implicit-function-declaration"),
    f"-DEMULATOR_PORT={PORT:#x}u",
    *("-nostdlib", "-Wl,--no-gc-sections", "-Wl,--entry=reset_handler"),
)


def compile_project(project: Path) -> Image:
    """Compile and link the program that runs the network; nothing is written into the folder.

    That is all C files of the folder `project`, for the Cortex-M4. Of a project for the RISC-V core
    it is all but the wrapper for the Arm core, for RISC-V. Raises EmulatorError: no such folder or
    no C files (E800), no compiler (E810), the compiler refuses the program (E811, with the
    compiler's first error).
    """
    sources, wrappers = _sources(project)
    return _compile(project, sources, RISCV if wrappers else CORTEX_M4)


def compile_wrapper(project: Path) -> Image | None:
    """Compile the program of the Arm core that starts the RISC-V core; None if there is none.

    Raises EmulatorError as `compile_project` does.
    """
    _, wrappers = _sources(project)
    return _compile(project, wrappers, CORTEX_M4) if wrappers else None


def _sources(project: Path) -> tuple[list[Path], list[Path]]:
    """Return the C files of the network's program, and those of a wrapper for the Arm core."""
    if not project.is_dir():
        message = "it is a file, not a folder" if project.exists() else "no such folder"
        raise EmulatorError(
            "E800", message, str(project), "Name a folder with a generated project."
        )
    sources = sorted(project.glob("*.c"))
    if not sources:
        raise EmulatorError(
            "E800", "the folder holds no C files", str(project), "Generate the project first."
        )
    wrappers = _riscv_wrappers(project)
    return [source for source in sources if source not in wrappers], sorted(wrappers)


def _compile(project: Path, sources: Sequence[Path], core: Architecture) -> Image:
    includes = ("-I", str(project.resolve()), "-I", str(SDK / "include"))
    flags = (*_FLAGS, *includes, "-T", str(SDK / "link.ld"))
    return compile_program([SDK / "runtime.c", *sources], flags, core, project)


def target_of(project: Path) -> Chip | None:
    """Return the chip that the project's Makefile is for; None if it does not tell."""
    try:
        text = (project / "Makefile").read_text(errors="replace")
    except OSError:
        return None
    found = _TARGET.search(text)
    try:
        return chip_named(found[1]) if found else None
    except UnknownDeviceError:
        return None


def _riscv_wrappers(project: Path) -> set[Path]:
    """Return the C files of the Arm core that stand beside a program for the RISC-V core."""
    mains = project.glob(RISCV_MAINS)
    wrappers = (main.with_name(f"{main.stem.removesuffix('_riscv')}.c") for main in mains)
    return {wrapper for wrapper in wrappers if wrapper.exists()}
