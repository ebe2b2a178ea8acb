"""A program's words on the emulated accelerator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from emulator import NetworkRun, RecordedWords, Writes, run_words
from synthesis.program import Program
from synthesis.words import phase_words


@dataclass(frozen=True)
class Emulated:
    """What the machine did: (address, expected, found) of wrong words, and the run itself."""

    wrong: list[tuple[int, int, int]]
    run: NetworkRun


def emulated(program: Program) -> Emulated:
    """Execute everything that reaches the accelerator behind its power switches."""
    rows: list[tuple[int, int, int]] = []
    for phase, words in phase_words(program).items():
        if phase != "cnn_enable":
            rows += [(4, address, value) for address, value in words.words.items()]
            rows += [(4, address, value) for address, value in words.control]
            rows += [(4, a, value) for a, values in words.pushes.items() for value in values]
    expected = program.expected
    table = np.stack([expected.addresses, expected.values, expected.masks], axis=1)
    recording = RecordedWords(Writes.of(rows), table.astype(np.int64))
    run, found = run_words(recording, program.chip, program.apb_base)
    return Emulated(recording.mismatches(found), run)
