#!/usr/bin/env python3
"""Accuracy after quantization without QAT: calibration beside every other method of quantize.py.

A network is trained in floating point on the bundled digits (or taken from `--checkpoint`),
quantized by each method with 8, 4 and 2 bits, and computed by the 8-bit simulation on the test set.
SNR compares its outputs with those of the trained network, after the common factor that suits it
best; "same" is the share of images for which both name the same class.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import ai8x
from ai8xtools.checkpoint import Array, Checkpoint, read_checkpoint
from ai8xtools.commands.quantize.calibrator import load_samples
from ai8xtools.quantization import (
    Calibration,
    ClipMethod,
    QuantizationOptions,
    bits_by_layer,
    quantize_checkpoint,
)
from ai8xtools.quantization.calibration import calibrate
from ai8xtools.training.catalog.discovery import (
    DatasetEntry,
    ModelEntry,
    choose,
    find_datasets,
    find_models,
)
from ai8xtools.training.network.building import build_model
from ai8xtools.training.options import TrainingOptions

METHODS: dict[str, dict[str, Any]] = {
    "power of two (default)": {},
    "--clip-method MAX": {"clip_method": ClipMethod.MAX},
    "--clip-method AVGMAX": {"clip_method": ClipMethod.AVGMAX},
    "--clip-method STDDEV": {"clip_method": ClipMethod.STDDEV},
    "--clip-method SCALE": {"clip_method": ClipMethod.SCALE},
    "--clip-method SCALE --scale 1.0": {"clip_method": ClipMethod.SCALE, "scale": 1.0},
}


@dataclass(frozen=True, slots=True)
class Subject:
    """A network with its data set, its trained weights, and what they answer to the test set."""

    model: ModelEntry
    dataset: DatasetEntry
    options: TrainingOptions
    trained: Checkpoint
    images: Tensor
    labels: Tensor
    answers: Tensor

    def network(self, state: dict[str, Array], simulate: bool) -> nn.Module:
        """Return the network with these tensors."""
        return _network(self.model, self.dataset, self.options, state, simulate)


def _network(
    model: ModelEntry,
    dataset: DatasetEntry,
    options: TrainingOptions,
    state: dict[str, Array] | None,
    simulate: bool,
) -> nn.Module:
    ai8x.set_device(options.device, simulate, False, verbose=False)
    options = replace(options, act_mode_8bit=simulate)
    network = build_model(model, dataset, options)
    if state is not None:
        network.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in state.items()})
    return network.eval()


def train(network: nn.Module, data: Any, epochs: int) -> dict[str, Array]:
    """Train in floating point; return the tensors."""
    optimizer = torch.optim.Adam(network.parameters(), 0.001)
    for _ in range(epochs):
        for part in torch.randperm(len(data)).split(64):
            images, labels = data.batch(part)
            loss = nn.functional.cross_entropy(network.train()(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return {name: tensor.numpy().copy() for name, tensor in network.state_dict().items()}


def subject(args: argparse.Namespace) -> Subject:
    """Return what the command line names; train it if there is no checkpoint."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # sums in the same order on every machine
    model = choose(find_models(), args.model, "--model")
    dataset = choose(find_datasets(), args.dataset, "--dataset")
    options = TrainingOptions(
        arch=model.name, dataset=dataset.name, data=args.data, use_bias=args.use_bias
    )
    training, test = dataset.loader((args.data, options), args.checkpoint is None, True)
    if args.checkpoint is None:
        network = _network(model, dataset, options, None, simulate=False)
        trained = Checkpoint({"state_dict": train(network, training, args.epochs), "extras": {}})
    else:
        trained = read_checkpoint(args.checkpoint)
    images, labels = test.batch(torch.arange(len(test)))
    network = _network(model, dataset, options, trained.state_dict, simulate=False)
    return Subject(model, dataset, options, trained, images, labels, answers(network, images))


def answers(network: nn.Module, images: Tensor) -> Tensor:
    """Return the outputs of a network, [N, classes]."""
    with torch.no_grad():
        return torch.cat([network(part) for part in images.split(500)])


def row(name: str, bits: int, subject: Subject, options: QuantizationOptions) -> list[object]:
    """Quantize and measure."""
    state = quantize_checkpoint(subject.trained, options).checkpoint.state_dict
    for key in state:
        if key.endswith(".weight_bits"):  # files say 8 whatever was asked for
            state[key] = state[key] * 0 + bits
    results = answers(subject.network(state, simulate=True), subject.images * 128)
    expected = subject.answers
    power = (results * results).sum()
    suited = results * ((results * expected).sum() / power if power else 0.0)
    snr = 10 * torch.log10((expected**2).sum() / ((suited - expected) ** 2).sum())
    same = results.argmax(1) == expected.argmax(1)
    right = results.argmax(1) == subject.labels
    return [bits, name, *(f"{100 * share.float().mean():.2f}" for share in (right, same)),
            f"{snr:.1f}"]  # fmt: skip


def calibrated(bits: int, subject: Subject, count: int) -> QuantizationOptions:
    """Return the options that hold what calibration found."""
    options = QuantizationOptions(default_bits=bits)
    samples, _ = load_samples(subject.dataset, subject.options, count, 64)
    state = subject.trained.state_dict
    choices = calibrate(
        subject.network(state, simulate=False),
        subject.network(state, simulate=True),
        samples,
        bits_by_layer(subject.trained, options),
    )
    layers = {choice.name: choice.integers for choice in choices}
    return QuantizationOptions(default_bits=bits, calibration=Calibration(layers))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of all methods."""
    parser = argparse.ArgumentParser(description=__doc__)
    option = parser.add_argument
    option("--checkpoint", metavar="FILE", help="of a training without QAT")
    option("--model", default="ai85digitsnet", metavar="NAME")
    option("--dataset", default="digits", metavar="NAME")
    option("--data", default="data", metavar="DIR")
    option("--use-bias", action="store_true")
    option("--epochs", type=int, default=15, metavar="N")
    option("--samples", type=int, default=512, metavar="N", help="for calibration")
    option("--bits", type=int, nargs="+", default=[8, 4, 2], choices=(1, 2, 4, 8))
    args = parser.parse_args(arguments)
    chosen = subject(args)
    right = (chosen.answers.argmax(1) == chosen.labels).float().mean()
    rows: list[list[object]] = [["float", "as trained", f"{100 * right:.2f}", "100.00", ""]]
    for bits, (name, how) in itertools.product(args.bits, METHODS.items()):
        if name == next(iter(METHODS)):
            rows.append(row("--calibrate", bits, chosen, calibrated(bits, chosen, args.samples)))
        options = QuantizationOptions(default_bits=bits, **how)
        rows.append(row(name, bits, chosen, options))
    headers = ["bits", "method", "Top1/%", "same/%", "SNR/dB"]
    print(tabulate(rows, headers, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
