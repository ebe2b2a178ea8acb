"""What each tool leaves after a power cut: the old or the new, whole, and all that was reported.

`python -m tests.writing.power_cuts [CASE...]` (a part of `make faults`) records the tools
themselves, looks at more states than the default tests do, lets the tool run again on a disk with
each of some, and compares the recordings with those of strace.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tests.writing.disk import Disk, Held, State, Synced
from tests.writing.recording import Recording

Work = Callable[[Path], object]


@dataclass(frozen=True)
class Promise:
    """What is promised of files by patterns of their paths; each other file is old or new."""

    together: Sequence[str] = ()
    """These are all old or all new."""
    halves: bool = False
    """Some of those may be missing meanwhile, which is never mixed either."""
    growing: Sequence[str] = ()
    """Of these what was reported is there, in front of whatever came after it."""

    def broken(self, state: State, reported: Sequence[State]) -> str | None:
        """Return what is wrong with a state, by the states at each report; None if nothing is."""
        old, new = reported[state.reports], reported[min(state.reports + 1, len(reported) - 1)]
        found, *allowed = (_those(one, self.together) for one in (state, old, new))
        whole = found in allowed
        if self.halves and old is not new:
            whole = any(found.items() <= one.items() for one in allowed)
        if not whole:
            return f"{', '.join(self.together)}: mixed or lost"
        for path in _paths(state) | _paths(old) | _paths(new):
            before, held, after = (one.tree.get(path) for one in (old, state, new))
            if path.endswith("/") or _is_one(path, self.together):
                continue
            if _is_one(path, self.growing):
                if before is not None and (held is None or not held[0].startswith(before[0])):
                    return f"{path}: lost its beginning"
            elif held not in (before, after):
                return f"{path}: mixed or lost"
        return None


def _is_one(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _paths(state: State) -> set[str]:
    """Return paths that are not temporary and lead somewhere."""
    return {path for path, held in state.tree.items() if held and ".writing-" not in path}


def _those(state: State, patterns: Sequence[str]) -> dict[str, Held | None]:
    return {path: state.tree[path] for path in _paths(state) if _is_one(path, patterns)}


@dataclass(frozen=True)
class Case:
    """Work in a folder, done twice after each other, each time reported as done."""

    promise: Promise
    works: Sequence[Work]
    before: Work = lambda _top: None
    """What is there in the beginning."""
    around: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext

    def recorded(self, top: Path) -> Disk:
        """Do the work in an empty folder."""
        self.before(top)
        recording = Recording(top)
        with self.around(), recording.running():
            for work in self.works:
                work(top)
                recording.report()
        return recording.disk

    def again(self, state: State, last: State, top: Path) -> str | None:
        """Do the last work on a disk in some state; return what is then not as it was to be."""
        state.lay_out(top)
        with self.around():
            self.works[-1](top)
        found = Recording(top).disk.whole(0)
        if any(".writing-" in path for path in found.tree):
            return "litter stays"
        return None if found.tree == last.tree else "the next run does not mend it"


def complaints(disk: Disk, promise: Promise, states: Iterable[State]) -> Iterator[str]:
    """Yield what is wrong with states of a disk."""
    reported = disk.reported()
    for state in states:
        found = promise.broken(state, reported)
        if found is not None:
            yield found


def syncs(disk: Disk, promise: Promise) -> Iterator[tuple[str, bool]]:
    """Yield the line of each sync, and whether the promise does not hold without it."""
    for number, step in enumerate(disk.steps):
        if isinstance(step, Synced):
            other = disk.without(number)
            yield step.by, any(complaints(other, promise, other.cuts(0, number)))
