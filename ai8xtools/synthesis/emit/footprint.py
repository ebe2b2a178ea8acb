"""What a project takes of the core's flash and SRAM, part by part.

Arrays are counted exactly, code is estimated. The stack and what a program of the user's adds come
on top.
Source: docs/does-not-fit.md, "The program does not fit".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from ai8xtools.synthesis.emit.code_size import Compiler, code_bytes
from ai8xtools.synthesis.emit.expected import cut, record_stream
from ai8xtools.synthesis.emit.kernels import block_list, processor_arrays
from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.synthesis.emit.unload import delivered, layer_offsets
from ai8xtools.synthesis.program import Program
from ai8xtools.values import frozen
from device.chip import WORD_BYTES

_VECTORS_AND_VARIABLES = 792
"""SRAM of every project: the table of interrupt vectors, and single variables."""
_RISCV_VARIABLES = 880
_PIN_BYTES = 48
"""Settings of the pins that the power monitor of a board listens to."""
_SOFTMAX_BYTES = 2
"""Of each output: a fraction of 16 bits."""
_SNOOP_BYTES = 8
"""Address and value of a result of conditional execution."""

Role = Literal["code", "weights", "biases", "sample", "known answer", "variables", "result"]


@frozen
class MemoryPart:
    """Bytes that one part of a project takes."""

    role: Role
    size: int


@frozen
class CoreMemory:
    """One memory of the core: its parts, and its size in bytes."""

    name: Literal["flash", "SRAM"]
    parts: tuple[MemoryPart, ...]
    size: int

    @property
    def used(self) -> int:
        """Bytes of all parts together."""
        return sum(part.size for part in self.parts)

    @property
    def fits(self) -> bool:
        """Whether there is room for all parts."""
        return self.used <= self.size

    def without(self, *roles: Role) -> CoreMemory:
        """Return the memory without some parts."""
        kept = tuple(part for part in self.parts if part.role not in roles)
        return CoreMemory(self.name, kept, self.size)


@frozen
class Footprint:
    """What a project takes of flash and SRAM."""

    flash: CoreMemory
    sram: CoreMemory

    @property
    def memories(self) -> tuple[CoreMemory, CoreMemory]:
        """Both memories."""
        return self.flash, self.sram


def footprint(program: Program, options: ProjectOptions, compiler: Compiler = "clang") -> Footprint:
    """Return what a project takes of its chip's memories; with a RISC-V core, for both programs.

    Code of clang is the larger.
    """
    chip = program.chip
    return Footprint(
        CoreMemory("flash", tuple(_flash(program, options, compiler)), chip.flash_bytes),
        CoreMemory("SRAM", tuple(_sram(program, options)), chip.sram_bytes),
    )


def _flash(program: Program, options: ProjectOptions, compiler: Compiler) -> Iterable[MemoryPart]:
    code = code_bytes(program, options, compiler)
    yield MemoryPart("code", code + _SNOOP_BYTES * len(program.snoop_results))
    if options.old_kernel_loader:
        yield MemoryPart("weights", sum(array.words.nbytes for array in processor_arrays(program)))
    else:
        yield MemoryPart("weights", block_list(program).nbytes)
    yield MemoryPart("biases", sum(block.values.nbytes for block in program.biases))
    yield MemoryPart("sample", _sample_bytes(program, options))
    if options.kat and not options.inline_check:
        expected = cut(program.expected, options.max_checklines)
        yield MemoryPart("known answer", record_stream(expected).nbytes)


def _sample_bytes(program: Program, options: ProjectOptions) -> int:
    loaded = 0 if options.fixed_input else sum(block.words.nbytes for block in program.inputs)
    return loaded + sum(stream.stored.nbytes for stream in program.fifo)


def _sram(program: Program, options: ProjectOptions) -> Iterable[MemoryPart]:
    pins = _PIN_BYTES if options.energy and program.chip.has_trigger_pins else 0
    second = _RISCV_VARIABLES if options.riscv else 0
    yield MemoryPart("variables", _VECTORS_AND_VARIABLES + pins + second)
    if options.unloads:
        *_, size = layer_offsets(delivered(program, options))
        words = -(-size // WORD_BYTES) * WORD_BYTES
        softmax = _SOFTMAX_BYTES * program.output_count if options.softmax else 0
        yield MemoryPart("result", words + softmax)


def format_footprint(program: Program, options: ProjectOptions) -> list[str]:
    """Return a line for each memory: bytes used of those there are, and by what."""
    flash, sram = map(_line, footprint(program, options).memories)
    smaller = footprint(program, options, "GCC").flash.used
    return [f"{flash}; with GCC {smaller:,}", sram]


def _line(memory: CoreMemory) -> str:
    share = 100 * memory.used / memory.size
    title = "Flash memory:" if memory.name == "flash" else "SRAM:"
    return (
        f"{title:<14} {memory.used:,} bytes out of {memory.size:,} bytes total "
        f"({share:.1f}%): {format_parts(memory)}"
    )


def format_parts(memory: CoreMemory) -> str:
    """Return the parts of a memory in words, the largest first."""
    parts = sorted(memory.parts, key=lambda part: -part.size)
    return ", ".join(f"{part.role} {part.size:,}" for part in parts if part.size)
