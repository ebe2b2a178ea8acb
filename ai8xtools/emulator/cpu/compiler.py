"""Compiling C programs for the emulated cores.

The GNU cross compiler is used if it is installed, else the compiler in the ziglang package. With
AI8X_COMPILER=zig it is the latter in any case: bounds of benchmarks depend on the compiler.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ai8xtools.emulator.cpu.architecture import Architecture
from ai8xtools.emulator.cpu.elf import Image, read_image
from ai8xtools.emulator.cpu.workshop import Workshop
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.reading import real_path

PREFERENCE = "AI8X_COMPILER"
"""Variable of the environment."""
_RUN_TIME: dict[tuple[str, ...], bytes] = {}
"""Objects of the run time that this process has compiled, by compiler, options and source."""


def compiler(core: Architecture) -> list[str]:
    """Return the command of the C compiler for a core with its machine options.

    Raises EmulatorError (E810) if none is installed.
    """
    compilers = core.family.compilers
    gcc = next(filter(None, map(shutil.which, compilers)), None)
    if gcc and os.environ.get(PREFERENCE) != "zig":
        return [gcc, *core.gcc_options]
    zig = _zig()
    if zig:
        return [*zig, "cc", *core.zig_options, "-fno-sanitize=undefined"]
    raise EmulatorError(
        "E810",
        f"no C compiler for the {core.title} core is installed",
        remedy=f"Install {compilers[0]}, or `pip install ziglang`.",
    )


def _zig() -> list[str]:
    """Return the command of zig, of which clang is a part; empty if it is not installed."""
    package = importlib.util.find_spec("ziglang")
    if package is None:
        return []
    programs = (Path(folder) / "zig" for folder in package.submodule_search_locations or ())
    program = next((str(path) for path in programs if path.is_file()), None)
    return [program] if program else [sys.executable, "-m", "ziglang"]


def is_clang(core: Architecture) -> bool:
    """Whether the compiler for a core is clang. Raises EmulatorError (E810) if there is none."""
    zig = _zig()
    return compiler(core)[: len(zig)] == zig != []


def cplusplus_headers() -> Path | None:
    """Return the folder of the headers of the C++ library, which come with zig; None without it."""
    zig = _zig()
    folder = Path(zig[0]).parent / "lib" / "libcxx" / "include"
    return folder if zig and folder.is_dir() else None


def compiler_headers(core: Architecture) -> tuple[str, ...]:
    """Return options by which a compiler finds its own headers and those of no C library.

    GCC comes with a library whose headers would mix with the emulator's.
    """
    return () if is_clang(core) else _headers_of_gcc(*compiler(core))


@cache
def _headers_of_gcc(*command: str) -> tuple[str, ...]:
    options = ["-nostdinc"]
    for name in ("include", "include-fixed"):
        result = subprocess.run(
            [*command, f"-print-file-name={name}"], capture_output=True, text=True, check=False
        )
        options += ["-isystem", result.stdout.strip()]
    return tuple(options)


def compile_in(
    workshop: Workshop, sources: Sequence[Path], flags: Sequence[str], core: Architecture
) -> Image:
    """Compile and link C files in a workshop, with additional compiler flags.

    Raises EmulatorError: no compiler (E810), the compiler refuses the program or takes too much
    (E811, with its first error).
    """
    program = workshop.folder / "program.elf"
    files = (str(real_path(source)) for source in sources)
    status, output = run_compiler([*flags, "-o", str(program), *files], core, workshop)
    if status:
        raise EmulatorError(
            "E811",
            f"the program does not compile: {_first_error(output)}",
            str(workshop.place),
            "Correct this error first.",
        )
    return read_image(program, core)


def run_compiler(
    arguments: Sequence[str], core: Architecture, workshop: Workshop, *, keep: bool = False
) -> tuple[int, str]:
    """Run the compiler for a core in a workshop; return its status and what it prints.

    With `keep` the result may be kept in the user's cache. Raises EmulatorError: no compiler
    (E810), it takes too much time, memory or room (E811).
    """
    folder = workshop.folder
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)}
    if not keep:
        environment["ZIG_LOCAL_CACHE_DIR"] = str(folder / "local")
    if not os.access(os.environ.get("HOME", ""), os.W_OK):  # where the compiler's cache would be
        environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(folder / "global"))
    return workshop.run([*compiler(core), *arguments], environment)


def compile_run_time(
    source: Path, target: Path, flags: Sequence[str], core: Architecture, workshop: Workshop,
    *, once: bool = True,
) -> None:  # fmt: skip
    """Compile a source of the run time into an object; with `once` once in this process.

    Raises EmulatorError: no compiler (E810); it refuses the source, or takes too much (E811).
    """
    key = (*compiler(core), *flags, str(source))
    if once and key in _RUN_TIME:
        target.write_bytes(_RUN_TIME[key])
        return
    arguments = [*flags, "-o", str(target), str(source)]
    status, output = run_compiler(arguments, core, workshop, keep=once)
    if status:
        raise EmulatorError("E811", f"{source.name} of the run time: {output[:300]}")
    if once:
        _RUN_TIME[key] = target.read_bytes()


def _first_error(messages: str) -> str:
    """Return the first line that is an error, else the first line at all."""
    lines = [line for line in messages.splitlines() if line.strip()]
    errors = (line for line in lines if "error:" in line or "undefined reference" in line)
    return next(errors, lines[0] if lines else "no message")
