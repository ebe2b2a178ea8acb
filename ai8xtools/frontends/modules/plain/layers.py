"""One layer of ai8x from an operator with its normalization and activation, and layers of ones."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

import ai8x
from ai8xtools.frontends.graph.geometry import LayerSpec
from ai8xtools.frontends.graph.nodes import Node
from ai8xtools.frontends.graph.operators import Array, BatchNormalization
from ai8xtools.frontends.graph.passes import factors_of
from ai8xtools.frontends.layers import Refusal

EXACTLY_ONE = 1 + 2.0**-20
"""A weight that becomes 64 with a shift of 1, which is exactly 1; 1.0 would become 127/128."""


def make_layer(
    path: str,
    spec: LayerSpec,
    bias: Array | None,
    norm: Node | None,
    activation: str | None,
    *,
    wide: bool,
    keywords: Mapping[str, Any],
) -> nn.Module | Refusal:
    """Return the layer of an operator, with weights and bias.

    `norm` is the batch normalization behind it or None; it is kept, times 4, as layers of ai8x
    divide by 4. `keywords` are those of all layers (`weight_bits`, ...).
    """
    assert spec.weights is not None
    kept = norm is not None and spec.op != "Linear" and "weight_bits" not in keywords
    settings: dict[str, Any] = {
        "activation": activation, "bias": bias is not None or norm is not None,
        **({"wide": True} if wide else {}), **keywords,
    }  # fmt: skip
    refused = None if spec.op == "Linear" else _refused(path, spec)
    if refused is not None:
        return refused
    if kept and norm is not None and isinstance(norm.operator, BatchNormalization):
        settings |= {"batchnorm": "Affine", "eps": norm.operator.epsilon,
                     "momentum": 1 - norm.operator.momentum}  # fmt: skip
    try:
        layer = _constructed(spec, settings)
    except AssertionError as exc:
        why = str(exc).partition(": ")[2] or str(exc)
        remedy = remedy_of_limit(str(exc))
        return Refusal(path, why) if remedy is None else Refusal(path, why, remedy)
    weights, offset = spec.weights, np.zeros(spec.shape[0]) if bias is None else bias
    if norm is not None and not kept:
        factor, moved = factors_of(norm)
        shape = (1, -1) if "Transpose" in spec.op else (-1, 1)
        weights = weights * factor.reshape(*shape, *(1,) * (weights.ndim - 2))
        offset = offset * factor + moved
    _fill(layer.op, weights, offset)
    if kept and norm is not None:
        _fill_norm(layer.bn, norm)
    return layer


_REMEDIES = {
    "padding with more": "Use padding=0 here, or at most 64 input channels.",
    "padding": "Use a padding of 0, 1 or 2; more layers reach further.",
    "(kernel_size-1)*dilation": "Use smaller kernels or dilation, or padding=0 and 3 values.",
    "kernel_size": "Use kernels of at most 9 values; pooling or more layers reach further.",
    "groups": "Use groups=1.",
    "in_channels": "Use fewer channels in the layer before.",
    "out_channels": "Use fewer channels, or two layers that are concatenated.",
    "out_features": "Use fewer outputs.",
}
"""What to use instead of a value beyond a limit, by the beginning of what is said of it."""


def remedy_of_limit(message: str) -> str | None:
    """Return what to use instead of what a layer of ai8x refuses, None for other messages."""
    why = message.partition(": ")[2] or message
    return next((r for begin, r in _REMEDIES.items() if why.startswith(begin)), None)


def _refused(path: str, spec: LayerSpec) -> Refusal | None:
    """Refuse groups that no layer of ai8x has."""
    chip, groups = ai8x.dev, spec.keys.get("groups", 1)
    assert chip is not None and spec.weights is not None
    if groups == 1:
        return None
    why = f"it has {groups} groups"
    if not chip.limits.has_depthwise:
        return Refusal(
            path, f"{why}, {chip.name} has none",
            "Use groups=1, or --device MAX78002 for depthwise convolutions.",
        )  # fmt: skip
    if not groups == spec.shape[0] == len(spec.weights) or spec.weights.shape[1] != 1:
        return Refusal(path, why, "Use groups=1, or as many groups as input and output channels.")
    return None


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


def ones(shape: tuple[int, ...]) -> LayerSpec:
    """Return an identity for data [C, ...]: 1x1 kernels that are exactly one, depth-wise if the
    chip supports it.
    """
    chip, channels, axes = ai8x.dev, shape[0], len(shape) - 1
    assert chip is not None
    alone = axes == 2 and chip.limits.has_depthwise
    kernels = np.ones((channels, 1)) if alone else np.eye(channels)
    keys: dict[str, Any] = {"pad": 0, "groups": channels if alone else 1}
    kernels = EXACTLY_ONE * kernels.reshape(*kernels.shape, *(1,) * axes)
    return LayerSpec(f"Conv{axes}d", keys, shape, kernels)


@torch.no_grad()
def rectifier(channels: int, images: bool, keywords: Mapping[str, Any], activation: str) -> Any:
    """Return a layer that only applies an activation: 1x1 kernels that are exactly one."""
    kind = ai8x.Conv2d if images else ai8x.Conv1d
    layer = kind(channels, channels, 1, bias=False, activation=activation, **keywords)
    return _of_ones(layer, (range(channels), range(channels)))


@torch.no_grad()
def doubler(channels: int, keywords: Mapping[str, Any]) -> Any:
    """Return a layer that repeats each pixel in 2x2: transposed kernels that are exactly one."""
    chip = ai8x.dev
    assert chip is not None
    groups = channels if chip.limits.has_depthwise else 1
    layer: Any = ai8x.Conv2d(
        channels, channels, 3, op="ConvTranspose2d", stride=2, padding=1, bias=False,
        groups=groups, **keywords,
    )  # fmt: skip
    own = 0 if groups > 1 else range(channels)
    return _of_ones(layer, *((range(channels), own, row, column)
                             for row, column in itertools.product((1, 2), (1, 2))))  # fmt: skip


def bordered(
    taken: int, channels: tuple[int, int], border: int, images: bool, keywords: Mapping[str, Any]
) -> Any:
    """Return a layer that puts channels of zeros before and behind those of a map, and a border of
    zeros (0 or 1) around it.
    """
    kind: Any = ai8x.Conv2d if images else ai8x.Conv1d
    size = 2 * border + 1
    layer = kind(taken, sum(channels) + taken, size, padding=2 * border, bias=False, **keywords)
    middle = (border,) * (layer.op.weight.ndim - 2)
    return _of_ones(layer, (range(channels[0], channels[0] + taken), range(taken), *middle))


@torch.no_grad()
def _of_ones(layer: Any, *places: Any) -> Any:
    """Return a layer whose kernels are exactly one at places, and zero elsewhere."""
    weight = torch.zeros_like(layer.op.weight)
    for place in places:
        weight[place] = EXACTLY_ONE
    layer.op.weight.copy_(weight)
    layer.op.weight.requires_grad_(False)
    layer.is_constant = True
    return layer
