"""From sums to the activations of the next layer, in the integers of the engine.

Values are whole numbers in floats; the gradient is that of the scale alone.
Source: docs/low-bit.md, "What is computed".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ai8xtools.values import frozen


@frozen
class ActivationRule:
    """The rule that turns sums into activations, with the fields of `software.lowbit.network.Rule`.

    `kind` is "shift", "max" or "reciprocal" with factors of `bits` bits, `limit` 127 or 15.
    """

    kind: str = "shift"
    bits: int = 0
    rounds: bool = True
    limit: int = 127


def requantize(sums: Tensor, rule: ActivationRule, group: int = 1) -> Tensor:
    """Return the activations 0 to the limit of sums [..., features].

    Successive tokens in groups of `group` share a scale.
    """
    positive = sums.relu()
    greatest = _of_group(positive.detach().amax(-1, keepdim=True), group)
    if rule.kind == "reciprocal":
        factor, hard = _by_reciprocal(positive.detach(), greatest, rule)
        return _through(positive * factor, hard.to(sums.dtype))
    factor = torch.exp2(-_shift(greatest, rule.limit)).to(sums.dtype)
    soft = positive * factor
    rounded = torch.floor(soft.detach() + 0.5) if rule.rounds else torch.floor(soft.detach())
    hard = rounded.clamp(max=rule.limit)
    if rule.kind == "max":
        top = _of_group(hard.amax(-1, keepdim=True), group).clamp(min=1)
        eighths = torch.floor((8 * (rule.limit + 1) - 1) / top).clamp(8, 15)
        soft = soft * eighths / 8
        hard = torch.floor(hard * eighths / 8).clamp(max=rule.limit)
    return _through(soft, hard)


class _Whole(torch.autograd.Function):
    """Whole numbers from 0; the gradient passes where they are above 0."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        floors = values.clamp(min=0).floor_()
        ctx.save_for_backward(floors)
        return floors

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (floors,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(gradients[0], floors, 0)


def whole(values: Tensor) -> Tensor:
    """Return values without their fraction, and 0 for those below 0, as the engine shifts sums."""
    result: Tensor = _Whole.apply(values)
    return result


def _of_group(greatest: Tensor, group: int) -> Tensor:
    """Return the greatest value of the group of each token [..., tokens, 1]."""
    if group == 1:
        return greatest
    shared = greatest.unflatten(-2, (-1, group)).amax(-2, keepdim=True)
    return shared.expand(*shared.shape[:-2], group, 1).flatten(-3, -2)


def _shift(greatest: Tensor, limit: int) -> Tensor:
    """Return the least shift that brings the greatest sum to the limit."""
    bits = torch.frexp(greatest)[1]
    return (bits - limit.bit_length()).clamp(min=0).float()


def _by_reciprocal(values: Tensor, greatest: Tensor, rule: ActivationRule) -> tuple[Tensor, Tensor]:
    """Return the factor, and the activations; products have up to 34 bits, so in float64."""
    most = greatest.double().clamp(min=1)
    exponent = torch.ceil(torch.log2(most / rule.limit))
    exponent += (rule.limit * torch.exp2(exponent) < most).double()
    exponent -= (rule.limit * torch.exp2(exponent - 1) >= most).double()
    shift = exponent + rule.bits - 1
    factor = torch.floor(rule.limit * torch.exp2(shift) / most)
    half = 0.5 * (shift > 0) if rule.rounds else 0.0
    hard = torch.floor(values.double() * factor * torch.exp2(-shift) + half)
    scale = (factor * torch.exp2(-shift)).to(values.dtype)
    return scale, hard.clamp(max=rule.limit)


def _through(soft: Tensor, hard: Tensor) -> Tensor:
    """Return the hard values with the gradient of the soft ones."""
    return hard + (soft - soft.detach())
