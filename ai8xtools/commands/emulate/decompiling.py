"""`emulate.py --decompile`: read the network of a project, or of recorded words, back."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ai8xtools.commands.decompile.tool import decompile
from ai8xtools.commands.emulate.arguments import EmulateOptions
from ai8xtools.commands.emulate.loaded import network_alone
from ai8xtools.emulator import Accelerator, EmulatorError
from ai8xtools.emulator.decode.own_input import set_input
from ai8xtools.emulator.words.recording import read_words

_LONGEST = 40


def decompile_project(project: Path, folder: Path, options: EmulateOptions) -> int:
    """Read back what the functions of a project load; return the exit status.

    Raises EmulatorError as `decompile`, and as loading a project does.
    """
    network = network_alone(project, options)
    network.start(sample=network.has_sample)
    memory = network.board.accelerator.memory
    sample = "stands in memory, as the project loads it"
    if not network.has_sample:
        random = np.random.default_rng(0).integers(-128, 128, network.input_shape)
        set_input(memory, random.astype(np.int8))
        sample = "random numbers, as the project has none"
    return decompile(memory, _name(project.resolve().name), folder, sample=sample)


def decompile_words(words: Path, folder: Path, options: EmulateOptions) -> int:
    """Read back recorded words; return the exit status.

    Raises EmulatorError as `decompile`, and for a file that is no recording (E801).
    """
    if options.chip is None:
        raise EmulatorError("E802", "recorded words do not name the device", "--device", "Name it.")
    accelerator = Accelerator(options.chip, options.apb_base)
    accelerator.write(read_words(words).writes)
    name = _name(words.name.partition(".")[0])
    return decompile(accelerator.memory, name, folder, sample="stands in memory, as recorded")


def _name(text: str) -> str:
    """Return a name that is plain in files and YAML."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST]
    return plain if plain[:1].isalpha() else f"net-{plain}".strip("-")
