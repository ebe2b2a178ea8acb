"""Steps in operations that ONNX has, without gradients.

On their own they behave as in the vendor's tools, some of them coarser than the steps in whose
place they stand. `exact_twin` makes those that compute the same.
Source: docs/layers.md, "Single steps".
"""

from __future__ import annotations

from typing import assert_never

import torch
from torch import Tensor, nn

from ai8xtools.layers.chips import Dev, chosen_chip
from ai8xtools.layers.elementary import FRACTION_STEPS, Rounding, output_shift_of
from ai8xtools.layers.rounding import Grid


class RoundingONNX(nn.Module):
    """Move values onto a grid; base of the twins that round."""

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.grid = grid

    def forward(self, x: Tensor) -> Tensor:
        """Return the values rounded."""
        x = x if self.grid.steps == 1.0 else x * self.grid.steps
        match self.grid.rounding:
            case "half up":
                x = torch.floor(x + 0.5)
            case "half even":
                x = torch.round(x)
            case "toward zero":
                x = torch.sign(x) * torch.floor(torch.abs(x))
            case "down":
                x = torch.floor(x)
            case "none":
                pass
            case _:
                assert_never(self.grid.rounding)
        return x if self.grid.unit == 1.0 else x * self.grid.unit


class FloorONNX(RoundingONNX):
    """Round down."""

    def __init__(self, grid: Grid | None = None) -> None:
        super().__init__(grid or Grid("down"))


class RoundQatONNX(RoundingONNX):
    """Round half to even to a multiple of 1/128."""

    def __init__(self, grid: Grid | None = None) -> None:
        super().__init__(grid or Grid("half even", steps=FRACTION_STEPS, unit=1 / FRACTION_STEPS))


class FloorQatONNX(RoundingONNX):
    """Round down to a multiple of 1/128, also where `FloorQat` rounds negative values up."""

    def __init__(self, grid: Grid | None = None) -> None:
        super().__init__(grid or Grid("down", steps=FRACTION_STEPS, unit=1 / FRACTION_STEPS))


class QuantizeONNX(RoundingONNX):
    """Round half to even to a multiple of 2^(1-num_bits)."""

    def __init__(self, num_bits: int = 8, grid: Grid | None = None) -> None:
        steps = 2.0 ** (num_bits - 1)
        super().__init__(grid or Grid("half even", steps=steps, unit=1 / steps))
        self.num_bits = num_bits


class ClampONNX(nn.Module):
    """Limit values; None: no limit."""

    def __init__(self, min_val: float | None = None, max_val: float | None = None) -> None:
        super().__init__()
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, x: Tensor) -> Tensor:
        """Return the limited values."""
        if self.min_val is None and self.max_val is None:
            return x
        return torch.clamp(x, self.min_val, self.max_val)


class ScalerONNX(nn.Module):
    """Multiply by a scale, and round down in simulation."""

    def __init__(self, *, chip: Dev | None = None) -> None:
        super().__init__()
        self.simulate = (chip or chosen_chip()).simulate

    def forward(self, x: Tensor, s: Tensor) -> Tensor:
        """Return x * s."""
        return torch.floor(x * s) if self.simulate else x * s


class OutputShiftONNX(nn.Module):
    """The output shift that follows from the largest magnitude of the parameters."""

    def forward(self, params: Tensor, _shift: Tensor | None = None) -> Tensor:
        """Return -floor(log2(1/max(|params|))) within -15..15."""
        return output_shift_of(params.abs().max())


class WeightScaleONNX(nn.Module):
    """The factor of the weights for an output shift."""

    def forward(self, x: Tensor) -> Tensor:
        """Return 2^-x."""
        return torch.pow(2.0, -x)


class OutputScaleONNX(nn.Module):
    """The factor of the results for an output shift."""

    def forward(self, x: Tensor) -> Tensor:
        """Return 2^x."""
        return torch.pow(2.0, x)


def exact_twin(step: Rounding) -> RoundingONNX:
    """Return the ONNX twin of a rounding step, with the grid of that step."""
    kind = type(step).__name__ + "ONNX"
    twins: dict[str, type[RoundingONNX]] = {
        twin.__name__: twin for twin in (FloorONNX, RoundQatONNX, FloorQatONNX, QuantizeONNX)
    }
    twin = twins.get(kind, RoundingONNX)
    return twin(grid=step.grid)
