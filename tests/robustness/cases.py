"""Cases by number: which start, which mutation, and the files that result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from tests.robustness import arrays, checkpoints, models, texts
from tests.robustness.choice import pick
from tests.robustness.starts import TARGETS, Start, Target

FOLDER = "out/net"
KEPT = {f"{FOLDER}/cnn.c": b"// mine\n", f"{FOLDER}/notes.txt": b"keep\n"}
"""A project that exists beforehand in some of the cases."""
_OVERWRITTEN = 0.125


@dataclass(frozen=True, slots=True)
class Case:
    """A run of the loader on inputs of which one is damaged.

    `path` is the damaged one. With `kept` the folder of the project exists already and is to be
    overwritten.
    """

    number: int
    target: Target
    mutation: str
    start: Start
    path: str
    files: Mapping[str, bytes] = field(repr=False)
    kept: bool = False

    @property
    def args(self) -> tuple[str, ...]:
        """The command line."""
        parent, name = FOLDER.split("/")
        more = ("--overwrite",) if self.kept else ()
        where = ("--test-dir", parent, "--prefix", name, "--diagnostics", "json")
        return (*where, *more, *self.start.args)

    def __str__(self) -> str:
        return f"{self.target} {self.number} ({self.mutation} of {self.start.name})"


def usable(starts: Sequence[Start], target: Target) -> list[Start]:
    """Return the starts that have an input of a kind."""
    return [start for start in starts if start.path_of(target) is not None]


def case_of(starts: Sequence[Start], target: Target, seed: int, number: int) -> Case:
    """Return a case; starts with an input of that kind take turns."""
    rng = np.random.default_rng([seed, TARGETS.index(target), number])
    able = usable(starts, target)
    start = able[number % len(able)]
    path = start.path_of(target)
    assert path is not None
    mutation, content = _mutated(start.files[path], target, rng)
    kept = bool(rng.random() < _OVERWRITTEN)
    files = {**start.files, **(KEPT if kept else {}), path: content}
    return Case(number, target, mutation, start, path, files, kept)


def _mutated(data: bytes, target: Target, rng: Generator) -> tuple[str, bytes]:
    """Return the name of a mutation and what it makes of a file."""
    if target == "description":
        on_text = pick(rng, texts.MUTATIONS)
        changed = on_text(data.decode(), rng)
        done = changed.encode("utf-8", "surrogatepass") if isinstance(changed, str) else changed
        return on_text.__name__, done
    on_bytes = pick(rng, {"checkpoint": checkpoints, "onnx": models}.get(target, arrays).MUTATIONS)
    return on_bytes.__name__, on_bytes(data, rng)
