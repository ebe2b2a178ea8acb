"""Projects compiled for this computer and run."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

SANITIZED = ("-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def compiler() -> list[str] | None:
    """Return a compiler of this computer: cc, or that of ziglang; None if there is neither."""
    found = shutil.which("gcc") or shutil.which("cc")
    if found:
        return [found]
    result = subprocess.run(
        [sys.executable, "-m", "ziglang", "version"], capture_output=True, check=False
    )
    return None if result.returncode else [sys.executable, "-m", "ziglang", "cc"]


def run_project(
    files: Mapping[str, str], folder: Path, flags: Sequence[str] = ("-O1",)
) -> subprocess.CompletedProcess[str]:
    """Write, compile and run a project; warnings are errors."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    with_compiler = compiler()
    assert with_compiler is not None
    sources = [folder / name for name in files if name.endswith(".c")]
    built = subprocess.run(
        [*with_compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", *flags, *sources,
         "-o", folder / "main"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if built.returncode:
        return built
    return subprocess.run([folder / "main"], capture_output=True, text=True, check=False)


def passed(result: subprocess.CompletedProcess[str]) -> bool:
    """Whether the known-answer test of a project ended well."""
    return result.returncode == 0 and result.stdout.endswith("*** PASS ***\n")


def local_compiler() -> str | None:
    """Return the command of a compiler that has sanitizers; None if none is installed."""
    return shutil.which("gcc") or shutil.which("clang")


def run_program(
    files: Mapping[str, str], folder: Path, flags: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Write, compile and run a program with sanitizers; warnings are errors.

    Raises CalledProcessError if it does not compile.
    """
    for name, text in files.items():
        (folder / name).write_text(text)
    command = local_compiler()
    assert command is not None
    subprocess.run(
        [command, "-std=c99", "-Wall", "-Wextra", "-Werror", *SANITIZED, *flags,
         *(name for name in files if name.endswith(".c")), "-o", "main"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return subprocess.run([folder / "main"], capture_output=True, text=True, check=False)
