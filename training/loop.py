"""Passes over the data: one epoch of training, one evaluation."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from checkpoint.errors import InputError
from training.data import Batch, Batches
from training.logs import Log, batch_line, training_values
from training.metrics import Counter, Scores, confusion_matrix
from training.options import Options

# Channels of a pixel side by side: pooling and convolution are faster with images and kernels so.
FAST_LAYOUT = {"memory_format": torch.channels_last}


@dataclass(frozen=True, slots=True)
class Pass:
    """What every pass needs beside the data."""

    model: nn.Module
    criterion: nn.Module
    classes: int
    device: torch.device
    options: Options
    log: Log

    def place(self, batch: Batch) -> Batch:
        """Move a batch to the device."""
        x, targets = (t.to(self.device, non_blocking=True) for t in batch)
        return (x.contiguous(**FAST_LAYOUT) if x.ndim == 4 else x), targets


def train_epoch(run: Pass, batches: Batches, optimizer: Optimizer, epoch: int) -> Scores:
    """Train on all batches once and return the mean scores.

    Raises InputError naming the batch when a loss is NaN or infinite: further steps would only
    spoil the weights.
    """
    options, steps = run.options, len(batches)
    run.model.train()
    total, window = Counter(run.classes), Counter(run.classes)
    began = time.perf_counter()
    for step, batch in enumerate(batches, 1):
        x, targets = run.place(batch)
        outputs = run.model(x)
        loss = run.criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for counter in (total, window):
            counter.add_loss(loss, len(targets))
            if options.show_train_accuracy == "full" or (
                options.show_train_accuracy == "last_batch" and step > steps - 2
            ):
                counter.add_hits(outputs, targets)
        if step % options.print_freq == 0 or step == steps:
            _stop_if_not_finite(window, epoch, step)
            seconds = (time.perf_counter() - began) / step
            rate = optimizer.param_groups[0]["lr"]
            values = training_values(window.scores(), rate, seconds)
            run.log.detail(batch_line(f"Epoch: [{epoch}]", step, steps, values))
            run.log.scalars("Performance/Training", {**values}, steps * epoch + step)
            window = Counter(run.classes)
    return total.scores()


def _stop_if_not_finite(window: Counter, epoch: int, step: int) -> None:
    """Raise InputError if a loss of the last batches, which end with `step`, is not a number."""
    bad = window.first_not_finite()
    if bad is not None:
        batch = step - window.batches + bad + 1
        raise InputError(
            "E605",
            f"the loss of batch {batch} of epoch {epoch} is not a finite number",
            "--lr",
            "Lower the learning rate; checkpoints of earlier epochs are untouched.",
        )


@torch.no_grad()
def evaluate(run: Pass, batches: Batches, phase: str) -> tuple[Scores, Tensor]:
    """Return the scores over all batches and the confusion matrix [actual, predicted]."""
    run.model.eval()
    counter = Counter(run.classes)
    matrix = torch.zeros(run.classes, run.classes, dtype=torch.int64)
    for step, batch in enumerate(batches, 1):
        x, targets = run.place(batch)
        outputs = scaled_outputs(run.model, run.model(x), run.options.act_mode_8bit)
        counter.add_loss(run.criterion(outputs, targets), len(targets))
        counter.add_hits(outputs, targets)
        matrix += confusion_matrix(outputs.argmax(1), targets, run.classes).cpu()
        if step % run.options.print_freq == 0 or step == len(batches):
            scores = counter.scores()
            values = {"Loss": scores.loss, "Top1": scores.top1}
            if scores.top5 == scores.top5:
                values["Top5"] = scores.top5
            run.log.detail(batch_line(phase, step, len(batches), values))
    return counter.scores(), matrix


def scaled_outputs(model: nn.Module, outputs: Tensor, integers: bool) -> Tensor:
    """Bring integer results to the range of training before the loss (spec/training.md 2.2)."""
    if not integers:
        return outputs
    wide = sum(getattr(child, "wide", False) for child in model.children())
    return outputs / (128 * 256**wide)


def measure(passes: Pass, batches: Batches) -> Scores:
    """Measure on the test set and log the result."""
    log = passes.log
    log.say("--- test ---------------------")
    log.say(f"{batches.samples} samples ({passes.options.batch_size} per mini-batch)")
    scores, matrix = evaluate(passes, batches, "Test: ")
    report(passes, scores, matrix)
    return scores


def report(passes: Pass, scores: Scores, matrix: Tensor) -> None:
    """Log the scores, and the confusion matrix if it is wanted."""
    passes.log.say(f"==> {scores}\n")
    if passes.options.confusion:
        width = len(str(int(matrix.max())))
        rows = "\n ".join("[" + " ".join(f"{n:{width}}" for n in row) + "]" for row in matrix)
        passes.log.say(f"==> Confusion:\n[{rows}]\n")
