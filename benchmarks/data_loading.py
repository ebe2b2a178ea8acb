#!/usr/bin/env python3
"""Images per second of processor time: the loaders, torchvision's transforms, a training step.

Made-up images of the size of MNIST, FashionMNIST and CIFAR are augmented and normalized by our data
sets, in batches, and by torchvision, one image after the other as its data sets do. The yardstick
for both is ai85net5: a loader that takes a small share of the time of its training steps needs no
processes of its own. Everything runs in one thread and is measured in processor time, so that other
load on the machine disturbs little; all variants take turns, and the best of the rounds counts.
"""

from __future__ import annotations

import argparse
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import ai8x
from ai8xtools.training.data.batches import Order, TensorBatches
from datasets.audio import LENGTH
from datasets.images import ImageDataset, RandomAffine, RandomCrop
from datasets.kws import KeywordDataset
from datasets.kws_cache import SHIFT, PreparedRecordings
from datasets.torchvision_access import torchvision
from models.ai85net import ai85net5

ARGS = Namespace(act_mode_8bit=False, truncate_testset=False)
SETS: dict[str, tuple[tuple[int, int, int], RandomAffine | None, RandomCrop | None]] = {
    "MNIST": ((1, 28, 28), RandomAffine(10, 5, 2), None),
    "FashionMNIST": ((1, 28, 28), None, RandomCrop(4, mirror=True)),
    "CIFAR10": ((3, 32, 32), None, RandomCrop(4, mirror=True)),
}


class OneByOne(Dataset[tuple[Tensor, Tensor]]):
    """Images that torchvision augments, each for itself, from a Pillow image as its sets do."""

    def __init__(self, source: ImageDataset, name: str) -> None:
        self.source = source
        transforms = torchvision().transforms
        side = source.images.shape[-1]
        steps = [transforms.RandomAffine(10, translate=(2 / side, 2 / side), shear=5)]
        if name != "MNIST":
            steps = [transforms.RandomCrop(side, padding=4), transforms.RandomHorizontalFlip()]
        self.to_picture = transforms.ToPILImage()
        self.transform = transforms.Compose([*steps, transforms.ToTensor(), ai8x.normalize(ARGS)])

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        picture = self.to_picture(self.source.images[index])
        return self.transform(picture), self.source.targets[index]


def loaders(name: str, images: int, batch: int) -> dict[str, Callable[[], Iterable[Any]]]:
    """Return ours and torchvision's way to the batches of one epoch."""
    shape, augment, crop = SETS[name]
    pixels = torch.randint(0, 256, (images, *shape), dtype=torch.uint8)
    ours = ImageDataset(pixels, torch.randint(0, 10, (images,)), ARGS, augment=augment, crop=crop)
    theirs = OneByOne(ours, name)
    loader = DataLoader(theirs, batch, shuffle=True)
    return {
        "ours": lambda: TensorBatches(ours, Order(torch.arange(images), batch, True)).of_epoch(0),
        "torchvision": lambda: loader,
    }


def keywords(items: int, batch: int) -> Callable[[], Iterable[Any]]:
    """Return the batches of made-up recordings that train keyword spotting."""
    source = PreparedRecordings(
        torch.randint(0, 256, (items, LENGTH), dtype=torch.uint8),
        torch.zeros(items, 1, dtype=torch.uint8),
        torch.zeros(items, 1, dtype=torch.uint8),
        torch.tensor([[-SHIFT, SHIFT]], dtype=torch.int16).repeat(items, 1),
    )
    every = torch.arange(items)
    recordings = KeywordDataset(source, every, every % 21, ARGS, augment=True)
    return lambda: TensorBatches(recordings, Order(every, batch, True)).of_epoch(0)


def run_through(batches: Callable[[], Iterable[Any]]) -> Callable[[], int]:
    """Return a function that takes all batches and returns the number of images."""
    return lambda: sum(len(images) for images, _ in batches())


def training(batch: int, batches: int) -> Callable[[], int]:
    """Return a function that trains ai85net5 on random images and returns their number."""
    ai8x.set_device(85, simulate=False, round_avg=False, verbose=False)
    model = ai85net5(num_channels=1).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    images = torch.randint(-128, 128, (batch, 1, 28, 28)) / 128
    labels = torch.randint(0, 10, (batch,))

    def train() -> int:
        for _ in range(batches):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        return batch * batches

    return train


def rates(variants: dict[str, Callable[[], int]], rounds: int) -> dict[str, float]:
    """Return the best images per second of each variant, after one round to warm up."""
    best = dict.fromkeys(variants, 0.0)
    for number in range(rounds + 1):
        for name, run in variants.items():
            began = time.process_time()
            images = run()
            if number:
                best[name] = max(best[name], images / (time.process_time() - began))
    return best


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--images", type=int, default=2048, help="of an epoch")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    variants = {
        f"{name}: {way}": run_through(batches)
        for name in SETS
        for way, batches in loaders(name, args.images, args.batch_size).items()
    }
    variants["KWS_20: ours"] = run_through(keywords(args.images // 4, args.batch_size))
    variants["training step of ai85net5, 1x28x28"] = training(args.batch_size, 2)
    measured = rates(variants, args.rounds)
    step = measured["training step of ai85net5, 1x28x28"]
    print(f"batch {args.batch_size}, one thread, torch {torch.__version__}")
    print(f"{'':40}{'images/s':>10}{'share of a step':>18}{'x torchvision':>15}")
    for name, rate in measured.items():
        theirs = measured.get(f"{name.split(':')[0]}: torchvision")
        ratio = f"{rate / theirs:15.1f}" if theirs else ""
        print(f"{name:40}{rate:10.0f}{step / rate:18.1%}{ratio}")


if __name__ == "__main__":
    main()
