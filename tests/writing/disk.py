"""What a disk may hold after a power cut: a recording of a piece of work, and a model of the disk.

A recording is the sequence of steps that change files below a folder. After a cut at any step

- a name is as the steps made it, or as it was before some of the last of them: a step that made,
  moved or removed a name is only certain once the folder was synced in which it made the name (or,
  if it made none, removed it), and then so are the steps before it that changed the same names.
  Of the others any may have reached the disk, and any may not, in whatever order;
- a step is whole: a rename moves both of its names or none, and so does an exchange;
- a file holds what it held when it was synced last, or anything that was written to it since,
  whole or in part (the first half, or zeros of the same length); its access rights likewise. A
  file that was never synced may be empty;
- a folder or a link that has a name is there.

This allows more than the journals of ext4, XFS, Btrfs or APFS do. What was there in the beginning
was synced long ago.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

Key = tuple[int, str]
"""A name in a folder, by the folder's number."""
Held = tuple[bytes, int]
"""What a file holds (a link: where it leads; a folder: nothing), and its access rights."""
ROOT, FOLDER, FILE, LINK = 0, "folder", "file", "link"
MOST = 64
"""Subsets of pending steps: of more, only chosen ones are looked at."""


@dataclass(frozen=True)
class Named:
    """Names that change in one step: what they stand for afterwards (None: nothing)."""

    names: tuple[tuple[Key, int | None], ...]


@dataclass(frozen=True)
class Filled:
    """A file that holds something else afterwards."""

    file: int
    held: Held


@dataclass(frozen=True)
class Synced:
    """A file or folder that was synced, and the line of the source that did it."""

    what: int
    by: str = ""


@dataclass(frozen=True)
class Reported:
    """The moment at which the user has been told that all until here is written."""


Step = Named | Filled | Synced | Reported
Tree = Mapping[str, Held | None]
"""Files by the path that leads to them, also past links; folders end in a slash. None: dangling."""


