"""A run of train.py from its options to its results (spec/training.md 2.2)."""

from __future__ import annotations

import random
import time
from argparse import Namespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

import ai8x
from checkpoint.errors import InputError
from training import checkpoints, options, qat
from training.data import Data, load_data
from training.discovery import DatasetEntry, ModelEntry, choose, find_datasets, find_models
from training.logs import Log
from training.loop import FAST_LAYOUT, Pass, evaluate, train_epoch
from training.metrics import Scores
from training.sample import save_sample
from training.schedule import Schedule, read_schedule


def run(args: Namespace) -> None:
    """Train or evaluate as the options say.

    Raises InputError (and what data sets raise) for everything that cannot be used.
    """
    model_entry = choose(find_models(), args.arch, "--model")
    dataset = choose(find_datasets(), args.dataset, "--dataset")
    policy = qat.read_policy(args.qat_policy) if args.qat_policy and not args.evaluate else None
    _set_seeds(args)
    ai8x.set_device(args.device, args.act_mode_8bit, args.avg_pool_rounding, verbose=False)
    model = build_model(model_entry, dataset, args)
    if policy is not None:
        qat.check_layers(policy, model, args.qat_policy)
    source = args.resume_from or args.exp_load_weights_from
    loaded = checkpoints.read(source) if source else None
    surplus = checkpoints.load_into(model, loaded, source) if loaded else []
    if args.act_mode_8bit and loaded is not None:
        _refuse_fractions(model, source)
    data = load_data(dataset, args)

    log = Log(args.out_dir, args.name, args.tensorboard)
    try:
        _introduce(log, args, data, surplus, source)
        device = _compute_device(args, log)
        weight = None if dataset.weight is None else torch.tensor(dataset.weight, device=device)
        criterion = nn.CrossEntropyLoss(weight)
        passes = Pass(
            model.to(device, **FAST_LAYOUT), criterion, len(dataset.output), device, args, log
        )
        if args.evaluate:
            _evaluate_only(passes, data, args)
        else:
            Training(passes, data, policy, args).run(loaded if args.resume_from else None)
    finally:
        log.close()


def build_model(entry: ModelEntry, dataset: DatasetEntry, args: Namespace) -> nn.Module:
    """Make the network for the data set; InputError when the chip cannot run it."""
    channels, height, width = dataset.input
    keywords: dict[str, Any] = {
        "pretrained": False,
        "num_classes": len(dataset.output),
        "num_channels": channels,
        "dimensions": (height, width),
        "bias": args.use_bias,
    }
    simulate = args.act_mode_8bit
    bits = 8 if simulate else None
    keywords |= {"weight_bits": bits, "bias_bits": bits, "quantize_activation": simulate}
    if entry.dim > 1 and entry.min_input > width:
        keywords["padding"] = (entry.min_input - width + 1) // 2
    try:
        model: nn.Module = entry.make(**keywords)
    except (AssertionError, ValueError, TypeError) as exc:
        raise InputError(
            "E607",
            f"the network cannot be built for {dataset.name} ({'x'.join(map(str, dataset.input))} "
            f"in, {len(dataset.output)} classes): {exc}",
            "--model",
            "Choose another network or data set, or change --device or --use-bias.",
        ) from exc
    return model


def _set_seeds(args: Namespace) -> None:
    """Make the run repeatable when it is asked for, and always in evaluation."""
    args.deterministic = args.deterministic or args.evaluate
    if args.deterministic:
        seed = args.seed or 0
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % (1 << 32))
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False


def _compute_device(args: Namespace, log: Log) -> torch.device:
    """Return where to compute: a CUDA device unless there is none or the user prefers the CPU."""
    if args.cpu:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        log.detail("There is no CUDA device; computing on the CPU.")
        return torch.device("cpu")
    return torch.device(f"cuda:{args.gpus or 0}")


def _refuse_fractions(model: nn.Module, path: str) -> None:
    """Raise InputError for weights that are not integers: the simulation would round them to 0."""
    for name, parameter in model.named_parameters():
        if name.endswith("op.weight") and not torch.equal(parameter, parameter.round()):
            raise InputError(
                "E608",
                f"{name} holds fractions, but -8 computes with quantized weights",
                path,
                "Quantize the checkpoint with quantize.py first, or leave out -8.",
            )


