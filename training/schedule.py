"""The learning rate over the epochs, from a YAML file (spec/training.md 2.5)."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from torch.optim import Optimizer, lr_scheduler

from checkpoint.errors import InputError
from training.yaml_file import read_mapping, refuse_unknown_keys

_CODE = "E603"
_NOTATION = "YAML takes numbers without quotes, and with a point before e: 1.0e-4."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Argument:
    """Numbers from `low` up to but not including `below`, a list of them, or one of `words`."""

    whole: bool = False
    low: int = 0
    below: float = math.inf
    listed: bool = False
    words: tuple[str, ...] = ()
    required: bool = False

    def allows(self, value: Any) -> bool:
        """Return whether the argument can be `value`."""
        if self.words:
            return value in self.words
        if self.listed:
            return isinstance(value, list) and all(map(self._in_range, value))
        return self._in_range(value)

    def _in_range(self, value: Any) -> bool:
        types = (int,) if self.whole else (int, float)
        return type(value) in types and self.low <= value < self.below

    def __str__(self) -> str:
        if self.words:
            return " or ".join(self.words)
        kind = ("whole " if self.whole else "") + ("numbers" if self.listed else "number")
        limit = "" if self.below == math.inf else f", below {self.below:g}"
        return f"{'a list of' if self.listed else 'a'} {kind} from {self.low}{limit}"


_NUMBER = _Argument()
_COUNT = _Argument(whole=True)
_COUNTS = _Argument(whole=True, listed=True, required=True)
_PERIOD = _Argument(whole=True, low=1, required=True)
_ARGUMENTS: Mapping[str, Mapping[str, _Argument]] = {
    "MultiStepLR": {"milestones": _COUNTS, "gamma": _NUMBER},
    "StepLR": {"step_size": _PERIOD, "gamma": _NUMBER},
    "ExponentialLR": {"gamma": _Argument(required=True)},
    "CosineAnnealingLR": {"T_max": _PERIOD, "eta_min": _NUMBER},
    "ReduceLROnPlateau": {
        "mode": _Argument(words=("min", "max")),
        "factor": _Argument(below=1),
        "patience": _COUNT,
        "threshold": _NUMBER,
        "threshold_mode": _Argument(words=("rel", "abs")),
        "cooldown": _COUNT,
        "min_lr": _NUMBER,
        "eps": _NUMBER,
    },
}
_LISTED_EPOCHS = {"epochs": _COUNTS}
_EPOCH_RANGE = {
    "starting_epoch": _Argument(whole=True, required=True),
    "ending_epoch": _Argument(whole=True, required=True),
    "frequency": _PERIOD,
}


@dataclass(frozen=True, slots=True)
class _Scheduler:
    """A class of torch.optim.lr_scheduler and its arguments."""

    kind: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Policy:
    """A scheduler, or the name of one, and the epochs after which it takes a step."""

    scheduler: Any
    epochs: Container[int]


class Schedule:
    """Steps the learning rate schedulers of a file at the end of each epoch they are active in."""

    def __init__(self, policies: list[_Policy]) -> None:
        self._policies = policies

    def end_epoch(self, epoch: int, loss: float) -> None:
        """Take the steps due after `epoch`; `loss` of the validation steers ReduceLROnPlateau."""
        for policy in self._policies:
            if epoch not in policy.epochs:
                continue
            if isinstance(policy.scheduler, lr_scheduler.ReduceLROnPlateau):
                policy.scheduler.step(loss)
            else:
                policy.scheduler.step()

    def use(self, optimizer: Optimizer) -> None:
        """Steer another optimizer from now on, whose groups correspond to the former's."""
        for policy in self._policies:
            policy.scheduler.optimizer = optimizer


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """What a file says about the learning rate, checked."""

    path: str
    schedulers: dict[str, _Scheduler]
    policies: list[_Policy]

    def start(self, optimizer: Optimizer, start_epoch: int = 0) -> Schedule:
        """Return the schedule that steers `optimizer`.

        `start_epoch` is not 0 when a run is resumed; InputError when that had no schedule before.
        """
        started = {}
        for name, scheduler in self.schedulers.items():
            kind = getattr(lr_scheduler, scheduler.kind)
            follows_epochs = kind is not lr_scheduler.ReduceLROnPlateau
            last = {"last_epoch": start_epoch - 1} if follows_epochs and start_epoch > 0 else {}
            try:
                started[name] = kind(optimizer, **scheduler.arguments, **last)
            except KeyError as exc:  # the first rate, which a scheduler leaves in the optimizer
                raise InputError(
                    _CODE,
                    f"lr_schedulers: {name} cannot go on: the run began without a schedule",
                    self.path,
                    "Leave out --compress, or add --reset-optimizer.",
                ) from exc
        return Schedule([_Policy(started[p.scheduler], p.epochs) for p in self.policies])


