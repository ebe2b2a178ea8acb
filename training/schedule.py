"""The learning rate over the epochs, from a YAML file (spec/training.md 2.5)."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from torch.optim import Optimizer, lr_scheduler

from checkpoint.errors import InputError
from training.yaml_file import read_mapping, refuse_unknown_keys

_CODE = "E603"
_CLASSES = {
    name: getattr(lr_scheduler, name)
    for name in (
        "MultiStepLR", "StepLR", "ExponentialLR", "CosineAnnealingLR", "ReduceLROnPlateau",
    )
}  # fmt: skip
_POLICY_KEYS = ("lr_scheduler", "epochs", "starting_epoch", "ending_epoch", "frequency")


@dataclass(frozen=True, slots=True)
class _Policy:
    """A scheduler and the epochs after which it takes a step."""

    scheduler: Any
    epochs: Any  # a container of epoch numbers


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


def read_schedule(path: str, optimizer: Optimizer, start_epoch: int = 0) -> Schedule:
    """Return the schedule of a YAML file; `start_epoch` is not 0 when a run is resumed.

    Raises InputError with file, key and what is allowed.
    """
    content = read_mapping(path, _CODE)
    refuse_unknown_keys(content, ("lr_schedulers", "policies"), "the schedule", path, _CODE)
    schedulers = {
        name: _scheduler(name, entry, optimizer, start_epoch, path)
        for name, entry in (content.get("lr_schedulers") or {}).items()
    }
    policies = [_policy(entry, schedulers, path) for entry in content.get("policies") or []]
    return Schedule(policies)


def _scheduler(name: str, entry: Any, optimizer: Optimizer, start_epoch: int, path: str) -> Any:
    """Return the scheduler that an entry of `lr_schedulers` describes."""
    if not isinstance(entry, dict) or entry.get("class") not in _CLASSES:
        found = entry.get("class") if isinstance(entry, dict) else entry
        raise InputError(
            _CODE,
            f"lr_schedulers: {name} has the class {found!r}",
            path,
            f"Available are {', '.join(_CLASSES)}.",
        )
    kind = _CLASSES[entry["class"]]
    arguments = {key: value for key, value in entry.items() if key != "class"}
    known = tuple(inspect.signature(kind).parameters)[1:]
    refuse_unknown_keys(arguments, known, f"lr_schedulers: {name}", path, _CODE)
    if kind is not lr_scheduler.ReduceLROnPlateau and start_epoch > 0:
        arguments["last_epoch"] = start_epoch - 1
    try:
        return kind(optimizer, **arguments)
    except (TypeError, ValueError, KeyError) as exc:
        raise InputError(_CODE, f"lr_schedulers: {name}: {exc}", path) from exc


def _policy(entry: Any, schedulers: dict[str, Any], path: str) -> _Policy:
    """Return the policy that an entry of `policies` describes."""
    if not isinstance(entry, dict):
        raise InputError(_CODE, f"policies: {entry!r} must hold keys with values", path)
    refuse_unknown_keys(entry, _POLICY_KEYS, "policies", path, _CODE)
    instance = entry.get("lr_scheduler")
    name = instance.get("instance_name") if isinstance(instance, dict) else instance
    if name not in schedulers:
        raise InputError(
            _CODE,
            f"policies: there is no lr_scheduler {name!r}",
            path,
            f"Defined are {', '.join(schedulers) or 'none'}.",
        )
    if "epochs" in entry:
        return _Policy(schedulers[name], set(entry["epochs"]))
    try:
        epochs = range(entry["starting_epoch"], entry["ending_epoch"], entry["frequency"])
    except (KeyError, TypeError, ValueError) as exc:
        raise InputError(
            _CODE,
            f"policies: the epochs of {name!r} are incomplete",
            path,
            "Give whole numbers starting_epoch, ending_epoch (not included) and frequency.",
        ) from exc
    return _Policy(schedulers[name], epochs)
