"""Quantization errors in the weights and the outputs of a layer in training.

Source: docs/training.md, "Displays and exports".
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ai8xtools.layers.composition import QuantizationAwareModule
from ai8xtools.layers.rounding import Grid


@dataclass(frozen=True, slots=True)
class Damage:
    """The share of values that are clipped, in percent, and the signal-to-noise ratio in dB."""

    clipped: float
    snr_db: float


def is_quantized(layer: object) -> bool:
    """Return whether a module is a layer with weights in quantization-aware training."""
    return (
        isinstance(layer, QuantizationAwareModule)
        and layer.op is not None
        and layer._weight_rounding is not None
        and not layer.simulate
    )


@torch.no_grad()
def weight_damage(layer: QuantizationAwareModule) -> Damage:
    """Return how the weights that the accelerator holds differ from those that are trained."""
    rounding = layer._weight_rounding
    assert rounding is not None
    down, _ = layer.scales()
    scaled = layer.op.weight * (down * rounding.steps)
    return _damage(scaled, rounding.grid(scaled), _outside(scaled, rounding.grid))


@torch.no_grad()
def output_damage(layer: QuantizationAwareModule, x: Tensor, output: Tensor) -> Damage:
    """Return how `output` differs from what the layer makes of `x` [N, ...] without rounding."""
    expected = _unrounded(layer)(x.clone())
    unit = layer.finished(torch.ones((), device=x.device)) * layer._output_grid.unit
    return _damage(expected, output, _outside(expected / unit, layer._output_grid))


def _unrounded(layer: QuantizationAwareModule) -> QuantizationAwareModule:
    """Return a copy of a layer that rounds and limits nothing, with the scale of its output."""
    twin = copy.deepcopy(layer)
    twin._forward_hooks.clear()
    down, up = layer.scales()
    twin._automatic_shift = False
    twin._fixed_scale = down if layer.wide else down * up
    twin._weight_rounding = twin._bias_rounding = None
    twin._pool_grid = None
    low = 0.0 if layer.rectifies else -math.inf
    twin._output_grid = Grid("none", low, math.inf, positive=layer.rectifies)
    twin.wide = False  # the scale of wide results, which the accelerator leaves out, is `down`
    return twin


def _outside(scaled: Tensor, grid: Grid) -> Tensor:
    """Return which values, in steps of a grid, are beyond its ends."""
    return (scaled >= grid.high + 0.5) | (scaled < grid.low - 0.5)


def _damage(expected: Tensor, output: Tensor, clipped: Tensor) -> Damage:
    noise = float((expected - output).double().square().sum())
    signal = float(expected.double().square().sum())
    ratio = math.inf if noise == 0 else 10 * math.log10(max(signal, 1e-30) / noise)
    return Damage(100 * float(clipped.float().mean()), ratio)
