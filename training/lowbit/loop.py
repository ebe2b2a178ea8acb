"""Training and evaluation of low-bit networks.

Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.lowbit.network import LowBitNetwork
from training.lowbit.pictures import Augmentation, augmented, codes, reduced
from training.lowbit.recipe import Recipe
from values import frozen

_EVALUATED = 1000
_MUON_LEAST = 64
"""Muon takes hidden weights with more elements than this."""


@frozen
class Pictures:
    """uint8 images [N, 1, rows, columns] with labels int64 [N]."""

    images: Tensor
    labels: Tensor


@frozen
class EpochResult:
    """What is said of an epoch; `correct` of `total` test images."""

    epoch: int
    loss: float
    correct: int
    total: int
    seconds: float


def train(
    network: LowBitNetwork,
    recipe: Recipe,
    training: Pictures,
    test: Pictures,
    seed: int,
    tell: Callable[[EpochResult], None],
) -> None:
    """Train a network in place; the last epoch is the result."""
    generator = torch.Generator().manual_seed(seed)
    plain, tested = codes(reduced(training.images)), codes(reduced(test.images))
    optimizers = _optimizers(network, recipe)
    how = Augmentation(recipe.rotation1, recipe.rotation2, elastic=recipe.elastic)
    if recipe.clip_init:
        _update_clips(network, recipe)
    for epoch in range(recipe.epochs):
        start = time.monotonic()
        data, labels = _epoch_data(plain, training, recipe, how, generator)
        loss = _one_epoch(network, optimizers, data, labels, recipe, epoch, generator)
        if epoch < recipe.clip_until_epoch:
            _update_clips(network, recipe)
        correct = evaluate(network, tested, test.labels)
        seconds = time.monotonic() - start
        tell(EpochResult(epoch, loss, correct, len(tested), seconds))


def evaluate(network: LowBitNetwork, data: Tensor, labels: Tensor) -> int:
    """Return for how many codes [N, 256] the first greatest logit is that of the label."""
    with torch.no_grad():
        found = [
            network(part).argmax(1) == truth
            for part, truth in zip(data.split(_EVALUATED), labels.split(_EVALUATED), strict=True)
        ]
    return int(sum(part.sum() for part in found))


def _epoch_data(
    plain: Tensor, training: Pictures, recipe: Recipe, how: Augmentation, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return the pictures of an epoch: as they are, and fresh deformed copies."""
    copies = recipe.augmentation_copies if recipe.augmentation else 0
    parts = [plain, *(augmented(training.images, how, generator) for _ in range(copies))]
    return torch.cat(parts), training.labels.repeat(1 + copies)


def _one_epoch(
    network: LowBitNetwork,
    optimizers: list[tuple[torch.optim.Optimizer, float]],
    data: Tensor,
    labels: Tensor,
    recipe: Recipe,
    epoch: int,
    generator: torch.Generator,
) -> float:
    order = torch.randperm(len(data), generator=generator).split(recipe.batch_size)
    total = 0.0
    for step, chosen in enumerate(order):
        factor = _rate(recipe, epoch + step / len(order))
        for optimizer, rate in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
            optimizer.zero_grad()
        loss = functional.cross_entropy(network(data[chosen]), labels[chosen])
        loss.backward()
        for optimizer, _ in optimizers:
            optimizer.step()
        total += float(loss.detach()) * len(chosen)
    return total / len(data)


def _rate(recipe: Recipe, epoch: float) -> float:
    """Return by what the learning rate is multiplied."""
    if recipe.scheduler == "StepLR":
        return recipe.lr_decay ** (int(epoch) // max(1, recipe.step_size))
    return 0.5 * (1 + math.cos(math.pi * epoch / recipe.epochs))


def _optimizers(
    network: LowBitNetwork, recipe: Recipe
) -> list[tuple[torch.optim.Optimizer, float]]:
    """Return the optimizers with their learning rates: Muon for hidden weights, Adam for others."""
    hidden = list(_hidden(network, recipe.muon_head)) if recipe.optimizer == "Muon" else []
    others = [p for p in network.parameters() if not any(p is q for q in hidden)]
    found: list[tuple[torch.optim.Optimizer, float]] = [
        (torch.optim.Adam(others, lr=recipe.lr), recipe.lr)
    ]
    if hidden:
        muon = torch.optim.Muon(
            hidden, lr=recipe.muon_lr, momentum=recipe.muon_momentum, nesterov=True,
            weight_decay=0.0, ns_steps=5, adjust_lr_fn="original",
        )  # fmt: skip
        found.append((muon, recipe.muon_lr))
    return found


def _hidden(network: LowBitNetwork, head: bool) -> Iterator[nn.Parameter]:
    last = network.layers[-1].weight
    for parameter in network.parameters():
        large = parameter.ndim == 2 and parameter.numel() > _MUON_LEAST
        if large and (head or parameter is not last):
            yield parameter


def _update_clips(network: LowBitNetwork, recipe: Recipe) -> None:
    for layer in network.quantizers():
        layer.update_clip(recipe.clip, recipe.quantscale)
