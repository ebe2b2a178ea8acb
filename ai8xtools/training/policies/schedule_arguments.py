"""Arguments of the schedulers of PyTorch, and the parts of old schedule files that are refused."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ai8xtools.training.policies.complaints import Complaints, closest

CODE = "E603"


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """Numbers from `low` up to but not including `below`, a list of them, or one of `words`."""

    whole: bool = False
    low: int = 0
    below: float = math.inf
    listed: bool = False
    words: tuple[str | bool, ...] = ()
    required: bool = False

    def allows(self, value: Any) -> bool:
        """Return whether the argument can be `value`."""
        if self.words:
            return type(value) is type(self.words[0]) and value in self.words
        if self.listed:
            return isinstance(value, list) and all(map(self._in_range, value))
        return self._in_range(value)

    def _in_range(self, value: Any) -> bool:
        types = (int,) if self.whole else (int, float)
        return type(value) in types and self.low <= value < self.below

    def __str__(self) -> str:
        if self.words:
            return " or ".join(str(w).lower() for w in self.words)
        kind = ("whole " if self.whole else "") + ("numbers" if self.listed else "number")
        limit = "" if self.below == math.inf else f", below {self.below:g}"
        return f"{'a list of' if self.listed else 'a'} {kind} from {self.low}{limit}"


_NUMBER = Argument()
_NEEDED = Argument(required=True)
_SHARE = Argument(below=1)
_COUNT = Argument(whole=True)
COUNTS = Argument(whole=True, listed=True, required=True)
_POSITIVE = Argument(whole=True, low=1)
PERIOD = Argument(whole=True, low=1, required=True)
_FLAG = Argument(words=(True, False))
_MOMENTUM = {"cycle_momentum": _FLAG, "base_momentum": _SHARE, "max_momentum": _SHARE}
SCHEDULERS: Mapping[str, Mapping[str, Argument]] = {
    "MultiStepLR": {"milestones": COUNTS, "gamma": _NUMBER},
    "StepLR": {"step_size": PERIOD, "gamma": _NUMBER},
    "ConstantLR": {"factor": _NUMBER, "total_iters": _COUNT},
    "LinearLR": {"start_factor": _NUMBER, "end_factor": _NUMBER, "total_iters": _POSITIVE},
    "ExponentialLR": {"gamma": _NEEDED},
    "PolynomialLR": {"total_iters": _POSITIVE, "power": _NUMBER},
    "CosineAnnealingLR": {"T_max": PERIOD, "eta_min": _NUMBER},
    "CosineAnnealingWarmRestarts": {"T_0": PERIOD, "T_mult": _POSITIVE, "eta_min": _NUMBER},
    "CyclicLR": {
        "base_lr": _NEEDED,
        "max_lr": _NEEDED,
        "step_size_up": _POSITIVE,
        "step_size_down": _POSITIVE,
        "mode": Argument(words=("triangular", "triangular2", "exp_range")),
        "gamma": _NUMBER,
        "scale_mode": Argument(words=("cycle", "iterations")),
        **_MOMENTUM,
    },
    "OneCycleLR": {
        "max_lr": _NEEDED,
        "total_steps": PERIOD,
        "pct_start": _NUMBER,
        "anneal_strategy": Argument(words=("cos", "linear")),
        "div_factor": _NUMBER,
        "final_div_factor": _NUMBER,
        "three_phase": _FLAG,
        **_MOMENTUM,
    },
    "ReduceLROnPlateau": {
        "mode": Argument(words=("min", "max")),
        "factor": _SHARE,
        "patience": _COUNT,
        "threshold": _NUMBER,
        "threshold_mode": Argument(words=("rel", "abs")),
        "cooldown": _COUNT,
        "min_lr": _NUMBER,
        "eps": _NUMBER,
    },
}
LISTED_EPOCHS = {"epochs": COUNTS}
EPOCH_RANGE = {
    "starting_epoch": Argument(whole=True, required=True),
    "ending_epoch": Argument(whole=True, required=True),
    "frequency": PERIOD,
}

_FUNCTION = "takes a function, which a file cannot hold"
_SEVERAL = "joins schedulers: list a policy for each instead, with the epochs it acts in"
REFUSED_CLASSES = {
    "LambdaLR": _FUNCTION,
    "MultiplicativeLR": _FUNCTION,
    "ChainedScheduler": _SEVERAL,
    "SequentialLR": _SEVERAL,
    "SWALR": "anneals towards averages of weights, which are not kept here",
    "MultiStepMultiGammaLR": "belongs to an old library: list a MultiStepLR for each gamma instead",
}
_PRUNED = "weights that are zero save nothing on the accelerator, which has no sparse kernels"
_REFUSED_SECTIONS = {
    "pruners": _PRUNED,
    "regularizers": "groups of weights driven to zero save nothing on the accelerator; "
    "--weight-decay regularizes",
    "quantizers": "weights are quantized as the accelerator needs it by --qat-policy",
    "extensions": "the parts of an old library that they name do not exist here",
    "version": "it belongs to an old library; a schedule has no version",
}
_CLASSES = "the name of a scheduler of PyTorch, such as MultiStepLR"
_REFUSED_SECTIONS |= {name.removesuffix("s"): why for name, why in _REFUSED_SECTIONS.items()}


def without_old_sections(
    content: Mapping[str, Any], allowed: Iterable[str], what: str, complaints: Complaints
) -> dict[str, Any]:
    """Return the values of the `allowed` keys; complain about the others.

    What only the compression library of old schedules could do is refused with its reason.
    """
    for name, reason in _REFUSED_SECTIONS.items():
        if name in content:
            remedy = "Take this section out of the file."
            complaints.add(f"{name} cannot be used: {reason}", content, name, remedy)
    values = complaints.keys(content, (*allowed, *_REFUSED_SECTIONS), what, listed=allowed)
    return {key: value for key, value in values.items() if key not in _REFUSED_SECTIONS}


def checked_class(name: str, entry: Mapping[str, Any], complaints: Complaints) -> str | None:
    """Return the class of a scheduler; None, with a complaint, when there is no such class."""
    if "class" not in entry:
        complaints.add(f"{name}: class is missing; it must be {_CLASSES}", entry)
        return None
    kind = entry["class"]
    if isinstance(kind, str) and kind in SCHEDULERS:
        return kind
    reason = REFUSED_CLASSES.get(kind) if isinstance(kind, str) else None
    written = complaints.written(entry, "class")
    message = f"{name} has the class {written}" + (f", which {reason}" if reason else "")
    near = None if reason else closest(str(kind), SCHEDULERS)
    remedy = f"Did you mean {near}? " if near else ""
    complaints.add(message, entry, "class", f"{remedy}Available are {', '.join(SCHEDULERS)}.")
    return near


def check_arguments(
    entry: Mapping[str, Any],
    allowed: Mapping[str, Argument],
    what: str,
    complaints: Complaints,
    besides: Iterable[str] = (),
) -> None:
    """Complain about what is unknown, missing or out of range among keys and values.

    Keys `besides` have been looked at.
    """  # fmt: skip
    complaints.keys(entry, (*allowed, *besides), what)
    for key, argument in allowed.items():
        if (key in entry or argument.required) and not (
            key in entry and argument.allows(entry[key])
        ):
            complaints.wrong(entry, key, str(argument), name=f"{what}: {key}")
