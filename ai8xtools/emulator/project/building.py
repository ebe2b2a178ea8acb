"""Making a program of the sources of a project tree, for an emulated core.

What the compiled sources need and do not have is looked for in other C files of the tree, in the
emulator's run time and in the compiler's; functions of boards and drivers get stand-ins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ai8xtools.emulator.cpu.architecture import RISCV, Architecture
from ai8xtools.emulator.cpu.compiler import is_clang, run_compiler
from ai8xtools.emulator.cpu.elf import Image, ObjectSymbols, read_image, read_object
from ai8xtools.emulator.cpu.workshop import Workshop
from ai8xtools.emulator.errors import EmulatorError, NoProgramError
from ai8xtools.emulator.project.definitions import declared_functions, definitions, labels
from ai8xtools.emulator.project.headers import SDK
from ai8xtools.emulator.project.sources import SourceCompiler
from ai8xtools.emulator.project.standins import is_sdk_name, stand_in_functions
from ai8xtools.emulator.project.tree import ASSEMBLER, ProjectTree, source_files
from ai8xtools.reading import real_path, source_text
from ai8xtools.values import frozen

_LINK_FLAGS = ("-Wl,--gc-sections", "-Wl,--entry=reset_handler", "-T", str(SDK / "link.ld"))
# Arithmetic that compilers leave to their own run time
_MANGLED = re.compile(r"_Z(?:N[KV]?)?(?P<length>\d+)")  # what C++ makes of a function's name
_OF_LIBRARY = re.compile(r"_Z\w{,3}St")
_HELPER = re.compile(r"__(?:aeabi_\w+|gnu_\w+|\w*(?:[sdt]i|[sdt]f|[sdt]c)\d?)")

# Functions of FreeRTOS, and what the macros of its headers call
_FREERTOS = re.compile(
    r"(?:v|x|ux|ul|pv|pc|e)(?:Task|Queue|Semaphore|Timer|EventGroup|Stream|Port)[A-Z]\w*"
    r"|emulator_(?:yield|notify|queue|send|receive|timer|stream|\w+_from_isr)"
)
_FREERTOS_NOTE = (
    "FreeRTOS is the emulator's own: a task runs until it waits, none is interrupted by a tick"
)

_Symbols = dict[Path, ObjectSymbols]


@frozen
class Build:
    """A linked program, and what the user should know about how it came about."""

    image: Image
    notes: tuple[str, ...]
    repetitions: tuple[str, ...]
    """Loops that repeat parts of an inference, as programs that measure power have them."""


def build_program(
    tree: ProjectTree, sources: Sequence[Path], core: Architecture, *, alone: bool = False
) -> Build:
    """Compile and link sources of a tree for a core; nothing is written into the tree.

    With `alone`, only functions are needed, no program: main() is not needed, and whatever is
    missing gets a stand-in.

    Raises EmulatorError: no compiler (E810), the compiler refuses a source, or the sources do not
    make up a program (E811, with the first error).
    """
    with Workshop(tree.root) as workshop:
        folder = workshop.folder
        compiler = SourceCompiler(tree, core, workshop, alone=alone)
        own = ("runtime.c", "alone.c") if alone else ("runtime.c",)
        runtime = [compiler.compile_own(SDK / "source" / name) for name in own]
        compiler.compile_all(sources)
        symbols = [read_object(path) for path in runtime]
        offered = frozenset().union(*(names.defined | names.weak for names in symbols))
        missing, added = _complete(compiler, offered | _linker_symbols(), runtime)
        if missing:
            stand_ins = folder / "stand_ins.inc"
            stand_ins.write_text(stand_in_functions(missing), encoding="utf-8")
            flag = f'-DEMULATOR_STAND_INS="{stand_ins}"'
            runtime.append(compiler.compile_own(SDK / "source" / "stand_ins.c", flag))
        image = _link([*runtime, *compiler.objects.values()], compiler)
        notes = (*tree.notes, *added, *compiler.notes())
        return Build(image, notes, tuple(compiler.repetitions))


def _complete(
    compiler: SourceCompiler, offered: frozenset[str], runtime: list[Path]
) -> tuple[set[str], list[str]]:
    """Compile what else of the tree is needed; return what stand-ins must replace, and notes.

    What is needed of FreeRTOS is added to `runtime`.
    """
    tree, notes = compiler.tree, []
    tried: set[Path] = set()
    objects: dict[Path, ObjectSymbols] = {}
    defined: dict[Path, frozenset[str]] = {}
    while True:
        for path in compiler.objects.values():
            if path not in objects:
                objects[path] = read_object(path)
        symbols = {source: objects[path] for source, path in compiler.objects.items()}
        duplicates = _duplicates(symbols)
        if duplicates and not compiler.common:
            compiler.common = True
            compiler.compile_all(list(compiler.objects))
            continue
        if duplicates:
            raise _refuse_duplicate(tree, duplicates)
        missing = _missing(symbols, offered)
        if compiler.alone:
            missing.discard("main")
        more = [source for source in _definers(compiler, missing, defined) if source not in tried]
        if not more:
            break
        tried.update(more)
        compiler.compile_all(more)
        notes += [f"{tree.shown(source)} is compiled, too" for source in more]
    tasks = sorted(filter(_FREERTOS.fullmatch, missing), key=lambda n: n.startswith("emulator"))
    if tasks and compiler.core is RISCV and not compiler.alone:
        raise EmulatorError(
            "E811",
            f"{tasks[0]}() of FreeRTOS is used by the program of the RISC-V core; the emulator has "
            "FreeRTOS on the Arm core only",
            str(tree.root),
            "Build it for the Arm core (without RISCV_CORE), or use --accelerator-only.",
        )
    if tasks and compiler.core is not RISCV:
        runtime.append(compiler.compile_own(SDK / "source" / "freertos.c"))
        missing -= read_object(runtime[-1]).defined
        notes.append(_FREERTOS_NOTE)
    if not compiler.alone:
        _refuse_undefined(compiler, missing, symbols)
    return missing, notes


def _missing(symbols: _Symbols, offered: frozenset[str]) -> set[str]:
    """Return what sources need and nobody defines; main() is always needed."""
    available = offered.union(*(names.defined | names.weak for names in symbols.values()))
    needed = {"main"}.union(*(names.needed for names in symbols.values()))
    return {n for n in needed if n not in available and not _HELPER.fullmatch(n)}


def _definers(
    compiler: SourceCompiler, names: Iterable[str], defined: dict[Path, frozenset[str]]
) -> list[Path]:
    """Return further C files of the tree, or beside headers, that define one of some names.

    `defined` keeps the names that files define from one call to the next.
    """
    tree = compiler.tree
    folders = dict.fromkeys((*compiler.headers.header_folders, *tree.include))
    root = real_path(tree.root)
    outside = [folder for folder in folders if not real_path(folder).is_relative_to(root)]
    beside = [path for folder in outside for path in sorted(folder.glob("*.c"))]
    first: dict[str, Path] = {}
    # of the program's own sources only their arrays are needed
    for path in (*tree.others, *beside, *(tree.sources if compiler.alone else ())):
        if path in compiler.objects:
            continue
        if path not in defined:
            text = source_text(path)
            content = definitions(text)
            defined[path] = content.variables
            if path not in tree.sources:
                defined[path] |= content.functions | content.classes
            if path.suffix in ASSEMBLER:
                defined[path] = labels(text)
        for name in defined[path]:
            first.setdefault(name, path)
    found = [first[_written(name)] for name in sorted(names) if _written(name) in first]
    chosen = {real_path(path): path for path in found}
    present = {real_path(source) for source in (*compiler.objects, *tree.wrappers)}
    return [path for resolved, path in chosen.items() if resolved not in present]


def _link(objects: Sequence[Path], compiler: SourceCompiler) -> Image:
    """Link; the compiler's own run time, which takes time to build, only if it is needed."""
    workshop, core = compiler.workshop, compiler.core
    program = workshop.folder / "program.elf"
    command = [*_LINK_FLAGS, "-o", str(program), *(str(path) for path in objects)]
    further = () if is_clang(core) else ("-nostdlib", "-lgcc")
    for run_time in (("-nostdlib",), further):
        status, output = run_compiler([*command, *run_time], core, workshop)
        if not status:
            return read_image(program, core)
    lines = [line for line in output.splitlines() if "error:" in line or "undefined" in line]
    first = (lines or output.splitlines() or ["no message"])[0]
    raise EmulatorError("E811", f"the project cannot be linked: {first}", str(workshop.place))


