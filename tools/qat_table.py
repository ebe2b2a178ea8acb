"""Quantization-aware training by bits, generation and rule for ranges: accuracies in tables.

    python tools/qat_table.py digits            # four layers, 597 test images, minutes
    python tools/qat_table.py mnist --data DIR  # a small network, both generations
    python tools/qat_table.py net5 --data DIR   # ai85net5 at 8 and 2 bits
    python tools/qat_table.py net5-1 --data DIR # ai85net5 at 1 bit, 8 in the first and last layer

Each run starts from a network that was trained in floating point with the same seed (`net5` and
`net5-1`: from trained/mnist-ai85net5-qat8.pth.tar, with biases of 0) and trains with QAT. Results
and trained networks are kept in --cache, so that an interrupted table continues; --runs N ends
after N runs. Accuracies are those of the whole test set in the arithmetic of QAT, which quantized
networks have bit by bit. The images, seeds and order of batches are fixed; other processors round
sums in another order.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import ai8x
from ai8xtools.diagnostics import run
from ai8xtools.training.saving import checkpoints
from datasets.idx import read_collection
from datasets.images import ImageDataset
from datasets.mnist import ADDRESS, DIGESTS, mnist_get_datasets
from models.ai85net import ai85net5, ai85netextrasmall

ROOT = Path(__file__).resolve().parent.parent
TRAINED = ROOT / "trained" / "mnist-ai85net5-qat8.pth.tar"
RULES = ("vendor", "fit")
STATISTICS = 2048  # samples that tell the ranges of activations
STARTING = 256  # samples that single bits start from
WARM_UP = 20  # steps


@dataclass(frozen=True)
class Recipe:
    """Steps of `batch` samples with Adam, its rate falling along half a cosine wave."""

    steps: int
    rate: float
    batch: int = 128


@dataclass(frozen=True)
class Run:
    """One training with QAT; `first` are the bits of the first layer, and of others (`wider`)."""

    experiment: str
    bits: int
    first: int
    generation: int
    rule: str
    seed: int
    recipe: Recipe


@dataclass(frozen=True)
class Data:
    """Images and classes for training, by indices, and for the test."""

    train: Callable[[Tensor], tuple[Tensor, Tensor]]
    samples: int
    test: tuple[Tensor, Tensor]


def four_layers() -> nn.Module:
    """Make three normalized convolutions and a fully connected layer, for 8x8 images."""
    normalized: Any = {"bias": True, "batchnorm": "Affine", "padding": 1}
    halved = {"pool_size": 2, "pool_stride": 2, **normalized}
    layers = {
        "conv1": ai8x.FusedConv2dBNReLU(1, 16, 3, **normalized),
        "conv2": ai8x.FusedMaxPoolConv2dBNReLU(16, 24, 3, **halved),
        "conv3": ai8x.FusedConv2dBNReLU(24, 16, 3, **normalized),
        "flatten": nn.Flatten(),
        "fc": ai8x.Linear(256, 10, bias=True, wide=True),
    }
    return nn.Sequential(OrderedDict(layers))


def digits(_folder: str) -> Data:
    """Return the images that come with scikit-learn: 1,200 for training, 597 for the test."""
    from sklearn.datasets import load_digits

    collection = load_digits()
    order = np.random.default_rng(0).permutation(len(collection.target))
    images = torch.from_numpy(collection.images[order].astype(np.float32)).unsqueeze(1)
    images = ((images / 8 - 1) * 128).round().clamp(-128, 127) / 128
    classes = torch.from_numpy(collection.target[order].astype(np.int64))
    x, y = images[597:], classes[597:]
    return Data(lambda part: (x[part], y[part]), len(x), (images[:597], classes[:597]))


def mnist(folder: str) -> Data:
    """Return MNIST; images for training are turned, sheared and shifted at random."""
    args = SimpleNamespace(act_mode_8bit=False, truncate_testset=False)
    train, test = mnist_get_datasets((folder, args))
    assert train is not None
    assert test is not None
    return Data(train.batch, len(train), test.batch(torch.arange(len(test))))


def mostly_plain_mnist(folder: str) -> Data:
    """Return MNIST of which three quarters of each batch for training are images as they are.

    A network of single bits does not carry over from distorted images, which are softer, to others.
    """
    args = SimpleNamespace(act_mode_8bit=False, truncate_testset=False)
    plain = ImageDataset(*read_collection("MNIST", ADDRESS, DIGESTS, Path(folder), True), args)
    distorted = mnist(folder)

    def batch(part: Tensor) -> tuple[Tensor, Tensor]:
        pairs = distorted.train(part[: len(part) // 4]), plain.batch(part[len(part) // 4 :])
        images, classes = zip(*pairs, strict=True)
        return torch.cat(images), torch.cat(classes)

    return replace(distorted, train=batch)


@dataclass(frozen=True)
class Experiment:
    """A network with its data, how it is trained in floating point or the file, and its runs.

    `wider` names the layers with the bits `first` of a run.
    """

    make: Callable[[], nn.Module]
    data: Callable[[str], Data]
    floating: Recipe
    runs: tuple[Run, ...]
    start: Path | None = None
    wider: tuple[str, ...] = ("conv1",)


def every(name: str, recipe: Recipe, seeds: int) -> tuple[Run, ...]:
    """Return runs of both generations and rules with 8, 4 and 2 bits."""
    return tuple(
        Run(name, bits, bits, generation, rule, seed, recipe)
        for seed in range(seeds)  # first: a table that is interrupted still compares everything
        for bits in (8, 4, 2)
        for generation in (1, 2)
        for rule in RULES
    )


EXPERIMENTS = {
    "digits": Experiment(
        four_layers, digits, Recipe(228, 0.003, 32),
        every("digits", Recipe(228, 0.001, 32), seeds=10),
    ),
    "mnist": Experiment(
        lambda: ai85netextrasmall(num_channels=1, bias=True),
        mnist, Recipe(3752, 0.004), every("mnist", Recipe(1876, 0.002), seeds=3),
    ),
    "net5": Experiment(
        lambda: ai85net5(num_channels=1, bias=True),
        mnist, Recipe(2532, 0.002),
        (
            *(Run("net5", 2, 8, 1, "fit", seed, Recipe(469, 0.001)) for seed in range(5)),
            *(Run("net5", 8, 8, 1, "fit", seed, Recipe(1400, 0.0005)) for seed in range(3)),
        ),
        start=TRAINED,
    ),
    "net5-1": Experiment(
        lambda: ai85net5(num_channels=1, bias=True),
        mostly_plain_mnist, Recipe(2532, 0.002),
        tuple(Run("net5-1", 1, 8, 1, "fit", seed, Recipe(10000, 0.005, 64)) for seed in range(5)),
        start=TRAINED,
        wider=("conv1", "fc"),
    ),
}  # fmt: skip


def train(model: nn.Module, data: Data, recipe: Recipe, seed: int) -> None:
    """Train by a recipe."""
    torch.manual_seed(seed)
    order = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), recipe.rate)

    def factor(step: int) -> float:
        wave = (1 + math.cos(math.pi * step / recipe.steps)) / 2
        return min(1.0, (step + 1) / WARM_UP) * (0.01 + 0.99 * wave)

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    model.train()
    for part in endless(data.samples, recipe.batch, recipe.steps, order):
        x, y = data.train(part)
        loss = functional.cross_entropy(model(_placed(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ai8x.keep_single_bits_in_reach(model)
        schedule.step()


def endless(samples: int, size: int, steps: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield the indices of so many batches, epoch after epoch in a new order."""
    done = 0
    while True:
        for part in torch.randperm(samples, generator=generator).split(size):
            if done == steps:
                return
            done += 1
            yield part


