"""Data-aware rounding: other weights compensate for the rounding error of each weight.

Rounding each weight to the nearest integer is best for a single weight, not for the sum of products
that a layer computes. With the second moments of the layer's inputs, weights are rounded one after
the other, and what each loses is given to those that are still free, so that the change of the
output is small (the method is known as optimal brain quantization, or GPTQ).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

MAX_INPUTS = 4096
"""Layers whose outputs depend on more values than this are rounded without the data."""
MAX_COLUMNS = 1 << 14
"""Positions used per batch; neighbouring pixels contain nearly the same information."""
_DAMPING = 0.01  # share of the mean second moment that is added to each: what samples did not show


@dataclass(slots=True)
class Moments:
    """Sums over the places where an operator is applied; G groups with d inputs each.

    `second` [G, d, d] of products of what the accelerator sees, `cross` of products of what the
    trained network sees with it; `seen` and `expected` [G, d] of the two themselves, float64.
    """

    second: Tensor
    cross: Tensor
    seen: Tensor
    expected: Tensor
    count: int = 0

    @classmethod
    def empty(cls, groups: int, inputs: int) -> Moments:
        """Return sums of nothing."""
        square = (groups, inputs, inputs)
        return cls(
            torch.zeros(square, dtype=torch.float64),
            torch.zeros(square, dtype=torch.float64),
            torch.zeros((groups, inputs), dtype=torch.float64),
            torch.zeros((groups, inputs), dtype=torch.float64),
        )

    def add(self, seen: Tensor, expected: Tensor) -> None:
        """Add the columns [G, d, n] of a batch; both in units of the trained network."""
        step = -(-seen.shape[2] // MAX_COLUMNS)
        seen, expected = seen[:, :, ::step].double(), expected[:, :, ::step].double()
        self.second += seen @ seen.mT
        self.cross += expected @ seen.mT
        self.seen += seen.sum(2)
        self.expected += expected.sum(2)
        self.count += seen.shape[2]


def weight_rows(op: Any, weight: Tensor) -> Tensor | None:
    """Return weights as [G, out / G, d], or None for operators that `columns` cannot serve."""
    if isinstance(op, torch.nn.ConvTranspose2d):
        return None
    groups = getattr(op, "groups", None) or 1
    rows = weight.reshape(groups, weight.shape[0] // groups, -1)
    return rows if rows.shape[2] <= MAX_INPUTS else None


def columns(op: Any, x: Tensor) -> Tensor:
    """Return the inputs of each output for a batch, [G, d, places]; d is ordered as in weights."""
    if isinstance(op, torch.nn.Linear):
        return x.reshape(1, -1, x.shape[-1]).mT
    if isinstance(op, torch.nn.Conv1d):
        window, padding = (1, op.kernel_size[0]), (0, op.padding[0])
        stride, dilation = (1, op.stride[0]), (1, op.dilation[0])
        x = x.unsqueeze(2)
    elif isinstance(op, torch.nn.Conv2d):
        window, padding, stride, dilation = op.kernel_size, op.padding, op.stride, op.dilation
    else:
        raise TypeError(f"the inputs of {type(op).__name__} cannot be unfolded")
    seen = functional.unfold(x, window, dilation, padding, stride)  # [N, G·d, places]
    return seen.unflatten(1, (op.groups, -1)).permute(1, 2, 0, 3).flatten(2)


class DataRounding:
    """Rounds the weights of a layer with the moments of its inputs."""

    def __init__(self, moments: Moments) -> None:
        self._damping = _damping(moments.second)
        self._damped = moments.second + self._damping
        self._moments = moments
        # Inputs with the largest moments come first, while all others can still make good for them.
        self._order = moments.second.diagonal(dim1=1, dim2=2).argsort(dim=1, descending=True)
        ordered = self._damped.gather(1, self._order.unsqueeze(2).expand_as(self._damped))
        ordered = ordered.gather(2, self._order.unsqueeze(1).expand_as(ordered))
        self._upper = torch.linalg.cholesky(torch.linalg.inv(ordered), upper=True)

    def compensated(self, rows: Tensor) -> Tensor:
        """Return weights [G, out, d] that come nearest to the trained output with the data seen.

        This differs from the data of the trained network by the errors of the layers before.
        """
        product = rows.double() @ (self._moments.cross + self._damping)
        return torch.linalg.solve(self._damped, product, left=False)

    def round(self, rows: Tensor, factor: float, limit: int) -> Tensor:
        """Return integers -limit..limit-1 for weights [G, out, d] times `factor`."""
        places = self._order.unsqueeze(1).expand_as(rows)
        free = (rows.double() * factor).gather(2, places)
        integers = torch.empty_like(free)
        for index in range(free.shape[2]):
            column = free[:, :, index]
            integers[:, :, index] = (column + 0.5).floor().clamp(-limit, limit - 1)
            loss = (column - integers[:, :, index]) / self._upper[:, index, index, None]
            free[:, :, index:] -= loss.unsqueeze(2) * self._upper[:, None, index, index:]
        return torch.empty_like(integers).scatter_(2, places, integers)

    def corrected(self, bias: Tensor, rows: Tensor, rounded: Tensor) -> Tensor:
        """Return the bias [G·out] with which `rounded` weights have the mean output of `rows`."""
        moments = self._moments
        lost = rows.double() @ moments.expected.unsqueeze(2) - rounded @ moments.seen.unsqueeze(2)
        return bias + lost.flatten() / moments.count


def _damping(second: Tensor) -> Tensor:
    """Return the diagonal matrices to add; inputs that are always 0 get some as well."""
    size = second.shape[1]
    mean = second.diagonal(dim1=1, dim2=2).mean(1).clamp(min=1e-9)
    return torch.eye(size, dtype=second.dtype) * (_DAMPING * mean)[:, None, None]
