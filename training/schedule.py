"""The learning rate over the epochs, from a YAML file (spec/training.md 2.5)."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from torch.optim import Optimizer, lr_scheduler

from checkpoint.errors import InputError
from training.schedule_arguments import (
    CODE,
    EPOCH_RANGE,
    LISTED_EPOCHS,
    SCHEDULERS,
    check_arguments,
    check_class,
    refuse_old_sections,
)
from training.yaml_file import read_mapping, refuse_unknown_keys

MODEL, LOSS = "lr_scheduler", "loss_lr_scheduler"
"""What a scheduler steers: the optimizer of the model, or that of the loss (--dr)."""


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


class Schedule:
    """Steps the learning rate schedulers of a file at the end of each epoch they are active in."""

    def __init__(self, policies: list[_Policy], path: str = "") -> None:
        self._policies = policies
        self._path = path

    def end_epoch(self, epoch: int, loss: float, quality: float = 0.0) -> None:
        """Take the steps due after `epoch`.

        `loss` of the validation steers ReduceLROnPlateau, with mode max its `quality` (accuracy).
        """
        for policy in self._policies:
            if epoch not in policy.epochs:
                continue
            if isinstance(policy.scheduler, lr_scheduler.ReduceLROnPlateau):
                policy.scheduler.step(quality if policy.scheduler.mode == "max" else loss)
                continue
            try:
                policy.scheduler.step()
            except ValueError as exc:  # OneCycleLR beyond its last step
                raise InputError(
                    CODE, f"the scheduler cannot step after epoch {epoch}: {exc}", self._path
                ) from exc

    def use(self, optimizer: Optimizer) -> None:
        """Steer another optimizer from now on, whose groups correspond to the former's."""
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
        self, optimizer: Optimizer, start_epoch: int = 0, of_loss: Optimizer | None = None
    ) -> Schedule:
        """Return the schedule that steers `optimizer`, and that of the loss if it has one.

        `start_epoch` is not 0 when a run is resumed; InputError when that had no schedule before.
        """
        started = {}
        for (role, name), scheduler in self.schedulers.items():
            steered = optimizer if role == MODEL else of_loss
            if steered is None:
                raise InputError(
                    CODE, f"{role}s: {name} has nothing to steer: the loss learns only with --dr",
                    self.path, "Add --dr, or take the section out.",
                )  # fmt: skip
            started[role, name] = self._started(f"{role}s: {name}", scheduler, steered, start_epoch)
        policies = [_Policy(p.role, started[p.role, p.scheduler], p.epochs) for p in self.policies]
        return Schedule(policies, self.path)

    def _started(
        self, what: str, scheduler: _Scheduler, optimizer: Optimizer, start_epoch: int
    ) -> Any:
        """Return a scheduler at work on an optimizer."""
        kind = getattr(lr_scheduler, scheduler.kind)
        follows_epochs = kind is not lr_scheduler.ReduceLROnPlateau
        last = {"last_epoch": start_epoch - 1} if follows_epochs and start_epoch > 0 else {}
        try:
            return kind(optimizer, **scheduler.arguments, **last)
        except KeyError as exc:  # the first rate, which a scheduler leaves in the optimizer
            raise InputError(
                CODE,
                f"{what} cannot go on: the run began without a schedule",
                self.path,
                "Leave out --compress, or add --reset-optimizer.",
            ) from exc
        except ValueError as exc:
            message = f"{what}: PyTorch refuses its arguments: {exc}"
            raise InputError(CODE, message, self.path) from exc


def read_schedule(path: str) -> ScheduleFile:
    """Return what a YAML file says about the learning rate.

    Raises InputError with file, key and what is allowed.
    """
    content = read_mapping(path, CODE)
    refuse_old_sections(content, path)
    sections = tuple(f"{role}s" for role in (MODEL, LOSS))
    refuse_unknown_keys(content, (*sections, "policies"), "the schedule", path, CODE)
    schedulers = {}
    for role in (MODEL, LOSS):
        entries = content.get(f"{role}s") or {}
        if not isinstance(entries, dict):
            raise InputError(CODE, f"{role}s is {entries!r}; it must hold names", path)
        for name, entry in entries.items():
            schedulers[role, name] = _scheduler(f"{role}s: {name}", entry, path)
    policies = content.get("policies") or []
    if not isinstance(policies, list):
        raise InputError(CODE, f"policies is {policies!r}; it must be a list", path)
    return ScheduleFile(path, schedulers, [_policy(p, schedulers, path) for p in policies])


def _scheduler(name: str, entry: Any, path: str) -> _Scheduler:
    """Return the scheduler that an entry describes."""
    if not isinstance(entry, dict):
        raise InputError(CODE, f"{name} is {entry!r}; it must hold a class and its arguments", path)
    kind = check_class(name, entry.get("class"), path)
    arguments = {key: value for key, value in entry.items() if key != "class"}
    check_arguments(arguments, SCHEDULERS[kind], name, path)
    return _Scheduler(kind, arguments)


def _policy(entry: Any, schedulers: dict[tuple[str, str], _Scheduler], path: str) -> _Policy:
    """Return the policy that an entry of `policies` describes."""
    if not isinstance(entry, dict):
        raise InputError(CODE, f"policies: {entry!r} must hold keys with values", path)
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
            f"policies: there is no {role} {name!r}",
            path,
            f"Defined are {', '.join(map(str, known)) or 'none'}.",
        )
    epochs = {key: value for key, value in entry.items() if key != role}
    check_arguments(epochs, LISTED_EPOCHS if "epochs" in epochs else EPOCH_RANGE, "policies", path)
    if "epochs" in epochs:
        return _Policy(role, name, frozenset(epochs["epochs"]))
    return _Policy(role, name, range(*(epochs[key] for key in EPOCH_RANGE)))
