"""The range of each layer's weights in quantization-aware training: a power of two.

The first rule takes the largest magnitude of weights and bias. With few bits most weights then
share one or two integers. Here the range is the power of two with the least squared error of what
the accelerator holds; large weights are clipped, and the bias, which has 8 bits whatever the
weights have, lies outside of it.
Source: docs/quantization.md, "Ranges of weights".
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ai8xtools.layers.composition import QuantizationAwareModule
from ai8xtools.layers.quantiles import quantile
from ai8xtools.layers.training_steps import quantized_modules

TRIED = 6
"""Powers of two that are tried, downwards from the one that holds all weights."""
BIAS_WEIGHT = 8.0
"""A bias counts as much as weights of data whose mean square is an eighth of its own input, 1."""
KEPT = 0.9
"""In training, a range changes if the error falls to less than this part of what it was."""
_BIAS_LIMIT = 128.0
_LARGEST = 15  # what the output shift can be, either way
_INNER = (0.75, 0.875, 0.625, 1.0, 0.5625)
"""Magnitudes to place a quantile at, in units of the range; of (1/2, 1] all give the same shift."""


def best_range(weight: Tensor, bias: Tensor | None, bits: int) -> int:
    """Return r of the range 2^r in which weights of `bits` bits have the least squared error.

    `weight` and `bias` are of any shape. The largest range is the one that holds all values; where
    all are 0 it is 1.
    """
    largest = max(float(part.detach().abs().max()) for part in (weight, bias) if part is not None)
    if not largest:
        return 0
    first = _limited(math.ceil(math.log2(largest)), bits)
    inner = float(weight.detach().abs().max()) or largest
    last = min(first, _limited(math.ceil(math.log2(inner)), bits) - TRIED + 1)
    tried = range(first, _limited(last, bits) - 1, -1)
    return min(tried, key=lambda exponent: squared_error(weight, bias, bits, exponent))


def squared_error(weight: Tensor, bias: Tensor | None, bits: int, exponent: int) -> float:
    """Return the sum of squared errors of a layer's integers in the range 2^exponent."""
    steps = 2.0 ** (bits - 1 - exponent)
    limit = 2.0 ** (bits - 1)
    error = _error(weight, steps, limit)
    return error if bias is None else error + BIAS_WEIGHT * _error(bias, steps, _BIAS_LIMIT)


def fit_ranges(model: nn.Module) -> None:
    """Give every quantized layer the range of least squared error, and its bias 8 bits.

    Call it after `initiate_qat`, which goes back to the first rule.
    """
    for layer, bits in _quantized_layers(model):
        layer.use_range(best_range(layer.op.weight, layer.op.bias, bits))


def refit_ranges(model: nn.Module) -> None:
    """Let the ranges that layers have follow their weights where that is clearly better.

    The range of weights of a single bit belongs to the results of the layer (`start_single_bits`).
    """
    for layer, bits in _quantized_layers(model):
        if not layer.has_range or bits == 1:
            continue
        parameters = layer.op.weight, layer.op.bias, bits
        held, best = int(layer.range_exponent), best_range(*parameters)
        if squared_error(*parameters, best) < KEPT * squared_error(*parameters, held):
            layer.use_range(best)


def follow_ranges(model: nn.Module, source: nn.Module) -> None:
    """Copy the present ranges of the layers of `source` to `model`, a copy of it."""
    pairs = zip(_quantized_layers(model), _quantized_layers(source), strict=True)
    for (layer, _), (followed, _) in pairs:
        if followed.has_range and int(layer.range_exponent) != int(followed.range_exponent):
            layer.use_range(int(followed.range_exponent))


def settle_quantiles(model: nn.Module) -> None:
    """Set `shift_quantile` to what leads to a layer's range, for tools that know only that."""
    for layer, _ in _quantized_layers(model):
        if layer.has_range:
            parts = [p.flatten() for p in (layer.op.weight, layer.op.bias) if p is not None]
            stored = quantile_of_range(torch.cat(parts).detach().abs(), int(layer.range_exponent))
            layer.shift_quantile.fill_(stored)


def quantile_of_range(magnitudes: Tensor, exponent: int) -> float:
    """Return q whose quantile of `magnitudes` [N] leads to the range 2^exponent by the first rule.

    That is one in (2^(exponent-1), 2^exponent]. If the magnitudes do not reach it, q is 1: the
    range of the first rule is then a smaller one.
    """
    ordered = magnitudes.float().sort().values
    last = ordered.numel() - 1
    unit = 2.0**exponent
    for part in _INNER:
        above = int((ordered < part * unit).sum())
        if above > last or not last:
            continue
        low, high = float(ordered[max(above - 1, 0)]), float(ordered[above])
        inside = (part * unit - low) / (high - low) if above else 0.0
        q = float(torch.tensor(min(1.0, (max(above - 1, 0) + inside) / last)))
        if all(unit / 2 < bound <= unit for bound in _quantiles(ordered, q)):
            return q
    return 1.0


def _quantiles(ordered: Tensor, q: float) -> tuple[float, float]:
    """Return the q quantile as training computes it, and as quantizers do."""
    rank = q * (ordered.numel() - 1)
    low, high = float(ordered[math.floor(rank)]), float(ordered[math.ceil(rank)])
    return float(quantile(ordered, q)), low + (rank - math.floor(rank)) * (high - low)


def _quantized_layers(model: nn.Module) -> Iterator[tuple[QuantizationAwareModule, int]]:
    """Yield the layers whose weights are rounded in training, and to how many bits."""
    for _, layer in quantized_modules(model):
        bits = int(layer.weight_bits.item())
        if layer.op is not None and bits:
            yield layer, bits


def _error(values: Tensor, steps: float, limit: float) -> float:
    scaled = values.detach() * steps
    held = (scaled + 0.5).floor_().clamp_(-limit, limit - 1)
    return float((held - scaled).square_().sum()) / steps**2


def _limited(exponent: int, bits: int) -> int:
    """Return the exponent of a range as an output shift can express it."""
    return min(max(exponent, -_LARGEST, bits - 23), _LARGEST, 7 + bits)
