"""Metadata of build systems around the sources of a network. A system is a folder of templates.

Source: docs/library.md, "Build systems".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ai8xtools.diagnostics import Diagnostic, Place
from ai8xtools.values import frozen
from ai8xtools.writing.symbols import complaints
from ai8xtools.writing.templates import TEMPLATES, render

_OPTION = "--build"
_VERSION = "1.0.0"
_PROGRAM = "main.c"
_FOLDER = "build"
_END = ".j2"
_INCLUDE = re.compile(r'^\s*\S\s*include "(.*)"', re.MULTILINE)
SYSTEMS = ("sdk", "cmake", "zephyr", "platformio", "arduino", "esp-idf", "cmsis-pack")
"""What there is, by its word: the name of its folder in templates/build."""
ACCELERATED = ("sdk", "zephyr")
"""Those that know boards with the accelerator."""
STACK_OF_TEST = 2048
"""Bytes of stack that main() takes to print, estimated."""


@frozen
class Package:
    """A network as build systems describe it.

    `name` begins what is new; programs include `header`. `stack_bytes` are those that the
    known-answer test needs. `chip` is that of the accelerator, "" without it.
    """

    name: str
    header: str
    stack_bytes: int
    chip: str = ""

    def files(self, systems: Sequence[str], files: Mapping[str, str]) -> dict[str, str]:
        """Return what build systems need for these files: others, and some of them changed.

        A template that gives no text is for other packages. Paths have the name for NAME.
        """
        values = {
            "package": self,
            "name": self.name,
            "macro": self.name.upper(),
            "version": _VERSION,
            "systems": systems,
            "sources": sorted(p for p in files if p.endswith(".c") and p != _PROGRAM),
            "headers": [*_included(self.header, files)],
            "program": files[_PROGRAM],
        }
        texts = {
            path.replace("NAME", self.name): render(template, **values)
            for system in SYSTEMS
            if system in systems
            for path, template in _templates(system)
        }
        return {path: text for path, text in texts.items() if text.strip()}


def _included(header: str, files: Mapping[str, str]) -> Iterator[str]:
    """Yield a header and those of the same folder that it includes."""
    yield header
    for other in _INCLUDE.findall(files[header]):
        yield from _included(other, files) if other in files else ()


def _templates(system: str) -> Iterator[tuple[str, str]]:
    """Yield the paths of the files of a build system, each with its template."""
    folder = TEMPLATES / _FOLDER / system
    for path in sorted(folder.rglob(f"*{_END}")):
        inside = path.relative_to(folder).as_posix()
        yield inside.removesuffix(_END), f"{_FOLDER}/{system}/{inside}"


def unsuitable(
    systems: Sequence[str],
    name: str,
    prefix: str | None = None,
    *,
    accelerated: bool = False,
    library: str = "",
) -> Iterator[Diagnostic]:
    """Yield why there are no packages of a project, if so.

    `name` is that of the project, `prefix` that of its symbols and `library` an option
    that names sources outside of the project.
    """
    if not systems:
        return
    if prefix is None:
        yield from complaints(name, "--prefix")
    if library:
        yield _refused(f"packages have all sources, {library} names others", f"Leave out {library}")
    for system in systems if accelerated else ():
        if system not in ACCELERATED:
            remedy = f"Use {' or '.join(ACCELERATED)}, or --device MCU"
            yield _refused(f"no board of {system} has the accelerator", remedy)


def _refused(why: str, remedy: str) -> Diagnostic:
    return Diagnostic("E917", why, Place(option=_OPTION), f"{remedy}.")
