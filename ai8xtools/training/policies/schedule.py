"""The learning rate over the epochs, from a YAML file.

Source: docs/training.md, "The schedule of the learning rate".
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torch.optim import Optimizer, lr_scheduler

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.policies.complaints import Complaints, closest, shown
from ai8xtools.training.policies.schedule_arguments import (
    CODE,
    EPOCH_RANGE,
    LISTED_EPOCHS,
    SCHEDULERS,
    check_arguments,
    checked_class,
    without_old_sections,
)
from ai8xtools.training.policies.yaml_file import read_section

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
    """The checked schedule of a file; schedulers by what they control and by name."""

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
            target = optimizer if role == MODEL else of_loss
            if target is None:
                raise InputError(
                    CODE, f"{role}s: {name} has no effect: the loss has parameters only with --dr",
                    self.path, "Add --dr, or take the section out.",
                )  # fmt: skip
            steered[role, name] = target
            if done:
                self._rewind(f"{role}s: {name}", target)
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
                    "E609",
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
    """Return the schedule of the learning rate in a YAML file.

    Raises InputError with every mistake: line, key, value and what is allowed.
    """
    complaints = Complaints(CODE, path)
    return _schedule(read_section(complaints), complaints)


def schedule_of(content: dict[str, Any], path: str) -> ScheduleFile:
    """Return the schedule that the keys of a file mean; `path` is named in messages.

    Raises InputError as `read_schedule`.
    """
    return _schedule(content, Complaints(CODE, path))


def _schedule(content: dict[str, Any], complaints: Complaints) -> ScheduleFile:
    """Return the schedule that the keys of a file mean."""
    sections = tuple(f"{role}s" for role in (MODEL, LOSS))
    without_old_sections(content, (*sections, "policies"), "the schedule", complaints)
    schedulers: dict[tuple[str, str], _Scheduler | None] = {}
    for role in (MODEL, LOSS):
        entries = content.get(f"{role}s") or {}
        if not isinstance(entries, dict):
            complaints.wrong(content, f"{role}s", "names with a class and its arguments")
            entries = {}
        for name in entries:
            schedulers[role, name] = _scheduler(f"{role}s: {name}", entries, name, complaints)
    listed = content.get("policies") or []
    if not isinstance(listed, list):
        complaints.wrong(content, "policies", "a list")
        listed = []
    policies = [_policy(entry, content, schedulers, complaints) for entry in listed]
    complaints.refuse()
    return ScheduleFile(
        complaints.path,
        {key: scheduler for key, scheduler in schedulers.items() if scheduler is not None},
        [policy for policy in policies if policy is not None],
    )


def _scheduler(
    name: str, entries: dict[str, Any], key: str, complaints: Complaints
) -> _Scheduler | None:
    """Return the scheduler that an entry describes; None after a complaint."""
    entry = entries[key]
    if not isinstance(entry, dict):
        complaints.wrong(entries, key, "a class with its arguments", name=name)
        return None
    if "class" not in entry and (slip := closest("class", map(str, entry))):
        complaints.unknown(entry, slip, ("class",), name)
    kind = checked_class(name, entry, complaints)
    if kind is None:
        return None
    check_arguments(entry, SCHEDULERS[kind], name, complaints, besides=("class",))
    return _Scheduler(kind, {key: value for key, value in entry.items() if key != "class"})


def _policy(
    entry: Any,
    content: dict[str, Any],
    schedulers: Collection[tuple[str, str]],
    complaints: Complaints,
) -> _Policy | None:
    """Return the policy that an entry of `policies` describes; None after a complaint."""
    if not isinstance(entry, dict):
        message = f"policies: {shown(entry)} must hold keys with values"
        complaints.add(message, content, "policies")
        return None
    role = LOSS if LOSS in entry else MODEL
    ranges = LISTED_EPOCHS if "epochs" in entry else EPOCH_RANGE
    without_old_sections(entry, (role, *ranges), "policies", complaints)
    name = _instance(entry, role, schedulers, complaints)
    check_arguments(entry, ranges, "policies", complaints, besides=entry)
    if name is None or not all(key in entry and ranges[key].allows(entry[key]) for key in ranges):
        return None
    if "epochs" in entry:
        return _Policy(role, name, frozenset(entry["epochs"]))
    return _Policy(role, name, range(*(entry[key] for key in EPOCH_RANGE)))


def _instance(
    entry: dict[str, Any],
    role: str,
    schedulers: Iterable[tuple[str, str]],
    complaints: Complaints,
) -> Any:
    """Return the name of the scheduler that an entry of `policies` steers; None if there is none.

    A scheduler that a complaint was about is known by its name.
    """
    section, key = entry, role
    names = [name for kind, name in schedulers if kind == role]
    if isinstance(entry.get(role), dict):
        section, key = entry[role], "instance_name"
        complaints.keys(section, (key, "args"), f"policies: {role}")
        if section.get("args"):
            message = f"policies: {role} takes no args"
            complaints.add(message, section, "args", f"Arguments belong to {role}s.")
    if key in section and section[key] in names:
        return section[key]
    defined = f"Defined are {', '.join(map(str, names)) or 'none'}."
    if key not in section:
        complaints.add(f"policies: {key} is missing", section, None, defined)
        return None
    near = closest(str(section[key]), map(str, names))
    message = f"policies: there is no {role} {shown(section[key])}"
    remedy = f"Did you mean {near}? {defined}" if near else defined
    complaints.add(message, section, key, remedy)
    return None
