"""Batches for training, validation and test.

Source: docs/training.md, "What happens in a run".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler, default_collate

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading.system import start_of_workers
from ai8xtools.training.catalog.discovery import DatasetEntry, Imports
from ai8xtools.training.catalog.own_code import (
    complains_itself,
    definition,
    failure,
    first_line,
    place_of,
)
from ai8xtools.training.compute.distributed import UNDIVIDED, Share
from ai8xtools.training.compute.randomness import derived, preserved, seed_data
from ai8xtools.training.data.inputs import doubt
from ai8xtools.training.data.mixing import MixedBatches, partners
from ai8xtools.training.data.sending import can_be_sent
from ai8xtools.training.options import TrainingOptions
from datasets.boxes import collate as collate_boxes

_TRAINING, _VALIDATION, _TEST = range(3)
_MISTAKES = (NameError, AttributeError, TypeError, ImportError)
"""Exceptions for mistakes in a program, not in files that it reads."""
_MEASURED = 1000
"""So many training samples are measured where none are kept for validation."""
_LOOKED_AT = 8  # samples that tell whether inputs are normalized
Batch = tuple[Tensor, Any]  # inputs [N, ...]; targets [N, ...], or a list of boxes and labels


class Batches(Protocol):
    """Batches of a data set, in a new order each epoch when it serves training.

    `samples` counts those of all processes.
    """

    samples: int

    def __len__(self) -> int: ...
    def of_epoch(self, epoch: int) -> Iterator[Batch]:
        """Yield the batches of an epoch from 0; the same ones in every run with the same seed."""


class Order:
    """Which samples form the batches of an epoch, and the seeds of their random changes."""

    def __init__(
        self,
        indices: Tensor,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        share: Share | None = None,
        pairs: bool = False,
        size: int | None = None,
    ) -> None:
        self.indices = indices
        self.samples = size or len(indices)
        self.seed = seed
        self.share = share or UNDIVIDED
        self._batch_size = batch_size
        self.shuffle = shuffle
        self.pairs = pairs

    def __len__(self) -> int:
        return -(-self.samples // self._batch_size)

    def batches(self, epoch: int) -> tuple[Tensor, ...]:
        """Return the indices of the samples of each batch, of all processes.

        An epoch of another size than that of the data set goes on where the one before ended.
        """
        count, first = len(self.indices), epoch * self.samples
        passes = range(first // count, (first + self.samples - 1) // count + 1)
        order = torch.cat([self._of_pass(number) for number in passes])
        start = first % count
        return order[start : start + self.samples].split(self._batch_size)

    def _of_pass(self, number: int) -> Tensor:
        """Return all samples in the order of a pass."""
        if not self.shuffle:
            return self.indices
        generator = torch.Generator()
        generator.manual_seed(derived(self.seed, number))
        return self.indices[torch.randperm(len(self.indices), generator=generator)]

    def own(self, epoch: int, number: int, count: int) -> Tensor:
        """Return the places of this process's samples in batch `number` of `count` samples.

        With `pairs` those of their partners for mixup follow.
        """
        own = self.share.of(torch.arange(count))
        if not self.pairs:
            return own
        return torch.cat([own, self.share.of(partners(self.seed, epoch, number, count))])


class TensorBatches:
    """Batches of a data set that can fetch many samples at once, taken in this process.

    Preparing a whole batch with a few tensor operations takes a small part of the time of its
    training step, so that nothing is gained from other processes. In distributed training each
    process prepares the whole batch too and keeps its share, so that random changes are those of a
    single process.
    """

    def __init__(self, dataset: Any, order: Order) -> None:
        self.samples = order.samples
        self._dataset = dataset
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    def of_epoch(self, epoch: int) -> Iterator[Batch]:
        """Yield the batches of an epoch."""
        order = self._order
        for number, part in enumerate(order.batches(epoch)):
            try:
                with preserved():
                    seed_data(derived(order.seed, epoch, number))
                    inputs, targets = self._dataset.batch(part)
            except Exception as exc:
                _Failure.of(exc, f"a batch with sample {int(part[0])} of the data set").complain()
            own = order.own(epoch, number, len(part))
            if order.pairs:
                yield inputs[own], targets[own]
            else:
                yield inputs[own[0] : own[-1] + 1], targets[own[0] : own[-1] + 1]


class LoaderBatches:
    """Batches of any other data set, loaded sample by sample in `workers` processes.

    Without copies of this process, what cannot be pickled is loaded in this one.
    """

    def __init__(
        self,
        dataset: Any,
        order: Order,
        workers: int,
        collate: Callable[..., Any] | None = None,
    ) -> None:
        self.samples = order.samples
        self._places = _Places(order)
        start = start_of_workers()
        guarded, collating = _Guarded(dataset), _Collate(collate or default_collate)
        if start != "fork" and not can_be_sent(guarded, collating):
            workers = 0
        self._loader: DataLoader[Any] = DataLoader(
            guarded,
            batch_sampler=self._places,
            num_workers=workers,
            persistent_workers=workers > 0 and order.shuffle,
            pin_memory=torch.cuda.is_available(),
            collate_fn=collating,
            multiprocessing_context=start if workers else None,
        )

    def __len__(self) -> int:
        return len(self._places)

    def of_epoch(self, epoch: int) -> Iterator[Batch]:
        """Yield the batches of an epoch."""
        self._places.epoch = epoch
        for batch in self._loader:
            if isinstance(batch, _Failure):
                batch.complain()
            yield batch


class _Places(Sampler[list[Any]]):
    """The samples of each batch of this process, as pairs of seed and index."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self.epoch = 0

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        order = self._order
        for number, part in enumerate(order.batches(self.epoch)):
            indices = part[order.own(self.epoch, number, len(part))].tolist()
            yield [(derived(order.seed, self.epoch, index), index) for index in indices]


