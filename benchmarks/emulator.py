#!/usr/bin/env python3
"""Time of emulate.py on the MNIST firmware, and of executing words, beside yardsticks of the run.

The yardsticks are a Python that imports numpy, the compiler alone on the same files, and a matrix
multiplication of numpy with as many multiplications as the network has. With `--cases DIR` the
recorded words of the known answers are executed and the slowest shown, each beside such a
multiplication. Everything runs on one core; figures are medians of `--rounds` runs, in seconds of
processor time, of the recorded words in seconds.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402 - its threads are set above
from tabulate import tabulate  # noqa: E402

from ai8xtools.emulator import Board, EmulatorError, NetworkAlone, NetworkRun, compile_project  # noqa: E402
from ai8xtools.emulator.firmware.data_set import KEEPS_ARRAYS, FirmwareOnData  # noqa: E402
from ai8xtools.emulator.machine.accelerator import run_words  # noqa: E402
from ai8xtools.emulator.project.tree import TreeOptions  # noqa: E402
from ai8xtools.emulator.words.recording import read_words  # noqa: E402
from device import known_chips  # noqa: E402
from device.chip import DEFAULT_APB_BASE  # noqa: E402

NETWORK, CHECKPOINT = "mnist-chw-ai85", "mnist-ai85net5-qat8-q"
SLOWEST = 5
INPUTS = 200
WIDTH = 512  # of the matrices that are multiplied


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the median processor time of some work, that of its children included."""
    times = []
    for _ in range(rounds):
        start = processor_seconds()
        work()
        times.append(processor_seconds() - start)
    return statistics.median(times)


def processor_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def started(*command: str | Path) -> None:
    """Run a command; a failure ends the benchmark."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: {' '.join(map(str, command))} failed: {done.stdout}{done.stderr}")


def products(run: NetworkRun) -> int:
    """Count the multiplications of an executed network."""
    total = 0
    for layer in run.layers:
        config = layer.config
        taps = config.kernels.shape[0] * config.kernels.shape[1]
        channels = config.input.passes * len(config.processors)
        total += layer.output.size * taps * channels
    return total


def multiplication(count: int) -> Callable[[], object]:
    """Return matrix products in float32 with so many multiplications."""
    left = np.ones((max(1, count // WIDTH**2), WIDTH), np.float32)
    right = np.ones((WIDTH, WIDTH), np.float32)
    return lambda: left @ right


def firmware(rounds: int) -> list[list[object]]:
    """Measure the MNIST firmware."""
    with tempfile.TemporaryDirectory() as scratch:
        started(
            ROOT / "ai8xize.py", "--device", "MAX78000", "--test-dir", scratch, "--prefix", "mnist",
            "--config-file", ROOT / "networks" / f"{NETWORK}.yaml",
            "--checkpoint-file", ROOT / "trained" / f"{CHECKPOINT}.pth.tar",
            "--sample-input", ROOT / "tests" / "sample_mnist.npy", "--softmax",
        )  # fmt: skip
        project = Path(scratch) / "mnist"
        image = compile_project(project)
        outcome = Board(image).run()
        assert outcome.passed and outcome.run is not None
        count = products(outcome.run)
        rows: list[tuple[str, Callable[[], object]]] = [
            ("yardstick: import numpy", lambda: started("-c", "import numpy")),
            ("yardstick: compile the project", lambda: compile_project(project)),
            (f"yardstick: {count / 1e6:.1f} million products in numpy", multiplication(count)),
            ("from reset to PASS, compiled", lambda: Board(image).run()),
            ("emulate.py, all of it", lambda: started(ROOT / "emulate.py", project)),
        ]
        times = [(name, seconds(work, rounds)) for name, work in (*rows, *many_inputs(project))]
        return [[name, used, used / times[0][1]] for name, used in times]


def many_inputs(project: Path) -> list[tuple[str, Callable[[], object]]]:
    """Return what runs `INPUTS` inputs through the network, without loading it again."""
    network = NetworkAlone(project, options=TreeOptions(flags=KEEPS_ARRAYS))
    firmware = FirmwareOnData(network, fast=False)
    random = np.random.default_rng(0)
    images = random.integers(-128, 128, (INPUTS, *firmware.input_shape)).astype(np.int8)
    return [
        (f"{INPUTS} inputs, with the C", lambda: firmware.run(images)),
        (f"{INPUTS} inputs, the accelerator alone", lambda: firmware.alone(images)),
    ]


def words(folder: Path) -> tuple[list[list[object]], float, int]:
    """Execute the recorded words of all cases: the slowest, the sum of seconds and the number."""
    measured = []
    for path in sorted(folder.glob("*/golden.npz")):
        recording = read_words(path)
        written = set(recording.writes.address.tolist())
        chip = next(
            c for c in known_chips() if DEFAULT_APB_BASE + c.control_address(0, "CTL") in written
        )
        start = time.perf_counter()
        try:
            run, _ = run_words(recording, chip)
        except EmulatorError:
            continue
        measured.append((time.perf_counter() - start, path.parent.name, products(run)))
    if not measured:
        sys.exit(f"error: {folder} has no cases")
    rows: list[list[object]] = [
        [name, spent, count / 1e6, seconds(multiplication(count), 3)]
        for spent, name, count in sorted(measured, reverse=True)[:SLOWEST]
    ]
    return rows, sum(spent for spent, *_ in measured), len(measured)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--cases", type=Path, metavar="DIR", help="folder of known answers")
    args = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    heads = ["MNIST firmware", "seconds of processor time", "times the first yardstick"]
    print(tabulate(firmware(args.rounds), heads, floatfmt=("", ".4f", ".3f")))
    if args.cases:
        rows, total, number = words(args.cases)
        heads = ["slowest recorded words", "seconds", "million products", "numpy, seconds"]
        print("\n" + tabulate(rows, heads, floatfmt=(".2f", ".2f", ".0f", ".2f")))
        print(f"\nAll {number} recordings: {total:.1f} s")


if __name__ == "__main__":
    main()