def _introduce(
    log: Log, args: Namespace, data: Data, surplus: list[str], source: str | None
) -> None:
    """Log what the run is about."""
    chip = ai8x.dev
    assert chip is not None
    log.detail(f"Command line: {args.command_line}")
    log.say(f"Configuring device: {chip.name}, simulate={chip.simulate}.")
    sizes = {"training": data.train, "validation": data.validation, "test": data.test}
    listed = ", ".join(f"{name}={part.samples}" for name, part in sizes.items() if part)
    log.say(f"Dataset sizes: {listed}")
    log.text("Command line", args.command_line)
    if surplus:
        log.warn(f"{source}: no place in the model for {', '.join(surplus)}")
    if args.compress and not args.evaluate:
        log.keep(args.compress)
    log.metrics |= {"model": args.arch, "dataset": args.dataset, "sizes": {
        name: part.samples for name, part in sizes.items() if part
    }}  # fmt: skip


def _evaluate_only(passes: Pass, data: Data, args: Namespace) -> None:
    """Measure on the test set; write the sample if one is wanted."""
    log = passes.log
    if args.save_sample is not None:
        path = save_sample(data.test, args)
        log.say(f"Saved test image {args.save_sample} to {path}")
    log.metrics["test"] = test(passes, data).as_dict()
    log.save_metrics()


def test(passes: Pass, data: Data) -> Scores:
    """Measure on the test set and log the result."""
    log = passes.log
    log.say("--- test ---------------------")
    log.say(f"{data.test.samples} samples ({passes.args.batch_size} per mini-batch)")
    scores, matrix = evaluate(passes, data.test, "Test: ")
    _report(passes, scores, matrix)
    return scores


def _report(passes: Pass, scores: Scores, matrix: Tensor) -> None:
    """Log the scores, and the confusion matrix if it is wanted."""
    passes.log.say(f"==> {scores}\n")
    if passes.args.confusion:
        width = len(str(int(matrix.max())))
        rows = "\n ".join("[" + " ".join(f"{n:{width}}" for n in row) + "]" for row in matrix)
        passes.log.say(f"==> Confusion:\n[{rows}]\n")


