"""Displays in TensorBoard besides the curves of losses and scores.

Source: docs/training.md, "Displays and exports".
"""

from __future__ import annotations

import contextlib
import io
import warnings

import torch
from torch import Tensor, nn

from ai8xtools.diagnostics.errors import reason_of
from ai8xtools.training.display.pictures import confusion_picture, visible
from ai8xtools.training.display.scores import probabilities
from ai8xtools.training.loop.metrics import Scores
from ai8xtools.training.loop.observers import Context, Observer, Phase, Seen

_THRESHOLDS = 127
_POINTS = 100


def add_graph(context: Context) -> None:
    """Send the graph of the network; a network that cannot be traced draws a warning.

    It is traced without gradients, which layers compute with operations that a graph can show.
    """
    model = context.task.model
    size = context.dataset.input
    size = size[:-1] if size[-1] == 1 else size
    example = torch.rand(1, *size, generator=torch.Generator().manual_seed(0)) - 0.5
    example = example.to(next(model.parameters()).device)
    model.eval()
    quiet = (warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), torch.no_grad())
    try:
        with quiet[0], quiet[1], quiet[2]:
            warnings.simplefilter("ignore")
            context.log.events.add_graph(model, example)
    except Exception as exc:
        reason = reason_of(exc)
        context.log.warn(f"TensorBoard does not show the graph of the network: {reason}")


class Histograms(Observer):
    """The weights in training, every --print-freq batches, counted within the epoch."""

    def __init__(self, context: Context) -> None:
        self._events = context.log.events
        self._interval = context.options.print_freq

    def seen(self, batch: Seen) -> None:
        """Send the weights; those that are not finite have no histogram."""
        if batch.phase != "training":
            return
        if batch.step % self._interval and batch.step != batch.steps:
            return
        for name, parameter in batch.model.named_parameters():
            if "weight" in name and bool(parameter.isfinite().all()):
                self._events.add_histogram(name.replace(".", "/"), parameter.detach(), batch.step)


class Curves(Observer):
    """Precision and recall of each class at 127 thresholds of its probability, in validation."""

    def __init__(self, context: Context) -> None:
        self._events = context.log.events
        self._task = context.task
        self._counts: Tensor | None = None

    def seen(self, batch: Seen) -> None:
        """Count samples (or pixels) by whether they are of a class, class and probability."""
        if batch.phase != "validation":
            return
        shares = probabilities(self._task, batch.outputs).movedim(1, 0).flatten(1)
        classes = torch.arange(len(shares), device=shares.device).unsqueeze(1)
        is_of_class = batch.targets.flatten() == classes
        bucket = (shares * (_THRESHOLDS - 1)).long()
        index = (is_of_class * len(shares) + classes) * _THRESHOLDS + bucket
        size = 2 * len(shares) * _THRESHOLDS
        counts = torch.bincount(index.flatten(), minlength=size)
        self._counts = counts if self._counts is None else self._counts + counts

    def finished(self, phase: Phase, epoch: int | None, _scores: Scores, _model: nn.Module) -> None:
        """Send the curves of the epoch."""
        if phase != "validation" or self._counts is None:
            return
        for label, counts in zip(
            self._task.labels,
            self._counts.view(2, -1, _THRESHOLDS).double().cpu().unbind(1),
            strict=True,
        ):
            self._send(label, counts, epoch)
        self._counts = None

    def _send(self, label: str, counts: Tensor, epoch: int | None) -> None:
        """Send the curve of a class: counts [not of the class, of the class] by bucket."""
        fp, tp = counts.flip(1).cumsum(1).flip(1)  # at a threshold counts what is not below it
        fn, tn = tp[0] - tp, fp[0] - fp
        precision = tp / (tp + fp).clamp(min=1e-7)
        recall = tp / tp[0].clamp(min=1e-7)
        numbers = [part.numpy() for part in (tp, fp, tn, fn, precision, recall)]
        self._events.add_pr_curve_raw(label, *numbers, epoch, _THRESHOLDS)


class Projector(Observer):
    """Outputs of up to 100 samples of the last validation batch as points with their images."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._last: Seen | None = None
        self._generator = torch.Generator().manual_seed(0)

    def seen(self, batch: Seen) -> None:
        """Keep the last batch of the validation."""
        if batch.phase == "validation" and batch.step == batch.steps:
            self._last = batch

    def finished(self, phase: Phase, epoch: int | None, _scores: Scores, _model: nn.Module) -> None:
        """Send the points of the epoch."""
        if phase != "validation" or self._last is None:
            return
        context, last = self._context, self._last
        chosen = torch.randperm(len(last.inputs), generator=self._generator)[:_POINTS]
        here = chosen.to(last.inputs.device)
        names = [context.task.labels[index] for index in last.targets[here].tolist()]
        images = visible(last.inputs[here].cpu(), context.dataset, context.options)
        context.log.events.add_embedding(
            last.outputs[here].cpu(), names, images, epoch, tag="verification/embedding"
        )
        self._last = None


class ConfusionPicture(Observer):
    """The confusion matrix of each validation as a picture."""

    def __init__(self, context: Context) -> None:
        self._events = context.log.events
        self._labels = context.task.labels

    def finished(self, phase: Phase, epoch: int | None, scores: Scores, _model: nn.Module) -> None:
        """Send the picture of the epoch."""
        if phase != "validation" or scores.confusion is None:
            return
        picture = confusion_picture(scores.confusion.numpy(), self._labels)
        self._events.add_image("Validation/ConfusionMatrix", picture, epoch, dataformats="HWC")
