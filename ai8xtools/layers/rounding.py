"""Rounding and clamping to what the accelerator can hold, with straight-through gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never

import torch
from torch import Tensor

_CACHED = 1 << 19
"""So many numbers stay in a processor's cache from one pass over them to the next."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The values a tensor can take: whole numbers `low`..`high` of steps.

    Calling it moves a tensor there: x becomes clamp(round(x * steps), low, high) * unit, or with
    rounding "none" clamp(x, low, high). "half up" is floor(x + 0.5). The factors are powers of two,
    so that only the rounding is inexact. The gradient passes unchanged except where the clamp acts.
    `positive` marks a rectified output: `low` is 0 and the gradient is that of ReLU. `passing` is
    the open interval of inputs whose gradient passes.
    """

    rounding: Literal["none", "half up", "half even", "toward zero", "down"]
    low: float = -math.inf
    high: float = math.inf
    steps: float = 1.0
    unit: float = 1.0
    positive: bool = False
    passing: tuple[float, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "passing", _window(self))

    def __call__(self, x: Tensor, overwrite: bool = False) -> Tensor:
        """Return `x` moved onto the grid, differentiably.

        With `overwrite` the memory of `x` may be used again when no gradient needs its values:
        those of the result cannot take their place, as a model may change it in place.
        """
        if torch.is_grad_enabled() and x.requires_grad:
            return _Snap.apply(x, self)
        return self.snap(x, x if overwrite else None)

    def snap(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """Return `x` moved onto the grid as a new tensor, or in `out`; only the values count."""
        if self.rounding == "none":
            return torch.clamp(x, self.low, self.high, out=out)
        is_plain = x.is_cpu and x.is_floating_point() and not is_recorded()
        samples = len(x) * _CACHED // x.numel() if is_plain and x.numel() > _CACHED else 0
        half = torch.full((), 0.5)
        if not samples:
            return self._move(x, half, out)
        y = torch.empty_like(x) if out is None else out
        for part, moved in zip(x.split(samples), y.split(samples), strict=True):
            self._move(part, half, moved)
        return y

    def _move(self, x: Tensor, half: Tensor, out: Tensor | None) -> Tensor:
        """Return `x` moved onto the grid, in `out` if that is given."""
        if self.rounding == "half up":  # x * steps is exact: one pass adds the half, too
            y = torch.add(half, x, alpha=self.steps, out=out).floor_()
        else:
            y = torch.mul(x, self.steps, out=out)
            y = {"half even": y.round_, "toward zero": y.trunc_, "down": y.floor_}[self.rounding]()
        if self.low > -math.inf or self.high < math.inf:
            y.clamp_(self.low, self.high)
        return y if self.unit == 1.0 else y.mul_(self.unit)


def is_recorded() -> bool:
    """Return whether PyTorch records what it computes now as a graph."""
    return torch.jit.is_tracing() or torch.compiler.is_compiling()


def _window(grid: Grid) -> tuple[float, float]:
    """Return the open interval of inputs whose gradient passes a grid.

    These are the inputs that the clamp leaves alone after rounding. A closed end is expressed as
    the next float32 beyond it.
    """
    match grid.rounding:
        case "none":
            low, high = _beyond(grid.low, -math.inf), _beyond(grid.high, math.inf)
        case "toward zero":
            low, high = (grid.low - 1) / grid.steps, (grid.high + 1) / grid.steps
        case "down":
            low, high = _beyond(grid.low / grid.steps, -math.inf), (grid.high + 1) / grid.steps
        case "half up" | "half even":
            low = _beyond((grid.low - 0.5) / grid.steps, -math.inf)
            high = (grid.high + 0.5) / grid.steps
        case _:
            assert_never(grid.rounding)
    return (0.0 if grid.positive else low), high


def _beyond(value: float, direction: float) -> float:
    """Return the float32 next to `value` in `direction`."""
    if math.isinf(value):
        return value
    return float(torch.nextafter(torch.tensor(value), torch.tensor(direction)))


class _Snap(torch.autograd.Function):
    """Put a tensor on a grid.

    One pass over the saved input gives the gradient: no masks, no intermediate results are kept.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, grid: Grid) -> Tensor:
        ctx.save_for_backward(x)
        ctx.grid = grid
        return grid.snap(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return torch.ops.aten.hardtanh_backward(gradient, x, *ctx.grid.passing), None
