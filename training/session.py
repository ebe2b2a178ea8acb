"""A run of train.py from its options to its results (spec/training.md 2.2)."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import nn

import ai8x
from checkpoint.errors import InputError
from training import checkpoints, qat
from training.data import Data, load_data
from training.discovery import DatasetEntry, ModelEntry, choose, find_datasets, find_models
from training.logs import Log
from training.loop import FAST_LAYOUT, Pass, measure
from training.options import Options
from training.sample import save_sample
from training.schedule import read_schedule
from training.trainer import Trainer


def run(options: Options) -> None:
    """Train or evaluate as the options say.

    Raises InputError (and what data sets raise) for everything that cannot be used.
    """
    model_entry = choose(find_models(), options.arch, "--model")
    dataset = choose(find_datasets(), options.dataset, "--dataset")
    _set_seeds(options)
    ai8x.set_device(options.device, options.act_mode_8bit, options.avg_pool_rounding, verbose=False)
    model = build_model(model_entry, dataset, options)
    policy = None
    if options.qat_policy is not None and not options.evaluate:
        policy = qat.read_policy(options.qat_policy)
        qat.check_layers(policy, model, options.qat_policy)
    rates = read_schedule(options.compress) if options.compress and not options.evaluate else None
    source = options.resume_from or options.exp_load_weights_from
    loaded, surplus = _load(model, source, options) if source else (None, [])
    device = _compute_device(options)
    data = load_data(dataset, options)

    log = Log(options.out_dir, options.name, options.tensorboard)
    try:
        _introduce(log, options, data, surplus, source)
        log.detail(f"Computing on the device {device}")
        _warn_if_qat_never_starts(log, policy, options)
        weight = None if dataset.weight is None else torch.tensor(dataset.weight, device=device)
        criterion = nn.CrossEntropyLoss(weight)
        passes = Pass(
            model.to(device, **FAST_LAYOUT), criterion, len(dataset.output), device, options, log
        )
        if options.evaluate:
            _evaluate_only(passes, data, options)
        else:
            resumed = loaded if options.resume_from else None
            Trainer(passes, data, policy, rates, options).run(resumed)
    finally:
        log.close()


def build_model(entry: ModelEntry, dataset: DatasetEntry, options: Options) -> nn.Module:
    """Make the network for the data set; InputError when the chip cannot run it."""
    channels, height, width = dataset.input
    keywords: dict[str, Any] = {
        "pretrained": False,
        "num_classes": len(dataset.output),
        "num_channels": channels,
        "dimensions": (height, width),
        "bias": options.use_bias,
    }
    simulate = options.act_mode_8bit
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


def _load(model: nn.Module, path: str, options: Options) -> tuple[checkpoints.Loaded, list[str]]:
    """Fill the model from a file; return what the file holds and the names that found no place."""
    loaded = checkpoints.read(path)
    surplus = checkpoints.load_into(model, loaded, path)
    if options.act_mode_8bit:
        _refuse_fractions(model, path)
    return loaded, surplus


def _set_seeds(options: Options) -> None:
    """Make the run repeatable when it is asked for, and always in evaluation."""
    if options.deterministic or options.evaluate:
        torch.manual_seed(options.seed)
        random.seed(options.seed)
        np.random.seed(options.seed % (1 << 32))
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False


def _compute_device(options: Options) -> torch.device:
    """Return where to compute: a CUDA device unless there is none or the user prefers the CPU.

    Raises InputError for the number of a CUDA device that is not present.
    """
    present = torch.cuda.device_count()
    if options.cpu or present == options.gpus == 0:
        return torch.device("cpu")
    if options.gpus >= present:
        raise InputError(
            "E611",
            f"there is no CUDA device {options.gpus}; {present} are present, counted from 0",
            "--gpus",
            "Choose another one, or compute with --cpu.",
        )
    return torch.device(f"cuda:{options.gpus}")


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
    log: Log, options: Options, data: Data, surplus: list[str], source: str | None
) -> None:
    """Log what the run is about."""
    chip = ai8x.dev
    assert chip is not None
    log.detail(f"Command line: {options.command_line}")
    log.say(f"Configuring device: {chip.name}, simulate={chip.simulate}.")
    sizes = {"training": data.train, "validation": data.validation, "test": data.test}
    listed = ", ".join(f"{name}={part.samples}" for name, part in sizes.items() if part)
    log.say(f"Dataset sizes: {listed}")
    log.text("Command line", options.command_line)
    if surplus:
        log.warn(f"{source}: no place in the model for {', '.join(surplus)}")
    if options.compress and not options.evaluate:
        log.keep(options.compress)
    log.metrics |= {"model": options.arch, "dataset": options.dataset, "sizes": {
        name: part.samples for name, part in sizes.items() if part
    }}  # fmt: skip


def _warn_if_qat_never_starts(log: Log, policy: dict[str, Any] | None, options: Options) -> None:
    """Log a warning when the training ends before its weights are quantized."""
    if policy is not None and policy["start_epoch"] >= options.epochs:
        log.warn(
            f"{options.qat_policy}: start_epoch is {policy['start_epoch']}, but the run ends after "
            f"{options.epochs} epochs, without quantization-aware training. Raise --epochs, lower "
            "start_epoch, or choose --qat-policy None."
        )


def _evaluate_only(passes: Pass, data: Data, options: Options) -> None:
    """Measure on the test set; write the sample if one is wanted."""
    log = passes.log
    if options.save_sample is not None:
        path = save_sample(data.test, options.save_sample, options)
        log.say(f"Saved test image {options.save_sample} to {path}")
    log.metrics["test"] = measure(passes, data.test).as_dict()
    log.save_metrics()