def read_schedule(path: str) -> ScheduleFile:
    """Return what a YAML file says about the learning rate.

    Raises InputError with file, key and what is allowed.
    """
    content = read_mapping(path, _CODE)
    refuse_unknown_keys(content, ("lr_schedulers", "policies"), "the schedule", path, _CODE)
    entries = content.get("lr_schedulers") or {}
    if not isinstance(entries, dict):
        raise InputError(_CODE, f"lr_schedulers is {entries!r}; it must hold names", path)
    schedulers = {name: _scheduler(name, entry, path) for name, entry in entries.items()}
    policies = content.get("policies") or []
    if not isinstance(policies, list):
        raise InputError(_CODE, f"policies is {policies!r}; it must be a list", path)
    return ScheduleFile(path, schedulers, [_policy(p, schedulers, path) for p in policies])


def _scheduler(name: Any, entry: Any, path: str) -> _Scheduler:
    """Return the scheduler that an entry of `lr_schedulers` describes."""
    kind = entry.get("class") if isinstance(entry, dict) else entry
    if not isinstance(entry, dict) or not isinstance(kind, str) or kind not in _ARGUMENTS:
        raise InputError(
            _CODE,
            f"lr_schedulers: {name} has the class {kind!r}",
            path,
            f"Available are {', '.join(_ARGUMENTS)}.",
        )
    arguments = {key: value for key, value in entry.items() if key != "class"}
    _check(arguments, _ARGUMENTS[kind], f"lr_schedulers: {name}", path)
    return _Scheduler(kind, arguments)


def _policy(entry: Any, schedulers: dict[str, _Scheduler], path: str) -> _Policy:
    """Return the policy that an entry of `policies` describes."""
    if not isinstance(entry, dict):
        raise InputError(_CODE, f"policies: {entry!r} must hold keys with values", path)
    instance = entry.get("lr_scheduler")
    name = instance.get("instance_name") if isinstance(instance, dict) else instance
    if name not in tuple(schedulers):
        raise InputError(
            _CODE,
            f"policies: there is no lr_scheduler {name!r}",
            path,
            f"Defined are {', '.join(map(str, schedulers)) or 'none'}.",
        )
    epochs = {key: value for key, value in entry.items() if key != "lr_scheduler"}
    _check(epochs, _LISTED_EPOCHS if "epochs" in epochs else _EPOCH_RANGE, "policies", path)
    if "epochs" in epochs:
        return _Policy(name, frozenset(epochs["epochs"]))
    return _Policy(name, range(*(epochs[key] for key in _EPOCH_RANGE)))


def _check(
    found: Mapping[str, Any], allowed: Mapping[str, _Argument], what: str, path: str
) -> None:
    """Raise InputError for what is unknown, missing or out of range among keys and values."""
    refuse_unknown_keys(found, tuple(allowed), what, path, _CODE)
    for key, argument in allowed.items():
        if key not in found and argument.required:
            raise InputError(_CODE, f"{what}: {key} is missing; it must be {argument}", path)
        if key in found and not argument.allows(found[key]):
            raise InputError(
                _CODE,
                f"{what}: {key} is {found[key]!r}; it must be {argument}",
                path,
                _NOTATION if isinstance(found[key], str) and not argument.words else None,
            )
