"""Batches for training, validation and test (spec/training.md 2.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Subset

from checkpoint.errors import InputError
from training.discovery import DatasetEntry
from training.options import Options

Batch = tuple[Tensor, Tensor]  # inputs [N, ...], targets [N]


class Batches(Protocol):
    """Batches of a data set, in a new order each time when it serves training."""

    samples: int

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Batch]: ...


class TensorBatches:
    """Batches of a data set that can fetch many samples at once, taken in this process.

    Preparing a whole batch with a few tensor operations takes a small part of the time of its
    training step, so that nothing is gained from other processes.
    """

    def __init__(
        self, dataset: Any, indices: Tensor, batch_size: int, generator: torch.Generator | None
    ) -> None:
        self.samples = len(indices)
        self._dataset = dataset
        self._indices = indices
        self._batch_size = batch_size
        self._generator = generator

    def __len__(self) -> int:
        return -(-self.samples // self._batch_size)

    def __iter__(self) -> Iterator[Batch]:
        order = self._indices
        if self._generator is not None:
            order = order[torch.randperm(self.samples, generator=self._generator)]
        for part in order.split(self._batch_size):
            yield self._dataset.batch(part)


class LoaderBatches:
    """Batches of any other data set, loaded sample by sample in `workers` processes."""

    def __init__(
        self,
        dataset: Any,
        indices: Tensor,
        batch_size: int,
        generator: torch.Generator | None,
        workers: int,
    ) -> None:
        self.samples = len(indices)
        self._loader: DataLoader[Any] = DataLoader(
            Subset(dataset, indices.tolist()),
            batch_size,
            shuffle=generator is not None,
            generator=generator,
            num_workers=workers,
            persistent_workers=workers > 0,
        )

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._loader)


@dataclass(frozen=True, slots=True)
class Data:
    """The three parts of a data set; only `test` exists for an evaluation."""

    train: Batches | None
    validation: Batches | None
    test: Batches


def load_data(entry: DatasetEntry, options: Options) -> Data:
    """Load the data set and divide it.

    A share `options.validation_split` of the training samples, the same in every run, is kept for
    validation (with their augmentation); 0 means that the test samples validate. The test samples
    keep their order, so that --save-sample N means the N-th of the collection.
    """
    train_set, test_set = entry.loader((options.data, options), not options.evaluate, True)
    test = _batches(test_set, torch.arange(len(test_set)), None, options)
    if train_set is None:
        return Data(None, None, test)
    fixed = getattr(train_set, "valid_indices", None)
    order = torch.randperm(len(train_set), generator=torch.Generator().manual_seed(0))
    if fixed is not None:
        kept = torch.as_tensor(fixed)
        rest = order[~torch.isin(order, kept)]
    else:
        count = int(len(order) * options.validation_split)
        kept, rest = order[:count], order[count:]
    if not len(rest):
        raise InputError("E606", "no training samples are left", "--validation-split")
    shuffle = torch.Generator()
    shuffle.manual_seed(0 if options.deterministic else torch.seed())
    train = _batches(train_set, rest, shuffle, options)
    return Data(train, _batches(train_set, kept, None, options) if len(kept) else test, test)


def _batches(
    dataset: Any, indices: Tensor, shuffle: torch.Generator | None, options: Options
) -> Batches:
    """Return the batches of some samples of a data set, by the quicker way it allows."""
    if hasattr(dataset, "batch"):
        return TensorBatches(dataset, indices, options.batch_size, shuffle)
    return LoaderBatches(dataset, indices, options.batch_size, shuffle, options.workers)
