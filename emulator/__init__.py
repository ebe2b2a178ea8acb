"""The accelerator as a machine that executes words, and a core that runs firmware on it.

Nothing here knows the network loader: the machine sees registers and memories only, so that it can
catch the loader's mistakes. `run_loader` and `compare` check what compiled firmware writes, `Board`
runs a whole program from reset, `Accelerator` executes recorded words.
Source: spec/machine.md, spec/sdk-stubs.md.
"""

from emulator.addresses import AddressMap
from emulator.board import Board, Outcome
from emulator.checks import Finding
from emulator.compare import Difference, compare, count_words
from emulator.errors import EmulatorError
from emulator.execution import LayerRun
from emulator.firmware import compile_project
from emulator.loader import PHASES, LoaderRecord, run_loader
from emulator.machine import Accelerator, Run
from emulator.program import Program
from emulator.record import Effect, Writes
from emulator.words import RecordedWords, run_words

__all__ = [
    "PHASES",
    "Accelerator",
    "AddressMap",
    "Board",
    "Difference",
    "Effect",
    "EmulatorError",
    "Finding",
    "LayerRun",
    "LoaderRecord",
    "Outcome",
    "Program",
    "RecordedWords",
    "Run",
    "Writes",
    "compare",
    "compile_project",
    "count_words",
    "run_loader",
    "run_words",
]
