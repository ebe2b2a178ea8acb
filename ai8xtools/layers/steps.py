"""The steps of a layer one at a time.

A layer shows each of its steps as an attribute: `layer.quantize`, `layer.clamp_weight` and so on
are modules that can be called. They can also be replaced; a layer with a replaced step computes one
step after the other, as `run_stepwise` does. Otherwise it computes several at once and is faster.
Source: docs/layers.md, "The steps of a layer".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ai8xtools.layers.choices import (
    WIDE_LIMIT,
    quantize_clamp,
    quantize_clamp_parameters,
    quantize_clamp_pool,
)
from ai8xtools.layers.elementary import (
    Clamp,
    One,
    OutputScale,
    OutputShiftLimit,
    OutputShiftOfRange,
    OutputShiftPassthrough,
    Quantize,
    Scaler,
    WeightScale,
    get_activation,
)
from ai8xtools.layers.parts import OperatorKind

PARAMETER_STEPS = ("quantize_weight", "quantize_bias", "clamp_weight", "clamp_bias")
STEPS = frozenset(
    {
        *PARAMETER_STEPS,
        *("quantize_pool", "clamp_pool"),
        *("calc_out_shift", "calc_weight_scale", "calc_out_scale"),
        *("scale", "activate", "quantize", "clamp"),
    }
)


class Step:
    """An attribute of a layer that gives access to a step as a module, made on first use.

    Assignments go where nn.Module keeps modules and other attributes, and win.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, layer: Any, owner: type | None = None) -> Any:
        """Return the step of `layer`."""
        if layer is None:
            return self
        replaced = layer._modules.get(self._name)
        if replaced is not None:
            return replaced
        steps = layer.made_steps
        if self._name not in steps:
            steps[self._name] = make_step(layer, self._name)
        return steps[self._name]


def make_step(layer: Any, name: str) -> nn.Module:
    """Return the module for a step of a layer, from the layer's state."""
    bits, chip = layer.weight_bits.item(), layer.chip
    rounded = bool(layer.quantize_activation.item())
    automatic = bool(layer.adjust_output_shift.item()) and not chip.simulate
    clamped = not layer.has_thresholds or bool(layer.clamp_activation.item())
    if name in ("quantize_bias", "clamp_bias") and layer.has_range and not chip.simulate and bits:
        step = 2.0 ** (1 - bits)  # of the weights; the bias has 8 bits of it
        return Quantize(bits) if name == "quantize_bias" else Clamp(-128 * step, 127 * step)
    if name in PARAMETER_STEPS:
        steps = quantize_clamp_parameters(bits, layer.bias_bits.item(), chip=chip)
        return steps[PARAMETER_STEPS.index(name)]
    if name in ("quantize", "clamp"):
        later = layer.wide and layer.has_thresholds and not chip.simulate
        if name == "clamp" and clamped and later:
            return Clamp(-WIDE_LIMIT, WIDE_LIMIT)
        return quantize_clamp(layer.wide, rounded, clamped, bits, chip=chip)[name == "clamp"]
    if name in ("quantize_pool", "clamp_pool"):
        pool = quantize_clamp_pool(layer.pooling, rounded, clamped, chip=chip)
        return pool[name == "clamp_pool"]
    if name == "activate":
        return get_activation(layer.activation)
    if name == "calc_out_shift" and automatic and layer.has_range:
        return OutputShiftOfRange(layer.range_exponent.item())
    if name == "calc_out_shift" and automatic:
        return OutputShiftLimit(layer.shift_quantile.item())
    if name == "scale":
        return Scaler(chip=chip)
    others: dict[str, type[nn.Module]] = {
        "calc_out_shift": OutputShiftPassthrough,
        "calc_weight_scale": WeightScale if automatic else One,
        "calc_out_scale": OutputScale,
    }
    return others[name]()


def run_stepwise(layer: Any, x: Tensor) -> Tensor:
    """Compute a layer step by step, in the order of the specification."""
    if layer.pool is not None:
        x = layer.clamp_pool(layer.quantize_pool(layer.pool(x)))
    if layer.op is None:
        return layer.finished(x)
    shift = layer.calc_out_shift(parameters_of(layer.op), layer.output_shift)
    weight, bias = held_parameters(layer, shift)
    x = operate(layer.op, x, weight, bias)
    if layer.bn is not None:
        x = layer.bn(x) if layer.has_thresholds else layer.bn(x) / 4
    if not layer.wide:  # the hardware does not shift 32-bit results
        if layer.has_thresholds and not layer.simulate:
            shift = (shift - layer.activation_threshold).clamp(-15, 15)
        x = layer.scale(x, layer.calc_out_scale(shift))
    return layer.finished(layer.clamp(layer.quantize(layer.activate(x))))


def parameters_of(op: Any) -> Tensor:
    """Return weights and bias of an operator as one vector."""
    parts = [p.detach().flatten() for p in (op.weight, op.bias) if p is not None]
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def held_parameters(layer: Any, shift: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return weights and bias as the accelerator holds them."""
    weight, bias = layer.op.weight, layer.op.bias
    if not isinstance(layer.calc_weight_scale, One):
        scale = layer.calc_weight_scale(shift)
        weight, bias = weight * scale, None if bias is None else bias * scale
    weight = layer.clamp_weight(layer.quantize_weight(weight))
    return weight, None if bias is None else layer.clamp_bias(layer.quantize_bias(bias))


def kind_of(op: nn.Module) -> OperatorKind:
    """Return what kind of operator a module of PyTorch is; TypeError for others."""
    classes = {
        nn.Conv1d: "Conv1d", nn.Conv2d: "Conv2d", nn.ConvTranspose2d: "ConvTranspose2d",
        nn.Linear: "Linear",
    }  # fmt: skip
    for operator, kind in classes.items():
        if isinstance(op, operator):
            return OperatorKind(kind)
    raise TypeError(f"{type(op).__name__} is not an operator of a layer")


def operate(op: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Apply an operator with other parameters than its own; TypeError for an unknown one."""
    if isinstance(op, nn.Linear):
        return functional.linear(x, weight, bias)
    if isinstance(op, nn.ConvTranspose2d):
        return functional.conv_transpose2d(
            x, weight, bias, op.stride, op.padding, op.output_padding, op.groups, op.dilation
        )
    if isinstance(op, nn.Conv2d):
        function = functional.conv2d
    elif isinstance(op, nn.Conv1d):
        function = functional.conv1d
    else:
        raise TypeError(f"{type(op).__name__} is not an operator of a layer")
    return function(x, weight, bias, op.stride, op.padding, op.dilation, op.groups)
