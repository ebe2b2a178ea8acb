"""Training of an elastic network by stages, and the search after it.

Source: docs/architecture-search.md.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from torch import Tensor

from ai8x_nas import Architecture
from ai8xtools.checkpoint import atomic
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.compute.randomness import derived
from ai8xtools.training.loop.epochs import evaluate, report
from ai8xtools.training.loop.metrics import OVERALL, Scores
from ai8xtools.training.loop.trainer import Trainer
from ai8xtools.training.network.distillation import Distillation
from ai8xtools.training.policies.schedule import Outcome
from ai8xtools.training.saving import checkpoints
from ai8xtools.training.saving.progress import Epoch
from ai8xtools.training.saving.resuming import first_epoch
from ai8xtools.training.search.choice import Search, some_inputs
from ai8xtools.training.search.stages import FIRST, StagePlan, Transition

KEY = "nas"
"""The entry of a checkpoint's `extras`: the transitions that led to it."""
RANDOM_NETWORKS = 2
"""Networks drawn for a validation beside the largest and the smallest."""


class SearchTrainer(Trainer):
    """A training run in which each batch trains a part of the network, drawn at random.

    `search` has its policy and stages, and does what follows the training.
    """

    def __init__(self, search: Search, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.search = search
        self.model: Any = self.passes.model
        self.plan: StagePlan = search.plan
        self.stage = FIRST
        self._step = (0, 0)
        self._calibrating: list[Tensor] = []
        self._whole = self.passes.forward
        self.passes = replace(self.passes, forward=self._forward)

    def _forward(self, x: Tensor) -> Any:
        """Run the network; in training a part of it that is drawn for the batch."""
        if self.model.training and self.stage.stage.elastic:
            epoch, batch = self._step
            self._step = epoch, batch + 1
            space = self.model.space.at(self.stage.stage, self.stage.level)
            self.model.choose(space.sample(Random(derived(self.progress.seed, epoch, batch))))
        return self._whole(x)

    # Stages

    def _begin_epoch(self, epoch: int) -> None:
        self._step = epoch, 0
        stage = self.plan.at(epoch)
        if self.plan.begins(epoch) and stage.stage.elastic:
            self._begin_stage(stage)

    def _begin_stage(self, stage: Transition) -> None:
        """Make more of the network elastic; earlier best results no longer count."""
        before, self.stage = self.stage, stage
        self.stage_start = stage.epoch
        space = self.model.space.at(stage.stage, stage.level)
        self.log.say(
            f"Architecture search: stage {stage.stage.value} ({stage.stage.name.lower()}), level "
            f"{stage.level}, {len(space):,} networks"
        )
        if not before.stage.elastic or self._new_teacher(before, stage):
            self._teach(copy.deepcopy(self.model))
        if "width" in stage.stage.elastic - before.stage.elastic:
            self.model.sort_channels()
            self.optimizer.state.clear()  # it belongs to the channels in their former order

    def _new_teacher(self, before: Transition, stage: Transition) -> bool:
        policy = self.search.policy.teacher
        previous = policy is not None and policy.teacher == "prev_stage_model"
        return previous and before.stage is not stage.stage

    def _teach(self, teacher: Any) -> None:
        """Let the network learn from an earlier state of itself."""
        policy = self.search.policy.teacher
        if policy is None:
            return
        teacher.choose(teacher.space.largest())
        teacher.to(self.passes.device)
        self._calibrate(teacher)
        distillation = Distillation(
            teacher.eval().requires_grad_(False), policy.student_weight, policy.distill_weight,
            policy.temperature, False, 0,
        )  # fmt: skip
        self.passes = replace(self.passes, distillation=distillation)

    def _calibrate(self, model: Any) -> None:
        """Measure the statistics of batch normalization on training samples."""
        model.calibrate(self._samples())

    def _samples(self) -> list[Tensor]:
        """Return inputs of training samples, always the same ones."""
        if not self._calibrating:
            assert self.data.train is not None
            self._calibrating = some_inputs(self.data.train, self.passes.place)
        return self._calibrating

    # Resuming

    def _resume(self, resumed: checkpoints.Loaded) -> int:
        source = self.options.resume_from
        assert source is not None
        done = first_epoch(resumed.epoch, source) - 1
        self._check_plan(resumed.extras, done, source)
        self.stage = self.plan.at(done)
        self.stage_start = self.stage.epoch
        start = super()._resume(resumed)
        policy = self.search.policy.teacher
        if policy is None or not self.stage.stage.elastic or start >= self.options.epochs:
            return start
        previous = policy.teacher == "prev_stage_model"
        if not (previous and self.plan.at(start).stage is not self.stage.stage):
            needed = self.plan.before(self.stage, previous)
            self._teach(self._read_teacher(needed, Path(source)))
        return start

    def _check_plan(self, extras: Mapping[str, Any], done: int, source: str) -> None:
        """Raise InputError if the checkpoint was trained by other stages than are planned."""
        stored = extras.get(KEY)
        if not isinstance(stored, dict) or not isinstance(stored.get("transitions"), list):
            if not self.plan.at(done).stage.elastic:
                return
            stored = {"transitions": None}
        planned = [t.as_list() for t in self.plan.transitions if t.epoch <= done]
        if stored["transitions"] != planned:
            raise InputError(
                "E693",
                f"the checkpoint was trained by the stages {stored['transitions']} (first epoch, "
                f"stage, level), the run asks for {planned} until its epoch {done}",
                source,
                "Give the --nas-policy and --nas-stage-transition-list of that run, or start a new "
                "one with --exp-load-weights-from.",
            )

    def _read_teacher(self, needed: Transition, source: Path) -> Any:
        """Return the teacher of a resumed stage, from --nas-kd-resume-from or beside the source."""
        named = self.options.nas_kd_resume_from
        path = Path(named) if named is not None else source.with_name(
            source.name.replace(self.stage.name, needed.name).replace("_best.", "_checkpoint.")
        )  # fmt: skip
        if named is None and not path.exists():
            raise InputError(
                "E694",
                f"the network learns from a teacher, its state at the end of {needed.name}, and "
                f"{path.name} is not beside the checkpoint",
                str(source),
                "Name that checkpoint with --nas-kd-resume-from.",
            )
        loaded = checkpoints.read(str(path))
        teacher = copy.deepcopy(self.model)
        own = {name: tensor.shape for name, tensor in teacher.state_dict().items()}
        last = self._last_epoch(needed)
        if {name: tensor.shape for name, tensor in loaded.state.items()} != own:
            raise InputError("E694", f"it is no checkpoint of {self.options.arch}", str(path))
        if needed in self.plan.transitions and loaded.epoch != last:
            raise InputError(
                "E694",
                f"it is of epoch {loaded.epoch}; the teacher is the state after epoch {last}, at "
                f"the end of {needed.name}",
                str(path),
                f"Name [NAME_]{needed.name}_checkpoint.pth.tar of that run.",
            )
        checkpoints.load_into(teacher, loaded)
        names = filter(None, (self.options.name, needed.name, "checkpoint.pth.tar"))
        atomic.write_bytes(self.log.folder / "_".join(names), path.read_bytes())
        return teacher

    def _last_epoch(self, transition: Transition) -> int:
        """Return the last epoch of a level."""
        later = [t.epoch for t in self.plan.transitions if t.epoch > transition.epoch]
        return (later[0] if later else self.plan.end) - 1

    # Validation

    def _validate(self, epoch: int, trained: Scores) -> tuple[Scores, Any]:
        self.model.choose(self.model.space.largest())
        if not self.stage.stage.elastic:
            return super()._validate(epoch, trained)
        if not self._is_validated(epoch):
            self._calibrate(self.model)
            return Scores({OVERALL: trained.loss}, {}), None
        validation = self.data.validation
        assert validation is not None
        results: dict[Architecture, Scores] = {}
        for architecture in self._validated(epoch):
            self.log.say(f"--- validate (epoch={epoch}) {architecture}")
            self.model.choose(architecture)
            self._calibrate(self.model)
            results[architecture] = evaluate(self.passes, validation, epoch)
            report(self.passes, results[architecture])
        scores = _mean(list(results.values()))
        self.log.scalars("Performance/Validation", {"Loss": scores.loss, **scores.values}, epoch)
        self.log.say(f"--- mean of {len(results)} networks")
        report(self.passes, scores)
        each = [{**one.as_dict(), **result.as_dict()} for one, result in results.items()]
        return scores, {**scores.as_dict(), "networks": each}

    def _validated(self, epoch: int) -> list[Architecture]:
        """Return networks to validate, the largest at the end, whose statistics are saved."""
        space = self.model.space.at(self.stage.stage, self.stage.level)
        random = Random(derived(self.progress.seed, epoch, 1 << 20))
        drawn = [space.sample(random) for _ in range(RANDOM_NETWORKS)]
        largest = space.largest()
        return [*(one for one in dict.fromkeys([space.smallest(), *drawn]) if one != largest),
                largest]  # fmt: skip

    def _is_validated(self, epoch: int) -> bool:
        """Return whether an epoch is validated: the first and the last of a level always are."""
        since = epoch - self.stage.epoch
        ends = epoch == self.options.epochs - 1 or epoch == self._last_epoch(self.stage)
        return ends or since % self.search.policy.validation_freq == 0

    def _of_stage(self) -> list[Epoch]:
        return [e for e in super()._of_stage() if e.scores.values]

    def _last_validated(self) -> Scores:
        return next(e.scores for e in reversed(self.progress.epochs) if e.scores.values)

    def _outcome(self, scores: Scores) -> Outcome:
        return super()._outcome(scores if scores.values else self._last_validated())

    # Files

    def _path(self, name: str) -> Path:
        parts = [self.options.name, self.stage.name, f"{name}.pth.tar"]
        return self.log.folder / "_".join(filter(None, parts))

    def _save(self, epoch: int, scores: Scores) -> None:
        super()._save(epoch, scores if scores.values else self._last_validated())

    def _extras(self) -> dict[str, Any]:
        passed = [t.as_list() for t in self.plan.transitions if t.epoch <= self._step[0]]
        return {**super()._extras(), KEY: {"transitions": passed}}

    def _test(self) -> None:
        if self.stage.stage.elastic:
            space = self.model.space.at(self.stage.stage, self.stage.level)
            self.search.run(self.passes, self.data, space, self._samples(), self.progress.seed)
        super()._test()

    def _refuse_no_epochs(self, done: int) -> None:
        """Accept a run that has ended: its network is searched again."""
        if self.options.epochs < done or self.search.policy.evolution is None:
            super()._refuse_no_epochs(done)


def _mean(scores: list[Scores]) -> Scores:
    """Return the means of losses and values."""

    def of(results: list[Mapping[str, float]]) -> dict[str, float]:
        return {name: sum(r[name] for r in results) / len(results) for name in results[0]}

    return Scores(of([s.losses for s in scores]), of([s.values for s in scores]))