class Training:
    """The state of a training run: optimizer, schedule, best result so far."""

    def __init__(
        self, passes: Pass, data: Data, policy: dict[str, Any] | None, args: Namespace
    ) -> None:
        self.passes = passes
        self.data = data
        self.policy = policy
        self.args = args
        self.log = passes.log
        self.prefix = f"{args.name}_" if args.name else ""
        self.optimizer: Optimizer = _optimizer(passes.model, args, self.log)
        self.best: tuple[float, float, int] | None = None
        self.schedule = Schedule([])

    def run(self, resumed: checkpoints.Loaded | None) -> None:
        """Train all epochs, then measure the last state on the test set."""
        args, start = self.args, 0
        if resumed is not None and not args.reset_optimizer:
            start = self._resume(resumed)
        epochs = args.epochs or options.DEFAULT_EPOCHS
        if start >= epochs:
            raise InputError(
                "E606", f"{epochs} is too low: the checkpoint has done {start} epochs", "--epochs"
            )
        if args.compress:
            self.schedule = read_schedule(args.compress, self.optimizer, start)
        for epoch in range(start, epochs):
            if self.policy is not None and epoch == self.policy["start_epoch"]:
                self._begin_qat()
            self._epoch(epoch)
        self.log.metrics["test"] = test(self.passes, self.data).as_dict()
        self.log.save_metrics()

    def _resume(self, resumed: checkpoints.Loaded) -> int:
        """Take over the optimizer and return the epoch to start with."""
        if resumed.epoch is None or resumed.optimizer is None:
            raise InputError(
                "E609",
                "the checkpoint has no epoch or optimizer to continue with",
                self.args.resume_from,
                "Take only its weights with --exp-load-weights-from.",
            )
        try:
            self.optimizer.load_state_dict(resumed.optimizer)
        except (ValueError, KeyError, IndexError) as exc:
            raise InputError(
                "E609",
                f"the checkpoint's optimizer does not fit this model ({exc})",
                self.args.resume_from,
                "Add --reset-optimizer.",
            ) from exc
        start = resumed.epoch + 1
        if self.policy is not None and start > self.policy["start_epoch"]:
            self.prefix += "qat_"
        return start

    def _begin_qat(self) -> None:
        """Switch to quantization-aware training; what was best before does not count any more."""
        assert self.policy is not None
        self.log.say("Initiating quantization aware training (QAT)...")
        ai8x.fuse_bn_layers(self.passes.model)
        self.optimizer = ai8x.update_optimizer(self.passes.model, self.optimizer)
        self.schedule.use(self.optimizer)
        ai8x.initiate_qat(self.passes.model, self.policy)
        self.best = None
        self.prefix += "qat_"

    def _epoch(self, epoch: int) -> None:
        """Train, validate, save and step the learning rate."""
        log, data = self.log, self.data
        assert data.train is not None
        assert data.validation is not None
        began = time.perf_counter()
        rate = self.optimizer.param_groups[0]["lr"]
        trained = train_epoch(self.passes, data.train, self.optimizer, epoch)
        log.say(f"--- validate (epoch={epoch})-----------")
        log.say(f"{data.validation.samples} samples ({self.args.batch_size} per mini-batch)")
        scores, matrix = evaluate(self.passes, data.validation, f"Epoch: [{epoch}]")
        log.scalars("Performance/Validation", _titled(scores), epoch)
        seconds = time.perf_counter() - began
        _report(self.passes, scores, matrix)
        log.metrics["epochs"].append({
            "epoch": epoch,
            "qat": self.prefix.endswith("qat_"),
            "learning_rate": rate,
            "training": trained.as_dict(),
            "validation": scores.as_dict(),
            "seconds": round(seconds, 2),
        })  # fmt: skip
        self._save(epoch, scores)
        self.schedule.end_epoch(epoch, scores.loss)

    def _save(self, epoch: int, scores: Scores) -> None:
        """Write the checkpoint, as the best one too if it is; ties go to the later epoch."""
        rank = (scores.top1, 0.0 if scores.top5 != scores.top5 else scores.top5, epoch)
        improved = self.best is None or rank > self.best
        self.best = rank if improved or self.best is None else self.best
        log = self.log
        top5 = "" if scores.top5 != scores.top5 else f"Top5: {self.best[1]:.3f}   "
        count = _nonzero_parameters(self.passes.model)
        log.say(
            f"==> Best [Top1: {self.best[0]:.3f}   {top5}Params: {count} on epoch: {self.best[2]}]"
        )
        names = ["checkpoint", "best"] if improved else ["checkpoint"]
        paths = [log.folder / f"{self.prefix}{name}.pth.tar" for name in names]
        extras = {
            "current_top1": scores.top1,
            "best_top1": self.best[0],
            "current_mAP": 0,
            "best_mAP": 0,
            "best_epoch": self.best[2],
        }
        log.say(f"Saving checkpoint to: {', '.join(map(str, paths))}")
        model = self.passes.model
        checkpoints.write(paths, epoch, self.args.arch, model, self.optimizer, extras)
        log.metrics["best"] = {"epoch": self.best[2], "top1": round(self.best[0], 6)}
        log.save_metrics()


def _titled(scores: Scores) -> dict[str, float | None]:
    """Return the scores by the names they have in TensorBoard."""
    return {name.capitalize(): value for name, value in scores.as_dict().items()}


def _optimizer(model: nn.Module, args: Namespace, log: Log) -> Optimizer:
    """Return the optimizer over all parameters, so that a checkpoint numbers them as others do."""
    for option in ("optimizer", "lr"):
        if getattr(args, option) is None:
            default = {"optimizer": options.DEFAULT_OPTIMIZER, "lr": options.DEFAULT_LR}[option]
            log.warn(f"--{option} not given, using {default}")
            setattr(args, option, default)
    if args.optimizer.lower() == "adam":
        return Adam(model.parameters(), args.lr, weight_decay=args.weight_decay)
    return SGD(model.parameters(), args.lr, args.momentum, weight_decay=args.weight_decay)


def _nonzero_parameters(model: nn.Module) -> int:
    """Count what is not 0 in weights and biases of two to four dimensions."""
    return sum(
        int(p.count_nonzero())
        for name, p in model.named_parameters()
        if name.rsplit(".", 1)[-1] in ("weight", "bias") and 2 <= p.ndim <= 4
    )
