"""Readers of others' projects take time that grows with their input, and no faster."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.firmware.samples import expected_words, sample_words
from ai8xtools.emulator.project.definitions import declared_functions, definitions
from ai8xtools.emulator.project.loops import repeated_calls
from ai8xtools.emulator.project.makefile import Makefile, MakefileError
from ai8xtools.emulator.project.messages import compiler_messages
from tests.robustness.growth import BOUNDS, grows, patterns, taken, worst

LENGTH = 4000
"""Characters of a hostile text."""
MAKE = [
    "$(", "$", "(", ")", ",", " ", "\t", "\\\n", "\n", "#", "=", ":", "'", '"', "%", "x",
    "ifeq (", "else ", "endif\n", "ifdef A\n", "export ", "A += x\n", "B := $(A)$(A)\n",
    "X := $(foreach a,$(A),$(A))\n", "include Makefile\n", "define A\n", "$(filter %a,",
    "$(subst x,xx,", "$(A:x=yy)",
]  # fmt: skip
C = [
    " ", "\n", "x", "1", "(", ")", "{", "}", ";", ",", "=", "[", "*", '"', "'", "\\", "/*", "*/",
    "//", "#", "#define a 1\n", "#define INPUT_1 {", "#define SAMPLE_OUTPUT {", "int f(",
    "int f(void);\n", "for (i = 0; i < a; i++) {", "for (i = 0;", "cnn_start();", "int main",
    "a.c:1:1: error: 'x' ", ": No such file or directory", "storage size of 'x' isn't known ",
]  # fmt: skip


def make(text: str, folder: Path) -> None:
    (folder / "Makefile").write_text("A := x x x\n" + text + "\nC := $(A)$(B)$(X)\n")
    makefile = Makefile(folder)
    try:
        makefile.read(folder / "Makefile")
        makefile.value("C")
    except (MakefileError, RecursionError):
        pass  # it is left out


def samples(text: str) -> None:
    for read in (sample_words, expected_words):
        try:
            read(text)
        except EmulatorError as error:
            assert error.code == "E815"


READERS: dict[str, Callable[[str], object]] = {
    "loops": repeated_calls, "definitions": definitions, "declared": declared_functions,
    "samples": samples, "messages": compiler_messages,
}  # fmt: skip


def hostile(parts: list[str]) -> list[tuple[str, str]]:
    """What a text begins with, and what follows again and again."""
    alone = [("", part) for part in parts]
    pairs = [("", a + b) for a, b in itertools.combinations(parts, 2)]
    return [*alone, *pairs, *((a, b) for a, b in itertools.permutations(parts, 2) if len(a) > 4)]


def refused(read: Callable[[str], object], parts: list[str]) -> list[str]:
    """The texts on which a reader takes more than linear time."""
    found = []
    for start, repeated in hostile(parts):

        def seconds(length: int, start: str = start, repeated: str = repeated) -> float:
            text = start + repeated * (length // len(repeated))
            return taken(lambda: read(text))

        if seconds(LENGTH) > 0.03 and grows(seconds, LENGTH):
            found.append(f"{start!r} + n * {repeated!r}")
    return found


def test_regular_expressions_take_linear_time() -> None:
    found = {}
    for label, pattern, methods in patterns():
        _, text = worst(pattern, methods, BOUNDS.get(label.partition("[")[0]))
        if text:
            found[label] = text
    assert not found


@pytest.mark.parametrize("reader", READERS)
def test_readers_of_sources_take_linear_time(reader: str) -> None:
    assert not refused(READERS[reader], C)


def test_makefiles_take_linear_time(tmp_path: Path) -> None:
    assert not refused(lambda text: make(text, tmp_path), MAKE)
