"""The exponential moving average of the weights (--ema), which is validated, tested and saved.

Source: docs/training.md, "Refinements".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

import ai8x
from ai8xtools.training.saving import checkpoints

KEY = "average"
"""The entry of a checkpoint's `extras`: the number of updates, and the weights in training."""
_WARM_UP = 10


class Average:
    """A copy of `model` that follows its weights and statistics.

    Update n (from 0) keeps min(decay, (1 + n) / (10 + n)) of the average, so that short runs forget
    where they began. It starts anew when QAT begins, which gives weights another meaning.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.restart(model)

    @property
    def model(self) -> nn.Module:
        """The network with averaged weights."""
        module: nn.Module = self._averaged.module
        return module

    def restart(self, model: nn.Module, updates: int = 0) -> None:
        """Begin with the weights that `model` has now, as after so many `updates`."""
        self._averaged = AveragedModel(model, avg_fn=self._mean, use_buffers=True)
        self._averaged.n_averaged.fill_(updates)
        self._averaged.requires_grad_(False)

    def update(self, model: nn.Module) -> None:
        """Take a step of the optimizer into account."""
        self._averaged.update_parameters(model)

    def follow_ranges(self, model: nn.Module) -> None:
        """Take the ranges of weights that `model` has: exponents of powers of two have no mean."""
        ai8x.follow_ranges(self.model, model)

    def extras(self, model: nn.Module) -> dict[str, Any]:
        """Return what a checkpoint of the averaged weights needs for `model` to continue."""
        updates = int(self._averaged.n_averaged)
        return {KEY: {"updates": updates, "weights": dict(model.state_dict())}}

    def restore(self, model: nn.Module, loaded: checkpoints.Loaded) -> bool:
        """Continue with the checkpoint that `model` was loaded from; False if it has no average."""
        average = loaded.extras.get(KEY)
        if average is None or not _is_average(average, loaded.state):
            return False
        self.restart(model, average["updates"])
        checkpoints.load_into(model, replace(loaded, state=average["weights"]))
        return True

    def _mean(self, average: Tensor, current: Tensor, updates: Tensor | int) -> Tensor:
        """Return the average after an update; of whole numbers the current one."""
        if not average.is_floating_point():
            return current
        count = int(updates)
        share = min(self.decay, (1 + count) / (_WARM_UP + count))
        return torch.lerp(average, current.to(average.dtype), 1 - share)


def _is_average(entry: Any, state: Mapping[str, Tensor]) -> bool:
    """Return whether an entry of `extras` holds weights of the network of `state`."""
    if not isinstance(entry, dict) or type(entry.get("updates")) is not int:
        return False
    weights = entry.get("weights")
    return (
        isinstance(weights, dict)
        and weights.keys() == state.keys()
        and all(
            isinstance(weights[name], Tensor) and weights[name].shape == tensor.shape
            for name, tensor in state.items()
        )
    )
