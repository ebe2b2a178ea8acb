"""Flash and SRAM of networks/ with random weights, as the loader says and as the linker does.

`make measure WHAT=core-memory` prints a table for each compiler that is installed;
the exit status is 1 if flash or SRAM of a project differ by more than 2 %.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from ai8xtools.emulator.cpu.architecture import CORTEX_M4
from ai8xtools.emulator.cpu.memory_map import CoreMemory
from ai8xtools.emulator.firmware.compiling import compile_firmware
from ai8xtools.synthesis.emit import Footprint, ProjectOptions, emit_project, footprint
from ai8xtools.synthesis.emit.code_size import Compiler
from ai8xtools.synthesis.pipeline import Synthesis
from tests.networks.deployed import DEPLOYED, Deployed, with_random_weights

TOLERANCE = 0.02


@dataclass(frozen=True)
class Measured:
    """What the loader says that a project takes, and what the linked program does, in bytes."""

    said: Footprint
    flash: int
    sram: int

    @property
    def flash_error(self) -> float:
        """By which part of the linked flash the loader is wrong."""
        return self.said.flash.used / self.flash - 1

    @property
    def sram_error(self) -> float:
        """The same for SRAM."""
        return self.said.sram.used / self.sram - 1


def installed() -> list[Compiler]:
    """Return the compilers for the Cortex-M4; `emulate.py` takes the last."""
    gcc = any(map(shutil.which, CORTEX_M4.family.compilers))
    return ["clang", "GCC"] if gcc else ["clang"]


@contextlib.contextmanager
def chosen(compiler: Compiler) -> Iterator[None]:
    """Let `emulate.py` take one of the installed compilers for a while."""
    with pytest.MonkeyPatch.context() as patch:
        if compiler == "clang":
            patch.setattr("ai8xtools.emulator.cpu.compiler.shutil.which", lambda _name: None)
        yield


def measured(
    made: Synthesis, options: ProjectOptions, folder: Path, compiler: Compiler
) -> Measured:
    """Write a project, compile it as `emulate.py` does, and compare its sizes."""
    folder.mkdir(exist_ok=True)
    for name, text in emit_project(made.program, made.summary, options).items():
        if Path(name).name == name:
            (folder / name).write_text(text)
    with chosen(compiler):
        firmware = compile_firmware(folder)
    memory, images = CoreMemory(), [firmware.image, *filter(None, (firmware.wrapper,))]
    flash = sum(map(memory.flash_use, images))
    sram = sum(map(memory.sram_use, images))
    return Measured(footprint(made.program, options, compiler), flash, sram)


def measured_network(
    deployed: Deployed, folder: Path, compilers: Sequence[Compiler]
) -> list[Measured]:
    """Measure a network of networks/ with random weights, for each of some compilers."""
    checkpoint, _ = with_random_weights(deployed, folder)
    made = deployed.synthesized(folder, checkpoint)
    options = ProjectOptions(deployed.file, timer=0)
    return [measured(made, options, folder / "project", compiler) for compiler in compilers]


def _rows(compilers: Sequence[Compiler]) -> Iterator[tuple[str, list[Measured]]]:
    for deployed in DEPLOYED:
        with tempfile.TemporaryDirectory() as folder:
            yield deployed.file, measured_network(deployed, Path(folder), compilers)


def main() -> int:
    """Print the table; return the exit status."""
    compilers = installed()
    heads = (f"{by}: said | linked | error" for by in compilers)
    print(f"| network | {' | '.join(heads)} | SRAM: said | linked | fits |")
    print(f"|---|{'---:|---:|---:|' * len(compilers)}---:|---:|---|")
    worst = 0.0
    for name, row in _rows(compilers):
        flash = (f"{m.said.flash.used:,} | {m.flash:,} | {m.flash_error:+.2%}" for m in row)
        said = row[0].said
        fits = "yes" if said.flash.fits and said.sram.fits else "no"
        sram = f"{said.sram.used:,} | {row[-1].sram:,}"
        print(f"| {name} | {' | '.join(flash)} | {sram} | {fits} |", flush=True)
        worst = max(worst, *(abs(error) for m in row for error in (m.flash_error, m.sram_error)))
    print(f"Largest error: {worst:.2%}")
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
