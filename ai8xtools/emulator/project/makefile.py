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

from ai8xtools.emulator.project.make_functions import FUNCTIONS, cost, substitute
from ai8xtools.reading import real_path, source_text

MAX_CHARACTERS = 200_000
"""No text of a makefile becomes longer than this when variables are put in."""
MAX_WORK = 20_000_000
"""Characters read, put in and compared, in all: loops in loops, and variables that double."""
_STEP_WORK = 64  # of a reference or a function, however short
_MAX_DEPTH = 40
_ASSIGNMENT = re.compile(r"[ \t]*([^\s:#=!?+]+)[ \t]*(=|:=|::=|:::=|\?=|\+=|!=)\s*(.*)", re.DOTALL)
_MODIFIERS = re.compile(r"(?:\s*+(?:override|export|unexport|private)\s++(?=\S))*+")
_CONDITION = re.compile(r"\s*(ifeq|ifneq|ifdef|ifndef)\b\s*(.*)")
_QUOTED = re.compile(r"""(["'])(?>(.*?)\1)\s*+(["'])(?>(.*?)\3)""")
_JOINED = re.compile(r"(?<![ \t])[ \t]*+(?:\\\r?\n[ \t]*+)++")
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
    _work: int = 0

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
        """Give a variable a value that needs no expansion; MakefileError for one too long."""
        if len(value) > MAX_CHARACTERS:
            raise MakefileError("a variable is too long")
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
        text = source_text(path)
        self._count(len(text))
        for line in _logical_lines(text):
            word = line.split(maxsplit=1)[0] if line.strip() else ""
            if in_definition or word == "define":
                in_definition = word != "endef"
            elif not self._conditional(line, word, branches) and _counts(branches):
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

    def _count(self, work: int) -> None:
        """Add to the work that was done; MakefileError when it is too much."""
        self._work += work + _STEP_WORK
        if self._work > MAX_WORK:
            raise MakefileError("its variables and functions take too much work")

    def _expanded(self, text: str) -> str:
        self._count(len(text))
        parts, length, begin = [], 0, 0
        while (dollar := text.find("$", begin)) >= 0:
            parts.append(text[begin:dollar])
            if text[dollar + 1 : dollar + 2] in _CLOSING:
                end = _closing(text, dollar + 1)
                parts.append(self._reference(text[dollar + 2 : end]))
            else:
                end = dollar + 1
                parts.append("$" if text[end : end + 1] == "$" else self.value(text[end : end + 1]))
            begin = end + 1
            self._count(len(parts[-1]))
            length += len(parts[-2]) + len(parts[-1])
            if length > MAX_CHARACTERS:
                raise MakefileError("a variable is too long")
        return "".join(parts) + text[begin:]

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
            self._count(cost(name, arguments))
            return function(self.root, *arguments)
        name, colon, pattern = text.partition(":")
        if colon and "=" in pattern:
            old, _, new = self.expand(pattern).partition("=")
            value = self.value(self.expand(name))
            self._count(cost("patsubst", [old, new, value]))
            return substitute(old, new, value)
        return self.value(self.expand(text))

    def _conditional(self, line: str, word: str, branches: list[tuple[bool, bool]]) -> bool:
        """Follow a line of if, else or endif; return whether it was one."""
        condition = _CONDITION.match(line)
        if condition:
            holds = _counts(branches) and self._holds(condition[1], condition[2])
            branches.append((holds, holds))
        elif word == "else" and branches:
            _, done = branches.pop()
            further = _CONDITION.match(line.split("else", 1)[1])
            holds = _counts(branches) and not done
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
        text = _without_comment(text).strip()
        if text.startswith("(") and text.endswith(")") and "," in text:
            first, second = [*_arguments(text[1:-1], 2), ""][:2]  # one inside $(...) separates none
        elif quoted := _QUOTED.match(text):
            first, second = quoted[2], quoted[4]
        else:
            return False
        same = self.expand(first).strip() == self.expand(second).strip()
        return same == (kind == "ifeq")

    def _line(self, line: str, word: str) -> None:
        if line.startswith("\t"):
            return
        if word in ("include", "-include", "sinclude"):
            for name in self.expand(_without_comment(line).split(maxsplit=1)[-1]).split():
                self._count(len(name))
                path = self.root / name
                if not os.path.lexists(path):
                    continue
                inside = real_path(self.root) in real_path(path).parents
                if inside or not (path.is_file() or path.is_dir()):
                    self.read(path)
            return
        line = _without_comment(line)
        modifiers = _MODIFIERS.match(line)
        assignment = _ASSIGNMENT.match(line, modifiers.end() if modifiers else 0)
        if assignment:
            self._assign(self.expand(assignment[1]), assignment[2], assignment[3].rstrip())

    def _assign(self, name: str, operator: str, text: str) -> None:
        defined = name in self._simple or name in self._recursive
        if operator == "?=" and defined:
            return
        if operator == "+=" and name in self._simple:
            self.define(name, f"{self._simple[name]} {self.expand(text)}".strip())
        elif operator == "+=":
            self._recursive[name] = f"{self._recursive.get(name, '')} {text}".strip()
            if len(self._recursive[name]) > MAX_CHARACTERS:
                raise MakefileError("a variable is too long")
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
    return _JOINED.sub(" ", text).splitlines()


def _without_comment(line: str) -> str:
    return re.split(r"(?<!\\)#", line, maxsplit=1)[0].replace("\\#", "#")


def _counts(branches: list[tuple[bool, bool]]) -> bool:
    """Whether lines count: those in a branch only do if those around it do."""
    return not branches or branches[-1][0]


def _closing(text: str, begin: int) -> int:
    """Return where the bracket closes that stands at `begin`; the end of the text if none does."""
    opening, closing = text[begin], _CLOSING[text[begin]]
    depth = 0
    for position in range(begin, len(text)):
        character = text[position]
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
