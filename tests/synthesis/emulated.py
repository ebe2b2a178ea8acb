"""A program's words on the emulated accelerator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ai8xtools.emulator import Accelerator, NetworkRun, RecordedWords, Writes
from ai8xtools.emulator.report.cycles import network_cycles
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.words import phase_words


@dataclass(frozen=True)
class Emulated:
    """What the machine did: (address, expected, found) of wrong words, and the run itself.

    `cycles` are the estimates of its layers.
    """

    wrong: list[tuple[int, int, int]]
    run: NetworkRun
    cycles: list[int]


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
    accelerator = Accelerator(program.chip, program.apb_base)
    accelerator.write(recording.writes)
    run = accelerator.run()
    cycles = network_cycles(accelerator.memory, [done.config for done in run.layers])
    wrong = recording.mismatches(accelerator.data_words())
    return Emulated(wrong, run, [layer.estimate for layer in cycles])
