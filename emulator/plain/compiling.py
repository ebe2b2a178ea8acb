"""Compiling a folder of C files into a program for a core, with the little run time it needs."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from emulator.cpu.architecture import Architecture
from emulator.cpu.compiler import compile_program, run_compiler
from emulator.cpu.elf import Image, function_names
from emulator.errors import EmulatorError, NoProgramError
from reading import check_sources, real_path, source_text
from values import frozen

PLAIN = Path(__file__).parent
_RUN_TIME = ("start.c", "memory.c", "arithmetic.c", "wide.c")
_COPIES = "nn_copies.c"
_ENGINE = "copies.c"
_FLAGS = (
    *("-std=c99", "-ffreestanding", "-fomit-frame-pointer", "-g"),
    *("-ffunction-sections", "-fdata-sections", "-fno-asynchronous-unwind-tables"),
)
_LINKING = ("-nostdlib", "-Wl,--gc-sections", "-Wl,--entry=reset_handler")
_MACS = re.compile(r"^\s*#\s*define\s+CNN_MACS\s+(\d+)", re.MULTILINE)


@frozen
class PlainProgram:
    """A program for a core: `macs` are the products of weights and data of a run, if it tells.

    `own` are the functions of the project itself, the others are of the run time.
    """

    image: Image
    macs: int | None
    own: frozenset[str]


def compile_plain(
    folder: Path,
    core: Architecture,
    optimization: str = "-O3",
    flags: Sequence[str] = (),
    more: Sequence[Path] = (),
    *,
    engine: bool = False,
) -> PlainProgram:
    """Compile and link the C files of a folder, and `more` files; nothing is written into it.

    With `engine` copies between levels of memory are not those of the project's nn_copies.c, but
    made by a `CopyEngine`.

    Raises EmulatorError: no C files (E800), no compiler (E810), the compiler refuses the program,
    or it has no main() (E811).
    """
    sources = sorted(folder.glob("*.c")) if folder.is_dir() else []
    if not sources:
        message = "there are no C files" if folder.is_dir() else "no such folder"
        raise EmulatorError("E800", message, str(folder), "Name a folder with a generated project.")
    check_sources(folder)
    if not any(re.search(r"\bmain\s*\(", source_text(path)) for path in sources):
        raise NoProgramError("E811", "no file defines main()", str(folder))
    includes = (f"-I{real_path(folder)}", f"-I{PLAIN / 'include'}")
    with tempfile.TemporaryDirectory(prefix="emulator-") as name:
        run_time = _run_time(core, Path(name), folder, (*_RUN_TIME, *(_ENGINE,) * engine))
        link = (*_LINKING, "-T", str(PLAIN / "link.ld"))
        own = [path for path in sources if not engine or path.name != _COPIES]
        image = compile_program(
            [*own, *more, *run_time],
            [optimization, *_FLAGS, *flags, *includes, *link],
            core,
            folder,
        )
        run_time_names = frozenset[str]().union(*map(function_names, run_time))
    headers = (source_text(path) for path in sorted(folder.glob("*.h")))
    found = next(filter(None, map(_MACS.search, headers)), None)
    names = frozenset(name for _, name in image.functions)
    return PlainProgram(image, int(found[1]) if found else None, names - run_time_names)


def _run_time(core: Architecture, folder: Path, place: Path, names: Sequence[str]) -> list[Path]:
    """Compile the run time, always with the same options."""
    objects = []
    for name in names:
        source, compiled = PLAIN / "source" / name, folder / Path(name).with_suffix(".o")
        arguments = ["-c", "-O2", "-fno-builtin", *_FLAGS, f"-I{PLAIN / 'include'}"]
        arguments += ["-o", str(compiled), str(source)]
        status, output = run_compiler(arguments, core, folder, place)
        if status:
            raise EmulatorError("E811", f"the run time does not compile: {output}", str(source))
        objects.append(compiled)
    return objects
