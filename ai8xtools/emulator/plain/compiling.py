"""Compiling a folder of C files into a program for a core, with a small run time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ai8xtools.emulator.cpu.architecture import Architecture
from ai8xtools.emulator.cpu.compiler import compile_in, compile_run_time, is_clang
from ai8xtools.emulator.cpu.deadline import READING_SECONDS, within
from ai8xtools.emulator.cpu.elf import Image, function_names
from ai8xtools.emulator.cpu.workshop import Workshop
from ai8xtools.emulator.errors import EmulatorError, NoProgramError
from ai8xtools.emulator.plain.sensors import SOURCE
from ai8xtools.reading import check_sources, real_path, source_text
from ai8xtools.values import frozen

PLAIN = Path(__file__).parent
LIBRARY_HEADERS = PLAIN / "library"
"""Headers that are found before all others where a library of the user is compiled."""
_RUN_TIME = ("start.c", "memory.c", "arithmetic.c", "wide.c")
_COPIES = "nn_copies.c"
_ENGINE = "copies.c"
_FLAGS = (
    *("-std=c99", "-ffreestanding", "-fomit-frame-pointer", "-g"),
    *("-ffunction-sections", "-fdata-sections", "-fno-asynchronous-unwind-tables"),
)
_LINKING = ("-Wl,--gc-sections", "-Wl,--entry=reset_handler")
_HELPER = re.compile(r"undefined (?:symbol: |reference to `)__")
"""Fractions need functions of the compiler's own run time, which takes time to build."""
_MACS = re.compile(
    r"^[^\S\n]*+#[^\S\n]*+define[^\S\n]++(?:\w*_)?CNN_(?:HOP_)?MACS[^\S\n]++(\d{1,18})u?\b",
    re.MULTILINE,
)
_MAIN = re.compile(r"\bmain\s*+\(")


@frozen
class PlainProgram:
    """A program for a core: `macs` are the products of weights and data of a run, if known.

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
    sensor: bool = False,
    seconds: float = READING_SECONDS,
) -> PlainProgram:
    """Compile and link the C files of a folder, and `more` files; nothing is written into it.

    With `engine` copies between levels of memory are not those of the project's nn_copies.c, but
    made by a `CopyEngine`; with `sensor` a `PlainSensor` is in the place of its sensor.c.

    Raises EmulatorError: no C files (E800), no compiler (E810), the compiler refuses the program,
    it has no main(), or all this takes more than `seconds` (E811).
    """
    with within(seconds, folder):
        sources = sorted(folder.glob("*.c")) if folder.is_dir() else []
        if not sources:
            message = "there are no C files" if folder.is_dir() else "no such folder"
            remedy = "Name a folder with a generated project."
            raise EmulatorError("E800", message, str(folder), remedy)
        check_sources(folder)
        if not any(_MAIN.search(source_text(path)) for path in sources):
            raise NoProgramError("E811", "no file defines main()", str(folder))
        own = [path for path in sources if not engine or not path.name.endswith(_COPIES)]
        if sensor:
            own = [path for path in own if path.name != SOURCE] + [PLAIN / "source" / SOURCE]
        options = [optimization, *_FLAGS, *flags, f"-I{real_path(folder)}"]
        names = (*_RUN_TIME, *(_ENGINE,) * engine)
        image, of_run_time = _compiled([*own, *more], options, core, folder, names)
        headers = (source_text(path) for path in sorted(folder.glob("*.h")))
        counts = [number for text in headers for number in _MACS.findall(text)]  # a hop's are last
        defined = frozenset(name for _, name in image.functions)
        macs = int(counts[-1]) if counts else None
    return PlainProgram(image, macs, defined - of_run_time)


def _compiled(
    sources: Sequence[Path],
    flags: Sequence[str],
    core: Architecture,
    place: Path,
    run_time_names: Sequence[str],
) -> tuple[Image, frozenset[str]]:
    """Compile sources with the run time; return the program, and the functions of the latter."""
    with Workshop(place) as workshop:
        run_time = _run_time(core, workshop, run_time_names)
        link = (f"-I{PLAIN / 'include'}", *_LINKING, "-T", str(PLAIN / "link.ld"))
        linked = [*sources, *run_time]
        try:
            image = compile_in(workshop, linked, [*flags, "-nostdlib", *link], core)
        except EmulatorError as error:
            if not _HELPER.search(error.message):
                raise
            further = () if is_clang(core) else ("-nostdlib", "-lgcc")
            image = compile_in(workshop, linked, [*flags, *link, *further], core)
        return image, frozenset[str]().union(*map(function_names, run_time))


def _run_time(core: Architecture, workshop: Workshop, names: Sequence[str]) -> list[Path]:
    """Compile the run time, always with the same options."""
    objects = []
    for name in names:
        source, compiled = PLAIN / "source" / name, workshop.folder / Path(name).with_suffix(".o")
        flags = ["-c", "-O2", "-fno-builtin", *_FLAGS, f"-I{PLAIN / 'include'}"]
        compile_run_time(source, compiled, flags, core, workshop)
        objects.append(compiled)
    return objects
