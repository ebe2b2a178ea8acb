"""Mixup: training on weighted means of two samples, with the labels of both.

Which samples are mixed, and how much of each, follows from the seed, the epoch and the number of
the batch, so that a run divided among processes or resumed mixes the same.
Source: docs/training.md, "Refinements"; Zhang et al., mixup, ICLR 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ai8xtools.training.compute.randomness import derived

_PAIRS, _SHARES = 101, 102
"""Distinguish the seeds of mixup from others of the same batch."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """Targets of a mixed batch: `share` (0.5 to 1) belongs to `first`, the rest to `second`."""

    first: Any
    second: Any
    share: float

    def placed(self, place: Callable[[Any], Any]) -> Mixed:
        """Return the targets moved by `place`."""
        return Mixed(place(self.first), place(self.second), self.share)


class _Batches(Protocol):
    samples: int

    def __len__(self) -> int: ...
    def of_epoch(self, epoch: int) -> Iterator[tuple[Tensor, Any]]: ...


def partners(seed: int, epoch: int, number: int, count: int) -> Tensor:
    """Return which sample of a batch of `count` each one is mixed with: int64 [count]."""
    generator = torch.Generator().manual_seed(derived(seed, epoch, number, _PAIRS))
    return torch.randperm(count, generator=generator)


class MixedBatches:
    """Batches whose halves are samples and their partners, mixed; `alpha` shapes the shares."""

    def __init__(self, batches: _Batches, alpha: float, seed: int) -> None:
        self.samples = batches.samples
        self._batches, self._alpha, self._seed = batches, alpha, seed

    def __len__(self) -> int:
        return len(self._batches)

    def of_epoch(self, epoch: int) -> Iterator[tuple[Tensor, Any]]:
        """Yield mixed inputs [N, ...] with `Mixed` targets."""
        for number, (inputs, targets) in enumerate(self._batches.of_epoch(epoch)):
            rng = np.random.default_rng(derived(self._seed, epoch, number, _SHARES))
            share = float(rng.beta(self._alpha, self._alpha))
            share = max(share, 1 - share)
            own, other = inputs.chunk(2)
            first, second = targets.chunk(2)
            yield own.mul(share).add_(other, alpha=1 - share), Mixed(first, second, share)
