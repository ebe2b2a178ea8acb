#!/usr/bin/env python3
"""Accuracy in floating point and in 16 and 8 bits on a test set: `make qformat-table`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from commands.q15.arguments import BITS, parse  # noqa: E402
from commands.q15.network import read_case  # noqa: E402
from commands.q15.samples import as_maps  # noqa: E402
from quantization.q15.execute import execute, quantize_input  # noqa: E402
from quantization.q15.floating import measure  # noqa: E402
from quantization.q15.formats import Guard  # noqa: E402
from quantization.q15.network import QuantizedNetwork, quantize_network  # noqa: E402
from training.catalog.own_data import dataset_named  # noqa: E402
from training.options import TrainingOptions  # noqa: E402

_BATCH = 50


def test_batches(name: str, folder: str, count: int) -> Iterator[tuple[Any, Any]]:
    """Yield batches of inputs and classes of a test set."""
    dataset = dataset_named(name, "--data-set")
    options = TrainingOptions(arch="", dataset=name, device=85, data=folder)
    _, source = dataset.loader((folder, options), False, True)
    for indices in torch.arange(min(count, len(source))).split(_BATCH):
        pairs = [source[index][:2] for index in indices.tolist()]
        inputs = torch.stack([torch.as_tensor(x) for x, _ in pairs])
        yield inputs, np.array([int(y) for _, y in pairs])


def classes(network: QuantizedNetwork, inputs: Any) -> Any:
    """Return the classes that a network of integers finds, -1 where two results are equal."""
    maps = execute(network, quantize_input(network, as_maps(inputs)))
    results = maps[network.graph.output].reshape(len(inputs), -1)
    order = np.sort(results, 1)
    return np.where(order[:, -1] > order[:, -2], results.argmax(1), -1)


def main() -> int:
    """Print the table; the status is 1 if a network loses more than its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("--data-set", default="MNIST")
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--model", metavar="NAME")
    parser.add_argument("--images", type=int, default=10000)
    args = parser.parse_args()
    words = [args.checkpoint, "unused", "--device", "Q15", "--calib", args.data_set]
    words += ["--data", args.data, *(["--model", args.model] if args.model else [])]
    case = read_case(parse(words))
    ranges = measure(case.graph, case.samples).largest
    rules = [(name, guard) for name in BITS for guard in (Guard.WORST, Guard.CALIBRATED)]
    networks = [quantize_network(case.graph, ranges, ranges, BITS[n], g) for n, g in rules]
    right = np.zeros(1 + len(networks), int)
    total = 0
    for inputs, targets in test_batches(args.data_set, args.data, args.images):
        with torch.no_grad():
            found = [case.model(inputs.clone()).reshape(len(inputs), -1).argmax(1).numpy()]
        found += [classes(network, inputs) for network in networks]
        right += np.array([(one == targets).sum() for one in found])
        total += len(targets)
    print(f"| numbers | guard | right of {total} | difference to floating point in points |")
    print("|---|---|---|---|")
    print(f"| floating point | - | {right[0]} | - |")
    good = True
    for (name, guard), count in zip(rules, right[1:], strict=True):
        loss = 100 * (right[0] - count) / total
        good &= abs(loss) <= {"Q15": 0.05, "Q7": 0.3}[name]
        print(f"| {name} | {guard} | {count} | {-loss:+.2f} |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
