"""Compiling a generated project, unmodified, for the emulated cores.

The C files are compiled against `emulator/sdk`, a stand-in for the vendor's SDK, with the GNU cross
compiler if it is installed, else with the compiler in the ziglang package. No root, no SDK.
Source: spec/sdk-stubs.md.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from device import Chip, UnknownDeviceError, chip_named
from emulator.cpu.architecture import CORTEX_M4, RISCV, Architecture
from emulator.cpu.elf import Image, read_image
from emulator.errors import EmulatorError

SDK = Path(__file__).resolve().parents[1] / "sdk"
PORT = 0xF0000000  # registers of the emulator itself, see sdk/runtime.c
RISCV_MAINS = "*_riscv.c"  # the program of the RISC-V core; the wrapper drops the ending
COMPILE_SECONDS = 120

_TARGET = re.compile(r"^\s*TARGET\s*[?:]?=\s*(\w+)", re.MULTILINE)
_FLAGS = (
    *("-std=gnu11", "-O2", "-ffreestanding", "-fno-builtin", "-fno-strict-aliasing"),
    *("-Wno-everything", "-Werror=implicit-function-declaration"),
    f"-DEMULATOR_PORT={PORT:#x}u",
    *("-nostdlib", "-Wl,--no-gc-sections", "-Wl,--entry=reset_handler"),
)


def compiler(core: Architecture = CORTEX_M4) -> list[str]:
    """Return the command of the C compiler for a core with its machine options.

    Raises EmulatorError (E810) if none is installed.
    """
    gcc = next(filter(None, map(shutil.which, core.compilers)), None)
    if gcc:
        return [gcc, *core.gcc_options]
    if importlib.util.find_spec("ziglang"):
        zig = [sys.executable, "-m", "ziglang", "cc"]
        return [*zig, *core.zig_options, "-fno-sanitize=undefined"]
    raise EmulatorError(
        "E810",
        f"no C compiler for the {core.name} core is installed",
        remedy=f"Install {core.compilers[0]}, or `pip install -r requirements-emulator.txt`.",
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
    with tempfile.TemporaryDirectory(prefix="emulator-") as folder:
        program = Path(folder) / "program.elf"
        _run(
            [
                *(*compiler(core), *_FLAGS),
                *("-I", str(project.resolve()), "-I", str(SDK / "include")),
                *("-T", str(SDK / "link.ld"), "-o", str(program), str(SDK / "runtime.c")),
                *(str(source.resolve()) for source in sources),
            ],
            Path(folder),
            project,
        )
        return read_image(program)


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


def _run(command: Sequence[str], folder: Path, project: Path) -> None:
    """Run the compiler in `folder`; its first error becomes the message of an EmulatorError."""
    environment = {**os.environ, "LC_ALL": "C", "ZIG_LOCAL_CACHE_DIR": str(folder / "local")}
    if not os.access(os.environ.get("HOME", ""), os.W_OK):  # where the compiler's cache would be
        environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(folder / "global"))
    try:
        result = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMPILE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"the compiler does not finish within {COMPILE_SECONDS} s"
        raise EmulatorError("E811", message, str(project)) from None
    if result.returncode:
        raise EmulatorError(
            "E811",
            f"the project does not compile: {_first_error(result.stderr)}",
            str(project),
            "Every *.c file of the folder is compiled; correct this error first.",
        )


def _first_error(messages: str) -> str:
    """Return the first line that is an error, else the first line at all."""
    lines = [line for line in messages.splitlines() if line.strip()]
    errors = (line for line in lines if "error:" in line or "undefined reference" in line)
    return next(errors, lines[0] if lines else "no message")
