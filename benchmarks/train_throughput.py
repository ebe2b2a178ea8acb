#!/usr/bin/env python3
"""Images per second of ai85net5 on this machine, beside plain torch.nn of the same topology.

Measured are float training, quantization-aware training and the 8-bit evaluation, each with random
1x28x28 images in batches, and the plain network in PyTorch's usual memory layout and in the one
that train.py uses (channels last). All variants take turns, and the best of the rounds counts, so
that other load on the machine disturbs little. With `--threads 1` processor time is measured, which
other programs disturb even less.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import ai8x
from models.ai85net import ai85net5

Step = Callable[[], object]
LAST = {"memory_format": torch.channels_last}


def plain_network() -> nn.Module:
    """Return the topology of ai85net5 in torch.nn modules, without clamping and rounding."""
    return nn.Sequential(
        nn.Conv2d(1, 60, 3, padding=1, bias=False), nn.ReLU(inplace=True),
        nn.MaxPool2d(2), nn.Conv2d(60, 60, 3, padding=2, bias=False), nn.ReLU(inplace=True),
        nn.MaxPool2d(2), nn.Conv2d(60, 56, 3, padding=1, bias=False), nn.ReLU(inplace=True),
        nn.AvgPool2d(2), nn.Conv2d(56, 12, 3, padding=1, bias=False), nn.ReLU(inplace=True),
        nn.Flatten(), nn.Linear(192, 10),
    )  # fmt: skip


def training_step(model: nn.Module, images: Tensor, labels: Tensor) -> Step:
    """Return a function that takes one step of SGD."""
    optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9)
    criterion = nn.CrossEntropyLoss()

    def step() -> None:
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def evaluation_step(model: nn.Module, images: Tensor) -> Step:
    """Return a function that runs the network once without gradients."""
    return torch.no_grad()(lambda: model.eval()(images))


def make_steps(batch: int) -> dict[str, Step]:
    """Return all variants by name."""
    labels = torch.randint(0, 10, (batch,))
    usual = torch.randint(-128, 128, (batch, 1, 28, 28)) / 128
    last = usual.contiguous(**LAST)
    plain_last = plain_network().to(**LAST)
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    unquantized, quantized, fitted = (ai85net5(num_channels=1).to(**LAST) for _ in range(3))
    for network in (quantized, fitted):
        ai8x.initiate_qat(network, {"weight_bits": 8})
    ai8x.fit_ranges(fitted)
    steps = {
        "plain, usual layout: training": training_step(plain_network(), usual, labels),
        "plain, channels last: training": training_step(plain_last, last, labels),
        "ai8x, float: training": training_step(unquantized, last, labels),
        "ai8x, QAT: training": training_step(fitted, last, labels),
        "ai8x, QAT, vendor's ranges: training": training_step(quantized, last, labels),
        "plain, usual layout: evaluation": evaluation_step(plain_network(), usual),
        "plain, channels last: evaluation": evaluation_step(plain_last, last),
    }
    ai8x.set_device(85, simulate=True, round_avg=False, verbose=False)
    bits = {"weight_bits": 8, "bias_bits": 8, "quantize_activation": True}
    integers = ai85net5(num_channels=1, **bits).to(**LAST)
    with torch.no_grad():
        for name, parameter in integers.named_parameters():
            if name.endswith("op.weight"):
                parameter.copy_(torch.randint(-128, 128, parameter.shape))
    steps["ai8x, 8-bit simulation: evaluation"] = evaluation_step(integers, last * 128)
    return steps


def best_seconds(
    steps: dict[str, Step], rounds: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Return the shortest time of each step over the rounds, after one to warm up."""
    best = dict.fromkeys(steps, float("inf"))
    for round_number in range(rounds + 1):
        for name, step in steps.items():
            began = clock()
            step()
            if round_number:
                best[name] = min(best[name], clock() - began)
    return best


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--threads", type=int, help="of torch (default: all processors)")
    args = parser.parse_args()
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times = best_seconds(make_steps(args.batch_size), args.rounds, clock)
    print(f"batch {args.batch_size}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{'':36}{'images/s':>10}{'x plain usual':>15}{'x plain last':>14}")
    for name, seconds in times.items():
        phase = name.rsplit(": ", 1)[1]
        ratios = [times[f"plain, {layout}: {phase}"] / seconds
                  for layout in ("usual layout", "channels last")]  # fmt: skip
        print(f"{name:36}{args.batch_size / seconds:10.0f}{ratios[0]:15.2f}{ratios[1]:14.2f}")


if __name__ == "__main__":
    main()
