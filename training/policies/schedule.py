"""The learning rate over the epochs, from a YAML file.

Source: docs/training.md, "The schedule of the learning rate".
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch.optim import Optimizer, lr_scheduler

from diagnostics.errors import InputError
from training.policies.schedule_arguments import (
    CODE,
    EPOCH_RANGE,
    LISTED_EPOCHS,
    SCHEDULERS,
    check_arguments,
    check_class,
    refuse_old_sections,
)
from training.policies.yaml_file import read_mapping, refuse_unknown_keys, shown

MODEL, LOSS = "lr_scheduler", "loss_lr_scheduler"
"""What a scheduler controls: the optimizer of the model, or that of the loss (--dr)."""


@dataclass(frozen=True, slots=True)
class _Scheduler:
    """A class of torch.optim.lr_scheduler and its arguments."""

    kind: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Policy:
    """A scheduler, or the name of one, what it steers, and the epochs after which it steps."""

    role: str
    scheduler: Any
    epochs: Container[int]


class Outcome(NamedTuple):
    """The loss of a validation and its first score, the accuracy."""

    loss: float
    quality: float


class LearningRates:
    """Steps the learning rate schedulers of a file at the end of each epoch they are active in."""

    def __init__(self, policies: list[_Policy], path: str = "") -> None:
        self._policies = policies
        self._path = path

    def end_epoch(self, epoch: int, outcome: Outcome | None) -> None:
        """Take the steps due after `epoch`.

        The outcome of its validation steers ReduceLROnPlateau; None (unknown) takes no such step.
        """
        for policy in self._policies:
            if epoch not in policy.epochs:
                continue
            if isinstance(policy.scheduler, lr_scheduler.ReduceLROnPlateau):
                if outcome is not None:
                    maximum = policy.scheduler.mode == "max"
                    policy.scheduler.step(outcome.quality if maximum else outcome.loss)
                continue
            try:
                with warnings.catch_warnings():  # QAT has begun with a new optimizer
                    warnings.filterwarnings("ignore", "Seems like `optimizer.step")
                    policy.scheduler.step()
            except ValueError as exc:  # OneCycleLR beyond its last step
                raise InputError(
                    CODE, f"the scheduler cannot step after epoch {epoch}: {exc}", self._path
                ) from exc

    def use(self, optimizer: Optimizer) -> None:
        """Control another optimizer from now on, whose groups correspond to those of the former."""
        for policy in self._policies:
            if policy.role == MODEL:
                policy.scheduler.optimizer = optimizer


@dataclass(frozen=True, slots=True)
class ScheduleFile:
    """What a file says about the learning rate, checked; schedulers by what they steer and name."""

    path: str
    schedulers: dict[tuple[str, str], _Scheduler]
    policies: list[_Policy]

    def start(
        self,
        optimizer: Optimizer,
        of_loss: Optimizer | None = None,
        done: Sequence[Outcome | None] = (),
    ) -> LearningRates:
        """Return the schedule that steers `optimizer`, and that of the loss if it has one.

        A run that is resumed has epochs `done`, whose outcome is unknown for files of other tools;
        the schedule takes their steps again. InputError when that run had no schedule.
        """
        steered = {}
        for role, name in self.schedulers:
            found = optimizer if role == MODEL else of_loss
            if found is None:
                raise InputError(
                    CODE, f"{role}s: {name} has no effect: the loss has parameters only with --dr",
                    self.path, "Add --dr, or take the section out.",
                )  # fmt: skip
            steered[role, name] = found
            if done:
                self._rewind(f"{role}s: {name}", found)
        started = {  # after all rates are rewound, which the first scheduler changes at once
            (role, name): self._started(f"{role}s: {name}", scheduler, steered[role, name])
            for (role, name), scheduler in self.schedulers.items()
        }
        policies = [_Policy(p.role, started[p.role, p.scheduler], p.epochs) for p in self.policies]
        schedule = LearningRates(policies, self.path)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Detected call of `lr_scheduler.step")
            for epoch, outcome in enumerate(done):
                schedule.end_epoch(epoch, outcome)
        return schedule

    def idle(self, epochs: int) -> list[str]:
        """Return the names of schedulers that never step in a run of so many epochs."""
        active = {
            (policy.role, policy.scheduler)
            for policy in self.policies
            if any(epoch in policy.epochs for epoch in range(epochs))
        }
        return [str(name) for role, name in self.schedulers if (role, name) not in active]

    def _rewind(self, what: str, optimizer: Optimizer) -> None:
        """Give the optimizer its first rates, which a scheduler has left in it."""
        for group in optimizer.param_groups:
            if "initial_lr" not in group:
                raise InputError(
                    CODE,
                    f"{what} cannot continue: the run began without a schedule",
                    self.path,
                    "Leave out --compress, or add --reset-optimizer.",
                )
            group["lr"] = group["initial_lr"]

    def _started(self, what: str, scheduler: _Scheduler, optimizer: Optimizer) -> Any:
        """Return a scheduler at work on an optimizer."""
        try:
            return getattr(lr_scheduler, scheduler.kind)(optimizer, **scheduler.arguments)
        except ValueError as exc:
            message = f"{what}: PyTorch refuses its arguments: {exc}"
            raise InputError(CODE, message, self.path) from exc


def read_schedule(path: str) -> ScheduleFile:
    """Return what a YAML file says about the learning rate.

    Raises InputError with file, key and what is allowed.
    """
    return schedule_of(read_mapping(path, CODE), path)


def schedule_of(content: dict[str, Any], path: str) -> ScheduleFile:
    """Return the schedule that the keys of a file mean; `path` is named in messages.

    Raises InputError as `read_schedule`.
    """
    refuse_old_sections(content, path)
    sections = tuple(f"{role}s" for role in (MODEL, LOSS))
    refuse_unknown_keys(content, (*sections, "policies"), "the schedule", path, CODE)
    schedulers = {}
    for role in (MODEL, LOSS):
        entries = content.get(f"{role}s") or {}
        if not isinstance(entries, dict):
            raise InputError(CODE, f"{role}s is {shown(entries)}; it must hold names", path)
        for name, entry in entries.items():
            schedulers[role, name] = _scheduler(f"{role}s: {name}", entry, path)
    policies = content.get("policies") or []
    if not isinstance(policies, list):
        raise InputError(CODE, f"policies is {shown(policies)}; it must be a list", path)
    return ScheduleFile(path, schedulers, [_policy(p, schedulers, path) for p in policies])


def _scheduler(name: str, entry: Any, path: str) -> _Scheduler:
    """Return the scheduler that an entry describes."""
    if not isinstance(entry, dict):
        raise InputError(
            CODE, f"{name} is {shown(entry)}; it must hold a class and its arguments", path
        )
    kind = check_class(name, entry.get("class"), path)
    arguments = {key: value for key, value in entry.items() if key != "class"}
    check_arguments(arguments, SCHEDULERS[kind], name, path)
    return _Scheduler(kind, arguments)


def _policy(entry: Any, schedulers: dict[tuple[str, str], _Scheduler], path: str) -> _Policy:
    """Return the policy that an entry of `policies` describes."""
    if not isinstance(entry, dict):
        raise InputError(CODE, f"policies: {shown(entry)} must hold keys with values", path)
    refuse_old_sections(entry, path)
    role = LOSS if LOSS in entry else MODEL
    instance = entry.get(role)
    name = instance
    if isinstance(instance, dict):
        refuse_unknown_keys(instance, ("instance_name", "args"), f"policies: {role}", path, CODE)
        if instance.get("args"):
            raise InputError(
                CODE, f"policies: {role} takes no args", path, f"Arguments belong to {role}s."
            )
        name = instance.get("instance_name")
    known = [known for kind, known in schedulers if kind == role]
    if name not in known:
        raise InputError(
            CODE,
            f"policies: there is no {role} {shown(name)}",
            path,
            f"Defined are {', '.join(map(str, known)) or 'none'}.",
        )
    epochs = {key: value for key, value in entry.items() if key != role}
    check_arguments(epochs, LISTED_EPOCHS if "epochs" in epochs else EPOCH_RANGE, "policies", path)
    if "epochs" in epochs:
        return _Policy(role, name, frozenset(epochs["epochs"]))
    return _Policy(role, name, range(*(epochs[key] for key in EPOCH_RANGE)))