def _linker_symbols() -> frozenset[str]:
    text = (SDK / "link.ld").read_text(encoding="utf-8")
    return frozenset(re.findall(r"\b(\w++) = ", text))


def _duplicates(symbols: _Symbols) -> dict[str, list[Path]]:
    """Return the names that several files define, with these in the order of their names."""
    places: dict[str, list[Path]] = {}
    for source in sorted(symbols):  # they come in the order in which the compiler finished
        for name in symbols[source].defined:
            places.setdefault(name, []).append(source)
    return {name: sources for name, sources in places.items() if len(sources) > 1}


def _refuse_duplicate(tree: ProjectTree, duplicates: dict[str, list[Path]]) -> EmulatorError:
    name = "main" if "main" in duplicates else min(duplicates)
    files = " and ".join(tree.shown(source) for source in duplicates[name])
    return EmulatorError(
        "E811",
        f"multiple definition of {name!r} in {files}",
        str(tree.root),
        "Leave out the files that do not belong to the program: --exclude FILE.",
    )


def _refuse_undefined(compiler: SourceCompiler, missing: set[str], symbols: _Symbols) -> None:
    tree = compiler.tree
    if "main" in missing:
        raise NoProgramError(
            "E811",
            "no file defines main()",
            str(tree.root),
            "Name the folder of the whole program, or use --accelerator-only.",
        )
    lacking = compiler.headers.foreign()
    reason = f"; the header {lacking[0]} is not here, either" if lacking else ""
    drivers = bool(compiler.headers.made_up) and not lacking
    declared = _declared(tree) if drivers else frozenset()
    for name in sorted(missing):
        if is_sdk_name(name) or (drivers and name not in declared):
            continue
        users = [source for source, names in symbols.items() if name in names.needed]
        where = " and ".join(_use(tree, source, _written(name)) for source in users[:2])
        remedy = "Name further folders with --include, or use --accelerator-only."
        if _OF_LIBRARY.match(name):
            remedy = "Of the library of C++ only what its headers define is here."
        elif _written(name) != name:
            remedy = f'If it is C, include its header within extern "C" {{ }}. {remedy}'
        raise EmulatorError(
            "E811",
            f"function {_written(name)!r} is used in {where}, but no file defines it{reason}",
            str(tree.root),
            remedy,
        )


def _written(name: str) -> str:
    """Return what a program calls a function, of C++ perhaps: its name, or that of its class."""
    mangled = _MANGLED.match(name)
    return name[mangled.end() :][: int(mangled["length"])] if mangled else name


def _declared(tree: ProjectTree) -> frozenset[str]:
    """Return the functions that the tree itself declares, so that it should define them."""
    files = [*tree.files("*.h"), *source_files(tree.root)]
    return frozenset().union(*(declared_functions(source_text(path)) for path in files))


def _use(tree: ProjectTree, source: Path, name: str) -> str:
    """Return where a source names something: file and line."""
    pattern = re.compile(rf"\b{re.escape(name)}\b")
    for number, line in enumerate(source_text(source).splitlines(), 1):
        if pattern.search(line):
            return tree.place(source, number)
    return tree.shown(source)
