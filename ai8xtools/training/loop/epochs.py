"""Passes over the data: one epoch of training, one evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Optimizer

import ai8x
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.compute.distributed import UNDIVIDED, Share, average_gradients
from ai8xtools.training.data.batches import Batch, Batches
from ai8xtools.training.data.mixing import Mixed
from ai8xtools.training.loop.averaging import Average
from ai8xtools.training.loop.metrics import OVERALL, Scores, Tally
from ai8xtools.training.loop.observers import Observers, Seen
from ai8xtools.training.network.diagnosis import (
    origin_of_not_finite,
    total_gradient,
    worst_gradient,
)
from ai8xtools.training.network.distillation import Distillation
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.saving.logs import Log, batch_line, training_values
from ai8xtools.training.tasks.task import Task


def layout_of(models: Iterable[nn.Module], sample: Tensor) -> torch.memory_format:
    """Return how images and kernels lie in memory, for networks that take such a sample [C, ...].

    Channels of a pixel side by side make pooling and convolution faster. A network may rely on the
    usual order, as `x.view(len(x), -1)` does.
    """
    layout = torch.channels_last
    for model in models:
        training = model.training
        model.to(memory_format=layout).eval()
        try:
            x = sample[None].to(next(model.parameters()).device)
            with torch.no_grad():
                model(x.contiguous(memory_format=layout) if x.ndim == 4 else x)
        except Exception as exc:  # others are told where the network is really run
            if "view size is not compatible" in str(exc):
                return torch.contiguous_format
        finally:
            model.train(training)
    return layout


@dataclass(frozen=True, slots=True)
class Pass:
    """The settings that every pass needs besides the data.

    `forward` runs `model`, perhaps compiled or on several devices. With `mixed_precision`, training
    steps multiply bfloat16 numbers; weights stay float32. `average` follows the weights. Images lie
    in memory as `layout` says.
    """

    model: nn.Module
    forward: Callable[[Tensor], Any]
    task: Task
    device: torch.device
    options: TrainingOptions
    log: Log
    distillation: Distillation | None = None
    observers: Observers = ()
    share: Share = UNDIVIDED
    mixed_precision: bool = False
    average: Average | None = None
    layout: torch.memory_format = torch.contiguous_format

    @property
    def judged(self) -> Pass:
        """The pass with the network that is validated, tested and saved."""
        if self.average is None:
            return self
        model = self.average.model
        return replace(self, model=model, forward=model, average=None)

    def place(self, batch: Batch) -> Batch:
        """Move a batch to the device."""
        x = batch[0].to(self.device, non_blocking=True)
        targets = batch[1]
        if isinstance(targets, Mixed):
            targets = targets.placed(lambda part: self.task.place(part, self.device))
        else:
            targets = self.task.place(targets, self.device)
        return (x.contiguous(memory_format=self.layout) if x.ndim == 4 else x), targets

    def train_forward(self, x: Tensor) -> Any:
        """Return the outputs of a training batch, in float32."""
        if not self.mixed_precision:
            return self.forward(x)
        with torch.autocast(self.device.type, torch.bfloat16):
            outputs = self.forward(x)
        return _as_float(outputs)

    def losses(
        self, x: Tensor, outputs: Any, targets: Any, epoch: int | None
    ) -> Mapping[str, Tensor]:
        """Return the losses of a batch by name, of a training `epoch` or an evaluation (None)."""
        try:
            compute = self.task.loss if epoch is None else self.task.training_loss
            loss = compute(outputs, targets)
        except (RuntimeError, ValueError, IndexError) as exc:
            fault = self.task.fault_of_targets(targets)
            raise InputError(
                "E633",
                f"the loss of a batch cannot be computed: {fault or exc}",
                "--dataset",
                "Do targets and labels belong to this network? Compare --model and --dataset.",
            ) from exc
        if self.distillation is not None and self.distillation.applies(epoch):
            return self.distillation.losses(loss, x, outputs)
        return {OVERALL: loss}


def _as_float(outputs: Any) -> Any:
    """Return a tensor, or tensors in a list or tuple, as float32."""
    if isinstance(outputs, Tensor):
        return outputs.float()
    return type(outputs)(map(_as_float, outputs)) if isinstance(outputs, list | tuple) else outputs


def train_epoch(run: Pass, batches: Batches, optimizers: Sequence[Optimizer], epoch: int) -> Scores:
    """Train on all batches once and return the mean scores.

    The first optimizer is the model's. Raises InputError naming the batch when a loss is NaN or
    infinite: further steps would only spoil the weights.
    """
    options, steps, share = run.options, len(batches), run.share
    run.model.train()
    total, window = (Tally(run.task.meter(True)) for _ in range(2))
    began = time.perf_counter()
    for step, batch in enumerate(batches.of_epoch(epoch), 1):
        x, targets = run.place(batch)
        outputs = run.task.prepare(run.train_forward(x))
        samples = min(options.batch_size, batches.samples - (step - 1) * options.batch_size)
        shown, loss = _step_losses(run, x, outputs, targets, epoch)
        window.add_losses(shown, samples)
        targets = targets.first if isinstance(targets, Mixed) else targets
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        if share.divided:
            average_gradients(run.task.criterion.parameters(), share.processes)
        window.add_gradient(total_gradient(run.model))
        last = step % options.print_freq == 0 or step == steps
        if last or run.device.type == "cpu":  # on CUDA devices each check would wait for the device
            _stop_if_not_finite(run, window, epoch, step, x)
        if options.clip_gradient is not None:
            clip_grad_norm_(run.model.parameters(), options.clip_gradient)
        for observer in run.observers:
            observer.seen(Seen("training", epoch, step, steps, x, outputs, targets, run.model))
        for optimizer in optimizers:
            optimizer.step()
        ai8x.keep_single_bits_in_reach(run.model)
        if run.average is not None:
            run.average.update(run.model)
        if options.show_train_accuracy == "full" or (
            options.show_train_accuracy == "last_batch" and step > steps - 2
        ):
            window.meter.add(outputs, targets)
        if last:
            seconds = (time.perf_counter() - began) / step
            rate = optimizers[0].param_groups[0]["lr"]
            values = training_values(window.scores(), rate, seconds)
            run.log.detail(batch_line(f"Epoch: [{epoch}]", step, steps, values))
            run.log.scalars("Performance/Training", {**values}, steps * epoch + step)
            total.merge(window)
            window = Tally(run.task.meter(True))
    return _finished(run, "training", epoch, total)


def _step_losses(
    run: Pass, x: Tensor, outputs: Any, targets: Any, epoch: int
) -> tuple[Mapping[str, Tensor], Tensor]:
    """Return the losses of a batch over all processes, and the loss of this one to differentiate.

    For mixed samples they are the means of those of both labels.
    """
    if not isinstance(targets, Mixed):
        losses = run.losses(x, outputs, targets, epoch)
        weight = _weight(run, targets, len(x))
        loss = losses[OVERALL] * weight if run.share.divided else losses[OVERALL]
        return run.share.mean(losses, weight), loss
    first, second = (
        _step_losses(run, x, outputs, labels, epoch) for labels in (targets.first, targets.second)
    )
    rest = 1 - targets.share
    shown = {
        name: value * targets.share + second[0][name] * rest for name, value in first[0].items()
    }
    return shown, first[1] * targets.share + second[1] * rest


def _weight(run: Pass, targets: Any, samples: int) -> Tensor | float:
    """Return by how much the loss of this process's part of a batch counts."""
    if not run.share.divided:
        return 1.0
    return run.share.weight(run.task.divisor(targets), samples, run.device)


