"""Changes to all layers of a model: fusing, QAT, updates.

Source: docs/layers.md, "Functions for whole models".
"""

from __future__ import annotations

import inspect
from collections.abc import Container, Iterator
from typing import Any

import torch
from torch import nn

from ai8xtools.layers.composition import QuantizationAwareModule
from ai8xtools.layers.elementwise import Eltwise
from ai8xtools.layers.generations import RANGE


def quantized_modules(m: nn.Module) -> Iterator[tuple[str, QuantizationAwareModule]]:
    """Yield every layer of ours in `m` with its dotted name."""
    for name, module in m.named_modules():
        if isinstance(module, QuantizationAwareModule):
            yield name, module


def update_model(m: nn.Module) -> None:
    """Derive the arithmetic of all layers again from their bookkeeping parameters."""
    layers = [layer for _, layer in quantized_modules(m)]
    for layer in layers:
        layer.set_functions()
    clamped = any(layer.has_thresholds and bool(layer.clamp_activation) for layer in layers)
    for module in m.modules():
        if isinstance(module, Eltwise) and module.has_thresholds:
            module.set_clamp(clamped)


def has_thresholds(m: nn.Module) -> bool:
    """Whether a model is of the second generation of QAT."""
    return any(layer.has_thresholds for _, layer in quantized_modules(m))


def use_thresholds(m: nn.Module, enabled: bool = True) -> None:
    """Make all layers use the second generation of QAT, or with False the first."""
    for module in m.modules():
        if isinstance(module, QuantizationAwareModule | Eltwise):
            module.use_thresholds(enabled)


@torch.no_grad()
def fuse_bn_layers(m: nn.Module) -> None:
    """Move batch normalization, with its division by 4, into weights and biases.

    Layers of the second generation of QAT do not divide. The arithmetic is float32 in the order of
    the specification, so that results are reproducible to the bit.
    """
    for _, layer in quantized_modules(m):
        if layer.bn is None or layer.op is None:
            continue
        bn, op = layer.bn, layer.op
        inverse = torch.rsqrt(bn.running_var + bn.eps)
        gamma = torch.ones_like(inverse) if bn.weight is None else bn.weight
        beta = torch.zeros_like(inverse) if bn.bias is None else bn.bias
        bias = torch.zeros_like(inverse) if op.bias is None else op.bias
        quarter = 1.0 if layer.has_thresholds else 0.25
        channel_factor = quarter * gamma * inverse
        if isinstance(op, nn.ConvTranspose2d):  # weight [in, out / groups, ...]
            grouped = op.weight.unflatten(0, (op.groups, -1))
            factor = channel_factor.view(op.groups, 1, -1, *(1 for _ in op.kernel_size))
            op.weight.copy_((grouped * factor).flatten(0, 1))
        else:
            op.weight.mul_(channel_factor.view(-1, *(1 for _ in op.weight.shape[1:])))
        fused = (bias - bn.running_mean) * inverse * (quarter * gamma) + quarter * beta
        if op.bias is None:
            op.bias = nn.Parameter(fused)
        else:
            op.bias.copy_(fused)
        layer.bn = None


def use_ranges(m: nn.Module, names: Container[str]) -> None:
    """Make layers with `range_exponent` of those that have one among the `names` of tensors."""
    for name, layer in quantized_modules(m):
        if f"{name}.{RANGE}".lstrip(".") in names and not layer.has_range:
            layer.use_range(0)


def initiate_qat(m: nn.Module, qat_policy: dict[str, Any], export: bool = False) -> None:
    """Switch all layers to quantization-aware training; with `export` only note `weight_bits`.

    `qat_policy` has `weight_bits`, optionally `shift_quantile` (1.0) and `overrides`: dotted layer
    name to a dictionary with one of these keys or both.
    Source: docs/training.md, "The QAT policy".
    """
    overrides = qat_policy.get("overrides", {})
    for name, layer in quantized_modules(m):
        chosen = {**qat_policy, **overrides.get(name, {})}
        bits, quantile = chosen["weight_bits"], chosen.get("shift_quantile", 1.0)
        layer.init_module(bits, bits, True, True, quantile, export)
    if not export:
        update_model(m)


def update_optimizer(m: nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Return an optimizer of the same kind for the parameters that `m` has now.

    After fusing, parameters are gone; the state (momentum, ...) of the remaining ones is taken
    over, matched by equal shape in order. One-element parameters start without state.
    """
    taken = inspect.signature(type(optimizer)).parameters  # AdamW has a default that it sets itself
    settings = {name: value for name, value in optimizer.defaults.items() if name in taken}
    renewed = type(optimizer)(m.parameters(), **settings)
    old = (p for group in optimizer.param_groups for p in group["params"] if p.numel() > 1)
    for parameter in (p for p in m.parameters() if p.numel() > 1):
        match = next((p for p in old if p.shape == parameter.shape), None)
        if match is not None and match in optimizer.state:
            renewed.state[parameter] = optimizer.state[match]
    for new_group, old_group in zip(renewed.param_groups, optimizer.param_groups, strict=True):
        new_group.update({k: v for k, v in old_group.items() if k != "params"})
    return renewed