@dataclass
class Disk:
    """Folders, files and links by number, and the steps that were recorded."""

    kinds: dict[int, str] = field(default_factory=dict)
    made: dict[int, Held] = field(default_factory=dict)
    start: dict[Key, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def named(self, number: int) -> str:
        """Return a step in words: the names that it changes, or what it fills or syncs."""
        step = self.steps[number]
        if isinstance(step, Named):
            return " and ".join(f"name {name}" for (_, name), _ in step.names)
        if isinstance(step, Reported):
            return "report"
        what = step.file if isinstance(step, Filled) else step.what
        names = {**self.start}
        for before in self.steps[:number]:
            _apply(before, names)
        found = next((name for (_, name), known in names.items() if known == what), "(top)")
        return f"{'fill' if isinstance(step, Filled) else 'sync'} {found}"

    def whole(self, until: int) -> State:
        """Return what is there after a number of steps that all reached the disk."""
        names, held, reports = {**self.start}, {**self.made}, 0
        for step in self.steps[:until]:
            _apply(step, names)
            if isinstance(step, Filled):
                held[step.file] = step.held
            reports += isinstance(step, Reported)
        return State(self, reports, names, held)

    def reported(self) -> list[State]:
        """Return what was there in the beginning and at each report."""
        at = [n for n, step in enumerate(self.steps) if isinstance(step, Reported)]
        return [self.whole(n) for n in (0, *at)]

    def without(self, number: int) -> Disk:
        """Return the same without one of its steps."""
        return replace(self, steps=self.steps[:number] + self.steps[number + 1 :])

    def prefixes(self) -> Iterator[State]:
        """Yield what a cut leaves of a disk that takes steps one after another."""
        return (self.whole(number) for number in range(len(self.steps) + 1))

    def cuts(self, samples: int, since: int = 0) -> Iterator[State]:
        """Yield what a cut may leave after the step `since` or a later one, each once.

        As more and more steps are pending until the next one is synced, only the moments before a
        sync, before a report and at the end are looked at. Of up to log2(MOST) pending steps all
        subsets are tried; of more each alone with what it needs, all but each with what needs it,
        none, all, and random ones (`samples`): whatever goes wrong because one step reached the
        disk and another did not is among them.
        """
        draw = random.Random(1)
        seen: set[tuple[int, frozenset[Any]]] = set()
        for number in range(since, len(self.steps) + 1):
            if number < len(self.steps) and not isinstance(self.steps[number], Synced | Reported):
                continue
            reports = sum(isinstance(step, Reported) for step in self.steps[:number])
            for names, held in self._states(number, samples, draw):
                there = frozenset((key, number, held[number]) for key, number in names.items())
                if (reports, there) not in seen:
                    seen.add((reports, there))
                    state = State(self, reports, names, held)
                    key = reports, frozenset(state.tree.items())
                    if key not in seen:
                        seen.add(key)
                        yield state

    def _states(
        self, until: int, samples: int, draw: random.Random
    ) -> Iterator[tuple[dict[Key, int], dict[int, Held]]]:
        named = [n for n, step in enumerate(self.steps[:until]) if isinstance(step, Named)]
        needs = _needs(self.steps, named)
        certain: set[int] = set()
        contents = {number: [held] for number, held in self.made.items()}
        for n, step in enumerate(self.steps[:until]):
            if isinstance(step, Filled):
                contents[step.file].append(step.held)
            elif isinstance(step, Synced):
                contents[step.what] = contents[step.what][-1:]
                certain |= {m for m in named if m < n and step.what in _settled_by(self.steps[m])}
        certain = _closed(certain, needs)
        pending = [n for n in named if n not in certain]
        unsure = {n: _options(held) for n, held in contents.items() if len(held) > 1}
        newest = {n: held[-1] for n, held in contents.items()}
        for chosen in _subsets(pending, needs, samples, draw):
            names = {**self.start}
            for n in sorted(certain | chosen):
                _apply(self.steps[n], names)
            there = set(names.values())
            choices = {n: options for n, options in unsure.items() if n in there}
            for held in _contents(choices, samples, draw):
                yield names, newest | held


@dataclass(frozen=True)
class State:
    """What a disk holds: names, what stands behind them, and how many reports came before."""

    disk: Disk
    reports: int
    names: Mapping[Key, int]
    held: Mapping[int, Held]

    @cached_property
    def tree(self) -> Tree:
        """What all names lead to."""
        found: dict[str, Held | None] = {}
        for path, way, number in self._walk([ROOT], ""):
            end = self._end(way, number)
            found[path] = None if end is None else self.held[end]
        return found

    def lay_out(self, top: Path) -> None:
        """Make it true in an empty folder."""
        made: dict[int, Path] = {}
        for path, _, number in self._walk([ROOT], ""):
            place, (content, mode) = top / path, self.held[number]
            if number in made:
                place.hardlink_to(made[number])
            elif self.disk.kinds[number] == LINK:
                place.symlink_to(os.fsdecode(content))
            elif self.disk.kinds[number] == FOLDER:
                place.mkdir(mode=mode)
            else:
                place.write_bytes(content)
                place.chmod(mode)
                made[number] = place

    def _walk(self, way: list[int], path: str) -> Iterator[tuple[str, list[int], int]]:
        """Yield each path below a folder, the way to its folder, and what stands there."""
        for name, number in self._inside.get(way[-1], ()):
            if self.disk.kinds[number] == FOLDER:
                yield f"{path}{name}/", way, number
                yield from self._walk([*way, number], f"{path}{name}/")
            else:
                yield path + name, way, number

    @cached_property
    def _inside(self) -> dict[int, list[tuple[str, int]]]:
        inside: dict[int, list[tuple[str, int]]] = {}
        for (folder, name), number in self.names.items():
            inside.setdefault(folder, []).append((name, number))
        return inside

    def _end(self, way: list[int], number: int) -> int | None:
        """Return what a file or link in the last folder of a way leads to; None: to nothing."""
        if self.disk.kinds[number] != LINK:
            return number
        found, way = ROOT, [*way]
        for part in os.fsdecode(self.held[number][0]).split("/"):
            if part == "..":
                found = way.pop()
                continue
            following = self.names.get((way[-1], part))
            end = None if following is None else self._end(way, following)
            if end is None:
                return None
            found = end
            way.append(found)
        return found


def _apply(step: Step, names: dict[Key, int]) -> None:
    if isinstance(step, Named):
        for key, number in step.names:
            names.pop(key, None)
            if number is not None:
                names[key] = number


def _settled_by(step: Step) -> set[int]:
    """Return the folders of which each, when synced, makes a step certain."""
    assert isinstance(step, Named)
    made = {folder for (folder, _), number in step.names if number is not None}
    return made or {folder for (folder, _), _ in step.names}


def _needs(steps: Sequence[Step], named: Sequence[int]) -> dict[int, set[int]]:
    """Return for each step the ones before it without which it cannot be."""
    last: dict[Key, int] = {}
    found: dict[int, set[int]] = {}
    for n in named:
        step = steps[n]
        assert isinstance(step, Named)
        found[n] = {last[key] for key, _ in step.names if key in last}
        last |= {key: n for key, _ in step.names}
    return found


def _closed(chosen: set[int], needs: Mapping[int, set[int]]) -> set[int]:
    found: set[int] = set()
    ahead = [*chosen]
    while ahead:
        n = ahead.pop()
        if n not in found:
            found.add(n)
            ahead += needs[n]
    return found


def _subsets(
    pending: Sequence[int], needs: Mapping[int, set[int]], samples: int, draw: random.Random
) -> Iterator[set[int]]:
    if 1 << len(pending) <= MOST:
        for mask in range(1 << len(pending)):
            chosen = {n for place, n in enumerate(pending) if mask >> place & 1}
            if _closed(chosen, needs) & {*pending} == chosen:
                yield chosen
        return
    yield set()
    for n in pending:
        yield _closed({n}, needs)
    for n in pending:
        yield {m for m in pending if n not in _closed({m}, needs)}
    yield {*pending}
    for _ in range(samples):
        share = draw.random()
        yield _closed({n for n in pending if draw.random() < share}, needs)


def _options(held: Sequence[Held]) -> list[Held]:
    """Return what a file may hold: the first, parts of the newest, some between, the newest."""
    (before, _), (after, mode) = held[0], held[-1]
    kept = len(before) if after.startswith(before) else 0
    rest = len(after) - kept
    torn = [(after[: kept + rest // 2], mode), (after[:kept] + bytes(rest), mode)] if rest else []
    between = list(dict.fromkeys(held[1:-1][:: max(1, len(held) // 3)]))
    return [held[0], *torn, *between, held[-1]]


def _contents(
    choices: Mapping[int, Sequence[Held]], samples: int, draw: random.Random
) -> Iterator[dict[int, Held]]:
    """Yield what files may hold: all new, all old, one in each other way, some random."""
    new, old = ({n: options[end] for n, options in choices.items()} for end in (-1, 0))
    yield new
    if not choices:
        return
    yield old
    for n, options in choices.items():
        for one in options[1:-1]:
            yield new | {n: one}
    for _ in range(samples // 4 if len(choices) > 1 else 0):
        yield {n: draw.choice(options) for n, options in choices.items()}
