"""When the stages of an elastic training begin.

Source: docs/architecture-search.md, "The stages".
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass
from typing import Any

from ai8x_nas import SearchSpace, Stage
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.search.policy import SearchPolicy

OPTION = "--nas-stage-transition-list"


@dataclass(frozen=True, slots=True)
class Transition:
    """The first epoch of a level of a stage."""

    epoch: int
    stage: Stage
    level: int

    @property
    def name(self) -> str:
        """The name in files: nas_stg1_lev2."""
        return f"nas_stg{self.stage.value}_lev{self.level}"

    def as_list(self) -> list[int]:
        """Return plain values for a checkpoint."""
        return [self.epoch, self.stage.value, self.level]


FIRST = Transition(0, Stage.FULL, 0)


@dataclass(frozen=True, slots=True)
class StagePlan:
    """All transitions in their order, from epoch 0, and the epoch after the last stage."""

    transitions: tuple[Transition, ...]
    end: int

    def at(self, epoch: int) -> Transition:
        """Return the level that an epoch belongs to."""
        return [t for t in self.transitions if t.epoch <= epoch][-1]

    def reached(self, epochs: int) -> tuple[Stage, int]:
        """Return stage and level at the end of a run of so many epochs."""
        last = self.at(epochs - 1)
        return last.stage, last.level

    def begins(self, epoch: int) -> bool:
        """Return whether an epoch is the first of a level."""
        return self.at(epoch).epoch == epoch

    def before(self, transition: Transition, whole_stages: bool) -> Transition:
        """Return the last level of the stage before; with `whole_stages` False of the first one."""
        earlier = [t for t in self.transitions if t.stage < transition.stage]
        return earlier[-1] if whole_stages else FIRST


def plan_of(policy: SearchPolicy, space: SearchSpace) -> StagePlan:
    """Return the stages that a policy asks for; those without choices in this network are left
    out."""
    transitions, epoch = [FIRST], policy.start_epoch
    for stage, stage_policy in (
        (Stage.KERNEL, policy.kernel), (Stage.DEPTH, policy.depth), (Stage.WIDTH, policy.width)
    ):  # fmt: skip
        most = space.levels(stage)
        if stage_policy is None or not most:
            continue
        for level in range(1, most + 1) if stage_policy.leveling else [most]:
            transitions.append(Transition(epoch, stage, level))
            epoch += stage_policy.epochs
    return StagePlan(_from_0(transitions), epoch)


def plan_of_text(text: str, space: SearchSpace, policy: SearchPolicy) -> StagePlan:
    """Return the stages that a list of (epoch, stage, level) names; InputError E604."""
    try:
        values = ast.literal_eval(text)
        transitions = [_transition(value, space) for value in values]
        if not transitions:
            raise ValueError("empty")
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as exc:
        why = str(exc) if isinstance(exc, _WrongError) else f"{text!r} is not such a list"
        raise InputError(
            "E604", why, OPTION,
            'Write (first epoch, stage, level) of each: "[(10, 1, 1), (12, 2, 1), (14, 3, 1)]"; '
            "stage 1 is kernel, 2 depth, 3 width.",
        ) from exc  # fmt: skip
    for one, two in itertools.pairwise(transitions):
        if two.epoch <= one.epoch or (two.stage, two.level) <= (one.stage, one.level):
            raise InputError(
                "E604", f"{tuple(two.as_list())} does not come after {tuple(one.as_list())}",
                OPTION, "Epochs rise from entry to entry, and so do stages with their levels.",
            )  # fmt: skip
    last = transitions[-1]
    stage_policy = (None, policy.kernel, policy.depth, policy.width)[last.stage]
    epochs = stage_policy.epochs if stage_policy else 1
    return StagePlan(_from_0([FIRST, *transitions]), last.epoch + epochs)


class _WrongError(ValueError):
    """An entry of the list that cannot be used."""


def _transition(value: Any, space: SearchSpace) -> Transition:
    epoch, stage, level = value
    if any(type(number) is not int for number in value) or epoch < 0:
        raise _WrongError(f"{value!r} does not hold three whole numbers from 0")
    if stage not in tuple(Stage):
        raise _WrongError(f"{value!r}: there is no stage {stage}")
    most = space.levels(Stage(stage))
    if not min(1, most) <= level <= most:
        raise _WrongError(f"{value!r}: stage {stage} of this network has {most} levels")
    return Transition(epoch, Stage(stage), level)


def _from_0(transitions: list[Transition]) -> tuple[Transition, ...]:
    """Return the transitions without levels that would have no epoch."""
    return tuple(
        one
        for one, two in zip(transitions, [*transitions[1:], None], strict=True)
        if two is None or two.epoch > one.epoch
    )
