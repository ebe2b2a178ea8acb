"""How long a simulation may take before the test bench gives up.

Source: docs/rtl.md, "Time-out and list of tests".
"""

from __future__ import annotations

from collections.abc import Iterable

from ai8xtools.synthesis.emit.rtl.options import RtlOptions
from ai8xtools.synthesis.program import Block, Check, Clear, Program, Wait, Write
from ai8xtools.synthesis.summary import Statistics, Summary
from ai8xtools.values import frozen

_CYCLE_NS = 25
_ARM_ACCESS_NS, _RISCV_ACCESS_NS, _FAST_FIFO_ACCESS_NS = 500, 1000, 100
_MARGIN_NS = 3_000_000
_WRITE_UNITS, _READ_UNITS = 280, 230
_MEMORY_TESTS_NS = 16_000_000
_LEAST_MS = 10
_LONG_MS = 50
"""Longer tests go to another queue."""


@frozen
class Accesses:
    """Numbers of bus accesses; those to FIFOs are counted apart."""

    reads: int = 0
    writes: int = 0
    fifo_reads: int = 0
    fifo_writes: int = 0


def timeout_ms(program: Program, summary: Summary, options: RtlOptions) -> int:
    """Return the time-out in milliseconds, as given or as the program needs."""
    if options.timeout_ms is not None:
        return options.timeout_ms
    project, counted = options.project, accesses(program, options)
    access = _RISCV_ACCESS_NS if project.riscv else _ARM_ACCESS_NS
    cycles = estimated_cycles(summary.statistics)
    if cycles is not None:
        ratio = summary.stream_ratio if counted.fifo_writes else 1.0
        cost = _FAST_FIFO_ACCESS_NS if project.fast_fifo else access
        time = _CYCLE_NS * cycles + access * (counted.reads + counted.writes)
        time += int(cost * ratio) * (counted.fifo_reads + counted.fifo_writes) + _MARGIN_NS
    else:
        writes = counted.writes + counted.fifo_writes
        reads = counted.reads + counted.fifo_reads
        time = 10_000_000 * (3 + (_WRITE_UNITS * writes + _READ_UNITS * reads) // 10**6)
    if project.zero_sram:
        time += _MEMORY_TESTS_NS
    weights = summary.statistics.weight_bytes
    if not options.preload_weights:
        time += weights * access // 4
    if project.checks_weights:
        time += weights * (6 if program.express else 4) * access // 4
    return max(_LEAST_MS, time // 10**6)


def queue_name(program: Program, summary: Summary, options: RtlOptions) -> str:
    """Return the queue that runs the test."""
    if options.queue_name is not None:
        return options.queue_name
    return "long" if timeout_ms(program, summary, options) > _LONG_MS else "short"


def estimated_cycles(statistics: Statistics) -> int | None:
    """Return the cycles of the network, None where the chip's timing is not known."""
    layers = [layer.cycles for layer in statistics.layers]
    if not all(isinstance(cycles, int) for cycles in layers):
        return None
    return statistics.startup_cycles + sum(c for c in layers if c is not None)


def latency_lines(statistics: Statistics) -> str | None:
    """Return the text of latency.txt: total, start-up, layers; None where it is not known."""
    total = estimated_cycles(statistics)
    if total is None or any(layer.cycles_estimated for layer in statistics.layers):
        return None
    layers = [layer.cycles for layer in statistics.layers]
    return "".join(f"{n}\n" for n in (total, statistics.startup_cycles, *layers))


def accesses(program: Program, options: RtlOptions) -> Accesses:
    """Count what the program reads and writes; arrays of weights are not among it."""
    project = options.project
    reads, writes = _steps((*program.init, *program.configure, *program.start))
    if project.verify_writes:
        reads += writes
    writes += sum(len(bias.values) for bias in program.biases)
    if project.kat and not options.result_output:
        reads += len(program.expected)
    if not options.preload_data:
        writes += sum(len(block.words) for block in program.inputs)
    pushed = sum(len(stream.words) for stream in program.fifo)
    return Accesses(reads, writes, 0 if project.no_fifo_wait else pushed, pushed)


def _steps(blocks: Iterable[Block]) -> tuple[int, int]:
    """Return the numbers of reads and writes of register steps."""
    reads = writes = 0
    for block in blocks:
        for step in block.steps:
            if isinstance(step, Wait | Check):
                reads += 1
            elif isinstance(step, Write):
                writes += not step.skipped
            elif isinstance(step, Clear):
                writes += step.size_bytes // 4
    return reads, writes
