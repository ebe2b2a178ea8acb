"""How much each input contributes to each class (--shap)."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from ai8xtools.checkpoint import atomic
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.display.pictures import Cell, Pixels, diverging, sheet, visible
from ai8xtools.training.display.scores import class_scores, probabilities
from ai8xtools.training.loop.metrics import Scores
from ai8xtools.training.loop.observers import Context, Observer, Phase, Seen
from ai8xtools.training.tasks.classification import Classification

BACKGROUND = 100
_ROUNDS = 4
_COLUMNS = 10


def expected_gradients(
    scores: Callable[[Tensor], Tensor], image: Tensor, background: Tensor, chosen: list[int]
) -> Tensor:
    """Return the attributions [chosen scores, ...] of the values of an image [...].

    For each background image, the gradient of the score at a point between it and the image is
    multiplied by the difference of the two; the mean over backgrounds and points estimates how much
    each value adds to the score over the mean score of the background (expected gradients,
    Erion et al. 2021). The points are spread evenly; a generator of its own shuffles them.
    """
    count = len(background)
    generator = torch.Generator().manual_seed(0)
    total = torch.zeros(len(chosen), *image.shape, device=image.device)
    difference = image - background
    for number in range(_ROUNDS):
        order = torch.randperm(count, generator=generator).to(image.device)
        share = (order + (number + 0.5) / _ROUNDS) / count
        points = background + share.view(-1, *(1 for _ in image.shape)) * difference
        points.requires_grad_()
        with torch.enable_grad():
            sums = scores(points).sum(0)
            for row, index in enumerate(chosen):
                (gradient,) = torch.autograd.grad(
                    sums[index], points, retain_graph=row + 1 < len(chosen)
                )
                total[row] += (difference * gradient).mean(0)
    return total / _ROUNDS


class Attributions(Observer):
    """Draws shap.png in the log folder: test images, and for each the maps of its best classes.

    The first 100 test images are the background, the next N are explained.
    """

    def __init__(self, context: Context) -> None:
        assert context.options.shap is not None
        self._context = context
        self._needed = BACKGROUND + context.options.shap
        self._inputs: list[Tensor] = []
        self._targets: list[Tensor] = []
        self._kept = 0

    def seen(self, batch: Seen) -> None:
        """Keep the first test images."""
        room = self._needed - self._kept
        if batch.phase == "test" and room > 0:
            self._inputs.append(batch.inputs[:room])
            self._targets.append(batch.targets[:room])
            self._kept += len(batch.inputs[:room])

    def finished(self, phase: Phase, _epoch: int | None, _scores: Scores, model: nn.Module) -> None:
        """Explain and draw."""
        if phase != "test":
            return
        explained = self._needed - BACKGROUND
        if self._kept < self._needed:
            raise InputError(
                "E610",
                f"{self._needed} test images are needed, {BACKGROUND} of them to compare with, "
                f"but there are {self._kept}",
                "--shap",
                "Choose a smaller number, or a larger data set.",
            )
        inputs, targets = torch.cat(self._inputs), torch.cat(self._targets)
        background, images = inputs.split([BACKGROUND, explained])
        rows = [
            [(self._truth(target), self._picture(image)), *self._maps(image, background, model)]
            for image, target in zip(images, targets[BACKGROUND:], strict=True)
        ]
        buffer = io.BytesIO()
        sheet(rows).save(buffer, "PNG")
        path = self._context.log.folder / "shap.png"
        atomic.write_bytes(path, buffer.getvalue())
        self._context.log.say(f"Saved the attributions of {explained} test images to {path}")

    def _maps(self, image: Tensor, background: Tensor, model: nn.Module) -> list[Cell]:
        """Return the maps of the classes for an image, the likeliest first."""
        task = self._context.task

        def scores(batch: Tensor) -> Tensor:
            by_class = class_scores(task, task.prepare(model(batch)))
            return by_class.flatten(2).mean(2) if by_class.ndim > 2 else by_class

        is_class = isinstance(task, Classification)
        shown = probabilities(task, task.prepare(model(image.unsqueeze(0))))
        values = shown.flatten(2).mean(2)[0] if shown.ndim > 2 else shown[0]
        order = values.argsort(descending=True) if is_class else torch.arange(len(values))
        chosen = order[:_COLUMNS].tolist()
        maps = expected_gradients(scores, image, background, chosen)
        flat = _as_map(maps.sum(1)).cpu().numpy()
        limit = float(np.quantile(np.abs(flat), 0.999))
        cells: list[Cell] = []
        for index, one in zip(chosen, flat, strict=True):
            name = task.labels[index] if index < len(task.labels) else str(index)
            value = f"{100 * values[index]:.1f} %" if is_class else f"{values[index]:.4g}"
            cells.append((f"{name}: {value}", diverging(one, limit)))
        return cells

    def _truth(self, target: Tensor) -> str:
        """Return what an image is."""
        if target.numel() > 1:
            return ""
        value = target.item()
        labels = self._context.task.labels
        is_class = isinstance(self._context.task, Classification)
        return f"is {labels[int(value)] if is_class else f'{value:.4g}'}"

    def _picture(self, image: Tensor) -> Pixels:
        """Return an image as the data set shows it, others as the mean of their channels."""
        context = self._context
        shown = visible(image.unsqueeze(0).cpu(), context.dataset, context.options)
        if shown is None:
            grey = _as_map(image.cpu().mean(0).unsqueeze(0))
            low, high = grey.aminmax()
            shown = ((grey - low) / (high - low).clamp(min=1e-9)).expand(3, -1, -1).unsqueeze(0)
        return np.asarray((255 * shown[0].permute(1, 2, 0) + 0.5).numpy().astype(np.uint8))


def _as_map(values: Tensor) -> Tensor:
    """Return [N, H, W] of values [N, H, W] or [N, L]; a series becomes a band."""
    if values.ndim == 3:
        return values
    return values.unsqueeze(1).expand(-1, max(1, values.shape[-1] // 8), -1)
