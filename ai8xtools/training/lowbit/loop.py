"""Training and evaluation of low-bit networks.

Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading.progress import tracked
from ai8xtools.training.lowbit.averaging import WeightAverage
from ai8xtools.training.lowbit.epochs import Epochs, Pictures, Samples
from ai8xtools.training.lowbit.matrices import optimizers_of
from ai8xtools.training.lowbit.network import LowBitNetwork
from ai8xtools.training.lowbit.pictures import codes, reduced
from ai8xtools.training.lowbit.recipe import Recipe
from ai8xtools.training.lowbit.teacher import Teacher, distilled, shuffled, train_teacher
from ai8xtools.values import frozen

_EVALUATED = 1000


@frozen
class EpochResult:
    """The result of an epoch; `correct` of `total` test images are right."""

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
    teacher: nn.Module | None = None,
) -> None:
    """Train a network in place; the last epoch is the result, or the average of the recipe.

    Network, teacher and pictures are on one device.
    """
    generator = torch.Generator(training.images.device).manual_seed(seed)
    tested = codes(reduced(test.images))
    optimizers = optimizers_of(network, recipe)
    epochs = Epochs(training, recipe, generator, teacher)
    if recipe.clip_init:
        _update_clips(network, recipe)
    average = WeightAverage(network, recipe.average) if recipe.average else None
    for epoch in tracked("Epochs", range(recipe.epochs)):
        start = time.monotonic()
        samples, labels = epochs.samples(epoch)
        if epoch == recipe.prune_epoch:
            network.prune(recipe.prune_groupstoprune)
            if average is not None:
                average.restart()
        loss = _one_epoch(network, optimizers, samples, labels, recipe, epoch, generator, average)
        if not math.isfinite(loss):
            raise InputError(
                "E605",
                f"the loss of epoch {epoch} is not finite",
                "--lr",
                "Lower the learning rate.",
            )
        if average is not None:
            average.take_clips()
        networks = (network,) if average is None else (network, average.network)
        for one in networks if epoch < recipe.clip_until_epoch else ():
            _update_clips(one, recipe)
        correct = evaluate(networks[-1], tested, test.labels)
        seconds = time.monotonic() - start
        tell(EpochResult(epoch, loss, correct, len(tested), seconds))
    if average is not None:
        network.load_state_dict(average.network.state_dict())


def teach(
    recipe: Recipe,
    training: Pictures,
    test: Pictures,
    classes: int,
    seed: int,
    tell: Callable[[EpochResult], None],
) -> Teacher:
    """Return a teacher, trained on fresh deformed pictures."""
    generator = torch.Generator(training.images.device).manual_seed(seed)
    teacher = Teacher(classes, recipe.teacher_width).to(training.images.device)
    fresh = replace(recipe, augmentation_pool=0)
    epochs = Epochs(training, fresh, generator)
    tested = codes(reduced(test.images))
    start = time.monotonic()

    def data(epoch: int) -> tuple[Tensor, Tensor]:
        samples, labels = epochs.samples(epoch)
        return samples.codes, labels

    def report(epoch: int, loss: float) -> None:
        correct = evaluate(teacher, tested, test.labels)
        tell(EpochResult(epoch, loss, correct, len(tested), time.monotonic() - start))

    train_teacher(teacher, recipe.teacher_epochs, data, generator, report)
    return teacher


def evaluate(network: nn.Module, data: Tensor, labels: Tensor) -> int:
    """Return for how many codes [N, 256] the first greatest logit is that of the label."""
    network.eval()
    with torch.no_grad():
        matches = [
            network(part).argmax(1) == truth
            for part, truth in zip(data.split(_EVALUATED), labels.split(_EVALUATED), strict=True)
        ]
    return int(sum(part.sum() for part in matches))


def _one_epoch(
    network: LowBitNetwork,
    optimizers: list[tuple[torch.optim.Optimizer, float]],
    samples: Samples,
    labels: Tensor,
    recipe: Recipe,
    epoch: int,
    generator: torch.Generator,
    average: WeightAverage | None,
) -> float:
    network.train()
    order = shuffled(len(labels), generator).split(recipe.batch_size)
    total = torch.zeros((), dtype=torch.float64, device=labels.device)
    for step, chosen in enumerate(order):
        factor = _rate(recipe, epoch + step / len(order))
        for optimizer, rate in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * factor
        network.zero_grad()
        loss = _loss(network(samples.codes[chosen]), samples.logits, labels, chosen, recipe)
        if epoch < recipe.prune_epoch:
            loss = loss + recipe.lambda_l1 * network.mask.abs().sum()
        loss.backward()
        for optimizer, _ in optimizers:
            optimizer.step()
        if average is not None:
            average.step()
        total += loss.detach().double() * len(chosen)
    return float(total) / len(labels)


def _loss(
    logits: Tensor, taught: Tensor | None, labels: Tensor, chosen: Tensor, recipe: Recipe
) -> Tensor:
    """Return the loss of a batch: of its labels, and of the teacher's logits if there are any."""
    loss = functional.cross_entropy(logits, labels[chosen], label_smoothing=recipe.label_smoothing)
    if taught is None:
        return loss
    part = recipe.distillation
    return (1 - part) * loss + part * distilled(logits, taught[chosen], recipe.temperature)


def _rate(recipe: Recipe, epoch: float) -> float:
    """Return by what the learning rate is multiplied."""
    halved = 0.5 if 0 <= recipe.halve_lr_epoch <= epoch else 1.0
    if recipe.scheduler == "StepLR":
        return halved * recipe.lr_decay ** (int(epoch) // max(1, recipe.step_size))
    period = recipe.epochs
    if recipe.scheduler == "CosineWarmRestarts":
        period = max(1, recipe.step_size)
    return halved * 0.5 * (1 + math.cos(math.pi * (epoch % period) / period))


def _update_clips(network: LowBitNetwork, recipe: Recipe) -> None:
    for layer in network.quantizers():
        layer.update_clip(recipe.clip, recipe.quantscale)
