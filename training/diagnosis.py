"""Where in a network values stop being finite."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import ai8x


def origin_of_not_finite(model: nn.Module, x: Tensor) -> str:
    """Return which layer makes NaN or infinite values of a batch x [N, ...], and from what.

    The network runs once more; layers are named as in its state_dict.
    """
    if not _finite(x):
        return "they are in the input"
    for name, parameter in model.named_parameters():
        if not _finite(parameter):
            layer, _, kind = name.removesuffix(".op").rpartition(".")
            return f"they are in the {kind} of layer {layer.removesuffix('.op') or name}"
    found: list[str] = []
    handles = [
        layer.register_forward_hook(
            lambda _layer, _x, y, name=name: None if _finite(y) else found.append(name)
        )
        for name, layer in _layers(model)
    ]
    try:
        with torch.no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    return f"they come first from layer {found[0]}" if found else "they come from the loss itself"


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
