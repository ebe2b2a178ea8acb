"""One layer of ai8x from an operator with its normalization and activation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

import ai8x
from ai8xtools.frontends.accelerator.lowering import Parts, RefusedError
from ai8xtools.frontends.graph.geometry import LayerSpec
from ai8xtools.frontends.graph.nodes import Node
from ai8xtools.frontends.graph.operators import Array, BatchNormalization
from ai8xtools.frontends.graph.passes import factors_of

EXACTLY_ONE = 1 + 2.0**-20
"""A weight that becomes 64 with a shift of 1, which is exactly 1; 1.0 would become 127/128."""


def make_layer(parts: Parts, keywords: Mapping[str, Any]) -> nn.Module:
    """Return the layer of an operator, with weights and bias.

    Batch normalization behind it is kept, times 4, as layers of ai8x divide by 4. `keywords` are
    those of all layers (`weight_bits`, ...). The kernels of a constant layer are exactly one and
    never trained. Raises AssertionError for limits of the chip, RefusedError for groups.
    """
    spec, norm, weights, bias = parts.spec, parts.norm, parts.weights, parts.bias
    kept = norm is not None and spec.op != "Linear" and "weight_bits" not in keywords
    settings: dict[str, Any] = {
        "activation": parts.activation, "bias": bias is not None or norm is not None,
        **({"wide": True} if parts.wide else {}), **keywords,
    }  # fmt: skip
    _check_groups(spec)
    if kept and norm is not None and isinstance(norm.operator, BatchNormalization):
        settings |= {"batchnorm": "Affine", "eps": norm.operator.epsilon,
                     "momentum": 1 - norm.operator.momentum}  # fmt: skip
    layer = _constructed(spec, settings)
    offset = np.zeros(spec.shape[0]) if bias is None else bias
    if norm is not None and not kept:
        factor, moved = factors_of(norm)
        shape = (1, -1) if "Transpose" in spec.op else (-1, 1)
        weights = weights * factor.reshape(*shape, *(1,) * (weights.ndim - 2))
        offset = offset * factor + moved
    _fill(layer.op, EXACTLY_ONE * weights if parts.constant else weights, offset)
    if kept and norm is not None:
        _fill_norm(layer.bn, norm)
    if parts.constant:
        layer.op.weight.requires_grad_(False)
    if parts.constant or parts.adds:
        layer.is_constant = True
    return layer


def _check_groups(spec: LayerSpec) -> None:
    """Raise RefusedError for groups that no layer of ai8x has."""
    chip, groups = ai8x.dev, spec.keys.get("groups", 1)
    assert chip is not None and spec.weights is not None
    if groups == 1:
        return
    why = f"it has {groups} groups"
    if not chip.limits.has_depthwise:
        raise RefusedError(
            f"{why}, {chip.name} has none",
            "Use groups=1, or --device MAX78002 for depthwise convolutions.",
        )
    if not groups == spec.shape[0] == len(spec.weights) or spec.weights.shape[1] != 1:
        raise RefusedError(why, "Use groups=1, or as many groups as input and output channels.")


def _constructed(spec: LayerSpec, settings: dict[str, Any]) -> Any:
    """Return an ai8x layer of the shape of an operator."""
    weights, keys = spec.weights, spec.keys
    assert weights is not None
    if spec.op == "Linear":
        return _linear(weights.shape, settings)
    groups = keys.get("groups", 1)
    settings |= {"padding": keys["pad"], "groups": groups}
    size = weights.shape[2]
    if spec.op == "ConvTranspose2d":
        outputs = weights.shape[1] * groups
        return ai8x.Conv2d(len(weights), outputs, size, op=spec.op, stride=2, **settings)
    shape = (weights.shape[1] * groups, len(weights), size)
    if spec.op == "Conv1d":
        return ai8x.Conv1d(*shape, stride=1, dilation=keys.get("dilation", 1), **settings)
    return ai8x.Conv2d(*shape, stride=1, **settings)


def _linear(shape: tuple[int, ...], settings: Mapping[str, Any]) -> Any:
    """Return a fully connected layer.

    Flattened maps may have more values than a layer of ai8x takes channels: the chip's limits are
    1024 channels of 256 pixels, which the loader tests.
    """
    outputs, inputs = shape
    layer: Any = ai8x.Linear(min(inputs, _CHANNELS), outputs, **settings)
    if inputs > _CHANNELS:
        whole: Any = nn.Linear(inputs, outputs, layer.op.bias is not None)
        for name in ("stride", "padding", "dilation", "groups"):
            setattr(whole, name, None)
        layer.op = whole
    return layer


_CHANNELS = 1024


@torch.no_grad()
def _fill(ours: Any, weights: Array, bias: Array) -> None:
    """Carry weights and bias over."""
    ours.weight.copy_(torch.from_numpy(np.array(weights, np.float64)))
    if ours.bias is not None:
        ours.bias.copy_(torch.from_numpy(np.array(bias, np.float64)))


@torch.no_grad()
def _fill_norm(ours: Any, norm: Node) -> None:
    """Carry batch normalization over, times 4."""
    values = [torch.from_numpy(np.array(one.constant, np.float64)) for one in norm.inputs[1:]]
    for target, value, factor in zip(
        (ours.weight, ours.bias, ours.running_mean, ours.running_var), values, (4, 4, 1, 1),
        strict=True,
    ):  # fmt: skip
        target.copy_(factor * value)
