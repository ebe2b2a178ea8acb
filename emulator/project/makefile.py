"""A reader of make syntax: variables, conditionals and functions of text; nothing is executed.

Rules, recipes and $(shell ...) are left out. Source: the GNU make manual.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from emulator.project.make_functions import FUNCTIONS, substitute
from reading import real_path, source_text

MAX_CHARACTERS = 200_000
"""No text of a makefile becomes longer than this when variables are put in."""
_MAX_DEPTH = 40
_ASSIGNMENT = re.compile(r"[ \t]*([^\s:#=!?+]+)[ \t]*(=|:=|::=|:::=|\?=|\+=|!=)\s*(.*)", re.DOTALL)
_MODIFIERS = re.compile(r"\s*(?:override|export|unexport|private)\s+(?=\S)")
_CONDITION = re.compile(r"\s*(ifeq|ifneq|ifdef|ifndef)\b\s*(.*)")
_COMPARISON = re.compile(
    r"""\((?P<a>.*?),(?P<b>.*)\)\s*$|(?P<q>["'])(?P<c>.*?)(?P=q)\s*(?P<r>["'])(?P<d>.*?)(?P=r)"""
)
_CLOSING = {"(": ")", "{": "}"}


class MakefileError(Exception):
    """A makefile whose text is out of all bounds, or that includes itself."""


@dataclass
class Makefile:
    """The variables of a makefile in the folder `root`, as `make` would see them."""

    root: Path
    _recursive: dict[str, str] = field(default_factory=dict)
    _simple: dict[str, str] = field(default_factory=dict)
    _depth: int = 0

    def value(self, name: str) -> str:
        """Return the value of a variable with everything put in; empty if it has none."""
        if name in self._simple:
            return self._simple[name]
        return self.expand(self._recursive.get(name, ""))

    def words(self, name: str) -> list[str]:
        """Return the words of a variable's value."""
        return self.value(name).split()

    def is_defined(self, name: str) -> bool:
        """Whether a variable has a value that is not empty."""
        return bool(self._simple.get(name) or self._recursive.get(name))

    def define(self, name: str, value: str) -> None:
        """Give a variable a value that needs no expansion."""
        self._recursive.pop(name, None)
        self._simple[name] = value

    def read(self, path: Path) -> None:
        """Read a makefile and what it includes from the tree.

        Raises OSError if it cannot be read, MakefileError if it makes no sense.
        """
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise MakefileError(f"{path.name} includes itself")
        branches: list[tuple[bool, bool]] = []  # whether lines count, whether a branch has counted
        in_definition = False
        for line in _logical_lines(source_text(path)):
            word = line.split(maxsplit=1)[0] if line.strip() else ""
            if in_definition or word == "define":
                in_definition = word != "endef"
            elif not self._conditional(line, word, branches) and all(b[0] for b in branches):
                self._line(line, word)
        self._depth -= 1

    def expand(self, text: str) -> str:
        """Return a text with the values of variables and functions put in."""
        self._depth += 1
        try:
            if self._depth > _MAX_DEPTH:
                raise MakefileError("a variable refers to itself")
            result = self._expanded(text)
        finally:
            self._depth -= 1
        if len(result) > MAX_CHARACTERS:
            raise MakefileError("a variable is too long")
        return result

    def _expanded(self, text: str) -> str:
        parts = []
        while "$" in text:
            before, _, text = text.partition("$")
            parts.append(before)
            if text[:1] in _CLOSING:
                end = _closing(text)
                parts.append(self._reference(text[1:end]))
                text = text[end + 1 :]
            else:
                parts.append("$" if text[:1] == "$" else self.value(text[:1]))
                text = text[1:]
            if sum(map(len, parts)) > MAX_CHARACTERS:
                raise MakefileError("a variable is too long")
        return "".join(parts) + text

    def _reference(self, text: str) -> str:
        """Return the value of what stands in $(...)."""
        name, blank, rest = text.partition(" ")
        special = _SPECIAL.get(name) if blank else None
        if special:
            return special(self, _arguments(rest))
        if blank and name in FUNCTIONS:
            function = FUNCTIONS[name]
            count = len(inspect.signature(function).parameters) - 1
            arguments = [self.expand(argument) for argument in _arguments(rest, count)]
            return function(self.root, *arguments)
        name, colon, pattern = text.partition(":")
        if colon and "=" in pattern:
            old, _, new = self.expand(pattern).partition("=")
            return substitute(old, new, self.value(self.expand(name)))
        return self.value(self.expand(text))

    def _conditional(self, line: str, word: str, branches: list[tuple[bool, bool]]) -> bool:
        """Follow a line of if, else or endif; tell whether it was one."""
        condition = _CONDITION.match(line)
        if condition:
            enclosing = all(counts for counts, _ in branches)
            holds = enclosing and self._holds(condition[1], condition[2])
            branches.append((holds, holds))
        elif word == "else" and branches:
            _, done = branches.pop()
            further = _CONDITION.match(line.split("else", 1)[1])
            enclosing = all(counts for counts, _ in branches)
            holds = enclosing and not done
            holds = holds and (further is None or self._holds(further[1], further[2]))
            branches.append((holds, done or holds))
        elif word == "endif" and branches:
            branches.pop()
        else:
            return False
        return True

    def _holds(self, kind: str, text: str) -> bool:
        if kind in ("ifdef", "ifndef"):
            return self.is_defined(self.expand(text).strip()) == (kind == "ifdef")
        found = _COMPARISON.match(_without_comment(text).strip())
        if not found:
            return False
        first = found["a"] if found["a"] is not None else found["c"]
        second = found["b"] if found["a"] is not None else found["d"]
        if found["a"] is not None:  # a comma inside $(...) does not separate
            first, second = [*_arguments(f"{first},{second}", 2), ""][:2]
        same = self.expand(first).strip() == self.expand(second).strip()
        return same == (kind == "ifeq")

    def _line(self, line: str, word: str) -> None:
        if line.startswith("\t"):
            return
        if word in ("include", "-include", "sinclude"):
            for name in self.expand(_without_comment(line).split(maxsplit=1)[-1]).split():
                path = self.root / name
                inside = real_path(self.root) in real_path(path).parents
                if os.path.lexists(path) and (inside or not (path.is_file() or path.is_dir())):
                    self.read(path)
            return
        line = _without_comment(line)
        while modifiers := _MODIFIERS.match(line):
            line = line[modifiers.end() :]
        assignment = _ASSIGNMENT.match(line)
        if assignment:
            self._assign(self.expand(assignment[1]), assignment[2], assignment[3].rstrip())

    def _assign(self, name: str, operator: str, text: str) -> None:
        known = name in self._simple or name in self._recursive
        if operator == "?=" and known:
            return
        if operator == "+=" and name in self._simple:
            self.define(name, f"{self._simple[name]} {self.expand(text)}".strip())
        elif operator == "+=":
            self._recursive[name] = f"{self._recursive.get(name, '')} {text}".strip()
        elif operator in ("=", "?="):
            self._simple.pop(name, None)
            self._recursive[name] = text
        else:
            self.define(name, "" if operator == "!=" else self.expand(text))


def _if(make: Makefile, arguments: list[str]) -> str:
    chosen = arguments[1:2] if make.expand(arguments[0]).strip() else arguments[2:3]
    return make.expand(chosen[0]) if chosen else ""


def _or(make: Makefile, arguments: list[str]) -> str:
    return next(filter(None, (make.expand(text).strip() for text in arguments)), "")


def _and(make: Makefile, arguments: list[str]) -> str:
    values = [make.expand(text).strip() for text in arguments]
    return values[-1] if all(values) else ""


def _foreach(make: Makefile, arguments: list[str]) -> str:
    if len(arguments) != 3:
        return ""
    name = make.expand(arguments[0]).strip()
    results = []
    for word in make.expand(arguments[1]).split():
        make.define(name, word)
        results.append(make.expand(arguments[2]))
    return " ".join(results)


def _call(make: Makefile, arguments: list[str]) -> str:
    for number, text in enumerate(arguments[1:], 1):
        make.define(str(number), make.expand(text))
    return make.value(arguments[0].strip())


def _nothing(_make: Makefile, _arguments: list[str]) -> str:
    """Stand for what would execute or print something."""
    return ""


_SPECIAL: dict[str, Callable[[Makefile, list[str]], str]] = {
    "if": _if, "or": _or, "and": _and, "foreach": _foreach, "call": _call, "shell": _nothing,
    "eval": _nothing, "error": _nothing, "warning": _nothing, "info": _nothing,
    "origin": _nothing, "flavor": _nothing, "value": _nothing, "file": _nothing,
}  # fmt: skip


def _logical_lines(text: str) -> list[str]:
    """Split a text into lines, those that end with a backslash joined to the next."""
    return re.sub(r"[ \t]*\\\r?\n[ \t]*", " ", text).splitlines()


def _without_comment(line: str) -> str:
    return re.split(r"(?<!\\)#", line, maxsplit=1)[0].replace("\\#", "#")


def _closing(text: str) -> int:
    """Return where the bracket closes that a text begins with; its end if it does not."""
    opening, closing = text[0], _CLOSING[text[0]]
    depth = 0
    for position, character in enumerate(text):
        depth += (character == opening) - (character == closing)
        if depth == 0:
            return position
    return len(text)


def _arguments(text: str, limit: int = 0) -> list[str]:
    """Split at the commas outside brackets, into at most `limit` parts if that is not 0."""
    parts: list[str] = []
    depth = start = 0
    for position, character in enumerate(text):
        depth += (character in "({") - (character in ")}")
        if character == "," and depth == 0 and len(parts) + 1 != limit:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]
