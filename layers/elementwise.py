"""Layers that combine tensors element by element.

Source: docs/layers.md, "Names of layers".
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor, nn

from layers.chips import chosen_chip
from layers.choices import activation_clamp


class Eltwise(nn.Module):
    """Combine tensors of one shape by `function`, from the left; the result is clamped once."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function
        self.clamp = activation_clamp(chosen_chip())

    def forward(self, *x: Tensor) -> Tensor:
        """Return the clamped combination of the operands."""
        return self.clamp(functools.reduce(self.function, x))


class Add(Eltwise):
    """Sum of two or more tensors."""

    def __init__(self) -> None:
        super().__init__(torch.add)


class Sub(Eltwise):
    """First tensor minus the others."""

    def __init__(self) -> None:
        super().__init__(torch.sub)


class BitwiseOr(Eltwise):
    """Bitwise or, on values t taken as the integers round((t + 0.5) * 256)."""

    def __init__(self) -> None:
        super().__init__(functools.partial(_bitwise, torch.bitwise_or))


class BitwiseXor(Eltwise):
    """Bitwise exclusive or, on values t taken as the integers round((t + 0.5) * 256)."""

    def __init__(self) -> None:
        super().__init__(functools.partial(_bitwise, torch.bitwise_xor))


Or = BitwiseOr  # their names until 2020
Xor = BitwiseXor


def _bitwise(function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor) -> Tensor:
    """Apply a bitwise function to the integers that stand for `a` and `b`; not differentiable."""
    first, second = (((t + 0.5) * 256).round().int() for t in (a, b))
    return function(first, second) / 256 - 0.5
