"""What differs in the C of a project that fails from what `ai8xize.py` wrote.

The project names the command that made it. If description and weights are still there and give the
same answer file, what differs in a generated file is a change that somebody made. Otherwise the
answer file tells the right word in the place of a wrong one, if it is the only one near it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.commands.emulate.emulate import emulate
from ai8xtools.commands.emulate.known_answer import answer_of
from ai8xtools.commands.emulate.simulation import written_again
from ai8xtools.commands.loader.origin import command_of
from ai8xtools.diagnostics import (
    Diagnostic,
    DiagnosticError,
    Edit,
    Place,
    current,
    diagnostics_of,
    is_read_at_once,
    print_diagnostics,
    takes_json,
)
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.diagnostics.outcome import unheard
from ai8xtools.emulator import NetworkAlone
from ai8xtools.emulator.comparison.wrong import WrongWord
from ai8xtools.reading import source_text

Files = Mapping[str, str | bytes]
_MOST_WORDS = 100
_GENERATED = re.compile("^.*@generated.*$", re.MULTILINE)


def emulate_or_cure(options: EmulateOptions) -> int:
    """Run what the options name; tell programs why it fails, and add the cure if there is one."""
    try:
        status = emulate(options)
    except ToolError as exc:
        if options.project is None or not is_read_at_once():
            raise
        first, *others = diagnostics_of(exc)
        raise DiagnosticError((_with(first, _edit(Path(options.project))), *others)) from None
    if status and options.project is not None and is_read_at_once():
        edit = _edit(Path(options.project))
        reason = current().facts["reason"] or "FAIL"
        failed = Diagnostic("E845", f"the project fails: {reason}", Place(file=options.project))
        if edit is not None or takes_json():
            print_diagnostics([_with(failed, edit)])
    return status


def _with(diagnostic: Diagnostic, edit: Edit | None) -> Diagnostic:
    """Return a message with the cure, if there is one."""
    if edit is None:
        return diagnostic
    remedy = " ".join(filter(None, (diagnostic.remedy, f"As ai8xize.py wrote it: {edit}")))
    return replace(diagnostic, edit=edit, remedy=remedy)


def _edit(project: Path) -> Edit | None:
    """Return the change that makes the first altered file as it was written."""
    files = _again(project)
    for name in sorted(files, key=lambda name: (name.startswith("main"), name)):
        right, path = files[name], project / name
        if isinstance(right, bytes) or not path.is_file():
            continue
        actual = source_text(path)
        if _GENERATED.sub("", actual) != _GENERATED.sub("", right):
            return _difference(path, actual, right)
    return None if files else _of_words(project)


def _of_words(project: Path) -> Edit | None:
    """Return the edit of the first wrong word that stands in one place of the files only."""
    check = None
    with unheard(), suppress(ToolError, OSError):
        check = answer_of(project, enabled=True)
        network = NetworkAlone(project)
        if check is not None and network.has_sample:
            check.watch_alone(network)
            network.run()  # may fail once the words are compared
    texts = {path: source_text(path) for path in sorted(project.glob("*.[ch]"))}
    wrong = [] if check is None else check.wrong
    return next(filter(None, (_of_word(word, texts) for word in wrong[:_MOST_WORDS])), None)


def _of_word(word: WrongWord, texts: Mapping[Path, str]) -> Edit | None:
    if word.expected is None or word.actual is None:
        return None
    actual, right = (f"0x{value:08x}" for value in (word.actual, word.expected))
    before = rf"0x{word.address:08x}\)\s*=\s*" if word.kind.has_fields else ""
    pattern = re.compile(rf"{before}({actual})\b")
    matches = [(path, match) for path, text in texts.items() for match in pattern.finditer(text)]
    if len(matches) != 1:
        return None
    [(path, match)] = matches
    line = texts[path].count("\n", 0, match.start(1)) + 1
    column = match.start(1) - texts[path].rfind("\n", 0, match.start(1))
    return Edit(Place(str(path), line, column), actual, right, certain=False)


def _again(project: Path) -> Files:
    """Return the files as they were written; none where a model would be executed for it."""
    command = command_of(project)
    if command is None or "--model" in command:
        return {}
    with unheard():
        files = written_again(project)
    return {} if isinstance(files, str) else files


def _difference(path: Path, actual: str, right: str) -> Edit:
    """Return the lines of one text that are others in the other, as one block."""
    old, new = actual.splitlines(keepends=True), right.splitlines(keepends=True)
    before = _same(old, new)
    behind = _same(old[before:][::-1], new[before:][::-1])
    place = Place(str(path), before + 1, 1)
    old, new = (part[before : len(part) - behind] for part in (old, new))
    return Edit(place, "".join(old), "".join(new), certain=False)


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many elements at the beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
