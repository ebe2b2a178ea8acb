"""Layers whose kernels are one: they carry data over, to other places or with zeros beside it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ai8xtools.frontends.graph.geometry import LayerSpec
from ai8xtools.frontends.graph.operators import Array, Shape


def _spec(op: str, kernels: Array, shape: Shape, pad: int = 0, groups: int = 1) -> LayerSpec:
    size = kernels.shape[2]
    keys: dict[str, Any] = {"kernel_size": f"{size}x{size}" if kernels.ndim == 4 else size}
    keys |= {"pad": pad, **({"groups": groups} if groups > 1 else {})}
    return LayerSpec(op, keys, shape, kernels)


def pointwise(kernels: Array, shape: Shape) -> LayerSpec:
    """Return a layer of kernels [O, I, 1, ...] of one value, or fully connected if they have none,
    for a result [O, ...].
    """
    axes = len(shape) - 1
    return (
        _spec(f"Conv{axes}d", kernels, shape) if axes else LayerSpec("Linear", {}, shape, kernels)
    )


def identity(shape: Shape, *, depthwise: bool = False) -> LayerSpec:
    """Return a layer that gives data [C, ...] as it is; `depthwise`: images by groups of one."""
    channels, axes = shape[0], len(shape) - 1
    alone = depthwise and axes == 2
    kernels = np.ones((channels, 1)) if alone else np.eye(channels)
    groups = channels if alone else 1
    return _spec(f"Conv{axes}d", kernels.reshape(*kernels.shape, *(1,) * axes), shape, 0, groups)


def bordered(shape: Shape, beside: tuple[int, int] = (0, 0), border: int = 0) -> LayerSpec:
    """Return a layer that puts a `border` of zeros (0 or 1) around a map [C, ...], and channels of
    zeros `beside` its own.
    """
    channels, axes, size = shape[0], len(shape) - 1, 2 * border + 1
    kernels = np.zeros((sum(beside) + channels, channels, *(size,) * axes))
    middle: Any = (np.arange(channels) + beside[0], np.arange(channels), *(border,) * axes)
    kernels[middle] = 1
    wide = (len(kernels), *(n + 2 * border for n in shape[1:]))
    return _spec(f"Conv{axes}d", kernels, wide, 2 * border)


def doubled(shape: Shape, *, depthwise: bool) -> LayerSpec:
    """Return a layer that repeats each pixel of [C, H, W] in 2x2: transposed kernels."""
    channels = shape[0]
    groups = channels if depthwise else 1
    kernels = np.zeros((channels, channels // groups, 3, 3))
    own: Any = 0 if groups > 1 else np.arange(channels)
    for row, column in itertools.product((1, 2), (1, 2)):
        kernels[np.arange(channels), own, row, column] = 1
    wide = (channels, *(2 * n for n in shape[1:]))
    return _spec("ConvTranspose2d", kernels, wide, 1, groups)
