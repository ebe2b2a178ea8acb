"""Layers that combine tensors element by element.

Source: docs/layers.md, "Names of layers".
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ai8xtools.layers.chips import chosen_chip
from ai8xtools.layers.choices import activation_clamp
from ai8xtools.layers.elementary import Empty
from ai8xtools.layers.generations import THRESHOLD, exponent


class Eltwise(nn.Module):
    """Combine tensors of one shape by `f`, from the left; the result is clamped once.

    In networks of the second generation of QAT it has an `activation_threshold`, which decides the
    ranges of its operands (`apply_scales`), and is clamped from the beginning of QAT on.
    """

    def __init__(self, f: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.f = f
        self.clamp: nn.Module = activation_clamp(chosen_chip())
        self.delivered_factor = 1.0

    @property
    def has_thresholds(self) -> bool:
        """Whether it belongs to a network of the second generation of QAT."""
        return THRESHOLD in self._parameters

    def use_thresholds(self, enabled: bool = True) -> None:
        """Make it part of a network of the second generation of QAT, or with False of the first."""
        if enabled == self.has_thresholds:
            return
        if enabled:
            self.activation_threshold = exponent(0.0)
        else:
            del self.activation_threshold
        self.set_clamp(not enabled)

    def set_clamp(self, clamp_activation: bool) -> None:
        """Limit the result to 8-bit data or, before QAT of the second generation, not."""
        chip = chosen_chip()
        self.clamp = activation_clamp(chip) if clamp_activation or chip.simulate else Empty()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Become of the generation of the file that is loaded."""
        self.use_thresholds(f"{prefix}{THRESHOLD}" in state_dict)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def forward(self, *x: Tensor) -> Tensor:
        """Return the clamped combination of the operands."""
        result: Tensor = self.clamp(functools.reduce(self.f, x))
        return result if self.delivered_factor == 1.0 else result * self.delivered_factor


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
