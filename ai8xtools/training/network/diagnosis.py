"""Find where in a network values stop being finite."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

import ai8x


def total_gradient(model: nn.Module) -> Tensor:
    """Return the norm of all gradients (scalar, on the device); it is finite if they all are."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return get_total_norm(gradients)


def worst_gradient(model: nn.Module) -> str:
    """Return the layer of the first gradient of the backward pass that is not finite."""
    for name, parameter in reversed(list(model.named_parameters())):
        if parameter.grad is not None and not _finite(parameter.grad):
            return f"that of the {_of_layer(name)}"
    return "the sum of their squares overflows"


def _of_layer(name: str) -> str:
    """Return `weight of layer conv1` for the parameter `conv1.op.weight`."""
    layer, _, kind = name.rpartition(".")
    return f"{kind} of layer {layer.removesuffix('.op') or 'the network itself'}"


def origin_of_not_finite(model: nn.Module, x: Tensor) -> str:
    """Return where NaN or infinite values of the loss of a batch x [N, ...] come from.

    The network runs once more; layers are named as in its state_dict.
    """
    if not _finite(x):
        return "values of the input are not"
    for name, parameter in model.named_parameters():
        if not _finite(parameter):
            return f"values of the {_of_layer(name)} are not"
    names: list[str] = []
    handles = [
        layer.register_forward_hook(
            lambda _layer, _x, y, name=name: None if _finite(y) else names.append(name)
        )
        for name, layer in _layers(model)
    ]
    try:
        with torch.no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    return f"first those of layer {names[0]}" if names else "outputs are finite, the loss is not"


def _layers(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the layers of the toolchain, and single modules that belong to none."""
    layers = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, ai8x.QuantizationAwareModule)
    }
    inner = tuple(f"{name}." for name in layers)
    others = [
        (name, module)
        for name, module in model.named_modules()
        if name and not list(module.children()) and name not in layers
    ]
    return [*layers.items(), *(pair for pair in others if not pair[0].startswith(inner))]


def _finite(value: Any) -> bool:
    """Return whether all numbers of a tensor, or of tensors in lists, are finite."""
    if isinstance(value, Tensor):
        return bool(value.isfinite().all())
    return all(map(_finite, value)) if isinstance(value, (list, tuple)) else True
