"""Training and test part of a data set, as train.py asks for them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.data import Dataset

Sample = TypeVar("Sample", bound=tuple[Any, Any])
Part = TypeVar("Part", bound="SampleSet[Any]")
Loader = Callable[..., tuple[Part | None, Part | None]]
"""`((folder of --data, args), load_train=True, load_test=True)`: training and test part."""


class SampleSet(Dataset[Sample]):
    """A data set of `length` samples."""

    length: int

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Sample]:
        return (self[number] for number in range(self.length))


class BatchedSet(SampleSet[tuple[Tensor, Any]]):
    """A data set from which a batch is taken at a time."""

    def batch(self, indices: Tensor) -> tuple[Tensor, Any]:
        """Return inputs and targets of `indices` [B]."""
        raise NotImplementedError

    def __getitem__(self, index: int) -> tuple[Tensor, Any]:
        inputs, targets = self.batch(torch.tensor([index]))
        return inputs[0], targets[0]


def train_and_test(
    part: Callable[[bool], Part], args: Any, load_train: bool, load_test: bool
) -> tuple[Part | None, Part | None]:
    """Return `part(True)` for training and `part(False)` for tests, each None unless it is loaded.

    With `args.truncate_testset` the test part has one sample.
    """
    train = part(True) if load_train else None
    test = part(False) if load_test else None
    if test is not None and args.truncate_testset:
        test.length = 1
    return train, test


def loader(part: Callable[..., Part], *first: Any) -> Loader[Part]:
    """Return the loader of parts made by `part(*first, folder of --data, args, training)`."""

    def get_datasets(
        data: tuple[str, Any], load_train: bool = True, load_test: bool = True
    ) -> tuple[Part | None, Part | None]:
        folder, args = Path(data[0]), data[1]

        def of(training: bool) -> Part:
            return part(*first, folder, args, training)

        return train_and_test(of, args, load_train, load_test)

    return get_datasets


def is_held_back(name: str, percent: int) -> bool:
    """Whether a file belongs to the test set, `percent` of all, by its name."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 100 < percent
