"""Compiling a project, unmodified, for the emulated cores.

The C files are compiled against `emulator/sdk`, a stand-in for the vendor's SDK.
Source: docs/emulator.md, "The core and its peripherals".
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from ai8xtools.emulator.cpu.architecture import CORTEX_M4
from ai8xtools.emulator.cpu.deadline import within
from ai8xtools.emulator.cpu.elf import Image
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.project.building import Build, build_program
from ai8xtools.emulator.project.headers import SDK
from ai8xtools.emulator.project.network import NetworkSources, network_sources
from ai8xtools.emulator.project.tree import ProjectTree, TreeOptions, chip_of, read_tree
from ai8xtools.emulator.words.addresses import control_registers
from ai8xtools.reading import source_text
from ai8xtools.values import frozen
from device import Chip

__all__ = ["SDK", "Firmware", "compile_firmware", "compile_project", "compile_wrapper", "target_of"]


@frozen
class Firmware:
    """The compiled programs of a project.

    `image` runs the network, `wrapper` is that of an Arm core that starts the RISC-V core. `chip`
    is the one that the project is for, if known; `notes` are for the user.
    """

    image: Image
    wrapper: Image | None
    chip: Chip | None
    notes: tuple[str, ...]
    repetitions: tuple[str, ...]
    """Loops that repeat parts of an inference, as programs that measure power have them."""
    written_to: Chip | None = None
    """The chip whose registers the sources name."""


def compile_firmware(project: Path, options: TreeOptions | None = None) -> Firmware:
    """Compile and link the programs of a project; nothing is written into its folder.

    Of a project for the RISC-V core these are two, otherwise one for the Cortex-M4. Raises
    EmulatorError: no such folder or no C files (E800), no compiler (E810), the compiler refuses the
    program (E811, with the compiler's first error).
    """
    with _reading(project, options):
        tree = read_tree(project, options)
        program = _network_program(tree)
        wrapper = build_program(tree, tree.wrappers, CORTEX_M4) if tree.wrappers else None
    notes = (*program.notes, *(wrapper.notes if wrapper else ()))
    return Firmware(
        program.image,
        wrapper.image if wrapper else None,
        tree.chip,
        tuple(dict.fromkeys(notes)),
        program.repetitions,
        _chip_written_to(tree),
    )


def _chip_written_to(tree: ProjectTree) -> Chip | None:
    """Return the chip whose first control register alone is named in the sources."""
    text = "".join(source_text(source) for source in tree.sources)
    chips = [chip for address, chip in control_registers().items() if f"{address:#x}" in text]
    return chips[0] if len(chips) == 1 else None


def compile_network(
    project: Path, options: TreeOptions | None = None, *, residents: bool = False
) -> tuple[Firmware, NetworkSources]:
    """Compile the functions of a project's network, or with `residents` of several that are loaded
    together, without its main().

    With them comes what of the program loads the sample and checks the output, if that compiles.
    Raises EmulatorError as `compile_firmware`, and if there is no network, or several (E814).
    """
    with _reading(project, options):
        tree = read_tree(project, options)
        sources = network_sources(tree, residents=residents)
        try:
            build = build_program(tree, [*sources.files, *sources.program], tree.core, alone=True)
        except EmulatorError:
            if not sources.program:
                raise
            sources = replace(sources, program=())
            build = build_program(tree, sources.files, tree.core, alone=True)
    return Firmware(build.image, None, tree.chip, build.notes, ()), sources


def compile_project(project: Path) -> Image:
    """Compile and link the program that runs the network, as `compile_firmware` does."""
    with _reading(project):
        return _network_program(read_tree(project)).image


def compile_wrapper(project: Path) -> Image | None:
    """Compile the program of the Arm core that starts the RISC-V core; None if there is none.

    Raises EmulatorError as `compile_firmware` does.
    """
    with _reading(project):
        tree = read_tree(project)
        return build_program(tree, tree.wrappers, CORTEX_M4).image if tree.wrappers else None


def target_of(project: Path) -> Chip | None:
    """Return the chip that the project's makefile is for; None if unknown."""
    return chip_of(project)


def _reading(
    project: Path, options: TreeOptions | None = None
) -> contextlib.AbstractContextManager[None]:
    return within((options or TreeOptions()).seconds, project)


def _network_program(tree: ProjectTree) -> Build:
    return build_program(tree, tree.sources, tree.core)
