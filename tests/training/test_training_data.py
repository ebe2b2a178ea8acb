"""Division of data sets and their batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import Dataset

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.catalog.discovery import DatasetEntry
from ai8xtools.training.data.batches import load_data
from ai8xtools.training.options import TrainingOptions


class _Numbers(Dataset[tuple[torch.Tensor, int]]):
    """Sample i is the number i, of class i modulo 3."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.tensor([float(index)]), index % 3


class _QuickNumbers(_Numbers):
    def batch(self, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return indices[:, None].float(), indices % 3


def _entry(kind: type[_Numbers], train: int = 50) -> DatasetEntry:
    def loader(_data: Any, load_train: bool, load_test: bool) -> tuple[Any, Any]:
        return kind(train) if load_train else None, kind(20) if load_test else None

    return DatasetEntry("numbers", (1, 1, 1), (0, 1, 2), loader, None)


def _args(**changes: Any) -> TrainingOptions:
    values = {"validation_split": 0.2, "batch_size": 8, "workers": 0, "deterministic": True}
    return TrainingOptions(arch="", dataset="numbers", **{**values, **changes})


def _samples(batches: Any, epoch: int = 0) -> list[int]:
    return [int(x) for inputs, _ in batches.of_epoch(epoch) for x in inputs]


@pytest.mark.parametrize("kind", [_Numbers, _QuickNumbers])
def test_parts_do_not_overlap_and_nothing_is_lost(kind: type[_Numbers]) -> None:
    data = load_data(_entry(kind), _args())
    assert data.train is not None
    assert data.validation is not None
    train, validation = _samples(data.train), _samples(data.validation)
    assert (len(train), len(validation)) == (40, 10)
    assert sorted(train + validation) == list(range(50))
    assert _samples(data.test) == list(range(20))
    assert len(data.train) == 5
    for x, target in data.train.of_epoch(0):
        assert torch.equal(x[:, 0].long() % 3, target)


@pytest.mark.parametrize("kind", [_Numbers, _QuickNumbers])
def test_training_order_changes_every_epoch_but_not_between_runs(kind: type[_Numbers]) -> None:
    orders = []
    for _ in range(2):
        train = load_data(_entry(kind), _args()).train
        orders.append([_samples(train), _samples(train, 1)])
    assert orders[0] == orders[1]
    assert orders[0][0] != orders[0][1]


def test_without_a_share_the_test_set_validates() -> None:
    data = load_data(_entry(_QuickNumbers), _args(validation_split=0))
    assert data.validation is data.test


def test_evaluation_loads_no_training_set() -> None:
    data = load_data(_entry(_QuickNumbers), _args(evaluate=True))
    assert data.train is None
    assert data.validation is None


def test_fixed_validation_samples_are_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_QuickNumbers, "valid_indices", [1, 2, 3], raising=False)
    data = load_data(_entry(_QuickNumbers), _args())
    assert data.validation is not None
    assert _samples(data.validation) == [1, 2, 3]


def test_worker_processes_deliver_the_same() -> None:
    data = load_data(_entry(_Numbers), _args(workers=2))
    assert data.train is not None
    assert sorted(_samples(data.train)) == sorted(
        _samples(load_data(_entry(_Numbers), _args()).train)
    )


def test_quick_batch_that_cannot_be_made_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_data(_entry(_QuickNumbers), _args())

    def broken(_dataset: Any, indices: torch.Tensor) -> Any:
        raise RuntimeError("the cache is damaged")

    monkeypatch.setattr(_QuickNumbers, "batch", broken)
    with pytest.raises(InputError, match="a batch with sample 0 of the data set cannot be used"):
        next(data.test.of_epoch(0))


def test_items_that_are_no_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Numbers, "__getitem__", lambda _dataset, index: index)
    with pytest.raises(InputError, match="not a pair of an input tensor and a target"):
        load_data(_entry(_Numbers), _args())


def test_empty_training_set_is_refused() -> None:
    with pytest.raises(InputError, match="no training samples") as refused:
        load_data(_entry(_QuickNumbers, train=0), _args())
    assert refused.value.code == "E606"


def test_an_epoch_of_its_own_size_goes_on_where_the_one_before_ended() -> None:
    for size in (20, 40, 100):
        data = load_data(_entry(_QuickNumbers), _args(epoch_samples=size))
        assert data.train is not None and data.train.samples == size
        epochs = [_samples(data.train, n) for n in range(200 // size)]
        assert {len(one) for one in epochs} == {size}
        seen = [x for one in epochs for x in one]
        passes = [sorted(seen[n : n + 40]) for n in range(0, 200, 40)]
        assert len(set(passes[0])) == 40 and passes.count(passes[0]) == 5
        assert seen[:40] != seen[40:80]


def test_without_validation_all_samples_train_and_training_is_measured() -> None:
    data = load_data(_entry(_QuickNumbers), _args(no_validation=True))
    assert data.train is not None and data.validation is not None
    assert sorted(_samples(data.train)) == sorted(_samples(data.validation)) == list(range(50))
