"""Where the compiler finds headers: in the tree, near it, in the SDK, or made up.

A header that nobody has is replaced by one that declares the SDK, and remembered: when the program
does not compile, its absence is the reason to tell.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.project.messages import CompilerMessage
from ai8xtools.emulator.project.standins import is_display_header, is_sdk_header, with_member
from ai8xtools.emulator.project.tree import ProjectTree, files_by_name, find_among
from ai8xtools.reading import real_path

SDK = Path(__file__).resolve().parents[1] / "sdk"

_INCLUDED = re.compile(r"^#[ ]*include.*", re.MULTILINE)
_FREERTOS = SDK / "include" / "freertos"
"""Headers whose names a project may have as well, so that they are looked for last."""


@cache
def _sdk_names() -> frozenset[str]:
    """Return the names of headers that the emulator's SDK stands for."""
    lines = (SDK / "headers.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def _holds_freertos(folder: Path) -> bool:
    """Whether a folder has the headers of the kernel, whose place the SDK's own take."""
    kernel = (folder / name for name in ("FreeRTOS.h", "portmacro.h"))
    return any(path.is_file() for path in kernel) and not (folder / "FreeRTOSConfig.h").is_file()


@dataclass
class Headers:
    """The headers of a program; `folder` is a place for those that are made up.

    `header_folders` were added on the way, `made_up` are headers that nobody has, each with the
    message of the compiler that asked for it. `changes` counts what was added. Compilers read the
    folder while others run: its files appear whole, and one thread at a time may add to them.
    """

    tree: ProjectTree
    folder: Path
    header_folders: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    made_up: dict[str, CompilerMessage] = field(default_factory=dict)
    changes: int = 0
    _members: set[tuple[str, str]] = field(default_factory=set)
    _sdk: Path = SDK / "include"
    _files: dict[Path, dict[str, list[Path]]] = field(default_factory=dict)

    def sdk_of_cplusplus(self) -> Path:
        """Return a folder with the headers of the SDK, whose functions are those of C."""
        copy = self.folder / "sdk-c++"
        if not copy.exists():
            shutil.copytree(self._sdk, copy)
            for header in copy.rglob("*.h"):
                header.write_text(_of_c(header.read_text(encoding="utf-8")), encoding="utf-8")
        return copy

    def folders(self, source: Path) -> list[Path]:
        """Return the folders in which headers of a source are looked for."""
        own = [source.parent, *self.tree.include, *self.header_folders]
        own = [folder for folder in own if folder == _FREERTOS or not _holds_freertos(folder)]
        return [real_path(folder) for folder in [*own, self.folder / "made-up", self._sdk]]

    def foreign(self) -> list[str]:
        """Return the headers that nobody has and that do not look like ones of the SDK."""
        return [name for name in self.made_up if not is_sdk_header(name)]

    def provide(self, message: CompilerMessage) -> bool:
        """Find or make up the header that a compiler asks for; return whether that is new.

        Raises EmulatorError (E811) if several folders beside the tree have it, or one whose
        sources are another version of this tree's.
        """
        is_new = self._provide(message)
        self.changes += is_new
        return is_new

    def _provide(self, message: CompilerMessage) -> bool:
        name = message.name
        near = [] if name in self.made_up else self._near(message)
        if near and self._take(name, near[0]):
            return True
        if (_FREERTOS / name).is_file() and _FREERTOS not in self.header_folders:
            self.header_folders.append(_FREERTOS)
            return True
        path = self.folder / "made-up" / name
        if path.exists() or ".." in Path(name).parts or Path(name).is_absolute():
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        model = "tft_ili9341.h" if is_display_header(name) else "board.h"
        # it declares the SDK, and no more
        _write_whole(path, (SDK / "include" / model).read_text(encoding="utf-8"))
        if Path(name).stem not in _sdk_names():
            self.made_up[name] = message
        return True

    def extend_sdk(self, owner: str, member: str) -> bool:
        """Add a member to a structure of the SDK, in a copy of its headers."""
        if (owner, member) in self._members:
            return True  # another source asked for it
        copy = self.folder / "sdk"
        if self._sdk != copy:
            shutil.copytree(SDK / "include", copy)
            self._sdk = copy
        changed = with_member(copy, owner, member)
        if changed is None:
            return False
        header, text = changed
        _write_whole(header, text)
        other = self.folder / "sdk-c++" / header.relative_to(copy)
        if other.exists():
            _write_whole(other, _of_c(text))
        self._members.add((owner, member))
        self.changes += 1
        return True

    def _near(self, message: CompilerMessage) -> list[Path]:
        """Return headers of that name in the tree, else in the folders beside it."""
        near = self._below(self.tree.root, message.name)
        if near or is_sdk_header(message.name):
            return near
        near = self._below(real_path(self.tree.root).parent, message.name)
        if len(near) > 1:
            raise self._ambiguous(message, near)
        for header in near:
            self._refuse_other_version(message, header)
        return near

    def _below(self, folder: Path, name: str) -> list[Path]:
        """Return the files below a folder whose path ends with `name`; it is listed only once."""
        if folder not in self._files:
            self._files[folder] = files_by_name(folder)
        return find_among(self._files[folder], name)

    def _refuse_other_version(self, message: CompilerMessage, header: Path) -> None:
        """Raise EmulatorError (E811) if a header stands among sources that the tree has, too.

        It belongs to another project; with it a program might pass that does not compile.
        """
        own = {path.name for path in (*self.tree.sources, *self.tree.others)}
        same = sorted(path.name for path in header.parent.glob("*.c") if path.name in own)
        if same:
            folder = self.tree.shown(header.parent)
            raise EmulatorError(
                "E811",
                f"{self._place(message)}: {message.name} is not in the project; that in {folder} "
                f"belongs to another one, which has a {same[0]} of its own",
                str(self.tree.root),
                "Put the header of this project back: generate it again. If that one is meant, "
                f"name its folder: --include {folder}.",
            )

    def _take(self, name: str, header: Path) -> bool:
        """Add the folder of a header to those that are searched; return whether it is new."""
        below = sum(part not in ("..", ".") for part in Path(name).parts) - 1
        folder = header.parents[below]
        if folder in self.header_folders:
            return False
        self.header_folders.append(folder)
        if real_path(self.tree.root) not in real_path(header).parents:
            self.notes.append(f"{name} is taken from {self.tree.shown(header.parent)}")
        return True

    def _ambiguous(self, message: CompilerMessage, headers: Sequence[Path]) -> EmulatorError:
        places = ", ".join(self.tree.shown(path.parent) for path in headers[:4])
        return EmulatorError(
            "E811",
            f"{self._place(message)}: {message.name} is not in the project, but in {places}",
            str(self.tree.root),
            "Name one of these folders with --include.",
        )

    def _place(self, message: CompilerMessage) -> str:
        return self.tree.place(message.file, message.line)


def _of_c(text: str) -> str:
    """Return a header whose declarations are those of C in C++ as well."""
    inside = _INCLUDED.sub(r'}\n\g<0>\nextern "C" {', text)
    return f'extern "C" {{\n{inside}\n}}\n'


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that a compiler that reads it meanwhile sees the old or the new text."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
