"""Dense layers with norms, as BitNetMCU trains them: norm, activations of 8 bits, weights of few.

Only scales differ from the engine after the norms RMS and Lin, so that what is trained here is
exported as it is; LayerNorm and BatchNorm move the zero, and the engine cannot follow.
Source: docs/low-bit.md, "Training".
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

ENGINE = "engine"
"""Instead of a norm: the integers of the engine."""
NORMS = (ENGINE, "RMS", "Lin", "LayerNorm", "BatchNorm", "None")
SCALING = (ENGINE, "RMS", "Lin", "None")
"""Norms that only scale: the engine, which scales each layer, computes the same classes."""
_EPSILON = 1e-5
_RMS_EPSILON = 1e-12


def normalized(values: Tensor, norm: str) -> Tensor:
    """Return values [N, features] after a norm without trained parameters.

    A row of zeros stays zero. BatchNorm takes the statistics of the batch at hand.
    """
    match norm:
        case "RMS":
            return values * torch.rsqrt(values.square().mean(-1, keepdim=True) + _RMS_EPSILON)
        case "Lin":
            return values / values.abs().mean(-1, keepdim=True).clamp(min=_EPSILON)
        case "LayerNorm":
            return functional.layer_norm(values, values.shape[-1:], eps=_EPSILON)
        case "BatchNorm":
            return functional.batch_norm(values, None, None, training=True, eps=_EPSILON)
        case _:
            return values


def activations(values: Tensor) -> Tensor:
    """Return values [N, features] in steps of a 127th of the greatest of each row.

    The gradient is that of values that were not rounded.
    """
    scale = 127 / values.detach().abs().amax(-1, keepdim=True).clamp(min=_EPSILON)
    rounded = (values.detach() * scale).round().clamp(-128, 127) / scale
    return rounded + (values - values.detach())
