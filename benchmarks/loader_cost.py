#!/usr/bin/env python3
"""Time and memory of ai8xize.py on the bundled networks, beside two yardsticks in the same run.

The yardsticks are a Python that imports numpy (what any loader needs) and one that imports torch
(what a loader costs that reads checkpoints with it). With `--cases DIR` known-answer cases of a
folder are measured too, beside what the reference tool needed according to their case.json; with
`--all` every one that it accepts, with a table by family and the cases that come closest to it.
Figures are medians of `--rounds` runs: wall and processor seconds, peak memory of the process.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
LOADER = str(ROOT / "ai8xize.py")
NETWORKS = {
    "MNIST, ai85net5": ("mnist-chw-ai85", "mnist-ai85net5-qat8-q", "sample_mnist"),
    "digits, ai85digitsnet": ("digits-chw-ai85", "digits-ai85digitsnet-qat8-q", "sample_digits"),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians over several runs of a command."""

    wall_seconds: float
    cpu_seconds: float
    peak_mb: float


def measure(command: Sequence[str], folder: Path, rounds: int) -> Cost:
    """Run a command several times in a folder; a failure ends the benchmark."""
    runs = []
    for _ in range(rounds):
        start = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"error: {' '.join(command)} failed; run it in {folder}")
        wall = time.perf_counter() - start
        runs.append((wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
    return Cost(*(statistics.median(column) for column in zip(*runs, strict=True)))


def bundled(rounds: int) -> list[list[object]]:
    """Measure the yardsticks and the networks of this repository."""
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as scratch:
        commands = {
            f"yardstick: import {module}": [sys.executable, "-c", f"import {module}"]
            for module in ("numpy", "torch")
        }
        for name, (network, checkpoint, sample) in NETWORKS.items():
            commands[name] = [
                sys.executable, LOADER, "--device", "MAX78000", "--overwrite", "--softmax",
                "--test-dir", scratch, "--prefix", network, "--timer", "0",
                "--config-file", str(ROOT / "networks" / f"{network}.yaml"),
                "--checkpoint-file", str(ROOT / "trained" / f"{checkpoint}.pth.tar"),
                "--sample-input", str(ROOT / "tests" / f"{sample}.npy"),
            ]  # fmt: skip
        for name, command in commands.items():
            cost = measure(command, ROOT, rounds)
            rows.append([name, cost.wall_seconds, cost.cpu_seconds, cost.peak_mb])
    return rows


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a known-answer case costs, and what it cost the reference tool."""

    name: str
    family: str
    cost: Cost
    reference_cpu_seconds: float
    reference_peak_mb: float

    @property
    def time_ratio(self) -> float:
        """Share of the reference tool's processor time."""
        return self.cost.cpu_seconds / self.reference_cpu_seconds

    @property
    def memory_ratio(self) -> float:
        """Share of the reference tool's memory."""
        return self.cost.peak_mb / self.reference_peak_mb

    def row(self) -> list[object]:
        """Return the columns of CASE_HEADERS."""
        return [
            self.name, self.cost.cpu_seconds, self.reference_cpu_seconds, self.time_ratio,
            self.cost.peak_mb, self.reference_peak_mb, self.memory_ratio,
        ]  # fmt: skip


CASE_HEADERS = ["case", "CPU s", "reference", "ratio", "peak MB", "reference", "ratio"]
FAMILY_HEADERS = [
    "family", "cases", "CPU s, median", "highest", "ratio, median", "highest",
    "peak MB, highest", "ratio, highest",
]  # fmt: skip
_SHOWN = 4
"""Cases shown from the front of a ranking."""


def compare(folder: Path, name: str, rounds: int) -> Comparison:
    """Measure a case of the known-answer suite beside the reference tool's recorded cost."""
    case = json.loads((folder / name / "case.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        for target, source in case["inputs"].items():
            data = (folder / name / source).read_bytes()
            path = Path(scratch, target)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(lzma.decompress(data) if source.endswith(".xz") else data)
        command = [sys.executable, LOADER, "--test-dir", "out", "--prefix", "net"]
        cost = measure([*command, "--overwrite", *case["args"]], Path(scratch), rounds)
    seconds, memory = case["reference_cpu_seconds"], case["reference_peak_mb"]
    return Comparison(name, case["family"], cost, seconds, memory)


def accepted(folder: Path) -> list[str]:
    """Return the names of the cases for which a project is generated."""
    return sorted(
        path.parent.name
        for path in folder.glob("*/case.json")
        if json.loads(path.read_text(encoding="utf-8"))["kind"] == "image"
    )


def family_row(name: str, comparisons: Sequence[Comparison]) -> list[object]:
    """Return the columns of FAMILY_HEADERS."""
    seconds = [c.cost.cpu_seconds for c in comparisons]
    ratios = [c.time_ratio for c in comparisons]
    return [
        name, len(comparisons), statistics.median(seconds), max(seconds), statistics.median(ratios),
        max(ratios), max(c.cost.peak_mb for c in comparisons),
        max(c.memory_ratio for c in comparisons),
    ]  # fmt: skip


def print_families(comparisons: Sequence[Comparison]) -> None:
    """Print a row for each family and one for all, and the cases at the ends."""
    families = sorted({c.family for c in comparisons})
    rows = [family_row(f, [c for c in comparisons if c.family == f]) for f in families]
    rows.append(family_row("all", comparisons))
    formats = ("", "d", ".2f", ".2f", ".2f", ".2f", ".0f", ".2f")
    print(tabulate(rows, FAMILY_HEADERS, floatfmt=formats))
    for title, key in (
        ("highest ratios of time", lambda c: -c.time_ratio),
        ("highest ratios of memory", lambda c: -c.memory_ratio),
        ("longest for the reference tool", lambda c: -c.reference_cpu_seconds),
    ):
        print(f"\n{title}:")
        print_cases(sorted(comparisons, key=key)[:_SHOWN])


def print_cases(comparisons: Sequence[Comparison]) -> None:
    """Print a row for each case."""
    formats = ("", ".2f", ".2f", ".2f", ".0f", ".0f", ".2f")
    print(tabulate([c.row() for c in comparisons], CASE_HEADERS, floatfmt=formats))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--cases", type=Path, metavar="DIR", help="folder of known-answer cases")
    parser.add_argument("--all", action="store_true", help="measure every case of the folder")
    parser.add_argument("names", nargs="*", help="cases to measure (default: four)")
    args = parser.parse_args()
    headers = ["", "wall s", "CPU s", "peak MB"]
    print(tabulate(bundled(args.rounds), headers, floatfmt=("", ".2f", ".2f", ".0f")))
    if args.cases:
        names = args.names or [
            "max78000-mnist",
            "max78000-cifar-10",
            "max78000-cifar-100-residual",
            "max78002-cifar-100-effnet2",
        ]
        names = accepted(args.cases) if args.all else names
        comparisons = [compare(args.cases, name, args.rounds) for name in names]
        print()
        if args.all:
            print_families(comparisons)
        else:
            print_cases(comparisons)


if __name__ == "__main__":
    main()
