"""Where the outputs of a network come from: which values of which layers they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import ai8x


@dataclass(frozen=True, slots=True)
class OutputOrder:
    """Outputs whose values, one tensor after the other, are those at `order` [values] of the
    `layers` in the order of their execution, each counted by channels, rows and columns."""

    layers: tuple[str, ...]
    order: Tensor


def output_order(model: nn.Module, example: Tensor) -> OutputOrder | None:
    """Return where the outputs for an example [1, ...] come from; None where something is computed
    behind the last layers.

    Each layer delivers its values' numbers in place of them, which the rest of the network only
    moves.
    """
    own = deepcopy(model).double().eval()  # exact up to 2**53
    calls: list[tuple[str, int, int]] = []
    total = 0

    def numbered(name: str) -> Any:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> Any:
            nonlocal total
            if not isinstance(output, Tensor):
                return None
            calls.append((name, total, output.numel()))
            total += output.numel()
            return torch.arange(total - output.numel(), total).to(output).view_as(output)

        return hook

    for name, module in _layers(own):
        module.register_forward_hook(numbered(name))
    with torch.no_grad():
        outputs = own(example.double())
    parts = outputs if isinstance(outputs, Sequence) else (outputs,)
    numbers = torch.cat([part.flatten() for part in parts])
    order = torch.full_like(numbers, -1, dtype=torch.int64)
    layers: list[str] = []
    first = 0
    for name, begin, count in calls:
        its = (numbers >= begin) & (numbers < begin + count) & (numbers == numbers.round())
        if its.any():
            order[its] = numbers[its].long() - begin + first
            layers.append(name)
            first += count
    return None if (order < 0).any() else OutputOrder(tuple(layers), order)


def _layers(model: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Yield ai8x layers, and modules without parts, by name."""
    for name, module in model.named_children():
        if isinstance(module, ai8x.QuantizationAwareModule) or not any(module.children()):
            yield f"{prefix}{name}", module
        else:
            yield from _layers(module, f"{prefix}{name}.")
