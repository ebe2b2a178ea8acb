"""Batches for training, validation and test (spec/training.md 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from checkpoint.errors import InputError
from training.discovery import DatasetEntry
from training.options import Options

Batch = tuple[Tensor, Any]  # inputs [N, ...]; targets [N, ...], or a list of boxes and labels


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
            try:
                batch = self._dataset.batch(part)
            except (RuntimeError, ValueError, IndexError, TypeError) as exc:
                _Failure.of(exc, f"a batch with sample {int(part[0])} of the data set").complain()
            yield batch


class LoaderBatches:
    """Batches of any other data set, loaded sample by sample in `workers` processes."""

    def __init__(
        self,
        dataset: Any,
        indices: Tensor,
        batch_size: int,
        generator: torch.Generator | None,
        workers: int,
        collate: Callable[..., Any] | None = None,
    ) -> None:
        self.samples = len(indices)
        self._loader: DataLoader[Any] = DataLoader(
            _Guarded(dataset, indices.tolist()),
            batch_size,
            shuffle=generator is not None,
            generator=generator,
            num_workers=workers,
            persistent_workers=workers > 0,
            collate_fn=_Collate(collate or default_collate),
        )

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Batch]:
        for batch in self._loader:
            if isinstance(batch, _Failure):
                batch.complain()
            yield batch


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a sample or batch could not be made, as a value that passes between processes."""

    code: str
    message: str
    place: str | None
    remedy: str | None

    @staticmethod
    def of(exc: Exception, what: str) -> _Failure:
        """Return the failure an exception means; complaints of data sets keep their words."""
        remedy = "Repair or remove it in the folder of the data set (--data)."
        code = getattr(exc, "code", None)
        return _Failure(
            code if isinstance(code, str) else "E632",
            f"{what} cannot be used: {str(exc) or type(exc).__name__}",
            getattr(exc, "place", None) or getattr(exc, "filename", None) or "--dataset",
            getattr(exc, "remedy", None) or remedy,
        )

    def complain(self) -> NoReturn:
        """Raise it."""
        raise InputError(self.code, self.message, self.place, self.remedy)


class _Guarded(Dataset[Any]):
    """Some samples of a data set; one that cannot be read is a `_Failure`, also in a worker."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self._dataset = dataset
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, position: int) -> Any:
        index = self._indices[position]
        try:
            return self._dataset[index]
        except Exception as exc:
            return _Failure.of(exc, f"sample {index} of the data set")


class _Collate:
    """Makes a batch of samples, or the failure of the first that is one."""

    def __init__(self, collate: Callable[..., Any]) -> None:
        self._collate = collate

    def __call__(self, samples: list[Any]) -> Any:
        for sample in samples:
            if isinstance(sample, _Failure):
                return sample
        try:
            return self._collate(samples)
        except (RuntimeError, TypeError, ValueError, IndexError) as exc:
            return _Failure.of(exc, "a batch of samples of different kind or shape")


def stack_inputs(samples: Sequence[tuple[Tensor, Any]]) -> tuple[Tensor, list[Any]]:
    """Make a batch whose targets are a list, for objects in boxes."""
    inputs, targets = zip(*samples, strict=True)
    return torch.stack(inputs), list(targets)


@dataclass(frozen=True, slots=True)
class Data:
    """The three parts of a data set; only `test` exists for an evaluation.

    `item` is the first test sample: input and target.
    """

    train: Batches | None
    validation: Batches | None
    test: Batches
    item: tuple[Tensor, Any]


def load_data(entry: DatasetEntry, options: Options) -> Data:
    """Load the data set and divide it.

    A share `options.validation_split` of the training samples, the same in every run, is kept for
    validation (with their augmentation); 0 means that the test samples validate. The test samples
    keep their order, so that --save-sample N means the N-th of the collection.
    """
    train_set, test_set = entry.loader((options.data, options), not options.evaluate, True)
    if not len(test_set):
        raise InputError("E606", f"{entry.name} has no test samples", "--dataset")
    test = _batches(test_set, torch.arange(len(test_set)), None, entry, options)
    item = _first_item(test_set)
    if train_set is None:
        return Data(None, None, test, item)
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
    train = _batches(train_set, rest, shuffle, entry, options)
    if not len(kept):
        return Data(train, test, test, item)
    return Data(train, _batches(train_set, kept, None, entry, options), test, item)


def _first_item(dataset: Any) -> tuple[Tensor, Any]:
    """Return the first sample; InputError when it cannot be read or is no input with a target."""
    if hasattr(dataset, "batch"):
        inputs, targets = dataset.batch(torch.tensor([0]))
        return inputs[0], targets[0]
    item = _Guarded(dataset, [0])[0]
    if isinstance(item, _Failure):
        item.complain()
    if not (isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[0], Tensor)):
        raise InputError(
            "E632",
            "a sample of the data set is no pair of an input tensor and a target",
            "--dataset",
            "Correct the data set's __getitem__.",
        )
    return item[0], item[1]


def _batches(
    dataset: Any,
    indices: Tensor,
    shuffle: torch.Generator | None,
    entry: DatasetEntry,
    options: Options,
) -> Batches:
    """Return the batches of some samples of a data set, by the quicker way it allows."""
    if hasattr(dataset, "batch"):
        return TensorBatches(dataset, indices, options.batch_size, shuffle)
    collate = entry.collate or (stack_inputs if options.obj_detection else None)
    return LoaderBatches(dataset, indices, options.batch_size, shuffle, options.workers, collate)
