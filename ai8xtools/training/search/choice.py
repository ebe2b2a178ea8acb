"""The search in a trained elastic network, and what it leaves: a model file with its weights.

Source: docs/architecture-search.md, "The search".
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import SGD

from ai8x_nas import Architecture, SearchSpace, SequentialNetwork
from ai8xtools.checkpoint import atomic
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.compute.randomness import derived
from ai8xtools.training.data.batches import Batch, Batches, Data
from ai8xtools.training.loop.epochs import Pass
from ai8xtools.training.loop.metrics import OVERALL, Tally
from ai8xtools.training.saving import checkpoints
from ai8xtools.training.search.evolution import Candidate, ChipUse, Evolution, Judges, frontier
from ai8xtools.training.search.policy import EvolutionPolicy, SearchPolicy
from ai8xtools.training.search.stages import StagePlan

CLASS = "NASNetwork"
STEM = "nas_network"
CALIBRATION_SAMPLES = 1024
"""Training samples that statistics of batch normalization are measured on."""


class Deployment(Protocol):
    """The interface of a search to the chip; implemented outside of training."""

    def cost(self, network: SequentialNetwork, example: Tensor) -> ChipUse:
        """Return how much of the chip a network uses for inputs like `example`; changes the
        network.
        """

    def write_model(self, path: Path, network: SequentialNetwork, about: str) -> None:
        """Write a network as a model file."""


@dataclass(frozen=True, slots=True)
class Search:
    """A policy, the stages that follow from it, and the chip."""

    policy: SearchPolicy
    plan: StagePlan
    deployment: Deployment

    def run(
        self, passes: Pass, data: Data, space: SearchSpace, inputs: list[Tensor], seed: int
    ) -> None:
        """Look for the best network of a space and write it; the elastic one stays as it is."""
        policy, log = self.policy.evolution, passes.log
        if policy is None:
            log.say("The policy has no evolution_search: no network is looked for")
            return
        subspace = allowed(space, policy)
        log.say(f"--- architecture search: {len(subspace):,} networks")
        model: Any = passes.model
        kept = copy.deepcopy(model.state_dict())
        judges = Judges(self._cost(model, inputs[0][:1]), _rank(passes, data, policy, inputs))
        evolution = Evolution(subspace, policy, judges, Random(derived(seed, 1 << 21)))
        generations = []
        for number, generation in enumerate(evolution.run()):
            best = generation[0]
            generations.append(best.as_dict())
            log.say(
                f"Generation {number}: {_text(passes, best)}, {len(evolution.judged)} networks "
                "measured"
            )
        judged = list(evolution.judged.values())
        chosen = max(judged, key=lambda c: (c.rank, -c.cost.cycles))
        self._write(passes, chosen, judged, generations, inputs)
        model.choose(model.space.largest())
        model.load_state_dict(kept)

    def _cost(self, model: Any, example: Tensor) -> Callable[[Architecture], ChipUse]:
        def cost(architecture: Architecture) -> ChipUse:
            return self.deployment.cost(model.network(architecture).cpu(), example.cpu())

        return cost

    def _write(
        self, passes: Pass, chosen: Candidate, judged: list[Candidate],
        generations: list[dict[str, Any]], inputs: list[Tensor],
    ) -> None:  # fmt: skip
        """Write the chosen network, its weights, and the results of the search."""
        log, model = passes.log, passes.model
        best = frontier(judged)
        for line in _table(passes, best):
            log.say(line)
        log.say(f"Chosen: {_text(passes, chosen)}")
        content = {
            "model": passes.options.arch, "dataset": passes.options.dataset,
            "chosen": chosen.as_dict(), "frontier": [c.as_dict() for c in best],
            "generations": generations, "measured": [c.as_dict() for c in judged],
        }  # fmt: skip
        text = json.dumps(content, indent=1) + "\n"
        atomic.write_bytes(log.folder / "nas_search.json", text.encode())
        log.metrics["nas"] = chosen.as_dict()
        file, weights = log.folder / f"{STEM}.py", log.folder / f"{STEM}.pth.tar"
        assert isinstance(model, nn.Module)
        elastic: Any = model
        elastic.choose(chosen.architecture)
        elastic.calibrate(inputs)
        network = elastic.network()
        about = f"{chosen.architecture}, chosen from {passes.options.arch}"
        self.deployment.write_model(file, network, about)
        extras = {"nas": {**chosen.as_dict(), "model": passes.options.arch}}
        optimizer = SGD(network.parameters(), 0.1)
        checkpoints.write([weights], 0, CLASS.lower(), network, optimizer, extras)
        log.say(
            f"Saved {file} and {weights}; train it with --model {file}:{CLASS} "
            f"--exp-load-weights-from {weights}"
        )


def some_inputs(batches: Batches, place: Callable[[Batch], Batch]) -> list[Tensor]:
    """Return inputs of the first training samples, in batches."""
    return [x for x, _ in _first(batches, CALIBRATION_SAMPLES, place)]


def _first(
    batches: Batches, samples: int | None, place: Callable[[Batch], Batch]
) -> Iterator[Batch]:
    """Yield batches until there are so many samples."""
    count = 0
    for batch in batches.of_epoch(0):
        yield place(batch)
        count += len(batch[0])
        if samples is not None and count >= samples:
            return


def allowed(space: SearchSpace, policy: EvolutionPolicy) -> SearchSpace:
    """Return the part of a space whose widths the policy allows."""
    if not policy.constraints.widths:
        return space
    subspace = space.with_widths(policy.constraints.widths)
    if subspace is None:
        widths = sorted({width for unit in space.units for width in unit.widths})
        raise InputError(
            "E692",
            f"width_options {list(policy.constraints.widths)} leave a unit without any width",
            "--nas-policy",
            f"The layers of this network have widths {', '.join(map(str, widths))}.",
        )
    return subspace


def _rank(
    passes: Pass, data: Data, policy: EvolutionPolicy, inputs: list[Tensor]
) -> Callable[[Architecture], tuple[float, ...]]:
    """Return the function that measures a network on the validation set."""
    validation = data.validation
    assert validation is not None
    batches = list(_first(validation, policy.samples, passes.place))
    model: Any = passes.model
    task = passes.task

    @torch.no_grad()
    def rank(architecture: Architecture) -> tuple[float, ...]:
        model.choose(architecture)
        model.calibrate(inputs)
        model.eval()
        tally = Tally(task.meter(False))
        for x, targets in batches:
            outputs = task.prepare(model(x))
            tally.add_losses({OVERALL: task.loss(outputs, targets)}, len(x))
            tally.meter.add(outputs, targets)
        return task.rank(tally.scores(final=True))

    return rank


def _text(passes: Pass, candidate: Candidate) -> str:
    score = f"{passes.task.title} {candidate.rank[0]:.3f}"
    return f"{candidate.architecture}: {score}, {candidate.cost.cycles:,} cycles"


def _table(passes: Pass, best: list[Candidate]) -> list[str]:
    """Return the networks that no other beats in both score and cycles."""
    head = (
        f"{'cycles':>10} {'weights':>9} {'columns':>8} {'data':>7} {passes.task.title:>8}  network"
    )
    return [
        head,
        *(
            f"{c.cost.cycles:10,} {c.cost.weights:9,} {c.cost.kernel_columns:8,} "
            f"{c.cost.data_bytes:7,} {c.rank[0]:8.3f}  {c.architecture}"
            for c in best
        ),
    ]
