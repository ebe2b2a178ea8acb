"""What would cure a refused command: small changes of its files and options are tried.

A change is a cure if everything is found to be right with it, before anything is written. It is
looked for only if somebody waits for it: a program that reads the messages, or a terminal.
Source: docs/machines.md, "Cures that are tried".
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import islice

import numpy as np

from ai8xtools.checkpoint import Checkpoint, read_checkpoint
from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.commands.loader.create import completed, create_project, embedded, synthesized
from ai8xtools.commands.loader.option_changes import changed_words, of_another_kind, option_changes
from ai8xtools.commands.loader.options import LoaderOptions, Output
from ai8xtools.diagnostics import (
    Diagnostic,
    DiagnosticError,
    Edit,
    Place,
    Severity,
    diagnostics_of,
    has_errors,
    is_read_at_once,
)
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.diagnostics.outcome import unheard
from ai8xtools.reading import read_text
from ai8xtools.reading.progress import progress
from ai8xtools.synthesis.cure import applied, candidates
from ai8xtools.synthesis.parse import Edited, parse_file
from ai8xtools.synthesis.pipeline import examine
from ai8xtools.synthesis.resolve import resolve

MOST_BYTES = 1 << 16
MOST_LINES = 1000
"""Of a description: what may be meant by a line depends on all others."""
MOST_TRIALS = 1000
MOST_RECOVERIES = 100
MOST_FURTHER = 200
_SIMILAR = 0.75
MOST_SECONDS = 10.0

Judge = Callable[[Edit], Iterable[Diagnostic]]


def create_or_cure(options: LoaderOptions) -> int:
    """Create a project; add the cure to the messages if it is refused."""
    try:
        return create_project(options)
    except (DiagnosticError, ToolError, OSError) as exc:
        if not is_read_at_once():
            raise
        messages = diagnostics_of(exc)
        raise DiagnosticError(with_cure(options, messages)) from None


def with_cure(options: LoaderOptions, messages: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the messages, of which the error nearest to the cure has it, if there is one."""
    errors = [d for d in messages if d.severity.is_error]
    has_edit = any(d.edit is not None for d in errors)
    edit = None if has_edit or not errors else cure(options, messages)
    if edit is None:
        return [*messages]
    nearest = min(errors, key=lambda error: _distance(error.place, edit.place))
    return [d.with_edit(edit) if d is nearest else d for d in messages]


def _distance(place: Place | None, cure: Place) -> int:
    """Return how far a message is from its cure: lines in the same file, else much."""
    if place is None or cure.file is None or place.file != cure.file:
        return 1 << 30
    return abs((place.line or 0) - (cure.line or 0))


def cure(options: LoaderOptions, messages: Sequence[Diagnostic]) -> Edit | None:
    """Return the likeliest change with which nothing is wrong and there are no further warnings.

    If there is none, the one with fewest warnings, or else one that leaves fewer errors.
    """
    end = time.process_time() + MOST_SECONDS
    with progress("Looking for a cure, at most", MOST_SECONDS) as advance:
        return _cure(options, messages, _Search(_rank(messages), end, advance))


def _cure(options: LoaderOptions, messages: Sequence[Diagnostic], search: _Search) -> Edit | None:
    """Return the likeliest change that a search finds."""
    errors = [d for d in messages if d.severity.is_error]
    words = shlex.split(options.project.command_line)[1:]
    search.among(option_changes(words, errors), lambda one: _messages_of_words(words, one))
    text = _text(options)
    inside = any(d.place is not None and d.place.file == options.config_file for d in errors)
    other = next(of_another_kind(words), None)
    if search.is_over or other is not None or text is None or not inside:
        return search.cure or other
    options = _with_checkpoint(options)
    checkpoint = options.resolve.tensors
    names = [checkpoint.arch] if checkpoint and checkpoint.arch else []
    drawn = candidates(text, str(options.config_file), messages, names, _channels(checkpoint))
    changes = [*islice(_unlike(drawn, search.until), MOST_TRIALS)]
    search.among(changes, lambda one: _messages_of_text(options, text, one, whole=False))
    if search.cure is None:
        apart = [edit for edit in changes if edit.old.strip(" -")]  # layers stay apart
        search.among(apart[:MOST_RECOVERIES], lambda one: _messages_of_text(options, text, one))
    return search.cure or search.relief


def _unlike(edits: Iterable[Edit], until: float) -> Iterator[Edit]:
    """Yield each edit once, as long as there is time."""
    seen: set[Edit] = set()
    for edit in edits:
        if time.process_time() > until:
            return
        if edit not in seen:
            seen.add(edit)
            yield edit


def _rank(messages: Iterable[Diagnostic]) -> tuple[int, int]:
    """Return the numbers of errors and warnings."""
    severities = [d.severity for d in messages]
    return severities.count(Severity.ERROR), severities.count(Severity.WARNING)


