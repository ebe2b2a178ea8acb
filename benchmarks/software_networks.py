"""Memory and instructions of known networks with each plan.

A part of `make measure WHAT=software-benchmarks`.

The networks are those of the known answers of software networks, with their weights. Each is
planned for a core, compiled with -O3 and run on the emulated core; outputs are compared. "Rings"
are rings, maps and sums; what the arena has more is scratch memory and alignment.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.cpu.counting import NOTHING
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.project import Sample, emit
from ai8xtools.software.fuse import fuse
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import SINGLE, Scheme
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.simulate import simulate
from ai8xtools.values import frozen
from tests.software.known_answers import read_network

_SECONDS = 600.0


@frozen
class Case:
    """A network of the known answers, and its bounds.

    `ring_bytes`: rings, maps and sums of a plan of rows, at most. `millions`: of instructions, at
    most, by core; None if only counted. `small`: code without weights at -Os, at most.
    """

    name: str
    file: str
    ring_bytes: int
    millions: dict[str, float | None]
    small: dict[str, int] | None = None


NETWORKS = (
    Case("cats-dogs", "catsdogs", 13_312, {}),
    Case("MNIST", "mnist", 5_384, {"cortex-m4": 14.5, "cortex-m0plus": 28, "rv32imc": 26}),
    Case(
        "MNIST, extra small",
        "mnistxs",
        672,
        {"cortex-m4": 0.6, "cortex-m0plus": 1.2, "rv32imc": None},
        {"cortex-m0plus": 6144},
    ),
    Case("kws20 v3", "kws20v3", 2_708, {"cortex-m4": 11, "cortex-m0plus": 29, "rv32imc": None}),
    Case("cifar10 nas", "cifar10nas", 14_720, {}),
)
_HEAD = (
    "| network | plan | core | million instructions | bound | rings, bytes | bound | arena | RAM "
    "| stack | code, `-Os` | bound |"
)


def known_networks(folder: Path) -> bool:
    """Print the table; tell whether all results are right and within their bounds."""
    print(f"\n{_HEAD}\n" + "|---" * 12 + "|")
    good = True
    for case in NETWORKS:
        file = folder / f"{case.file}.json"
        if not file.is_file():
            print(f"| {case.name} | left out: {file} is not there |")
            continue
        network, _ = read_network(file)
        for line, right in _lines(case, network):
            good &= right
            print(line + ("" if right else " EXCEEDED OR WRONG"), flush=True)
    return good


def _lines(case: Case, network: Network) -> Iterator[tuple[str, bool]]:
    """Yield a line of the table for each plan and core, and whether it is as wanted."""
    graph = fuse(lower(network))
    for scheme in SINGLE:
        for core in case.millions or ("cortex-m4",):
            chosen = plan(graph, CORES[core], scheme)
            in_rows = scheme is Scheme.ROWS
            fits = not in_rows or chosen.data_bytes <= case.ring_bytes
            head = f"| {case.name} | {scheme} | {core} | "
            rings = f"{chosen.data_bytes:,} | {case.ring_bytes:,}" if in_rows else "- | -"
            rings += f" | {chosen.arena_bytes:,} | "
            if not case.millions:
                yield f"{head}- | - | {rings}- | - | - | - |", fits
                continue
            cells, right = _counted(case, network, chosen)
            yield f"{head}{cells[0]} | {rings}{cells[1]} |", right and fits


def _counted(case: Case, network: Network, chosen: Plan) -> tuple[tuple[str, str], bool]:
    """Return the cells of what a project takes when it runs, and whether it is as wanted."""
    core = chosen.core.name
    outputs = simulate(network, average_rounding=False).outputs
    sample = Sample(network.sample, tuple(outputs[one.index] for one in network.outputs()))
    with tempfile.TemporaryDirectory() as folder:
        for path, text in emit(chosen, sample, case.file, "").items():
            (Path(folder) / path).write_text(text, encoding="utf-8")
        fast = compile_plain(Path(folder), ARCHITECTURES[core])
        run = run_plain(fast, count=True, time_limit=_SECONDS)
        small = run_plain(compile_plain(Path(folder), ARCHITECTURES[core], "-Os"),
                          time_limit=_SECONDS)  # fmt: skip
    millions = sum((run.functions or {}).values(), NOTHING).instructions / 1e6
    bound, code = case.millions[core], (case.small or {}).get(core)
    right = bool(run.passed and small.passed)
    right &= (bound is None or millions <= bound) and (code is None or small.code_bytes <= code)
    cells = (
        f"{millions:.3f} | {_text(bound)}",
        f"{run.ram_bytes:,} | {run.stack_bytes} | {small.code_bytes:,} | {_text(code)}",
    )
    return cells, right


def _text(bound: float | None) -> str:
    return "-" if bound is None else f"{bound:,}"
