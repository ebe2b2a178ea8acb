"""Training over the epochs: when QAT begins, what is best, what is saved."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim import Optimizer

import ai8x
from ai8xtools.checkpoint.errors import CheckpointError
from ai8xtools.diagnostics.errors import InputError, ToolError
from ai8xtools.training.catalog.own_file import plain_name
from ai8xtools.training.compute.devices import forward_of
from ai8xtools.training.compute.randomness import derived, seed_everything
from ai8xtools.training.data.batches import Data
from ai8xtools.training.loop.averaging import KEY as AVERAGE
from ai8xtools.training.loop.beginning_qat import choose_integers
from ai8xtools.training.loop.epochs import Pass, evaluate, measure, report, train_epoch
from ai8xtools.training.loop.metrics import Scores
from ai8xtools.training.loop.optimizing import (
    DEFAULT_RATE,
    OPTIMIZERS,
    check_patterns,
    new_optimizer,
    renewed_optimizer,
)
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.policies import qat
from ai8xtools.training.policies.schedule import LearningRates, Outcome, ScheduleFile
from ai8xtools.training.saving import checkpoints
from ai8xtools.training.saving.logs import Log
from ai8xtools.training.saving.progress import KEY, Epoch, Progress
from ai8xtools.training.saving.resuming import first_epoch, take_optimizer


class Trainer:
    """The state of a training run: optimizer, schedule, epochs so far.

    `progress` has the seed of the run, and the epochs of a run that is resumed.
    """

    def __init__(
        self,
        passes: Pass,
        data: Data,
        policy: dict[str, Any] | None,
        rates: ScheduleFile | None,
        progress: Progress,
    ) -> None:
        self.passes = passes
        self.data = data
        self.policy = policy
        self.rates = rates
        self.options = passes.options
        self.progress = progress
        self.log = passes.log
        self.qat = qat.begun(passes.model)
        self.stage_start = 0
        self.optimizer: Optimizer = new_optimizer(passes.model, self.options)
        self.schedule = LearningRates([])
        self.saved: Path | None = None

    def run(self, resumed: checkpoints.Loaded | None) -> None:
        """Train all epochs, then evaluate the last and the best state on the test set.

        Raises ToolError with the file to continue with when the user interrupts.
        """
        try:
            self._train(resumed)
        except KeyboardInterrupt as exc:
            if self.saved is None:
                raise
            raise ToolError(
                "E001", "the run was interrupted", str(self.saved),
                f"Continue it with --resume-from {self.saved} and the same options.",
            ) from exc  # fmt: skip

    def _train(self, resumed: checkpoints.Loaded | None) -> None:
        options, start = self.options, 0
        if resumed is not None and not options.reset_optimizer:
            start = self._resume(resumed)
        else:
            _warn_of_defaults(options, self.log)
            check_patterns(self.passes.model, options)
        epochs = options.epochs
        if start >= epochs:
            self._refuse_no_epochs(start)
        if self.rates is not None:
            of_loss = next(iter(self.passes.task.optimizers()), None)
            outcomes: list[Outcome | None] = [self._outcome(e.scores) for e in self.progress.epochs]
            done = outcomes or [None] * start
            self.schedule = self.rates.start(self.optimizer, of_loss, done)
        for epoch in range(start, epochs):
            if self._stalled():
                self.log.say(f"Early stop: no better epoch in the last {options.early_stop}")
                break
            self._begin_epoch(epoch)
            self._epoch(epoch)
        self._test()
        self.log.save_metrics()

    def _refuse_no_epochs(self, done: int) -> None:
        raise InputError(
            "E615",
            f"{self.options.epochs} is too low: the checkpoint has done {done} epochs",
            "--epochs",
            f"Name more than {done} epochs.",
        )

    def _begin_epoch(self, epoch: int) -> None:
        """Change what an epoch begins with."""
        if self.policy is not None and epoch == self.policy["start_epoch"]:
            self._begin_qat()

    def _stalled(self) -> bool:
        """Return whether the best epoch is too long ago; never before QAT that is still to come."""
        patience, history = self.options.early_stop, self._history()
        to_come = self.policy is not None and self.policy["start_epoch"] < self.options.epochs
        if patience is None or not history or (to_come and not self.qat):
            return False
        stalled = self.progress.epochs[-1].number - history[0].number >= patience
        return bool(self.passes.share.agree(stalled))

    def _test(self) -> None:
        """Measure the last and the best state; observers see the best one in the second generation
        of QAT only, as in the vendor's tools of that generation."""
        judged, test, metrics = self.passes.judged, self.data.test, self.log.metrics
        if ai8x.has_thresholds(self.passes.model):
            metrics["test"] = measure(judged, test, "ckpt").as_dict()
            passes = self.passes if self._take_best() else None
        else:
            metrics["test"] = measure(judged, test).as_dict()
            if self._history()[0].number == self.progress.epochs[-1].number:
                self.log.say("The last epoch is the best one")
                metrics["test_best"] = metrics["test"]
                return
            passes = replace(self.passes, observers=()) if self._take_best() else None
        if passes is not None:
            metrics["test_best"] = measure(passes, test, "best").as_dict()

    def _take_best(self) -> bool:
        """Let the model be that of the best epoch; False if its checkpoint is not at hand."""
        share, path = self.passes.share, self._path("best") if self.passes.share.leads else None
        state = checkpoints.read(str(path)) if path is not None and path.exists() else None
        state = share.agree(state)
        if state is not None:
            checkpoints.load_into(self.passes.model, state)
        return state is not None

    def _resume(self, resumed: checkpoints.Loaded) -> int:
        """Take over optimizer and results, and return the epoch to start with."""
        options, passes = self.options, self.passes
        source = options.resume_from
        assert source is not None
        if resumed.optimizer is None:
            raise InputError(
                "E609",
                "the checkpoint has no optimizer state to continue with",
                source,
                "Take only its weights with --exp-load-weights-from.",
            )
        start = first_epoch(resumed.epoch, source)
        if resumed.optimizer_class in OPTIMIZERS:
            of_file = replace(options, optimizer=OPTIMIZERS[resumed.optimizer_class])
            self.optimizer = new_optimizer(passes.model, of_file)
        take_optimizer(self.optimizer, resumed.optimizer, source)
        if passes.average is not None and not passes.average.restore(passes.model, resumed):
            self.log.warn(f"{source} holds no average of weights: --ema begins with its weights")
        if passes.average is None and AVERAGE in resumed.extras:
            self.log.warn(f"{source} holds averaged weights; without --ema they are trained on")
        if self.policy is not None and start > self.policy["start_epoch"]:
            self.stage_start = self.policy["start_epoch"]
        self.log.metrics["epochs"] += [dict(epoch.metrics) for epoch in self.progress.epochs]
        if self._history() and passes.share.leads:
            self._keep_best(Path(source))
        return start

    def _keep_best(self, source: Path) -> None:
        """Copy the best checkpoint of the run before into the new log folder."""
        best = self._history()[0].number
        stem = source.name.removesuffix("checkpoint.pth.tar")
        for path in (source, source.with_name(f"{stem}best.pth.tar")):
            try:
                if checkpoints.read(str(path)).epoch == best:
                    kept = self._path("best")
                    checkpoints.write_file(kept, path.read_bytes(), self.options.safetensors)
                    return
            except (CheckpointError, OSError):
                continue
        self.log.warn(
            f"{source}: the best checkpoint so far, of epoch {best}, is not beside it; this run "
            "keeps the best of its own epochs only"
        )

    def _begin_qat(self) -> None:
        """Switch to quantization-aware training; earlier best results no longer count."""
        assert self.policy is not None
        model, share = self.passes.model, self.passes.share
        self.log.say("Initiating quantization aware training (QAT)...")
        ai8x.fuse_bn_layers(model)
        if ai8x.has_thresholds(model):
            self._measure_ranges()
        ai8x.initiate_qat(model, self.policy)
        if qat.fits_ranges(self.options.qat_range, self.policy):
            assert self.data.train is not None
            choose_integers(self.passes, self.data.train, self.policy["start_epoch"])
        # after all parameters of layers are there: a checkpoint numbers them for the optimizer
        self.optimizer = renewed_optimizer(model, self.optimizer, self.options)
        self.schedule.use(self.optimizer)
        forward = forward_of(model, self.passes.device, self.options, share)
        self.passes = replace(self.passes, forward=forward, mixed_precision=False)
        if self.passes.average is not None:
            self.passes.average.restart(model)
        self.qat = True
        self.stage_start = self.policy["start_epoch"]

    def _measure_ranges(self) -> None:
        """Choose the range of every activation in a pass over the training data."""
        assert self.policy is not None
        assert self.data.train is not None
        z_score = self.policy.get("outlier_removal_z_score")
        if z_score is None:
            z_score = ai8x.DEFAULT_Z_SCORE
            self.log.say(f"outlier_removal_z_score is not in the policy, {z_score} is used")
        model, place = self.passes.model, self.passes.place
        batches = (place(batch) for batch in self.data.train.of_epoch(self.policy["start_epoch"]))
        ai8x.init_hist(model)
        try:
            ai8x.stat_collect(batches, model, self.passes)
            ai8x.share_histograms(model, self.passes.share.together)
            ai8x.init_threshold(model, z_score)
            ai8x.apply_scales(model)
        except ai8x.NotTraceableError as exc:
            raise InputError(
                "E647",
                f"the data flow of the network cannot be traced: {exc}",
                "--model",
                "Let the forward function not branch on its data, or use --qat-version 1.",
            ) from exc
        except ai8x.NotFiniteError as exc:
            raise InputError(
                "E605",
                f"{exc}, so that no range can be chosen",
                "--lr",
                "Lower the learning rate; checkpoints of earlier epochs are unchanged.",
            ) from exc
        finally:
            ai8x.release_hist(model)

    def _epoch(self, epoch: int) -> None:
        """Train, validate, save and step the learning rate."""
        log, data = self.log, self.data
        assert data.train is not None
        began = time.perf_counter()
        seed_everything(derived(self.progress.seed, epoch, self.passes.share.rank))
        if self.qat and epoch != self.stage_start:
            ai8x.refit_ranges(self.passes.model)
            if self.passes.average is not None:
                self.passes.average.follow_ranges(self.passes.model)
        rate = self.optimizer.param_groups[0]["lr"]
        optimizers = [self.optimizer, *self.passes.task.optimizers()]
        trained = train_epoch(self.passes, data.train, optimizers, epoch)
        scores, validation = self._validate(epoch, trained)
        seconds = time.perf_counter() - began
        metrics = {
            "epoch": epoch,
            "qat": self.qat,
            "learning_rate": rate,
            "training": trained.as_dict(),
            "validation": validation,
            "seconds": round(seconds, 2),
        }
        log.metrics["epochs"].append(metrics)
        parameters = _nonzero_parameters(self.passes.judged.model)
        self.progress.epochs.append(Epoch(epoch, self.qat, scores, parameters, metrics))
        self._save(epoch, scores)
        self.schedule.end_epoch(epoch, self.passes.share.agree(self._outcome(scores)))

    def _validate(self, epoch: int, trained: Scores) -> tuple[Scores, Any]:  # noqa: ARG002
        """Return the scores on the validation set, and as they stand in metrics.json."""
        log, validation = self.log, self.data.validation
        assert validation is not None
        log.say(f"--- validate (epoch={epoch})-----------")
        log.say(f"{validation.samples} samples ({self.options.batch_size} per mini-batch)")
        scores = evaluate(self.passes.judged, validation, epoch)
        log.scalars("Performance/Validation", {"Loss": scores.loss, **scores.values}, epoch)
        report(self.passes, scores)
        return scores, scores.as_dict()

    def _outcome(self, scores: Scores) -> Outcome:
        """Return the results that may control the learning rate."""
        return Outcome(scores.loss, self.passes.task.rank(scores)[0])

    def _history(self) -> list[Epoch]:
        """Return the epochs of this stage, the best first; of equals the later one.

        Where nothing is kept for validation, the last one is the best.
        """
        rank = self.passes.task.rank
        if self.options.no_validation:
            return self._of_stage()[::-1]
        return sorted(self._of_stage(), key=lambda e: (*rank(e.scores), e.number), reverse=True)

    def _of_stage(self) -> list[Epoch]:
        """Return the epochs of this stage."""
        return [
            epoch
            for epoch in self.progress.epochs
            if epoch.qat == self.qat and epoch.number >= self.stage_start
        ]

    def _extras(self) -> dict[str, Any]:
        """Return the entries of a checkpoint besides its quality."""
        extras: dict[str, Any] = {KEY: self.progress.as_dict(), **self.data.record}
        if self.passes.average is not None:
            extras |= self.passes.average.extras(self.passes.model)
        return extras

    def best(self) -> dict[bool, Path]:
        """Return the best checkpoints of the run, that in QAT (True) and that before."""
        paths = {qat: self._named("best", qat) for qat in (False, True)}
        return {qat: path for qat, path in paths.items() if path.exists()}

    def _path(self, name: str) -> Path:
        """Return the name of a checkpoint in the log folder."""
        return self._named(name, self.qat)

    def _named(self, name: str, in_qat: bool) -> Path:
        before = [self.options.name, "qat" if in_qat else None]
        return self.log.folder / "_".join([*filter(None, before), f"{name}.pth.tar"])

    def _save(self, epoch: int, scores: Scores) -> None:
        """Write the checkpoint, first as the best one if it is."""
        task, log, model = self.passes.task, self.log, self.passes.judged.model
        if not self.passes.share.leads:
            return
        history = self._history()
        for result in history[: self.options.num_best_scores]:
            parts = [task.best_text(result.scores), f"Params: {result.parameters}"]
            log.say(f"==> Best [{'   '.join(parts)} on epoch: {result.number}]")
        best = history[0]
        names = ["best", "checkpoint"] if best.number == epoch else ["checkpoint"]
        paths = [self._path(name) for name in names]
        extras = task.extras(scores, best.scores) | {"best_epoch": best.number}
        extras |= self._extras()
        log.say(f"Saving checkpoint to: {', '.join(map(str, paths))}")
        checkpoints.write(
            paths,
            epoch,
            plain_name(self.options.arch),
            model,
            self.optimizer,
            extras,
            self.options.safetensors,
        )
        self.saved = paths[-1]
        log.metrics["best"] = {"epoch": best.number, **best.scores.as_dict()}
        log.save_metrics()


def _warn_of_defaults(options: TrainingOptions, log: Log) -> None:
    """Warn of the optimizer and learning rate that are used by default."""
    if options.optimizer is None:
        log.warn("--optimizer not given, using SGD")
    if options.lr is None:
        log.warn(f"--lr not given, using {DEFAULT_RATE}")


def _nonzero_parameters(model: nn.Module) -> int:
    """Count the non-zero values in parameters of two to four dimensions."""
    return sum(
        int(p.count_nonzero())
        for name, p in model.named_parameters()
        if name.rsplit(".", 1)[-1] in ("weight", "bias") and 2 <= p.ndim <= 4
    )
