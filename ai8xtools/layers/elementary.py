"""The single steps of a layer as modules of their own.

Layers compute several steps at once; these modules are for networks that need one of them alone,
for replacing a step of a layer, and for export. Rounding passes gradients unchanged. The arithmetic
(integers or fractions) is that of the chip chosen when a module is made, or of `chip`.
Source: docs/layers.md, "Single steps".
"""

from __future__ import annotations

import math
from typing import Any, assert_never

import torch
from torch import Tensor, nn

from ai8xtools.layers.chips import Dev, chosen_chip, require
from ai8xtools.layers.parts import Activation, activation_named
from ai8xtools.layers.quantiles import quantile
from ai8xtools.layers.rounding import Grid

FRACTION_STEPS = 128.0
"""Activations of a network in training are multiples of 1/128."""


class _StraightThrough(torch.autograd.Function):
    """Round; the gradient passes unchanged."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor, grid: Grid) -> Tensor:
        return grid.snap(x)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


class FloorFunction(torch.autograd.Function):
    """The function behind `Floor`: apply(x)."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        """Round down."""
        return x.floor()

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> Tensor:
        """Pass the gradient unchanged."""
        return gradient


class RoundFunction(FloorFunction):
    """The function behind `Round`: apply(x)."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        """Round half to even."""
        return x.round()


class AvgPoolFloorFunction(FloorFunction):
    """The function behind `AvgPoolFloor`: apply(x)."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        """Round toward zero."""
        return x.trunc()


class Rounding(nn.Module):
    """Move values onto a grid; base of the modules that round."""

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.grid = grid

    def forward(self, x: Tensor) -> Tensor:
        """Return the values rounded."""
        return _StraightThrough.apply(x, self.grid)


def quantization_grid(num_bits: int, extra_bits: int, simulate: bool) -> Grid:
    """Return the grid of `Quantize`; the rounding is floor(x + 0.5) everywhere."""
    if not simulate:
        unit = 2.0 ** (1 - num_bits)
        return Grid("half up", steps=2.0 ** (num_bits - extra_bits - 1), unit=unit)
    steps = 1.0 if num_bits == 1 else 2.0 ** (1 - num_bits - extra_bits)
    return Grid("half up", steps=steps)


class QuantizationFunction(torch.autograd.Function):
    """The function behind `Quantize`: apply(x, bits=8, extra_bit_shift=0)."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor, bits: int = 8, extra_bit_shift: int = 0) -> Tensor:
        """Round to `bits` bits."""
        return quantization_grid(bits, extra_bit_shift, chosen_chip().simulate).snap(x)

    @staticmethod
    def backward(_ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Pass the gradient unchanged."""
        return gradient, None, None


class Quantize(Rounding):
    """Round fractions to multiples of 2^(1-num_bits).

    In simulation divide by 2^(num_bits + num_extra_bit_shift - 1) and round to integers, which
    for fewer than 1 bit is a multiplication; 1 bit rounds only.
    """

    def __init__(
        self, num_bits: int = 8, num_extra_bit_shift: int = 0, *, chip: Dev | None = None
    ) -> None:
        chip = chip or chosen_chip()
        super().__init__(quantization_grid(num_bits, num_extra_bit_shift, chip.simulate))
        self.num_bits = num_bits
        self.num_extra_bit_shift = num_extra_bit_shift


class Floor(Rounding):
    """Round down."""

    def __init__(self) -> None:
        super().__init__(Grid("down"))


class AvgPoolFloor(Rounding):
    """Round toward zero, as average pooling does unless told to round."""

    def __init__(self) -> None:
        super().__init__(Grid("toward zero"))


class Round(Rounding):
    """Round half to even."""

    def __init__(self) -> None:
        super().__init__(Grid("half even"))


class FloorQat(Rounding):
    """Round toward zero to a multiple of 1/128."""

    def __init__(self) -> None:
        super().__init__(Grid("toward zero", steps=FRACTION_STEPS, unit=1 / FRACTION_STEPS))


class RoundQat(Rounding):
    """Round half to even to a multiple of 1/128."""

    def __init__(self) -> None:
        super().__init__(Grid("half even", steps=FRACTION_STEPS, unit=1 / FRACTION_STEPS))


class Clamp(nn.Module):
    """Limit values to `min_val`..`max_val`, None: no limit; outside no gradient passes."""

    def __init__(self, min_val: float | None = None, max_val: float | None = None) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val
        low = -math.inf if min_val is None else float(min_val)
        high = math.inf if max_val is None else float(max_val)
        self._grid = Grid("none", low, high)

    def forward(self, x: Tensor) -> Tensor:
        """Return the limited values."""
        return self._grid(x)


class Scaler(nn.Module):
    """Multiply by a scale, and round down in simulation."""

    def __init__(self, *, chip: Dev | None = None) -> None:
        super().__init__()
        self.simulate = (chip or chosen_chip()).simulate

    def forward(self, x: Tensor, s: Tensor | float) -> Tensor:
        """Return x * s."""
        return _StraightThrough.apply(x * s, Grid("down")) if self.simulate else x * s


class OutputShiftPassthrough(nn.Module):
    """The output shift is what is stored."""

    def forward(self, _params: Tensor, shift: Tensor) -> Tensor:
        """Return `shift`."""
        return shift


class OutputShiftLimit(nn.Module):
    """The output shift follows the weights, so that they fill the range of the integers."""

    def __init__(self, shift_quantile: float = 1.0) -> None:
        super().__init__()
        self.shift_quantile = shift_quantile

    def forward(self, params: Tensor, _shift: Tensor | None = None) -> Tensor:
        """Return -floor(log2(1/L)) within -15..15, L the quantile of magnitudes; no gradient."""
        return output_shift_of(quantile(params.detach().abs(), self.shift_quantile))


class OutputShiftOfRange(nn.Module):
    """The output shift of weights that have a range of their own."""

    def __init__(self, range_exponent: float) -> None:
        super().__init__()
        self.range_exponent = range_exponent

    def forward(self, _params: Tensor, shift: Tensor) -> Tensor:
        """Return the exponent of the range in the shape of `shift`."""
        return torch.full_like(shift, self.range_exponent)


def output_shift_of(magnitude: Tensor) -> Tensor:
    """Return the output shift for a largest magnitude of weights and bias."""
    return -(1 / magnitude).log2().floor().clamp(-15, 15)


class One(nn.Module):
    """A scale of one."""

    def forward(self, x: Tensor) -> Tensor:
        """Return 1 as a tensor of shape (1,)."""
        return torch.ones(1, device=x.device)


class WeightScale(nn.Module):
    """The factor of the weights for an output shift."""

    def forward(self, x: Tensor) -> Tensor:
        """Return 2^-x."""
        return torch.exp2(-x)


class OutputScale(nn.Module):
    """The factor of the results for an output shift."""

    def forward(self, x: Tensor) -> Tensor:
        """Return 2^x."""
        return torch.exp2(x)


class Abs(nn.Module):
    """Absolute value, computed in place."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the magnitudes in the memory of `x`."""
        return x.abs_()


class Empty(nn.Module):
    """Do nothing."""

    def forward(self, x: Tensor) -> Tensor:
        """Return `x`."""
        return x


class ID3(nn.Module):
    """Do nothing; replaces a step with two inputs."""

    def forward(self, x: Tensor, _: Any = None) -> Tensor:
        """Return `x`."""
        return x


def get_activation(activation: str | None = None) -> nn.Module:
    """Return the module for None, "ReLU" or "Abs"; AssertionError for Abs on AI84."""
    kind = activation_named(activation)
    match kind:
        case None:
            return Empty()
        case Activation.RELU:
            return nn.ReLU(inplace=True)
        case Activation.ABS:
            chip = chosen_chip()
            has_it = activation in chip.limits.activations
            require(has_it, f"activation=Abs: {chip.name} has no absolute value")
            return Abs()
        case _:
            assert_never(kind)