def accuracy(model: nn.Module, data: Data) -> float:
    """Return the percentage of test images that are classified right."""
    model.eval()
    images, classes = data.test
    parts = zip(images.split(500), classes.split(500), strict=True)
    with torch.no_grad():
        right = sum(int((model(_placed(x)).argmax(1) == y).sum()) for x, y in parts)
    return 100 * right / len(classes)


def begin(model: nn.Module, data: Data, run: Run) -> None:
    """Switch to QAT as train.py does."""
    ai8x.fuse_bn_layers(model)
    torch.manual_seed(0)
    if run.generation == 2:
        parts = torch.arange(min(STATISTICS, data.samples)).split(256)
        batches = [(_placed(data.train(part)[0]), None) for part in parts]
        ai8x.pre_qat(model, batches, SimpleNamespace(device="cpu"), {})
    wider = EXPERIMENTS[run.experiment].wider
    overrides = {name: {"weight_bits": run.first} for name in wider}
    ai8x.initiate_qat(model, {"weight_bits": run.bits, "overrides": overrides})
    if run.rule == "fit":
        ai8x.fit_ranges(model)
        ai8x.start_single_bits(model, [_placed(data.train(torch.arange(STARTING))[0])])


def floating(experiment: Experiment, name: str, run: Run, data: Data, options: Any) -> nn.Module:
    """Return the network as trained before, in floating point and now if there is no file of it."""
    torch.manual_seed(run.seed)
    model = experiment.make().to(memory_format=torch.channels_last)
    ai8x.use_thresholds(model, run.generation == 2)
    path = Path(options.cache) / f"{name}-float-{run.generation}-{run.seed}.pth.tar"
    if experiment.start is not None:
        take_weights(model, experiment.start)
    elif not path.exists():
        train(model, data, experiment.floating, run.seed)
        optimizer = torch.optim.Adam(model.parameters())
        checkpoints.write([path], 0, name, model, optimizer, {})
        print(f"{path.name}: {accuracy(model, data):.2f} %", flush=True)
    else:
        checkpoints.load_into(model, checkpoints.read(str(path)))
    return model


