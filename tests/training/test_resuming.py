"""Optimizers and epochs that are taken over from a checkpoint."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, Optimizer

from ai8xtools.diagnostics.errors import InputError
from ai8xtools.training.saving.resuming import first_epoch, take_optimizer


def _stepped(kind: type[Optimizer]) -> tuple[nn.Linear, Any]:
    """Return a layer and its optimizer after a step."""
    layer = nn.Linear(3, 2)
    keywords = {"momentum": 0.9} if kind is SGD else {}
    optimizer: Any = kind(layer.parameters(), lr=0.1, **keywords)
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return layer, optimizer


@pytest.mark.parametrize("kind", [SGD, Adam])
def test_state_is_taken_over(kind: type[Optimizer]) -> None:
    _, former = _stepped(kind)
    _, optimizer = _stepped(kind)
    take_optimizer(optimizer, former.state_dict(), "file")
    for ours, theirs in zip(optimizer.state.values(), former.state.values(), strict=True):
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def _changed(kind: type[Optimizer], key: str, value: Any) -> Any:
    _, former = _stepped(kind)
    state = copy.deepcopy(former.state_dict())
    state["state"][0][key] = value
    return state


@pytest.mark.parametrize(
    ("kind", "key", "shape", "message"),
    [(SGD, "momentum_buffer", (3,), "of parameter 0 has shape .3."),
     (Adam, "exp_avg", (3, 2), "not .2, 3.")],
)  # fmt: skip
def test_state_of_another_shape_is_refused(
    kind: type[Optimizer], key: str, shape: tuple[int, ...], message: str
) -> None:
    refused(kind, _changed(kind, key, torch.zeros(shape)), message)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ([1], "TypeError"),
        ({}, "KeyError"),
        ({"state": {}, "param_groups": []}, "ValueError: loaded state dict"),
        ({"state": {}, "param_groups": [3]}, "TypeError"),
        ({"state": 3, "param_groups": [{"params": [0, 1]}]}, "AttributeError"),
    ],
)
def test_state_that_does_not_fit_is_refused(state: Any, message: str) -> None:
    refused(SGD, state, message)


def refused(kind: type[Optimizer], state: Any, message: str) -> None:
    _, optimizer = _stepped(kind)
    with pytest.raises(InputError, match=message) as info:
        take_optimizer(optimizer, state, "file")
    assert (info.value.code, info.value.place) == ("E609", "file")


def test_epochs_are_counted_from_0() -> None:
    assert first_epoch(0, "file") == 1
    for wrong in (None, -1):
        with pytest.raises(InputError, match=f"is of epoch {wrong};") as info:
            first_epoch(wrong, "file")
        assert info.value.code == "E609"
