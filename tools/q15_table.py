#!/usr/bin/env python3
"""Accuracy in floating point, 16 and 8 bits and fixed point on a test set.

`make measure WHAT=qformat-table` runs it.

Integers are computed by the C of projects and by the C reader of containers, compiled for this
computer.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ai8xtools.commands.fixed.quantize import map_ranges  # noqa: E402
from ai8xtools.commands.q15 import BITS  # noqa: E402
from ai8xtools.commands.q15.arguments import parse  # noqa: E402
from ai8xtools.commands.q15.network import Case, read_case  # noqa: E402
from ai8xtools.commands.quantize.samples import as_maps  # noqa: E402
from ai8xtools.diagnostics import run  # noqa: E402
from ai8xtools.quantization.fixed.division import Division  # noqa: E402
from ai8xtools.quantization.fixed.network import FixedRules, fix_network  # noqa: E402
from ai8xtools.quantization.fixed.ranges import Rule  # noqa: E402
from ai8xtools.quantization.formats import to_fixed  # noqa: E402
from ai8xtools.quantization.q15.execute import execute, quantize_input  # noqa: E402
from ai8xtools.quantization.q15.floating import compute, measure  # noqa: E402
from ai8xtools.quantization.q15.formats import Guard  # noqa: E402
from ai8xtools.quantization.q15.network import quantize_network  # noqa: E402
from ai8xtools.software.container.from_fixed import FixedLowering  # noqa: E402
from ai8xtools.software.container.pack import pack  # noqa: E402
from ai8xtools.software.q15.emit import Sample, emit  # noqa: E402
from ai8xtools.training.catalog.own_data import dataset_named  # noqa: E402
from ai8xtools.training.options import TrainingOptions  # noqa: E402
from ai8xtools.values import frozen  # noqa: E402

_BATCH = 50
_C = ROOT / "tools" / "c"
_READER = ROOT / "ai8xtools" / "software" / "runtime" / "nnb"
_FIXED = ((None, Division.POWER_OF_TWO), (None, Division.INTEGER), (8, Division.POWER_OF_TWO))
_BOUNDS = {"Q15": 0.05, "Q7": 0.3}


@frozen
class Program:
    """Integers as a program: how it is called, and the format of its input."""

    name: str
    rule: str
    command: tuple[str, ...]
    fraction: int
    bits: int

    def classes(self, inputs: Any) -> Any:
        """Return the classes of inputs [N, C, H, W], -1 where two results are equal."""
        values = to_fixed(as_maps(inputs).transpose(0, 2, 3, 1), self.fraction, self.bits)
        kind = f"<i{self.bits // 8}"
        done = subprocess.run(
            self.command, input=values.astype(kind).tobytes(), capture_output=True, check=True
        )
        results = np.frombuffer(done.stdout, kind).reshape(len(inputs), -1)
        order = np.sort(results, 1)
        return np.where(order[:, -1] > order[:, -2], results.argmax(1), -1)


def test_batches(name: str, folder: str, count: int) -> Iterator[tuple[Any, Any]]:
    """Yield batches of inputs and classes of a test set."""
    dataset = dataset_named(name, "--data-set")
    options = TrainingOptions(arch="", dataset=name, device=85, data=folder)
    _, source = dataset.loader((folder, options), False, True)
    for indices in torch.arange(min(count, len(source))).split(_BATCH):
        pairs = [source[index][:2] for index in indices.tolist()]
        inputs = torch.stack([torch.as_tensor(x) for x, _ in pairs])
        yield inputs, np.array([int(y) for _, y in pairs])


def qformat_programs(case: Case, folder: Path) -> Iterator[Program]:
    """Yield the programs of 16 and of 8 bits."""
    ranges = measure(case.graph, case.samples).largest
    for name, bits in BITS.items():
        for guard in (Guard.WORST, Guard.CALIBRATED):
            network = quantize_network(case.graph, ranges, ranges, bits, guard)
            integers = quantize_input(network, case.samples[0][:1])
            output = execute(network, integers)[network.graph.output]
            place = folder / f"{name}-{guard}"
            place.mkdir()
            for path, text in emit(network, Sample(integers[0], output[0]), name, "").items():
                (place / path).write_text(text, encoding="utf-8")
            sources = [_C / "run_project.c", place / "cnn.c", place / "nn_kernels.c"]
            _compile(sources, place)
            command = (str(place / "main"),)
            yield Program(name, f"guard {guard}", command, network.fractions[0], bits)


def fixed_programs(case: Case, folder: Path) -> Iterator[Program]:
    """Yield the C reader with containers of fixed-point weights."""
    _compile([_C / "run_container.c", *sorted(_READER.glob("*.c"))], _READER, folder / "reader")
    ranges = map_ranges(case.graph, case.samples)
    for bits, division in _FIXED:
        rules = FixedRules(bits, 35.0, division, Rule("max"), Rule("max"))
        network = fix_network(case.graph, ranges, rules)
        file = folder / f"{bits}-{division}.nnb"
        file.write_bytes(pack(FixedLowering(network).container()))
        used = "+".join(str(layer.bits) for layer in network.layers.values())
        command = (str(folder / "reader"), str(file))
        rule = f"--bits {bits or 'auto'} --div {division}: {used}"
        yield Program("FIXED", rule, command, network.fractions[0], network.data_bits)


def _compile(sources: Sequence[Path], include: Path, program: Path | None = None) -> None:
    target = program or include / "main"
    compiler = ["cc", "-O3", "-march=native", f"-I{include}"]
    subprocess.run([*compiler, *sources, "-o", target], check=True)


def main() -> int:
    """Print the table; the status is 1 if a network loses more than its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("--data-set", default="MNIST")
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--model", metavar="NAME")
    parser.add_argument("--images", type=int, default=10000)
    args = parser.parse_args()
    words = [args.checkpoint, "unused", "--device", "Q15", "--calibrate", args.data_set]
    words += ["--data", args.data, *(["--model", args.model] if args.model else [])]
    case = read_case(parse(words).case)
    with tempfile.TemporaryDirectory() as folder:
        programs = [*qformat_programs(case, Path(folder)), *fixed_programs(case, Path(folder))]
        right = np.zeros(1 + len(programs), int)
        total = 0
        for inputs, targets in test_batches(args.data_set, args.data, args.images):
            results = compute(case.graph, as_maps(inputs))[case.graph.output]
            classes = [results.reshape(len(inputs), -1).argmax(1)]
            classes += [program.classes(inputs) for program in programs]
            right += np.array([(one == targets).sum() for one in classes])
            total += len(targets)
    print(f"| numbers | rule | right of {total} | difference to floating point in points |")
    print("|---|---|---|---|")
    print(f"| floating point | - | {right[0]} | - |")
    good = True
    for program, count in zip(programs, right[1:], strict=True):
        loss = 100 * (right[0] - count) / total
        good &= abs(loss) <= _BOUNDS.get(program.name, 100)
        print(f"| {program.name} | {program.rule} | {count} | {-loss:+.2f} |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(run(main))