@dataclass(frozen=True, slots=True)
class _Failure:
    """The reason why a sample or batch could not be made, as a value to pass between processes."""

    code: str
    message: str
    place: str | None
    remedy: str | None

    @staticmethod
    def of(exc: Exception, what: str) -> _Failure:
        """Return the failure an exception means; errors of data sets keep their message."""
        place = place_of(exc)
        if isinstance(exc, _MISTAKES) and not complains_itself(exc) and place is not None:
            message = f"{what} cannot be made: {type(exc).__name__}: {first_line(exc)}"
            return _Failure("E662", message, place, "Correct the file.")
        remedy = "Repair or remove it in the folder of the data set (--data)."
        code = getattr(exc, "code", None)
        return _Failure(
            code if isinstance(code, str) else "E663",
            f"{what} cannot be used: {str(exc) or type(exc).__name__}",
            getattr(exc, "place", None) or getattr(exc, "filename", None) or "--dataset",
            getattr(exc, "remedy", None) or remedy,
        )

    def complain(self) -> NoReturn:
        """Raise it."""
        raise InputError(self.code, self.message, self.place, self.remedy)


class _Guarded(Dataset[Any]):
    """A data set by pairs of seed and index; a sample that cannot be read is a `_Failure`.

    The seed, which random changes of the sample begin with, belongs to the sample, so that they do
    not depend on the number of workers.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Imports, Any]]:
        return _guarded, (Imports(), self._dataset)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitems__(self, places: Sequence[tuple[int, int]]) -> list[Any]:
        with preserved():
            return [self[place] for place in places]

    def __getitem__(self, place: tuple[int, int]) -> Any:
        seed, index = place
        seed_data(seed)
        try:
            return self._dataset[index]
        except Exception as exc:
            return _Failure.of(exc, f"sample {index} of the data set")


def _guarded(_imports: Imports, dataset: Any) -> _Guarded:
    """Return a data set in another process, which has imported its files first."""
    return _Guarded(dataset)


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


@dataclass(frozen=True, slots=True)
class Data:
    """The three parts of a data set; only `test` exists for an evaluation.

    `item` is the first test sample: input and target. `doubt` is a warning about its inputs,
    `record` what checkpoints say about data of the user's own.
    """

    train: Batches | None
    validation: Batches | None
    test: Batches
    item: tuple[Tensor, Any]
    doubt: str | None = None
    record: Mapping[str, Any] = field(default_factory=dict)


def load_data(
    entry: DatasetEntry, options: TrainingOptions, seed: int = 0, share: Share | None = None
) -> Data:
    """Load the data set and divide it.

    A share `options.validation_split` of the training samples, the same in every run, is kept for
    validation (with their augmentation); 0 means that the test samples validate. With
    `no_validation` all samples train, and the same ones are measured. The test samples
    keep their order, so that --save-sample N means the N-th of the collection. All randomness
    follows from `seed`; of training batches, only the `share` of this process is yielded.
    """
    share = share or UNDIVIDED
    with share.leader_first(), preserved():
        seed_data(seed)
        train_set, test_set = _load(entry, options)
    if not len(test_set):
        raise InputError("E606", f"{entry.name} has no test samples", "--dataset")

    def batches(dataset: Any, indices: Tensor, part: int) -> Batches:
        order = Order(
            indices, options.batch_size, shuffle=part == _TRAINING, seed=derived(seed, part),
            share=share if part == _TRAINING else None,
            pairs=part == _TRAINING and options.mixup > 0,
            size=options.epoch_samples if part == _TRAINING else None,
        )  # fmt: skip
        result = _batches(dataset, order, entry, options)
        return MixedBatches(result, options.mixup, order.seed) if order.pairs else result

    test = batches(test_set, torch.arange(len(test_set)), _TEST)
    item = _first_item(test_set)
    warning = doubt(_some_inputs(test_set), entry, options)
    if train_set is None:
        return Data(None, None, test, item, warning)
    fixed = None if options.no_validation else getattr(train_set, "valid_indices", None)
    order = torch.randperm(len(train_set), generator=torch.Generator().manual_seed(0))
    if fixed is not None:
        kept = torch.as_tensor(fixed)
        rest = order[~torch.isin(order, kept)]
    else:
        count = 0 if options.no_validation else int(len(order) * options.validation_split)
        kept, rest = order[:count], order[count:]
    if not len(rest):
        raise InputError(
            "E606",
            "no training samples are left",
            "--validation-split",
            "Keep a smaller share for validation.",
        )
    train = batches(train_set, rest, _TRAINING)
    if options.no_validation:
        kept = rest[:_MEASURED]
    validation = batches(train_set, kept, _VALIDATION) if len(kept) else test
    record = entry.own.record(entry.output, item, 128) if entry.own is not None else {}
    return Data(train, validation, test, item, warning, record)


def _load(entry: DatasetEntry, options: TrainingOptions) -> tuple[Any, Any]:
    """Return training (None for an evaluation) and test set; InputError when there are none."""
    try:
        sets = entry.loader((options.data, options), not options.evaluate, True)
    except Exception as exc:
        if complains_itself(exc):
            raise
        raise failure(exc, f"the loader of {entry.name}", entry.loader) from exc
    needed = 1 if options.evaluate else 0
    if not (isinstance(sets, tuple | list) and len(sets) == 2):
        kinds = f"{len(sets)} values" if isinstance(sets, tuple | list) else type(sets).__name__
    elif any(not hasattr(part, "__len__") for part in sets[needed:]):
        kinds = " and ".join(type(part).__name__ for part in sets)
    else:
        return sets[0], sets[1]
    raise InputError(
        "E661",
        f"the loader of {entry.name} returns {kinds}; it must return the training and the test set",
        definition(entry.loader) or "--dataset",
        "Let it end with: return train, test",
    )


def _some_inputs(dataset: Any) -> list[Tensor]:
    """Return the inputs of the first samples that can be read."""
    count = min(_LOOKED_AT, len(dataset))
    if hasattr(dataset, "batch"):
        with preserved():
            return list(dataset.batch(torch.arange(count))[0])
    items = _Guarded(dataset).__getitems__([(0, index) for index in range(count)])
    return [item[0] for item in items if not isinstance(item, _Failure)]


def _first_item(dataset: Any) -> tuple[Tensor, Any]:
    """Return the first sample; InputError when it cannot be read or is not a pair."""
    if hasattr(dataset, "batch"):
        try:
            with preserved():
                inputs, targets = dataset.batch(torch.tensor([0]))
            return inputs[0], targets[0]
        except Exception as exc:
            _Failure.of(exc, "the first sample of the data set").complain()
    (item,) = _Guarded(dataset).__getitems__([(0, 0)])
    if isinstance(item, _Failure):
        item.complain()
    if not (isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[0], Tensor)):
        raise InputError(
            "E663",
            "a sample of the data set is not a pair of an input tensor and a target",
            "--dataset",
            "Correct the data set's __getitem__.",
        )
    return item[0], item[1]


def _batches(dataset: Any, order: Order, entry: DatasetEntry, options: TrainingOptions) -> Batches:
    """Return the batches of some samples of a data set, in the fastest way it supports."""
    if hasattr(dataset, "batch"):
        return TensorBatches(dataset, order)
    collate = entry.collate or (collate_boxes if options.obj_detection else None)
    return LoaderBatches(dataset, order, options.workers, collate)
