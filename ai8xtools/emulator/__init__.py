"""The accelerator as a machine that executes words, and a core that runs firmware on it.

Nothing here knows the network loader: the machine sees registers and memories only, so that it can
catch the loader's mistakes. `run_loader` and `compare` check what compiled firmware writes, `Board`
runs a whole program from reset, `Accelerator` executes recorded words.
Source: docs/hardware/execution.md; docs/emulator.md, "The core and its peripherals".
"""

from ai8xtools.answer import PHASES
from ai8xtools.emulator.checks.finding import LayerFinding
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.firmware.alone import NetworkAlone
from ai8xtools.emulator.firmware.board import Board, FirmwareOutcome
from ai8xtools.emulator.firmware.compiling import compile_project
from ai8xtools.emulator.firmware.loader import LoaderRecord, run_loader
from ai8xtools.emulator.loaded_network import LoadedNetwork
from ai8xtools.emulator.machine.accelerator import Accelerator, NetworkRun, run_words
from ai8xtools.emulator.machine.execution import LayerRun
from ai8xtools.emulator.words.addresses import AddressMap
from ai8xtools.emulator.words.compare import WordDifference, compare, count_words
from ai8xtools.emulator.words.recording import RecordedWords
from ai8xtools.emulator.words.writes import Effect, Writes

# Their earlier names, for programs that use them
Finding, Outcome, Program, Run = LayerFinding, FirmwareOutcome, LoadedNetwork, NetworkRun

__all__ = [
    "PHASES",
    "Accelerator",
    "AddressMap",
    "Board",
    "WordDifference",
    "Effect",
    "EmulatorError",
    "Finding",
    "FirmwareOutcome",
    "LayerFinding",
    "LayerRun",
    "LoadedNetwork",
    "LoaderRecord",
    "NetworkAlone",
    "NetworkRun",
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
