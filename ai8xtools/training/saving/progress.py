"""The progress of a run, kept in its checkpoints so that it can continue as if uninterrupted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeGuard

from ai8xtools.training.loop.metrics import Scores
from ai8xtools.training.options import TrainingOptions

KEY = "run"
"""The entry of a checkpoint's `extras`."""
SETTINGS = ("batch_size", "validation_split")
"""Options that determine the batches; the command line may change them when a run is resumed."""
REFINEMENTS = (
    "clip_gradient", "ema", "early_stop", "label_smoothing", "lr_min", "lr_schedule", "mixup",
    "warm_up",
)  # fmt: skip
"""Further ones; checkpoints name those that are not as by default."""


def settings_of(options: TrainingOptions) -> dict[str, Any]:
    """Return the options that determine the steps of a run."""
    usual = {name: getattr(options, name) for name in SETTINGS}
    chosen = {name: getattr(options, name) for name in REFINEMENTS}
    return usual | {name: value for name, value in chosen.items() if value != _default(name)}


def _default(name: str) -> Any:
    """Return the default of one of the refinements."""
    return next(field.default for field in fields(TrainingOptions) if field.name == name)


@dataclass(frozen=True, slots=True)
class Epoch:
    """How an epoch ended: scores of the validation, weights other than 0, lines of metrics.json."""

    number: int
    qat: bool
    scores: Scores
    parameters: int
    metrics: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a checkpoint; measurements keep all digits."""
        return {
            "epoch": self.number,
            "qat": self.qat,
            "losses": dict(self.scores.losses),
            "values": dict(self.scores.values),
            "parameters": self.parameters,
            "metrics": {key: value for key, value in self.metrics.items() if key != "seconds"},
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """The seed of all random numbers of a run, its SETTINGS, and its epochs in their order."""

    seed: int
    settings: Mapping[str, Any]
    epochs: list[Epoch] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for a checkpoint."""
        epochs = [epoch.as_dict() for epoch in self.epochs]
        return {"seed": self.seed, "settings": dict(self.settings), "epochs": epochs}

    def changes(self, options: TrainingOptions) -> Iterator[str]:
        """Yield warnings of options that make a resumed run differ from an uninterrupted one."""
        added = [n for n in settings_of(options) if n in REFINEMENTS and n not in self.settings]
        for name in (*self.settings, *added):
            before = self.settings[name] if name in self.settings else _default(name)
            now = getattr(options, name)
            if now != before:
                option = f"--{name.replace('_', '-')}"
                yield (
                    f"{option} was {before} and is now {now}: the run will differ from an "
                    "uninterrupted one"
                )
        if options.resume_from and options.deterministic and options.seed != self.seed:
            yield f"--seed {options.seed} has no effect: a resumed run keeps its seed, {self.seed}"


def progress_of(extras: Mapping[str, Any], done: int, new: Progress) -> Progress:
    """Return the progress that a checkpoint's extras hold of its first `done` epochs.

    It is the `new` one, without epochs, for files of other tools and entries of another form.
    """
    stored = extras.get(KEY)
    if not isinstance(stored, dict) or not _natural(stored.get("seed")):
        return new
    entries, settings = stored.get("epochs"), stored.get("settings")
    if not isinstance(entries, list) or len(entries) != done or not isinstance(settings, dict):
        return new
    epochs = [_epoch(number, entry) for number, entry in enumerate(entries)]
    complete = [epoch for epoch in epochs if epoch is not None]
    if len(complete) < done:
        return new
    chosen = {n: settings[n] for n in (*SETTINGS, *REFINEMENTS) if n in settings}
    return Progress(stored["seed"], chosen, complete)


def _epoch(number: int, entry: Any) -> Epoch | None:
    """Return an epoch from plain values, or None if they do not describe one."""
    if not isinstance(entry, dict) or entry.get("epoch") != number:
        return None
    losses, values, metrics = entry.get("losses"), entry.get("values"), entry.get("metrics")
    qat, parameters = entry.get("qat"), entry.get("parameters")
    if not (_numbers(losses) and losses and _numbers(values) and isinstance(metrics, dict)):
        return None
    if not isinstance(qat, bool) or not _natural(parameters):
        return None
    return Epoch(number, qat, Scores(losses, values), parameters, metrics)


def _natural(value: Any) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _numbers(value: Any) -> TypeGuard[dict[str, float]]:
    return isinstance(value, dict) and all(type(item) in (int, float) for item in value.values())
