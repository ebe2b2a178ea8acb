"""The optimizer of a run: kinds, weight decay by name of parameter, renewal when QAT begins.

Source: docs/training.md, "Refinements".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

import ai8x
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.options import TrainingOptions

DEFAULT_RATE = 0.1
OPTIMIZERS: dict[str, Literal["sgd", "adam", "adamw"]] = {
    "SGD": "sgd",
    "Adam": "adam",
    "AdamW": "adamw",
}
"""Options by the names of classes, which checkpoints hold."""


def new_optimizer(model: nn.Module, options: TrainingOptions) -> Optimizer:
    """Return the optimizer over all parameters, so that a checkpoint numbers them as others do.

    With weight decays by name, parameters are numbered group after group: those of no pattern, then
    those of each pattern.
    """
    rate, decay = options.lr or DEFAULT_RATE, options.weight_decay
    parameters: Any = model.parameters()
    if options.weight_decay_of:
        parameters = _groups(model, options)
    match options.optimizer:
        case "adam":
            return Adam(parameters, rate, weight_decay=decay)
        case "adamw":
            return AdamW(parameters, rate, weight_decay=decay)
        case "sgd" | None:
            return SGD(parameters, rate, options.momentum, weight_decay=decay)


def check_patterns(model: nn.Module, options: TrainingOptions) -> None:
    """Raise InputError for a pattern that no trained parameter matches."""
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    for pattern, _ in options.weight_decay_of:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise InputError(
                "E680",
                f"no parameter of {options.arch} is called {pattern!r}",
                "--weight-decay-of",
                f"They are called {', '.join(names[:3])}, ...; * stands for any characters.",
            )


def renewed_optimizer(
    model: nn.Module, optimizer: Optimizer, options: TrainingOptions
) -> Optimizer:
    """Return an optimizer of the same kind for the parameters after fusing, with their state."""
    if not options.weight_decay_of:
        return ai8x.update_optimizer(model, optimizer)
    renewed = new_optimizer(model, replace(options, optimizer=OPTIMIZERS[type(optimizer).__name__]))
    for new, old in zip(renewed.param_groups, optimizer.param_groups, strict=True):
        new.update({key: value for key, value in old.items() if key != "params"})
        for parameter in new["params"]:
            if parameter in optimizer.state:
                renewed.state[parameter] = optimizer.state[parameter]
    return renewed


def _groups(model: nn.Module, options: TrainingOptions) -> list[dict[str, Any]]:
    """Return groups of parameters: the first pattern that a name matches decides."""
    patterns = options.weight_decay_of
    members: list[list[Tensor]] = [[] for _ in range(len(patterns) + 1)]
    for name, parameter in model.named_parameters():
        members[_first(name, (pattern for pattern, _ in patterns))].append(parameter)
    decays = [options.weight_decay, *(decay for _, decay in patterns)]
    return [
        {"params": group, "weight_decay": decay}
        for group, decay in zip(members, decays, strict=True)
    ]


def _first(name: str, patterns: Iterable[str]) -> int:
    """Return the number of the first pattern from 1 that matches a name, 0 if none does."""
    return next((n for n, pattern in enumerate(patterns, 1) if fnmatchcase(name, pattern)), 0)
