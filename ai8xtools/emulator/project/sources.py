"""Compiling the sources of a project one by one, round by round until nothing is missing."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import assert_never

from ai8xtools.emulator.cpu.architecture import Architecture
from ai8xtools.emulator.cpu.compiler import (
    compile_run_time,
    compiler_headers,
    cplusplus_headers,
    is_clang,
    run_compiler,
)
from ai8xtools.emulator.cpu.port import PORT
from ai8xtools.emulator.cpu.workshop import Workshop
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.project.headers import SDK, Headers
from ai8xtools.emulator.project.loops import repeated_calls, shorten_loops
from ai8xtools.emulator.project.messages import CompilerMessage, Complaint, compiler_messages
from ai8xtools.emulator.project.sketch import SKETCH, sketch_text
from ai8xtools.emulator.project.standins import StandIns, is_sdk_name
from ai8xtools.emulator.project.tree import CPLUSPLUS, ProjectTree
from ai8xtools.reading import real_path, source_text

_COMMON_FLAGS = (
    *("-c", "-std=gnu11", "-O2", "-ffreestanding", "-fno-builtin", "-fno-strict-aliasing", "-w"),
    *("-UNDEBUG", f"-DEMULATOR_PORT={PORT:#x}u"),
)
# As the compilers of the years 2020 to 2024 have it: missing declarations and prototypes are
# warnings
_PROJECT_FLAGS = (
    *("-fno-function-sections", "-fno-data-sections", "-Wno-everything"),
    *("-Wno-error=implicit-function-declaration", "-Wno-error=int-conversion"),
    *("-Wno-error=incompatible-pointer-types", "-Wno-error=implicit-int"),
)
_CPLUSPLUS = (
    *(
        "-std=gnu++17",
        "-fhosted",
        "-fno-exceptions",
        "-fno-rtti",
        "-fno-threadsafe-statics",
        "-fno-finite-loops",
    ),
    *("-fno-unwind-tables", "-fno-asynchronous-unwind-tables"),
    # What configures zig's C++ library: nothing of an operating system
    *("-D_LIBCPP_ABI_VERSION=1", "-D_LIBCPP_ABI_NAMESPACE=__1"),
    *("-D_LIBCPP_HARDENING_MODE_DEFAULT=2", "-D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=2"),
    *(
        f"-D_LIBCPP_HAS_{name}=0"
        for name in (
            *("THREADS", "MONOTONIC_CLOCK", "LOCALIZATION", "WIDE_CHARACTERS", "UNICODE"),
            *("FILESYSTEM", "RANDOM_DEVICE", "TERMINAL", "VENDOR_AVAILABILITY_ANNOTATIONS"),
            *("TIME_ZONE_DATABASE", "MUSL_LIBC"),
        )
    ),
)
# Its lines and frames are what gdb shows of a program that sleeps
_SDK_FLAGS = ("-g", "-ffunction-sections", "-fdata-sections", "-I", str(SDK / "include"))
_WORKERS = 2
_MAX_ROUNDS = 80
_ERRORS = 1000
"""A compiler tells at most so many at once: of a file that is no C it would tell one per word."""


class SourceCompiler:
    """Compiles sources of a tree for a core in a workshop.

    `objects` are the results by source, `standins` what was made up for each. `common` allows
    variables that several files define, as older compilers do. With `alone`, only functions are
    needed: main() gets another name.
    """

    def __init__(
        self, tree: ProjectTree, core: Architecture, workshop: Workshop, *, alone: bool = False
    ) -> None:
        self.tree, self.core, self.alone = tree, core, alone
        self.workshop, folder = workshop, workshop.folder
        self.headers = Headers(tree, folder / "headers")
        self.objects: dict[Path, Path] = {}
        self.standins: dict[Path, StandIns] = {}
        self.common = False
        self.repetitions: list[str] = []
        self._shortened: list[str] = []
        self._folder = folder
        self._mending = threading.Lock()
        self._numbers = itertools.count()
        self._headers_folder = folder / "headers"
        self._headers_folder.mkdir()

    def compile_all(self, sources: Iterable[Path]) -> None:
        """Compile sources. Raises EmulatorError (E810, E811) at the first that is refused."""
        with ThreadPoolExecutor(_WORKERS) as pool:
            try:
                list(pool.map(self.compile, sources))
            except BaseException:
                self.workshop.end()  # or the workers would still be waited for
                raise

    def compile(self, source: Path) -> None:
        """Compile one source. Raises EmulatorError (E810, E811) if it is refused."""
        standins = self.standins[source] = StandIns()
        target = self._folder / f"{next(self._numbers):03d}-{source.stem}.o"
        prologue = target.with_suffix(".h")
        text = self._text(source, target.with_suffix(source.suffix))
        for _ in range(_MAX_ROUNDS):
            changes = self.headers.changes
            prologue.write_text(standins.declarations(), encoding="utf-8")
            status, output = self._run(
                *(*self._flags(source), "-include", str(prologue)),
                *("-o", str(target), str(text.absolute())),
            )
            if not status:
                self.objects[source] = target
                return
            messages = compiler_messages(output)
            # a compiler tells all that it lacks at once
            with self._mending:
                mended = [self._mend(message, standins) for message in messages]
                if not any(mended) and self.headers.changes == changes:
                    break  # nor did another source bring what this one lacks
        raise self._refused(source, messages, output)

    def compile_own(self, source: Path, *flags: str) -> Path:
        """Compile a source of the run time, which needs nothing but the SDK; return the object."""
        target = self._folder / f"own-{source.stem}.o"
        command = [*_COMMON_FLAGS, *_SDK_FLAGS, *compiler_headers(self.core), *flags]
        # an own source without flags of its own is the same for every project
        compile_run_time(source, target, command, self.core, self.workshop, once=not flags)
        return target

    def notes(self) -> Iterable[str]:
        """Yield what the user should know."""
        yield from self.headers.notes
        yield from self._shortened
        if self.headers.made_up:
            names = shortened(self.headers.made_up)
            yield f"headers that are not here, without their declarations: {names}"
        for source, standins in self.standins.items():
            if names := shortened(standins.names()):
                yield f"{self.tree.shown(source)}: made up, without meaning: {names}"

    def _text(self, source: Path, copy: Path) -> Path:
        """Return the file to compile: the source, or a copy of it with its loops shortened."""
        is_sketch = source.suffix == SKETCH
        text = sketch_text(source) if is_sketch else source_text(source, "surrogateescape")
        if "\0" in text:
            raise EmulatorError(
                "E811", "it is no C source: it holds zero bytes", str(source), "Replace the file."
            )
        loops = repeated_calls(text)
        for loop in loops:
            calls = " and ".join(f"{name}()" for name in loop.calls)
            note = f"{self.tree.place(source, loop.line)} runs {calls} {loop.rounds} times"
            notes = self._shortened if self.tree.shorten_loops else self.repetitions
            note += ", shortened" if self.tree.shorten_loops else ""
            if note not in notes:
                notes.append(note)
        if loops and self.tree.shorten_loops:
            text = shorten_loops(text)
        elif not is_sketch:
            return source
        name = str(real_path(source)).replace("\\", "/")
        copy.write_text(f'#line 1 "{name}"\n{text}', encoding="utf-8", errors="surrogateescape")
        return copy

    def _run(self, *arguments: str) -> tuple[int, str]:
        return run_compiler(arguments, self.core, self.workshop)

    def _flags(self, source: Path) -> list[str]:
        chip = [f"-DTARGET_{self.tree.chip.name}"] if self.tree.chip else []
        return [
            *_COMMON_FLAGS,
            *_PROJECT_FLAGS,
            "-fcommon" if self.common else "-fno-common",
            *_brief(clang=is_clang(self.core)),
            *chip,
            *(["-Dmain=program_main"] if self.alone else []),
            *self.tree.flags,
            *self._headers_of(source),
            *compiler_headers(self.core),
        ]

    def _headers_of(self, source: Path) -> list[str]:
        """Return options for headers; in C++, those of the SDK declare what is C.

        Raises EmulatorError (E810) for C++ if zig is not the compiler.
        """
        options = [f"-I{folder}" for folder in self.headers.folders(source)]
        if source.suffix not in CPLUSPLUS:
            return options
        library = cplusplus_headers()
        if library is None or not is_clang(self.core):
            raise EmulatorError(
                "E810", "C++ needs the compiler of the package ziglang",
                self.tree.shown(source), "`pip install ziglang`, and set AI8X_COMPILER=zig.",
            )  # fmt: skip
        with self._mending:
            sdk = self.headers.sdk_of_cplusplus()
        options = [*_CPLUSPLUS, *options[:-1], f"-I{library}", f"-I{sdk}"]
        return [*options, "-xc++", "-include", "Arduino.h"] if source.suffix == SKETCH else options

    def _mend(self, message: CompilerMessage, standins: StandIns) -> bool:
        """Find or make up what the compiler lacks; return whether anything came of it."""
        match message.kind:
            case Complaint.HEADER:
                return self.headers.provide(message)
            case Complaint.IDENTIFIER | Complaint.TYPE | Complaint.OTHER:
                is_sketch = message.file.suffix == SKETCH
                if not is_sdk_name(message.name) and (is_sketch or self.headers.foreign()):
                    return False  # it would come from a header or library, which is missing
            case Complaint.MEMBER | Complaint.STRUCTURE:
                pass
            case _:
                assert_never(message.kind)
        return standins.learn(message, self.headers.extend_sdk)

    def _refused(
        self, source: Path, messages: Sequence[CompilerMessage], output: str
    ) -> EmulatorError:
        """Return the error to show: a header that is missing, else the compiler's first message."""
        remedy = "Correct this error first."
        if messages:
            first = messages[0]
            if source.suffix == SKETCH and first.name:
                remedy = "Of Arduino, pins, time, Serial and String are here, no libraries."
            reason = f"{self.tree.place(first.file, first.line)}: error: {first.text}"
        else:
            lines = [line for line in output.splitlines() if line.strip()] or ["no message"]
            reason = f"{self.tree.shown(source)}: {lines[0]}"
        if lacking := self.headers.foreign():
            request = self.headers.made_up[lacking[0]]
            place = self.tree.place(request.file, request.line)
            reason = f"{place}: {lacking[0]} is neither in the project nor in the SDK; {reason}"
            remedy = "Name the folder that holds it with --include, or use --accelerator-only."
        text = f"the project does not compile: {reason}"
        return EmulatorError("E811", text, str(self.tree.root), remedy)


def shortened(names: Iterable[str], shown: int = 12) -> str:
    """Return names in a row, the first `shown` of them."""
    names = list(names)
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def _brief(*, clang: bool) -> tuple[str, str]:
    """Return options for messages without the line they are about, which may have megabytes."""
    if clang:
        return f"-ferror-limit={_ERRORS}", "-fno-caret-diagnostics"
    return f"-fmax-errors={_ERRORS}", "-fno-diagnostics-show-caret"