@dataclass
class _Search:
    """Looks for the change after which least is wrong; `before` are the errors and warnings.

    `best` is the least that was found, with its change, after which nothing is wrong in the `cure`;
    `further` changes were tried since the first cure, which has warnings. `advance` gets the
    seconds that each trial took.
    """

    before: tuple[int, int]
    until: float
    advance: Callable[[float], None]
    best: tuple[int, int] = (1 << 30, 0)
    relief: Edit | None = None
    further: int = 0

    @property
    def cure(self) -> Edit | None:
        """The change after which nothing is wrong."""
        return self.relief if self.best[0] == 0 else None

    @property
    def is_over(self) -> bool:
        """Whether nothing better can be found, or not in time."""
        cured = self.cure is not None and self.best[1] <= self.before[1]
        enough = not self.best[1] or self.further >= MOST_FURTHER
        over = (cured and enough) or _is_slip(self.cure)
        return over or time.process_time() > self.until

    def among(self, changes: Iterable[Edit], judge: Judge) -> None:
        """Judge changes until the search is over."""
        for edit in changes:
            if self.is_over:
                return
            self.further += self.best[0] == 0
            begin = time.process_time()
            rank = _rank(judge(edit))
            self.advance(time.process_time() - begin)
            if rank < self.best and rank[0] < self.before[0]:
                self.best, self.relief = rank, edit


def _is_slip(edit: Edit | None) -> bool:
    """Whether an edit changes little of what it replaces."""
    return edit is not None and SequenceMatcher(None, edit.old, edit.new).ratio() >= _SIMILAR


def _with_checkpoint(options: LoaderOptions) -> LoaderOptions:
    """Return the options with the content of the checkpoint, which is not read for each trial."""
    path = options.resolve.checkpoint_file
    if path is None or path.lower().endswith(".onnx"):
        return options
    try:
        return replace(options, resolve=replace(options.resolve, tensors=read_checkpoint(path)))
    except (CheckpointError, OSError):
        return options


def _channels(checkpoint: Checkpoint | None) -> list[int]:
    """Return the numbers of input channels of the layers of a checkpoint."""
    tensors = {} if checkpoint is None else checkpoint.state_dict
    weights = (x for name, x in tensors.items() if name.endswith("weight") and np.ndim(x) > 1)
    return list(dict.fromkeys(int(np.shape(x)[1]) for x in weights))


def _text(options: LoaderOptions) -> str | None:
    """Return the text of the description; None if there is none that can be read."""
    if options.model is not None or not isinstance(options.config_file, str):
        return None
    try:
        text = read_text(options.config_file, MOST_BYTES)
    except (OSError, ValueError):
        return None
    return text if text.count("\n") < MOST_LINES else None


def _messages_of_words(words: Sequence[str], edit: Edit) -> tuple[Diagnostic, ...]:
    """Return what is said of a command line after an edit."""
    from ai8xtools.commands.loader.arguments import parse

    def examined() -> tuple[Diagnostic, ...]:
        return _examined(completed(parse(changed_words(words, edit))))

    return _messages(examined)


def _messages_of_text(
    options: LoaderOptions, text: str, edit: Edit, *, whole: bool = True
) -> tuple[Diagnostic, ...]:
    """Return what is said of a description after an edit, the `whole` or what is said first."""
    changed = replace(options, config_file=Edited(applied(text, edit), str(options.config_file)))

    def examined() -> tuple[Diagnostic, ...]:
        if not whole:
            resolve(parse_file(changed.config_file), options.chip, options.resolve)
        return _examined(changed)

    messages = _messages(examined)
    # an error at an early stage hides those of later ones
    return messages if whole or _rank(messages)[0] == 0 else _UNSOUND


_UNSOUND = (Diagnostic("E009", "not sound"),) * 1000


def _examined(options: LoaderOptions) -> tuple[Diagnostic, ...]:
    """Return all messages about a project that is not written, nor its report."""
    options = replace(options, output=Output())
    messages = examine(options.config_file, options.chip, options.resolve, options.encode)[2]
    if options.rtl is not None or has_errors(messages):
        return messages
    return embedded(options, synthesized(options)).diagnostics


def _messages(examined: Callable[[], tuple[Diagnostic, ...]]) -> tuple[Diagnostic, ...]:
    """Return the messages of a trial, none of which is shown."""
    try:
        with unheard():
            return examined()
    except SystemExit:
        return (Diagnostic("E070", "usage"),)
    except Exception as exc:
        if isinstance(exc, _REFUSALS):
            return diagnostics_of(exc)
        if os.environ.get("AI8X_TRACEBACK") and not isinstance(exc, MemoryError):  # our defect
            raise
        return (Diagnostic("E009", "defect"),)  # a trial is no cure; what was refused is told


_REFUSALS = (DiagnosticError, ToolError, OSError)
