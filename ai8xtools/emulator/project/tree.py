"""What a folder with firmware holds: sources, folders of headers, and for which core and chip.

A makefile tells by the variables of the vendor's SDK (SRCS, VPATH, IPATH, PROJ_CFLAGS, TARGET);
without one, or where it names nothing that exists, the C files of the folder count.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ai8xtools.emulator.cpu.architecture import CORTEX_M4, RISCV, Architecture
from ai8xtools.emulator.cpu.deadline import READING_SECONDS
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.project.makefile import Makefile, MakefileError
from ai8xtools.emulator.project.sketch import SKETCH, first_files
from ai8xtools.reading import MIB, check_sources, real_path, source_text
from ai8xtools.reading.system import relative
from ai8xtools.values import frozen
from device import Chip, UnknownDeviceError, chip_named

_MAKEFILES = ("Makefile", "makefile", "GNUmakefile", "project.mk")
_CORE_MAKEFILES = ("Makefile.ARM", "Makefile.RISCV")
_SOURCE_LISTS = ("SRCS", "C_SRCS", "CPP_SRCS", "CXX_SRCS")
_SOURCE_FOLDERS = (".", "src", "Src", "source", "Source")
_HEADER_FOLDERS = ("include", "Include", "inc", "Inc", *_SOURCE_FOLDERS)
_RISCV_ENDING = "_riscv"  # of the program of the RISC-V core; that of the Arm core has none
CPLUSPLUS = (".cpp", ".cc", ".cxx", SKETCH)
_ENDINGS = (".c", *CPLUSPLUS)
"""Of sources."""
ASSEMBLER = (".S", ".s")
"""Of sources that count only where they define what is missing."""
_NOT_SOURCES = re.compile(r"(?:startup|system)_max\w+|.*template", re.IGNORECASE)
_FREERTOS = re.compile(r"FreeRTOS (?:Kernel )?V\d")  # at the beginning of each file of its kernel
_FREERTOS_FILE = re.compile(
    r"tasks|queue|list|timers|event_groups|stream_buffer|croutine|port|heap_\d"
)
MAIN = re.compile(r"^[ \t]*(?:int|void)\s+main\s*\(", re.MULTILINE)
_BACKSLASH = re.compile(r"\\(?=[\w.*%])")  # others protect a blank or a quotation mark
_INCLUDED = re.compile(r"-I\S+")
_FOLDER = re.compile(r"(?:\b[A-Za-z]:/)?[^\s:;]+")  # of VPATH, perhaps with a drive
_MAX_FILES = 3000
_MAX_FOLDERS = 300
"""Of headers and sources, as a makefile names them."""
_MAX_SOURCES_BYTES = 256 * MIB
"""All C files of a tree together."""


@frozen
class TreeOptions:
    """What the user says about a tree: more folders of headers, files that do not belong to it.

    `exclude` holds names or patterns of C files. With `shorten_loops`, loops that repeat parts of
    an inference run twice. `flags` are further options of the compiler. Reading and compiling may
    take `seconds`.
    """

    include: tuple[Path, ...] = ()
    exclude: tuple[str, ...] = ()
    shorten_loops: bool = False
    flags: tuple[str, ...] = ()
    seconds: float = READING_SECONDS


@frozen
class ProjectTree:
    """What belongs to the program or programs in the folder `root`.

    `sources` make up the program that runs the network, on `core`; `wrappers` that of the Arm core
    which starts the RISC-V core. `flags` are options of the compiler, `others` C files that nobody
    names, which may be needed all the same. `notes` are for the user.
    """

    root: Path
    sources: tuple[Path, ...]
    wrappers: tuple[Path, ...]
    others: tuple[Path, ...]
    include: tuple[Path, ...]
    flags: tuple[str, ...]
    core: Architecture
    chip: Chip | None
    notes: tuple[str, ...]
    shorten_loops: bool = False

    def files(self, pattern: str) -> list[Path]:
        """Return the files of the tree whose names match a pattern."""
        return _files(self.root, pattern)

    def shown(self, path: Path) -> str:
        """Return a path as messages show it: relative to the tree where it is in or near it."""
        shown = relative(path, self.root)
        return str(path) if shown.startswith("../../..") else shown

    def place(self, path: Path, line: int) -> str:
        """Return a line of a file as messages show it."""
        return f"{self.shown(path)}:{line}"


@dataclass
class _Contents:
    """What makefiles say."""

    sources: list[Path] = field(default_factory=list)
    include: list[Path] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    target: str = ""
    riscv: bool = False
    pair: bool = False
    notes: list[str] = field(default_factory=list)


def read_tree(root: Path, options: TreeOptions | None = None) -> ProjectTree:
    """Find out what belongs to the program in a folder.

    Raises EmulatorError (E800): no such folder, no C files, several projects in one folder, or a
    folder of headers that does not exist; OSError for a source or header that is no file.
    """
    options = options or TreeOptions()
    _refuse_missing(root, options)
    root = _project_folder(root)
    contents = _read_makefiles(root)
    every = source_files(root)
    _refuse_large(root, [*contents.sources, *every])
    sources = contents.sources or _sources_without_makefile(root)
    sources = [s for s in _unique(sources) if _belongs(s, options)]
    if not sources:
        raise EmulatorError(
            "E800", "the folder holds no C files", str(root), "Generate the project first."
        )
    programs = {source.stem for source in sources}
    wrappers = [source for source in sources if _starts(source.stem, programs)]
    include = [*options.include, *contents.include, *(root / name for name in _HEADER_FOLDERS)]
    include += [source.parent for source in sources]
    include = [path for path in _unique(include) if path.is_dir()]
    for folder in include:
        check_sources(folder)
    used = {real_path(source) for source in sources}
    return ProjectTree(
        root=root,
        sources=tuple(source for source in sources if source not in wrappers),
        wrappers=tuple(wrappers),
        others=tuple(f for f in every if real_path(f) not in used and _belongs(f, options)),
        include=tuple(include),
        flags=(*contents.flags, *options.flags),
        core=RISCV if wrappers or (contents.riscv and not contents.pair) else CORTEX_M4,
        chip=_chip(contents.target),
        notes=(*contents.notes, *_unmatched(options.exclude, [*every, *contents.sources])),
        shorten_loops=options.shorten_loops,
    )


def _refuse_large(root: Path, sources: Iterable[Path]) -> None:
    """Raise EmulatorError (E800) for more text than a project has."""
    total = sum(path.stat().st_size for path in dict.fromkeys(sources) if path.is_file())
    if total > _MAX_SOURCES_BYTES:
        raise EmulatorError(
            "E800",
            f"its C files have {total // MIB} MiB together, the limit is "
            f"{_MAX_SOURCES_BYTES // MIB} MiB",
            str(root),
            "Name the folder of the program alone.",
        )


def _starts(name: str, programs: Collection[str]) -> bool:
    """Whether a program of the Arm core starts one of the RISC-V core: main or main_arm."""
    return f"{name.removesuffix('_arm')}{_RISCV_ENDING}" in programs


def chip_of(root: Path) -> Chip | None:
    """Return the chip that the makefile of a folder is for; None if unknown."""
    return _chip(_read_makefiles(root).target)


def files_by_name(folder: Path) -> dict[str, list[Path]]:
    """Return all files below a folder by their names, those near the top first."""
    by_name: dict[str, list[Path]] = {}
    for path in _files(folder, "*"):
        by_name.setdefault(path.name, []).append(path)
    return by_name


def find_among(files: Mapping[str, Sequence[Path]], name: str) -> list[Path]:
    """Return the files of `files_by_name` whose path ends with `name`."""
    return [p for p in files.get(Path(name).name, ()) if p.match(f"*/{_plain(name)}")]


def _plain(name: str) -> str:
    return "/".join(part for part in Path(name).parts if part not in ("..", "."))


def _refuse_missing(root: Path, options: TreeOptions) -> None:
    if not root.is_dir():
        message = "it is a file, not a folder" if root.exists() else "no such folder"
        raise EmulatorError("E800", message, str(root), "Name a folder with a generated project.")
    for folder in options.include:
        if not folder.is_dir():
            message = "it is a file, not a folder" if folder.exists() else "no such folder"
            raise EmulatorError("E800", message, str(folder), "Name a folder with headers.")


def _project_folder(root: Path) -> Path:
    """Return the folder itself, or the only one below it that holds a program."""
    if _sources_in(root) or any((root / name).is_file() for name in _MAKEFILES):
        return root
    if any(_sources_in(root / name) for name in _SOURCE_FOLDERS):
        return root
    every = source_files(root)
    _refuse_large(root, every)
    mains = [f for f in every if MAIN.search(source_text(f))]
    folders = _unique(main.parent for main in mains)
    if len(folders) > 1:
        names = ", ".join(relative(folder, root) for folder in folders[:8])
        raise EmulatorError(
            "E800", f"it holds {len(folders)} programs: {names}", str(root), "Name one of them."
        )
    if not folders:
        return root
    folder = folders[0]
    return folder.parent if folder.name in _SOURCE_FOLDERS and folder.parent != root else folder


def _sources_without_makefile(root: Path) -> list[Path]:
    return [path for name in _SOURCE_FOLDERS for path in _sources_in(root / name)]


def source_files(root: Path) -> list[Path]:
    """Return the C, C++ and assembler files below a folder, those near the top first."""
    return _chosen(_files(root, "*.*"), (*_ENDINGS, *ASSEMBLER))


def _sources_in(folder: Path) -> list[Path]:
    return _chosen(sorted(folder.glob("*.*")), _ENDINGS)


def _chosen(files: list[Path], endings: Collection[str]) -> list[Path]:
    """Return the sources among files; of a sketch only the first one, which stands for all."""
    sketches = first_files([path for path in files if path.suffix == SKETCH])
    return [f for f in files if f.suffix in endings and (f.suffix != SKETCH or f in sketches)]


def _read_makefiles(root: Path) -> _Contents:
    """Return what the makefiles of a folder say; what cannot be understood is left out.

    Raises OSError for what is no file, or cannot be read.
    """
    contents = _Contents()
    names = [name for name in _MAKEFILES if os.path.lexists(root / name)][:1]
    pair = [name for name in _CORE_MAKEFILES if os.path.lexists(root / name)]
    names += pair
    contents.pair = bool(pair)
    for name in names:
        makefile = Makefile(root)
        makefile.define("CURDIR", ".")
        try:
            makefile.read(root / name)
            _take(makefile, contents)
        except (MakefileError, RecursionError) as exc:
            contents.notes.append(f"{name} is left out: {exc}")
    if not names and (root / "CMakeLists.txt").is_file():
        contents.notes.append("CMakeLists.txt is not read: its definitions are not there")
    return contents


def _take(makefile: Makefile, contents: _Contents) -> None:
    """Add to `contents` what the variables of one makefile say."""
    root = makefile.root
    folders = [root, *_folders(root, _FOLDER.findall(_slashes(makefile.value("VPATH"))))]
    names = _slashes(" ".join(makefile.value(name) for name in _SOURCE_LISTS)).split()
    if len(names) > _MAX_FILES:
        raise MakefileError(f"it names {len(names)} sources, the limit is {_MAX_FILES}")
    every = files_by_name(root)
    for name in dict.fromkeys(names):
        path = _source(folders, name, every)
        if path is not None and path.suffix in _ENDINGS:
            contents.sources.append(path)
    contents.include += _folders(root, _shell_words(_slashes(makefile.value("IPATH"))))
    words = [word for name in ("PROJ_CFLAGS", "CFLAGS") for word in _flags(makefile.value(name))]
    for word in words:
        if word.startswith(("-D", "-U")) and len(word) > 2:
            contents.flags.append(word)
        elif word.startswith("-I") and len(word) > 2:
            contents.include += _folders(root, [word[2:]])
    contents.target = contents.target or makefile.value("TARGET")
    contents.riscv |= makefile.value("RISCV_CORE").strip() not in ("", "0")


def _flags(text: str) -> list[str]:
    return _shell_words(_INCLUDED.sub(lambda option: _slashes(option[0]), text))


def _slashes(text: str) -> str:
    """Return paths with slashes where they have the backslashes of Windows."""
    return _BACKSLASH.sub("/", text)


def _shell_words(text: str) -> list[str]:
    """Return the words of a text as a shell sees them: quoted blanks separate nothing."""
    try:
        return shlex.split(text)
    except ValueError:  # a quotation mark that is not closed
        return text.split()


def _source(folders: Sequence[Path], name: str, every: Mapping[str, Sequence[Path]]) -> Path | None:
    """Return the file that a makefile means by a name, wherever it is in the tree."""
    for folder in folders:
        path = folder / name
        if path.is_file():
            return path
    if Path(name).is_absolute():
        return None
    elsewhere = find_among(every, name)
    return elsewhere[0] if len(elsewhere) == 1 else None


def _folders(root: Path, names: Iterable[str]) -> list[Path]:
    """Return folders by their names in a makefile, those in the tree and beside it only."""
    surroundings = real_path(root).parent.parent
    folders = []
    for name in dict.fromkeys(names):
        path = root / name
        if path.is_dir() and surroundings in real_path(path).parents:
            folders.append(path)
            if len(folders) > _MAX_FOLDERS:
                raise MakefileError(f"it names more than {_MAX_FOLDERS} folders")
    return folders


def _files(folder: Path, pattern: str) -> list[Path]:
    """Return files below a folder, those near the top first; hidden folders are left out."""
    paths = [path for path in _walk(folder) if fnmatch.fnmatch(path.name, pattern)]
    return sorted(paths, key=lambda path: (len(path.parts), path))


def _walk(folder: Path) -> list[Path]:
    """Return all files below a folder, up to a number of them; hidden folders are left out."""
    paths: list[Path] = []
    visited = 0
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        folders, names = _listed(place)
        visited += len(names) + 1
        if visited > _MAX_FILES:
            break
        paths += [place / name for name in names]
        waiting += [place / name for name in reversed(folders)]
    return paths


def _listed(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of folders and of files in a folder; links to folders are neither."""
    folders, files = [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif not entry.is_symlink() or not os.path.isdir(entry.path):  # noqa: PTH112
                    files.append(entry.name)
    except OSError:
        pass
    return sorted(f for f in folders if not f.startswith((".", "build"))), files


def _unmatched(patterns: Iterable[str], files: Sequence[Path]) -> Iterator[str]:
    """Say which patterns leave out nothing, as misspelled ones do."""
    for pattern in patterns:
        if not any(_matches(file, pattern) for file in files):
            yield f"--exclude {pattern} matches no C file"


def _matches(source: Path, pattern: str) -> bool:
    return fnmatch.fnmatch(source.name, pattern) or source.match(pattern)


def _belongs(source: Path, options: TreeOptions) -> bool:
    """Whether a C file is neither excluded nor a part of the SDK that the emulator replaces."""
    excluded = any(_matches(source, pattern) for pattern in options.exclude)
    return not excluded and not _NOT_SOURCES.fullmatch(source.stem) and not _of_freertos(source)


def _of_freertos(source: Path) -> bool:
    """Whether a C file is part of the kernel of FreeRTOS; the emulator has its own."""
    return bool(
        _FREERTOS_FILE.fullmatch(source.stem) and _FREERTOS.search(source_text(source)[:400])
    )


def _unique(paths: Iterable[Path]) -> list[Path]:
    """Return paths without those that mean the same file again."""
    first: dict[Path, Path] = {}
    for path in paths:
        first.setdefault(real_path(path), path)
    return [*first.values()]


def _chip(target: str) -> Chip | None:
    try:
        return chip_named(target.strip()) if target.strip() else None
    except UnknownDeviceError:
        return None