def take_weights(model: nn.Module, path: Path) -> None:
    """Take the weights of a file; biases that it has not are 0."""
    state = checkpoints.read(str(path)).state
    for name, parameter in model.named_parameters():
        if name.endswith((".op.weight", ".op.bias")):
            parameter.data.copy_(state.get(name, torch.zeros(())))


def measure(run: Run, data: Data, options: Any) -> dict[str, Any]:
    """Train and return the accuracies: floating point, at the start of QAT, and after it."""
    experiment = EXPERIMENTS[run.experiment]
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    model = floating(experiment, run.experiment, run, data, options)
    started = time.process_time()
    result = {**asdict(run), "float": accuracy(model, data)}
    begin(model, data, run)
    result["before"] = accuracy(model, data)
    train(model, data, run.recipe, 100 + run.seed)
    result["after"] = accuracy(model, data)
    result["seconds"] = round(time.process_time() - started, 1)
    return result


def _placed(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def table(results: list[dict[str, Any]]) -> str:
    """Return the means of the seeds as a table."""
    from tabulate import tabulate

    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for one in results:
        key = tuple(one[name] for name in ("bits", "first", "generation", "rule"))
        groups.setdefault(key, []).append(one)
    rows = [
        (
            *key,
            *(f"{statistics.mean(one[name] for one in group):.2f}" for name in ("float", "before")),
            " ".join(f"{one['after']:.2f}" for one in group),
            f"{statistics.mean(one['after'] for one in group):.2f}",
        )
        for key, group in sorted(groups.items(), key=lambda item: (-item[0][0], *item[0][1:]))
    ]
    headers = ("bits", "first layer", "generation", "ranges", "float", "QAT begins", "QAT", "mean")
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def main() -> None:
    """Run what is missing of a table and print it."""
    parser = argparse.ArgumentParser(description="QAT by bits, generation and rule for ranges.")
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--data", default="data", metavar="DIR", help="folder of MNIST")
    parser.add_argument("--cache", default="build/qat-table", metavar="DIR")
    parser.add_argument("--runs", type=int, metavar="N", help="end after N runs")
    parser.add_argument("--bits", type=int, action="append", metavar="N", help="only these")
    options = parser.parse_args()
    torch.set_num_threads(1)
    Path(options.cache).mkdir(parents=True, exist_ok=True)
    log = Path(options.cache) / f"{options.experiment}.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    results = [json.loads(line) for line in lines]
    done = [{k: v for k, v in one.items() if k in Run.__dataclass_fields__} for one in results]
    missing = [
        run
        for run in EXPERIMENTS[options.experiment].runs
        if asdict(run) not in done and (options.bits is None or run.bits in options.bits)
    ]
    data = EXPERIMENTS[options.experiment].data(options.data)
    for missed in missing[: options.runs]:
        results.append(measure(missed, data, options))
        print(json.dumps(results[-1]), flush=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(results[-1]) + "\n")
    print(table(results))


if __name__ == "__main__":
    sys.exit(run(main))
