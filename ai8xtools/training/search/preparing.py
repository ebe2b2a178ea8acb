"""Checks of a search before any data is read."""

from __future__ import annotations

from random import Random

import torch
from torch import nn

from ai8x_nas import OnceForAllSequentialModel
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.compute.distributed import Share
from ai8xtools.training.options import TrainingOptions
from ai8xtools.training.search.choice import Deployment, Search, allowed
from ai8xtools.training.search.evolution import Evolution, Judges
from ai8xtools.training.search.policy import read_search_policy
from ai8xtools.training.search.stages import plan_of, plan_of_text


def prepared_search(
    model: nn.Module,
    shape: tuple[int, ...],
    options: TrainingOptions,
    deployment: Deployment,
    share: Share,
) -> Search:
    """Return policy and stages of a search for inputs of a shape (C, H, W) or (C, L, 1).

    Raises InputError E69x for what cannot be searched, and for constraints that no network meets:
    not only after hours of training.
    """
    if share.divided:
        raise InputError(
            "E695", "each batch trains another part of the network, which processes cannot share",
            "--nas", "Start train.py without torchrun.",
        )  # fmt: skip
    if not isinstance(model, OnceForAllSequentialModel):
        raise InputError(
            "E695", f"{options.arch} is not elastic: there is nothing to choose from", "--nas",
            "Derive a model from OnceForAll2DSequentialModel or OnceForAll1DSequentialModel of "
            "ai8x_nas, or choose one of models/ai85nasnet.py.",
        )  # fmt: skip
    policy = read_search_policy(options.nas_policy)
    if options.nas_kd_resume_from is not None and policy.teacher is None:
        raise InputError(
            "E694", "the policy has no kd_params: the network learns from no teacher",
            "--nas-kd-resume-from",
            f"Leave out the option, or add kd_params to {options.nas_policy}.",
        )  # fmt: skip
    text = options.nas_stage_transition_list
    plan = plan_of(policy, model.space) if text is None else plan_of_text(text, model.space, policy)
    if policy.evolution is not None:
        space = allowed(model.space.at(*plan.reached(options.epochs)), policy.evolution)
        example = torch.zeros(1, *shape[: model.fixed.axes + 1])
        judges = Judges(lambda one: deployment.cost(model.network(one), example), lambda _: (0.0,))
        Evolution(space, policy.evolution, judges, Random(0)).check()
    return Search(policy, plan, deployment)
