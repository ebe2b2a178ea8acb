"""Training over the epochs: when QAT begins, what is best, what is saved (2.2)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import nn
from torch.optim import SGD, Adam, Optimizer

import ai8x
from checkpoint.errors import InputError
from training import checkpoints
from training.data import Data
from training.devices import forward_of
from training.logs import Log
from training.loop import Pass, evaluate, measure, report, train_epoch
from training.metrics import Scores
from training.options import Options
from training.schedule import Schedule, ScheduleFile

DEFAULT_RATE = 0.1
OPTIMIZERS: dict[str, Literal["sgd", "adam"]] = {"SGD": "sgd", "Adam": "adam"}


class Trainer:
    """The state of a training run: optimizer, schedule, best result so far."""

    def __init__(
        self,
        passes: Pass,
        data: Data,
        policy: dict[str, Any] | None,
        rates: ScheduleFile | None,
        options: Options,
    ) -> None:
        self.passes = passes
        self.data = data
        self.policy = policy
        self.rates = rates
        self.options = options
        self.log = passes.log
        self.qat = False
        self.optimizer: Optimizer = _new_optimizer(passes.model, options)
        self.history: list[_Result] = []
        self.schedule = Schedule([])

    def run(self, resumed: checkpoints.Loaded | None) -> None:
        """Train all epochs, then measure the last state on the test set."""
        options, start = self.options, 0
        if resumed is not None and not options.reset_optimizer:
            start = self._resume(resumed)
        else:
            _warn_of_defaults(options, self.log)
        epochs = options.epochs
        if start >= epochs:
            raise InputError(
                "E606", f"{epochs} is too low: the checkpoint has done {start} epochs", "--epochs"
            )
        if self.rates is not None:
            of_loss = next(iter(self.passes.task.optimizers()), None)
            self.schedule = self.rates.start(self.optimizer, start, of_loss)
        for epoch in range(start, epochs):
            if self.policy is not None and epoch == self.policy["start_epoch"]:
                self._begin_qat()
            self._epoch(epoch)
        self.log.metrics["test"] = measure(self.passes, self.data.test).as_dict()
        self.log.save_metrics()

    def _resume(self, resumed: checkpoints.Loaded) -> int:
        """Take over the optimizer and return the epoch to start with."""
        if resumed.epoch is None or resumed.optimizer is None:
            raise InputError(
                "E609",
                "the checkpoint has no epoch or optimizer to continue with",
                self.options.resume_from,
                "Take only its weights with --exp-load-weights-from.",
            )
        if resumed.optimizer_class in OPTIMIZERS:
            options = replace(self.options, optimizer=OPTIMIZERS[resumed.optimizer_class])
            self.optimizer = _new_optimizer(self.passes.model, options)
        try:
            self.optimizer.load_state_dict(resumed.optimizer)
        except (ValueError, KeyError, IndexError) as exc:
            raise InputError(
                "E609",
                f"the checkpoint's optimizer does not fit this model ({exc})",
                self.options.resume_from,
                "Add --reset-optimizer.",
            ) from exc
        start = resumed.epoch + 1
        self.qat = self.policy is not None and start > self.policy["start_epoch"]
        return start

    def _begin_qat(self) -> None:
        """Switch to quantization-aware training; what was best before does not count any more."""
        assert self.policy is not None
        self.log.say("Initiating quantization aware training (QAT)...")
        ai8x.fuse_bn_layers(self.passes.model)
        self.optimizer = ai8x.update_optimizer(self.passes.model, self.optimizer)
        self.schedule.use(self.optimizer)
        ai8x.initiate_qat(self.passes.model, self.policy)
        forward = forward_of(self.passes.model, self.passes.device, self.options)
        self.passes = replace(self.passes, forward=forward)
        self.history.clear()
        self.qat = True

    def _epoch(self, epoch: int) -> None:
        """Train, validate, save and step the learning rate."""
        log, data = self.log, self.data
        assert data.train is not None
        assert data.validation is not None
        began = time.perf_counter()
        rate = self.optimizer.param_groups[0]["lr"]
        optimizers = [self.optimizer, *self.passes.task.optimizers()]
        trained = train_epoch(self.passes, data.train, optimizers, epoch)
        log.say(f"--- validate (epoch={epoch})-----------")
        log.say(f"{data.validation.samples} samples ({self.options.batch_size} per mini-batch)")
        scores = evaluate(self.passes, data.validation, epoch)
        log.scalars("Performance/Validation", {"Loss": scores.loss, **scores.values}, epoch)
        seconds = time.perf_counter() - began
        report(self.passes, scores)
        log.metrics["epochs"].append({
            "epoch": epoch,
            "qat": self.qat,
            "learning_rate": rate,
            "training": trained.as_dict(),
            "validation": scores.as_dict(),
            "seconds": round(seconds, 2),
        })  # fmt: skip
        self._save(epoch, scores)
        self.schedule.end_epoch(epoch, scores.loss, self.passes.task.rank(scores)[0])

    def _save(self, epoch: int, scores: Scores) -> None:
        """Write the checkpoint, as the best one too if it is; ties go to the later epoch."""
        task, log, model = self.passes.task, self.log, self.passes.model
        parameters = _nonzero_parameters(model)
        self.history.append(_Result((*task.rank(scores), epoch), scores, parameters, epoch))
        self.history.sort(key=lambda result: result.rank, reverse=True)
        del self.history[self.options.num_best_scores :]
        for result in self.history:
            parts = [task.best_text(result.scores), f"Params: {result.parameters}"]
            log.say(f"==> Best [{'   '.join(parts)} on epoch: {result.epoch}]")
        best = self.history[0]
        names = ["checkpoint", "best"] if best.epoch == epoch else ["checkpoint"]
        before = [self.options.name, "qat" if self.qat else None]
        prefix = "".join(f"{part}_" for part in before if part)
        paths = [log.folder / f"{prefix}{name}.pth.tar" for name in names]
        extras = task.extras(scores, best.scores) | {"best_epoch": best.epoch}
        log.say(f"Saving checkpoint to: {', '.join(map(str, paths))}")
        checkpoints.write(paths, epoch, self.options.arch, model, self.optimizer, extras)
        log.metrics["best"] = {"epoch": best.epoch, **best.scores.as_dict()}
        log.save_metrics()


@dataclass(frozen=True, slots=True)
class _Result:
    """How an epoch ended; the greatest `rank` is the best."""

    rank: tuple[float, ...]
    scores: Scores
    parameters: int
    epoch: int


def _warn_of_defaults(options: Options, log: Log) -> None:
    """Say which optimizer and rate are taken for want of an option."""
    if options.optimizer is None:
        log.warn("--optimizer not given, using SGD")
    if options.lr is None:
        log.warn(f"--lr not given, using {DEFAULT_RATE}")


def _new_optimizer(model: nn.Module, options: Options) -> Optimizer:
    """Return the optimizer over all parameters, so that a checkpoint numbers them as others do."""
    rate = options.lr or DEFAULT_RATE
    if options.optimizer == "adam":
        return Adam(model.parameters(), rate, weight_decay=options.weight_decay)
    return SGD(model.parameters(), rate, options.momentum, weight_decay=options.weight_decay)


def _nonzero_parameters(model: nn.Module) -> int:
    """Count what is not 0 in weights and biases of two to four dimensions."""
    return sum(
        int(p.count_nonzero())
        for name, p in model.named_parameters()
        if name.rsplit(".", 1)[-1] in ("weight", "bias") and 2 <= p.ndim <= 4
    )
