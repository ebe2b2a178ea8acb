"""What was probably meant in a Python file of a user that fails: a name with a slip, a colon."""

from __future__ import annotations

import ast
import builtins
import linecache
import re
import traceback
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import pairwise, product
from pathlib import Path
from types import FrameType

from ai8xtools.diagnostics.diagnostic import Edit, Place
from ai8xtools.root import ROOT

_NAMED = re.compile(r"(?:unexpected keyword argument|has no attribute) '(\w+)'")
_AN_IMPORT = re.compile(r"(?:import|from) (?!__future__)")
_IMPORTS = {
    "F": "from torch.nn import functional as F", "ai8x": "import ai8x",
    "nn": "from torch import nn", "np": "import numpy as np", "torch": "import torch",
}  # fmt: skip
"""Statements by the names that they give."""
_OURS = str(Path(__file__).parents[1])
_SIGNS = (")", "]", "=", ",", ":", "(", "[", ".", "*")
_LONGEST_LINE, _MOST_LINES = 200, 2000
_SEARCHED_LINES = 12
"""A call may begin so many lines in front of the keyword that it does not take."""


def edit_of(error: BaseException) -> Edit | None:
    """Return the edit of a file in which an exception arose that led to an error."""
    cause = error.__cause__ or error.__context__
    match cause:
        case None:
            return None
        case SyntaxError(filename=str(file), lineno=int(line), offset=int(column)):
            return _missing_sign(cause.msg, file, line, column)
        case AttributeError() | NameError() | TypeError():
            return _near_name(cause) or edit_of(cause)
        case _:
            return edit_of(cause)


def _missing_sign(message: str, file: str, line: int, column: int) -> Edit | None:
    """Return the edit that inserts a sign or `def` with which Python can read the file, or takes
    away the second of two equal lines.

    The sign that Python names comes first, and the place that is nearest to the column.
    """
    lines = linecache.getlines(file)
    content = "".join(lines[line - 1 : line]).rstrip("\n")
    if len(content) > _LONGEST_LINE or len(lines) > _MOST_LINES:
        return None
    for number, (one, two) in enumerate(pairwise(lines), 2):
        if one == two and one.strip() and _is_python([*lines[: number - 1], *lines[number:]]):
            return Edit(Place(file, number, 1), two, "", certain=False)
    named = re.findall(r"'([:()\[\],=])'", message) + [","] * ("comma" in message)
    for number in range(min(line, len(lines)), max(line - _SEARCHED_LINES, 0), -1):
        text = lines[number - 1].lstrip()
        lead = lines[number - 1].removesuffix(text)
        if _is_python([*lines[: number - 1], f"{lead}def {text}", *lines[number:]]):
            return Edit(Place(file, number, len(lead) + 1), "", "def ", certain=False)
    places = sorted({m.end() for m in re.finditer(r"[A-Za-z_]+|\d+|\S|^", content)}, reverse=True)
    places.sort(key=lambda place: abs(place - column + 1))
    for sign, place in product(dict.fromkeys((*named, *_SIGNS)), places):
        changed = f"{content[:place]}{sign}{content[place:]}\n"
        if _is_python((*lines[: line - 1], changed, *lines[line:])):
            return Edit(Place(file, line, place + 1), "", sign, certain=False)
    return None


def _is_python(lines: Iterable[str]) -> bool:
    try:
        ast.parse("".join(lines))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


def _near_name(cause: AttributeError | NameError | TypeError) -> Edit | None:
    """Return the edit that puts the most similar name in the place of one that is not there."""
    named = _NAMED.search(str(cause))
    word = named[1] if named else getattr(cause, "name", None)
    frames = [(frame, line) for frame, line in traceback.walk_tb(cause.__traceback__)]
    if not word or not frames:
        return None
    for frame, line in reversed(frames):
        file = frame.f_code.co_filename
        if file.startswith(_OURS) or "site-packages" in file:
            continue
        if isinstance(cause, NameError) and (missing := _missing_import(word, file)):
            return missing
        place = _place_of(word, file, line)
        candidates = {*_names_around(cause, frames, file), *_parameters(frame, line, word)}
        near = get_close_matches(word, candidates - {word}, 1)
        if place is not None and near:
            return Edit(place, word, near[0], certain=False)
    return None


def _missing_import(word: str, file: str) -> Edit | None:
    """Return the edit that imports a name which models usually import."""
    statement = _IMPORTS.get(word)
    if statement is None:
        blocks = (ROOT / "ai8x_blocks.py").read_text(encoding="utf-8")
        if not re.search(rf"^(?:def|class) {re.escape(word)}\b", blocks, re.MULTILINE):
            return None
        statement = f"from ai8x_blocks import {word}"
    imports = (n for n, x in enumerate(linecache.getlines(file), 1) if _AN_IMPORT.match(x))
    return next(
        (Edit(Place(file, n, 1), "", f"{statement}\n", certain=False) for n in imports), None
    )


def _place_of(word: str, file: str, line: int) -> Place | None:
    """Return where a word stands in a line of a file, or soon after."""
    for number in range(line, line + _SEARCHED_LINES):
        match = re.search(rf"\b{re.escape(word)}\b", linecache.getline(file, number))
        if match:
            return Place(file, number, match.start() + 1)
    return None


def _parameters(frame: FrameType, line: int, word: str) -> Iterator[str]:
    """Yield the parameters of what is called with a keyword, and of what that derives from."""
    file = frame.f_code.co_filename
    text = "".join(linecache.getlines(file)[line - 1 : line + _SEARCHED_LINES])
    called = re.findall(r"([A-Za-z_][\w.]*)\(", text[: text.find(f"{word}=")])
    if not called:
        return
    first, *others = called[-1].split(".")
    value = frame.f_locals.get(first, frame.f_globals.get(first))
    for name in others:
        value = getattr(value, name, None)
    for part in getattr(value, "__mro__", (value,)):
        code = getattr(getattr(part, "__init__", part), "__code__", None)
        yield from getattr(code, "co_varnames", ())


def _names_around(
    cause: BaseException, frames: Iterable[tuple[FrameType, int]], file: str
) -> Iterator[str]:
    """Yield names that may have been meant."""
    if isinstance(cause, AttributeError):
        yield from dir(cause.obj)
        yield from re.findall(r"\.(\w+)", "".join(linecache.getlines(file)))
    elif isinstance(cause, NameError):
        yield from dir(builtins)
        for frame, _ in frames:
            yield from (*frame.f_locals, *frame.f_globals)
    else:
        for frame, _ in frames:
            yield from frame.f_code.co_varnames
        yield from re.findall(r"\b(\w+)=", "".join(linecache.getlines(file)))
