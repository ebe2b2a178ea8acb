"""Flash and SRAM of networks/ with random weights, as the loader says and as the linker does.

`python -m tests.emulator.core_memory` (`make core-memory`) prints a table; the exit status is 1 if
flash or SRAM of a project differ by more than 2 %.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from emulator.cpu.memory_map import CoreMemory
from emulator.firmware.compiling import compile_firmware
from synthesis.emit import Footprint, ProjectOptions, emit_project, footprint
from synthesis.pipeline import Synthesis
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


def measured(made: Synthesis, options: ProjectOptions, folder: Path) -> Measured:
    """Write a project, compile it as `emulate.py` does, and compare its sizes."""
    folder.mkdir()
    for name, text in emit_project(made.program, made.summary, options).items():
        if Path(name).name == name:
            (folder / name).write_text(text)
    firmware = compile_firmware(folder)
    memory, images = CoreMemory(), [firmware.image, *filter(None, (firmware.wrapper,))]
    flash = sum(map(memory.flash_use, images))
    sram = sum(map(memory.sram_use, images))
    return Measured(footprint(made.program, options), flash, sram)


def measured_network(deployed: Deployed, folder: Path) -> Measured:
    """Measure a network of networks/ with random weights."""
    checkpoint, _ = with_random_weights(deployed, folder)
    made = deployed.synthesized(folder, checkpoint)
    return measured(made, ProjectOptions(deployed.file, timer=0), folder / "project")


def _rows() -> Iterator[tuple[str, Measured]]:
    for deployed in DEPLOYED:
        with tempfile.TemporaryDirectory() as folder:
            yield deployed.file, measured_network(deployed, Path(folder))


def main() -> int:
    """Print the table; return the exit status."""
    print("| network | flash: said | linked | error | SRAM: said | linked | error | fits |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    worst = 0.0
    for name, found in _rows():
        said = found.said
        fits = "yes" if said.flash.fits and said.sram.fits else "no"
        print(
            f"| {name} | {said.flash.used:,} | {found.flash:,} | {found.flash_error:+.2%} | "
            f"{said.sram.used:,} | {found.sram:,} | {found.sram_error:+.2%} | {fits} |",
            flush=True,
        )
        worst = max(worst, abs(found.flash_error), abs(found.sram_error))
    print(f"Largest error: {worst:.2%}")
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
