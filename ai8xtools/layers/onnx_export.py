"""Preparing a model for export to ONNX.

Source: docs/layers.md, "Functions for whole models".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ai8xtools.layers.elementary import (
    ID3,
    Clamp,
    Empty,
    One,
    OutputScale,
    OutputShiftLimit,
    OutputShiftPassthrough,
    Rounding,
    Scaler,
    WeightScale,
)
from ai8xtools.layers.onnx_twins import (
    ClampONNX,
    OutputScaleONNX,
    OutputShiftONNX,
    ScalerONNX,
    WeightScaleONNX,
    exact_twin,
)
from ai8xtools.layers.steps import PARAMETER_STEPS, STEPS, held_parameters, parameters_of
from ai8xtools.layers.training_steps import quantized_modules


@torch.no_grad()
def onnx_export_prep(m: nn.Module, simplify: bool = False, remove_clamp: bool = False) -> None:
    """Replace the steps of all layers by operations of ONNX, which is final; then export `m`.

    The exported model computes what `m` does. What the layers do to their weights is done here, so
    that the file has one weight tensor per operator: in simulation the integers of the checkpoint,
    as the network loader reads them.

    `simplify` leaves out rounding and clamps, for a look at the graph: weights are scaled within
    it, and with `remove_clamp` not even that.
    """
    for _, layer in quantized_modules(m):
        if simplify:
            _simplify(layer, remove_clamp)
        else:
            if layer.op is not None:
                _settle_parameters(layer)
            _replace(layer, {name: _twin(getattr(layer, name)) for name in STEPS})
    for module in m.modules():  # element-wise layers, and steps that a network has for itself
        for name, child in list(module.named_children()):
            if isinstance(child, Rounding | Clamp):
                module.add_module(name, Empty() if simplify else _twin(child))


def _replace(layer: Any, steps: dict[str, nn.Module]) -> None:
    for name, step in steps.items():
        setattr(layer, name, step)


def _twin(step: nn.Module) -> nn.Module:
    """Return an equivalent of a step in operations of ONNX."""
    if isinstance(step, Rounding):
        return exact_twin(step)
    if isinstance(step, Clamp):
        return ClampONNX(step.min_val, step.max_val)
    if isinstance(step, Scaler):
        twin = ScalerONNX()
        twin.simulate = step.simulate
        return twin
    if isinstance(step, OutputScale):
        return OutputScaleONNX()
    if isinstance(step, WeightScale):
        return WeightScaleONNX()
    return step


def _settle_parameters(layer: Any) -> None:
    """Replace the trained parameters by those that the accelerator holds.

    Narrow integers stay as they are stored: the factor that brings them to the scale of 8-bit
    weights moves into the output shift, or vanishes in the rounding of a wide layer.
    """
    shift = layer.calc_out_shift(parameters_of(layer.op), layer.output_shift).reshape(1).clone()
    weight, bias = held_parameters(layer, shift)
    if layer.has_thresholds and not layer.simulate:
        shift = (shift - layer.activation_threshold).clamp_(-15, 15)
        layer.activation_threshold.fill_(0)
    if layer.simulate:
        narrow = layer.chip.WEIGHT_BITS - layer.weight_bits.item()
        weight, bias = weight * 2.0**-narrow, None if bias is None else bias * 2.0**-narrow
        shift += narrow
        if layer.wide:
            layer.quantize = Empty()
    layer.op.weight.copy_(weight)
    if bias is not None:
        layer.op.bias.copy_(bias)
    layer.output_shift.copy_(shift)
    settled = {"calc_out_shift": OutputShiftPassthrough(), "calc_weight_scale": One()}
    _replace(layer, settled | {name: Empty() for name in PARAMETER_STEPS})
    if shift.item() == 0:
        _replace(layer, {"scale": ID3(), "calc_out_scale": One()})


def _simplify(layer: Any, remove_scales: bool) -> None:
    """Leave out rounding and clamps, and the scales if told to."""
    steps: dict[str, nn.Module] = {}
    for name in STEPS:
        step = getattr(layer, name)
        if isinstance(step, Rounding | Clamp):
            steps[name] = Empty()
        elif isinstance(step, Scaler | OutputShiftLimit):
            twin = ScalerONNX() if isinstance(step, Scaler) else OutputShiftONNX()
            steps[name] = ID3() if remove_scales else twin
        elif isinstance(step, WeightScale | OutputScale) and remove_scales:
            steps[name] = One()
        else:
            steps[name] = _twin(step)
    _replace(layer, steps)
