"""What `ai8xize.py --compare-project` does: tell in words how two projects of a network differ."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from ai8xtools.answer import FILE_NAME, read_answer
from ai8xtools.diagnostics import note
from ai8xtools.emulator.differences.comparing import differences
from ai8xtools.emulator.differences.difference import Difference, Subject
from ai8xtools.emulator.differences.side import Side, read_side
from ai8xtools.writing.folder import write_project
from device import Chip

SHOWN = 10
"""Differences of a subject that are shown; the rest is counted."""


def compare_projects(
    files: Mapping[str, str | bytes], folder: Path, chip: Chip, apb_base: int
) -> int:
    """Print how the project in a folder differs from these files; return 0 if it does not.

    Raises EmulatorError if one of them cannot be compiled and loaded (see `NetworkAlone`).
    """
    theirs = read_side(folder, chip, apb_base)
    with tempfile.TemporaryDirectory(prefix="compare-") as temporary:
        own = Path(temporary, "project")
        write_project(files, own)
        answers = {layer.number: layer for layer in read_answer(own / FILE_NAME).layers}
        ours = read_side(own, chip, apb_base)
        result = differences(theirs, ours, answers)
    for line in (*_notes(theirs, ours), *listed(result), verdict(result)):
        print(line)
    differs = any(one.subject.counts for one in result)
    note(verdict="failed" if differs else "passed", reason=verdict(result))
    return 1 if differs else 0


def listed(result: Sequence[Difference]) -> Iterator[str]:
    """Yield lines on the differences, by subject."""
    for subject, group in groupby(result, key=lambda one: one.subject):
        texts = [one.text for one in group]
        yield f"{subject.value}:"
        yield from (f"  {text}" for text in texts[:SHOWN])
        if len(texts) > SHOWN:
            yield f"  and {len(texts) - SHOWN} more"


def verdict(result: Sequence[Difference]) -> str:
    """Return the last line: whether both are the same, else how many differences there are."""
    counted = Counter(one.subject for one in result if one.subject.counts)
    total = sum(counted.values())
    if not total:
        return "the same words"
    parts = (f"{subject.value} {counted[subject]}" for subject in Subject if counted[subject])
    number = "1 difference" if total == 1 else f"{total} differences"
    return f"{number}: {', '.join(parts)}; {counted[Subject.UNEXPLAINED]} unexplained"


def _notes(theirs: Side, ours: Side) -> Iterator[str]:
    for text in theirs.network.notes:
        yield f"note: {text}"
    for side, name in ((theirs, "the project there"), (ours, "the project here")):
        if not side.network.has_sample:
            yield f"note: {name} has no sample; the input is not compared"
