"""How much code the compiled functions of a project take.

Nothing is compiled: the statements that become code are counted, by what they cost. The costs were
fitted to some hundred projects as `emulate.py` compiles them for the Cortex-M4 (-O2) with clang of
ziglang and with GCC 12; of programs for the RISC-V core, with clang only.
Source: docs/does-not-fit.md, "The program does not fit".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, assert_never

from ai8xtools.synthesis.emit.expected import cut
from ai8xtools.synthesis.emit.kernels import processor_arrays
from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.synthesis.emit.unload import Transposed, UnloadCode, delivered, unload_code
from ai8xtools.synthesis.program import Block, Check, Clear, Program, TimerStart, Wait, Write
from device.chip import WORD_BYTES

_ALL_LANES = tuple(range(WORD_BYTES))
_SMALL, _HALF = 1 << 8, 1 << 16
_PAGE = 12  # bits of the distance that a store instruction holds
_UNROLLED_INSTRUCTIONS = 150
"""Loops grow up to this length where compilers write out several rounds."""
Compiler = Literal["clang", "GCC"]
_CLANG, _GCC = 0, 1
_COSTS = {
    # every project: the start, all functions that do not depend on the network, all libraries
    "program": (9650, 4652.9),
    # registers: a store, another 4 KiB page of addresses, a constant, the same constant again
    "store": (2.3, 4.4),
    "page": (6.3, 0),
    "half": (0.3, 0),
    "word": (13.5, 0),
    "half again": (2.6, 0),
    "word again": (8.8, 6.0),
    "read back": (11.5, 12.2),
    "wait": (10, 52.2),
    "clear": (280, 120),
    # loading weights, biases and the sample
    "array": (361, 29.9),
    "weights read back": (902, 300.3),
    "bias": (155, 0),
    "input": (18, 5.6),
    "fifo": (240, 0),
    # comparing the output in a loop, or word by word
    "check": (220, 243.8),
    "comparison": (32.4, 24.4),
    # cnn_unload()
    "unload": (114, 0),
    "loop": (15, 31),
    "8-bit value": (6.7, 0.7),
    "32-bit value": (8, 10.3),
    "port channel": (24, 20),
    "port read": (5.8, 6),
    # options of the main program; with a RISC-V core, that of the Arm core
    "softmax": (890, 209.8),
    "energy": (280, 500.2),
    "forever": (507, 142.3),
    "boost": (348, 300),
    "trims": (395, 300),
    "timer": (200, 194.9),
    "riscv": (1350, 1350),
}
"""Bytes of each kind of statement or function, compiled by clang and by GCC."""
Terms = Counter[str]
"""How often each kind occurs."""


def code_bytes(program: Program, options: ProjectOptions, compiler: Compiler) -> int:
    """Estimate the bytes of code and texts of a compiled project, all libraries included."""
    column = _GCC if compiler == "GCC" and not options.riscv else _CLANG
    terms = _terms(program, options)
    return round(sum(_COSTS[kind][column] * count for kind, count in terms.items()))


def _terms(program: Program, options: ProjectOptions) -> Terms:
    """Count what costs code."""
    terms: Terms = Counter(_main(options))
    for blocks in (program.init, program.configure, program.start):
        terms.update(_registers(blocks, verify=options.verify_writes))
    terms.update(_loading(program, options))
    if options.kat:
        inline = len(cut(program.expected, options.max_checklines))
        terms.update({"comparison": inline} if options.inline_check else {"check": 1})
    if options.uses_unload:
        port = options.unroll_mlator if options.mlator else None
        code = unload_code(
            delivered(program, options), options.unroll_wide, options.unroll_8bit, port
        )
        terms.update(_unload(code))
    return terms


def _main(options: ProjectOptions) -> Iterator[str]:
    """Yield what every project has, and what options add to the main program."""
    yield "program"
    used = {
        "weights read back": options.checks_weights,
        "softmax": options.softmax,
        "energy": options.energy,
        "forever": options.forever,
        "boost": options.boost is not None,
        "trims": options.trims is not None,
        "timer": options.inference_timer is not None,
        "riscv": options.riscv,
    }
    yield from (kind for kind, is_used in used.items() if is_used)


def _registers(blocks: Iterable[Block], *, verify: bool) -> Iterator[str]:
    """Yield stores, the constants that they need, and what is between them."""
    page = last = -1
    seen: set[int] = set()
    for step in (step for block in blocks for step in block.steps):
        match step:
            case Write(skipped=True) | TimerStart():
                continue
            case Write():
                yield "store"
                if step.address >> _PAGE != page:
                    page = step.address >> _PAGE
                    yield "page"
                if step.value != last and step.value >= _SMALL:
                    yield _constant(step.value) + (" again" if step.value in seen else "")
                seen.add(step.value)
                last = step.value
                if verify and step.verifiable:
                    yield "read back"
            case Wait() | Check():
                yield "wait"
            case Clear():
                yield "clear"
            case _:
                assert_never(step)


def _constant(value: int) -> str:
    """Return the kind of a constant: whether one instruction of the core holds it."""
    lowest = (value & -value).bit_length() - 1
    return "half" if value < _HALF or value >> lowest < _SMALL else "word"


def _loading(program: Program, options: ProjectOptions) -> Terms:
    """Count calls that load weights, biases and the sample."""
    return Counter(
        {
            "array": len(processor_arrays(program)) if options.old_kernel_loader else 0,
            "bias": len(program.biases),
            "input": len(program.inputs),
            "fifo": len(program.fifo),
        }
    )


def _unload(code: UnloadCode) -> Terms:
    """Count the statements that read data memory."""
    terms: Terms = Counter(unload=1)
    for output in code.outputs:
        for run in output.runs:
            # bytes that stay neighbours are copied as whole words
            together = run.width == 8 and run.plane == 1 and run.lanes == _ALL_LANES
            for chunk in run.chunks:
                values = chunk.bodies * (1 if together else len(run.lanes))
                rounds = _unrolled(chunk.loops, chunk.bodies + 2 * values)
                terms["loop"] += chunk.loops > 1
                terms[f"{run.width}-bit value"] += values * rounds
        if output.transposed:
            terms.update(_ports(output.transposed))
    return terms


def _unrolled(rounds: int, instructions: int) -> int:
    """Return how many rounds of a loop of constant length a compiler writes out one by one."""
    most = max(1, _UNROLLED_INSTRUCTIONS // instructions)
    return next(n for n in range(min(rounds, most), 0, -1) if rounds % n == 0)


def _ports(transposed: Transposed) -> Terms:
    """Count what reads an output through the transposing ports."""
    channels = sum(len(group) for _, group in transposed.ports)
    reads = sum(c.bodies * _unrolled(c.loops, 2 * c.bodies) for c in transposed.chunks)
    reads += transposed.tail
    return Counter({"port channel": channels, "port read": channels * reads})
