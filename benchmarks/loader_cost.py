#!/usr/bin/env python3
"""Time and memory of ai8xize.py on the bundled networks, beside two yardsticks in the same run.

The yardsticks are a Python that imports numpy (what any loader needs) and one that imports torch
(what a loader costs that reads checkpoints with it). With `--cases DIR` known-answer cases of a
folder are measured too, beside what the reference tool needed according to their case.json.
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
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"error: {' '.join(command)} failed")
        wall = time.perf_counter() - start
        found.append((wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
    return Cost(*(statistics.median(column) for column in zip(*found, strict=True)))


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


def known_answers(folder: Path, names: Sequence[str], rounds: int) -> list[list[object]]:
    """Measure cases of the known-answer suite beside the reference tool's recorded cost."""
    rows: list[list[object]] = []
    for name in names:
        case = json.loads((folder / name / "case.json").read_text())
        with tempfile.TemporaryDirectory() as scratch:
            for target, source in case["inputs"].items():
                data = (folder / name / source).read_bytes()
                path = Path(scratch, target)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(lzma.decompress(data) if source.endswith(".xz") else data)
            command = [sys.executable, LOADER, "--test-dir", "out", "--prefix", "net"]
            cost = measure([*command, "--overwrite", *case["args"]], Path(scratch), rounds)
        reference, memory = case["reference_cpu_seconds"], case["reference_peak_mb"]
        rows.append(
            [name, cost.cpu_seconds, reference, cost.cpu_seconds / reference, cost.peak_mb, memory]
        )
    return rows


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--cases", type=Path, metavar="DIR", help="folder of known-answer cases")
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
        headers = ["case", "CPU s", "reference CPU s", "ratio", "peak MB", "reference MB"]
        rows = known_answers(args.cases, names, args.rounds)
        print()
        print(tabulate(rows, headers, floatfmt=("", ".2f", ".2f", ".2f", ".0f", ".0f")))


if __name__ == "__main__":
    main()
