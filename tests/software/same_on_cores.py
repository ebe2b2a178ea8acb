"""The same result on every core, as a table: `make measure WHAT=software-cores`.

Trained networks through the command line, and small ones for each operator; each is planned for
the core, compiled for it (-O3) and run on it, emulated. A cell is the number of instructions of an
inference; a program whose outputs are not those of the simulation is called WRONG.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ai8xtools.commands import targets
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.cpu.counting import NOTHING
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.software.plan.schemes import SINGLE, Scheme
from ai8xtools.synthesis.simulate import simulate
from tests.conftest import ROOT
from tests.software.against_simulation import files_of
from tests.software.known_answers import read_network
from tests.software.operators import NETWORKS, network_of

CORES = {
    "cortex-m0plus": "rp2040",
    "cortex-m4": "stm32l4r5",
    "rv32imc": "esp32c3",
    "rv32ec": "ch32v003",
}
"""A microcontroller for each core; its memories are taken to be large enough."""
TRAINED = {
    "digits": ("digits-chw-ai85", "digits-ai85digitsnet-qat8-q", "sample_digits"),
    "mnist": ("mnist-chw-ai85", "mnist-ai85net5-qat8-q", "sample_mnist"),
}
"""Description, checkpoint and sample of each."""
SHARED = {"mnist, extra small": "mnistxs", "kws20 v3": "kws20v3"}
"""Networks of the known answers of software networks."""
OPERATORS = {
    "conv1d": "conv1d, dilated",
    "conv2d, depthwise": "groups",
    "convtranspose2d": "transposed",
    "linear": "linear of a vector",
    "add, sub": "16 operands",
    "or, xor": "or, xor",
    "passthrough, pooling": "pooling of every kind",
    "concatenation": "concatenation",
    "rolling buffer": "rolling buffer",
    "weights of 1, 2, 4 bits": "narrow weights",
}
_SECONDS = 600.0


def written(files: Mapping[str, str], folder: Path) -> Path:
    """Write files; return their folder."""
    for path, text in files.items():
        (folder / path).write_text(text)
    return folder


def trained(name: str, core: str, scheme: Scheme, folder: Path) -> Path:
    """Write the project of a trained network by the command line; return its folder."""
    description, checkpoint, sample = TRAINED[name]
    words = [
        "--device", "MCU", "--mcu", CORES[core], "--l1", "1M", "--flash", "16M",
        "--scheme", str(scheme), "--config-file", str(ROOT / f"networks/{description}.yaml"),
        "--checkpoint-file", str(ROOT / f"trained/{checkpoint}.pth.tar"),
        "--sample-input", str(ROOT / f"tests/{sample}.npy"),
        "--prefix", "net", "--test-dir", str(folder),
    ]  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        targets.main("ai8xize.py", words)
    return folder / "net"


def shared(name: str, core: str, scheme: Scheme, folder: Path) -> Path | str:
    """Write the project of a network of the known answers; return its folder, or why not."""
    file = ROOT.parent / "shared/kat-software/cmsis-software-nn" / f"{SHARED[name]}.json"
    if not file.is_file():
        return f"{file.name} is not there"
    network, arrays = read_network(file)
    made = simulate(network, average_rounding=False).outputs[network.order[-1]]
    if not np.array_equal(made.transpose(1, 2, 0).reshape(-1), arrays["output"]):
        return "the simulation is WRONG"
    return written(files_of(network, core, scheme), folder)


def small(name: str, core: str, scheme: Scheme, folder: Path) -> Path:
    """Write the project of a small network; return its folder."""
    return written(files_of(network_of(NETWORKS[OPERATORS[name]]), core, scheme), folder)


def ran(project: Path, core: str) -> int | None:
    """Return the instructions of an inference on a core; None if its outputs are wrong."""
    program = compile_plain(project, ARCHITECTURES[core])
    run = run_plain(program, count=True, time_limit=_SECONDS)
    total = sum((run.functions or {}).values(), NOTHING)
    return total.instructions if run.passed else None


def cells(
    name: str,
    make: Callable[[str, str, Scheme, Path], Path | str],
    cores: Sequence[str],
    schemes: Sequence[Scheme],
) -> Iterator[str]:
    """Yield what a network takes on each core with each plan."""
    for core in cores:
        for scheme in schemes:
            with tempfile.TemporaryDirectory() as folder:
                project = make(name, core, scheme, Path(folder))
                if isinstance(project, str):
                    yield f"left out: {project}"
                    continue
                found = ran(project, core)
            yield "WRONG" if found is None else f"{found:,}"


def main() -> int:
    """Print the table; the exit status is 1 if a result is wrong."""
    makers: dict[str, Callable[[str, str, Scheme, Path], Path | str]] = {
        **dict.fromkeys(TRAINED, trained),
        **dict.fromkeys(SHARED, shared),
        **dict.fromkeys(OPERATORS, small),
    }
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", nargs="*", default=[*CORES], choices=CORES)
    parser.add_argument("--schemes", nargs="*", default=[*SINGLE], type=Scheme)
    parser.add_argument("names", nargs="*", default=[*makers])
    args = parser.parse_args()
    heads = [f"{core} {scheme}" for core in args.cores for scheme in args.schemes]
    print("| network | " + " | ".join(heads) + " |")
    print("|---|" + "---:|" * len(heads))
    wrong = 0
    for name in args.names:
        row = [*cells(name, makers[name], args.cores, args.schemes)]
        wrong += row.count("WRONG")
        print(f"| {name} | " + " | ".join(row) + " |", flush=True)
    print(f"Instructions of an inference, outputs equal the simulation; {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