def _stop_if_not_finite(run: Pass, window: Tally, epoch: int, step: int, x: Tensor) -> None:
    """Raise InputError if loss or gradient of the batches until `step` is NaN or infinite.

    The layer is known only of the last batch x [N, ...].
    """
    bad = window.first_not_finite()
    if bad is not None:
        number, what = bad
        batch = step - window.batches + number + 1
        where = "run a single process with --cpu to find the layer"
        if batch == step and not run.share.divided:
            model = run.model
            where = origin_of_not_finite(model, x) if what == "loss" else worst_gradient(model)
        raise InputError(
            "E605",
            f"the {what} of batch {batch} of epoch {epoch} is not finite: {where}",
            "--lr",
            "Lower the learning rate; checkpoints of earlier epochs are unchanged.",
        )


def _finished(
    run: Pass, phase: Literal["training", "validation", "test"], epoch: int | None, tally: Tally
) -> Scores:
    """Return the scores of a pass after showing them to the observers."""
    scores = tally.scores(final=True)
    for observer in run.observers:
        observer.finished(phase, epoch, scores, run.model)
    return scores


@torch.no_grad()
def evaluate(run: Pass, batches: Batches, epoch: int | None) -> Scores:
    """Return the scores over all batches of the validation of `epoch`, or of the test (None)."""
    phase: Literal["validation", "test"] = "test" if epoch is None else "validation"
    begin, steps = "Test: " if epoch is None else f"Epoch: [{epoch}]", len(batches)
    run.model.eval()
    tally = Tally(run.task.meter(False))
    for step, batch in enumerate(batches.of_epoch(epoch or 0), 1):
        x, targets = run.place(batch)
        outputs = run.task.prepare(run.forward(x))
        tally.add_losses(run.losses(x, outputs, targets, None), len(x))
        tally.meter.add(outputs, targets)
        for observer in run.observers:
            observer.seen(Seen(phase, epoch, step, steps, x, outputs, targets, run.model))
        if step % run.options.print_freq == 0 or step == steps:
            scores = tally.scores()
            run.log.detail(batch_line(begin, step, steps, {"Loss": scores.loss, **scores.values}))
    return _finished(run, phase, epoch, tally)


def measure(passes: Pass, batches: Batches, which: str = "") -> Scores:
    """Measure on the test set and log the result; `which` of several states of the model it is."""
    log = passes.log
    log.say(f"--- test{which and f' ({which})'} ---------------------")
    log.say(f"{batches.samples} samples ({passes.options.batch_size} per mini-batch)")
    scores = evaluate(passes, batches, None)
    report(passes, scores)
    return scores


def report(passes: Pass, scores: Scores) -> None:
    """Log the result of a validation or test."""
    for line in passes.task.result_lines(scores):
        passes.log.say(f"{line}\n")
