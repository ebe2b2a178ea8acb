"""One layer of ai8x from an operator of PyTorch with its normalization and activation."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import ai8x
from ai8xtools.frontends.layers import Refusal, times
from ai8xtools.frontends.modules.plain.kinds import Kind, Step

EXACTLY_ONE = 1 + 2.0**-20
"""A weight that becomes 64 with a shift of 1, which is exactly 1; 1.0 would become 127/128."""


@dataclass(frozen=True, slots=True)
class MadeLayer:
    """A layer, and by what its input or its result is decimated, which strides stand for."""

    layer: nn.Module
    before: int = 1
    after: int = 1


def make_layer(
    step: Step, norm: Any, activation: Kind | None, *, wide: bool, keywords: Mapping[str, Any]
) -> MadeLayer | Refusal:
    """Return the layer of an operator with the weights of its module.

    `norm` is the batch normalization behind it or None; it is kept, times 4, as layers of ai8x
    divide by 4. `keywords` are those of all layers (`weight_bits`, ...).
    """
    op, path = step.module, step.path
    refused = refusal_of(step)
    if refused is not None:
        return refused
    linear = isinstance(op, nn.Linear)
    kept = norm is not None and not linear and "weight_bits" not in keywords
    settings: dict[str, Any] = {
        "activation": activation and activation.activation,
        "bias": op.bias is not None or norm is not None,
        **({"wide": True} if wide else {}), **keywords,
    }  # fmt: skip
    try:
        layer, before, after = _constructed(op, norm if kept else None, settings)
    except AssertionError as exc:
        why = str(exc).partition(": ")[2] or str(exc)
        remedy = next((r for begin, r in _REMEDIES.items() if why.startswith(begin)), None)
        return Refusal(path, why) if remedy is None else Refusal(path, why, remedy)
    _fill(layer.op, op)
    if kept:
        _fill_norm(layer.bn, norm)
    elif norm is not None:
        _fold(layer.op, norm)
    return MadeLayer(layer, before, after)


_REMEDIES = {
    "padding with more": "Use padding=0 here, or at most 64 input channels.",
    "padding": "Use a padding of 0, 1 or 2; more layers reach further.",
    "(kernel_size-1)*dilation": "Use smaller kernels or dilation, or padding=0 and 3 values.",
    "kernel_size": "Use kernels of at most 9 values; pooling or more layers reach further.",
    "in_channels": "Use fewer channels in the layer before.",
    "out_channels": "Use fewer channels, or two layers that are concatenated.",
    "out_features": "Use fewer outputs.",
}
"""What to use instead of a value beyond a limit, by the beginning of what is said of it."""


def _constructed(op: Any, norm: Any, settings: dict[str, Any]) -> tuple[Any, int, int]:
    """Return an ai8x layer of the shape of an operator, and decimations before and behind it."""
    if isinstance(op, nn.Linear):
        return _linear(op, settings), 1, 1
    if norm is not None:
        settings |= {"batchnorm": "Affine", "eps": norm.eps, "momentum": norm.momentum or 0.1}
    size = 3 if _enlarges_simply(op) else op.kernel_size[0]
    shape = (op.in_channels, op.out_channels, size)
    settings |= {"padding": _padding(op)[0], "groups": op.groups}
    if isinstance(op, nn.ConvTranspose2d):
        settings["padding"] = 1 if _enlarges_simply(op) else settings["padding"]
        layer = ai8x.Conv2d(*shape, op="ConvTranspose2d", stride=2, **settings)
        return layer, 1, 1
    stride = op.stride[0]
    pointwise = op.kernel_size[0] == 1
    if isinstance(op, nn.Conv1d):
        dilation = 1 if pointwise else op.dilation[0]
        layer = ai8x.Conv1d(*shape, stride=1, dilation=dilation, **settings)
    else:
        layer = ai8x.Conv2d(*shape, stride=1, **settings)
    return (layer, stride, 1) if pointwise else (layer, 1, stride)


def _linear(op: Any, settings: Mapping[str, Any]) -> Any:
    """Return a fully connected layer.

    Flattened maps may have more values than a layer of ai8x takes channels: the chip's limits are
    1024 channels of 256 pixels, which the loader tests.
    """
    layer: Any = ai8x.Linear(min(op.in_features, _CHANNELS), op.out_features, **settings)
    if op.in_features > _CHANNELS:
        whole: Any = nn.Linear(op.in_features, op.out_features, layer.op.bias is not None)
        for name in ("stride", "padding", "dilation", "groups"):
            setattr(whole, name, None)
        layer.op = whole
    return layer


_CHANNELS = 1024


def _enlarges_simply(op: Any) -> bool:
    """Return whether a transposed convolution writes 2x2 pixels for each, without overlaps.

    That is what 3x3 kernels with padding 1 do whose first row and column are zero.
    """
    shape = {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0), "output_padding": (0, 0)}
    return isinstance(op, nn.ConvTranspose2d) and all(
        tuple(getattr(op, name)) == value for name, value in shape.items()
    )


def _padding(op: Any) -> tuple[int, ...]:
    """Return the padding of a convolution in pixels."""
    if op.padding == "valid":
        return (0,) * len(op.kernel_size)
    if op.padding == "same":
        return tuple(d * (k - 1) // 2 for k, d in zip(op.kernel_size, op.dilation, strict=True))
    return tuple(op.padding)


def refusal_of(step: Step) -> Refusal | None:
    """Refuse an operator that no ai8x layer stands for, with what to use instead."""
    op, path = step.module, step.path
    if isinstance(op, nn.Linear):
        if len(step.taken) != 1:
            why = f"it works on the last axis of {times(step.taken)}"
            return Refusal(path, why, "Flatten the data before it, or use a 1x1 convolution.")
        return None
    kernel = op.kernel_size
    if op.padding_mode != "zeros":
        why = f"padding_mode is {op.padding_mode!r}, the accelerator pads with zeros"
        return Refusal(path, why, "Use padding_mode='zeros'.")
    if isinstance(op, nn.ConvTranspose2d):
        return _transposed_refusal(path, op)
    if len(set(kernel)) > 1:
        return Refusal(path, f"its kernel is {times(kernel)}", _instead_of_oblong(max(kernel)))
    if isinstance(op, nn.Conv2d) and kernel[0] not in (1, 3):
        return Refusal(path, f"its kernel is {times(kernel)}", _instead_of_kernel(kernel[0]))
    if isinstance(op, nn.Conv2d) and set(op.dilation) != {1}:
        return Refusal(path, f"its dilation is {times(op.dilation)}", "Use dilation=1, and pool.")
    if op.padding == "same" and kernel[0] % 2 == 0:
        return Refusal(path, "'same' padding of an even kernel differs between the sides",
                       "Use an odd kernel.")  # fmt: skip
    for name, values in (("padding", _padding(op)), ("stride", op.stride)):
        if len(set(values)) > 1:
            return Refusal(path, f"its {name} is {times(values)}", f"Use one {name} for both axes.")
    if op.groups > 1:
        return _groups_refusal(path, op)
    return None


def _groups_refusal(path: str, op: Any) -> Refusal | None:
    chip = ai8x.dev
    assert chip is not None
    why = f"it has {op.groups} groups"
    if not chip.limits.has_depthwise:
        return Refusal(
            path, f"{why}, {chip.name} has none",
            "Use groups=1, or --device MAX78002 for depthwise convolutions.",
        )  # fmt: skip
    if not op.groups == op.in_channels == op.out_channels:
        return Refusal(path, why, "Use groups=1, or as many groups as input and output channels.")
    return None


def _transposed_refusal(path: str, op: Any) -> Refusal | None:
    if _enlarges_simply(op):
        return _groups_refusal(path, op) if op.groups > 1 else None
    wanted = {"kernel_size": 3, "stride": 2, "output_padding": 1, "dilation": 1}
    odd = [n for n, value in wanted.items() if set(getattr(op, n)) != {value}]
    if odd or len(set(op.padding)) > 1:
        return Refusal(
            path, f"its {odd[0] if odd else 'padding'} is {times(getattr(op, odd[0]))}",
            "Use nn.ConvTranspose2d(..., 3, stride=2, padding=1, output_padding=1), or "
            "kernel_size=2 with stride=2.",
        )  # fmt: skip
    return _groups_refusal(path, op) if op.groups > 1 else None


def _instead_of_oblong(size: int) -> str:
    """Return what to use instead of a kernel with unequal sides."""
    if size <= 3:
        return "Use a 3x3 kernel."
    count = -(-(size - 1) // 2)
    return f"Use a 3x3 kernel; {count} of them, or fewer with pooling in between, reach as far."


def _instead_of_kernel(size: int) -> str:
    """Return what reaches as far as a large kernel."""
    if size % 2 == 0:
        return f"Use a {'1x1' if size < 3 else '3x3'} kernel, with pooling for a stride."
    count = {5: "two", 7: "three", 9: "four", 11: "five"}.get(size // 1, str((size - 1) // 2))
    return f"Use {count} 3x3 convolutions, which reach as far."


@torch.no_grad()
def _fill(ours: Any, theirs: Any) -> None:
    """Carry weights and bias over; a bias that they lack is 0."""
    if _enlarges_simply(theirs):
        ours.weight.zero_()
        ours.weight[:, :, 1:, 1:] = theirs.weight
    else:
        ours.weight.copy_(theirs.weight)
    if ours.bias is not None:
        ours.bias.zero_() if theirs.bias is None else ours.bias.copy_(theirs.bias)


@torch.no_grad()
def _fill_norm(ours: Any, theirs: Any) -> None:
    """Carry batch normalization over, times 4."""
    ours.weight.fill_(4) if theirs.weight is None else ours.weight.copy_(4 * theirs.weight)
    ours.bias.zero_() if theirs.bias is None else ours.bias.copy_(4 * theirs.bias)
    if theirs.running_mean is not None:
        ours.running_mean.copy_(theirs.running_mean)
        ours.running_var.copy_(theirs.running_var)


@torch.no_grad()
def _fold(op: Any, norm: Any) -> None:
    """Move batch normalization into weights and bias."""
    factor = torch.rsqrt(norm.running_var + norm.eps)
    if norm.weight is not None:
        factor = factor * norm.weight
    transposed = isinstance(op, nn.ConvTranspose2d)
    shape = [1] * op.weight.ndim
    shape[1 if transposed else 0] = -1
    op.weight.mul_(factor.view(shape))
    shift = 0 if norm.bias is None else norm.bias
    op.bias.copy_((op.bias - norm.running_mean) * factor + shift)


@torch.no_grad()
def as_convolution(op: nn.ConvTranspose2d) -> nn.Module:
    """Return the convolution that a transposed one of stride 1 is: its kernels are turned around.

    Any other stays as it is.
    """
    plain = {"stride": (1, 1), "output_padding": (0, 0), "dilation": (1, 1)}
    sides = {k - 1 - int(p) for k, p in zip(op.kernel_size, op.padding, strict=True)}
    if any(tuple(getattr(op, n)) != v for n, v in plain.items()) or op.groups > 1 or len(sides) > 1:
        return op
    (padding,) = sides
    if padding < 0:
        return op
    size: Any = op.kernel_size
    made = nn.Conv2d(
        op.in_channels, op.out_channels, size, padding=padding, bias=op.bias is not None
    )
    made.weight.copy_(op.weight.transpose(0, 1).flip(2, 3))
    if made.bias is not None and op.bias is not None:
        made.bias.copy_(op.bias)
    return made


@torch.no_grad()
def ones(shape: tuple[int, ...]) -> nn.Module:
    """Return a convolution that changes nothing of data [C, ...]: 1x1 kernels that are exactly one,
    depth-wise where the chip has that.
    """
    chip, channels = ai8x.dev, shape[0]
    assert chip is not None
    images = len(shape) > 2
    groups = channels if images and chip.limits.has_depthwise else 1
    kind = nn.Conv2d if images else nn.Conv1d
    op = kind(channels, channels, 1, groups=groups, bias=False)
    op.weight.zero_()
    op.weight[range(channels), 0 if groups > 1 else range(channels)] = EXACTLY_ONE
    return op


@torch.no_grad()
def rectifier(channels: int, images: bool, keywords: Mapping[str, Any], activation: Kind) -> Any:
    """Return a layer that only applies an activation: 1x1 kernels that are exactly one."""
    kind = ai8x.Conv2d if images else ai8x.Conv1d
    name = activation.activation
    layer = kind(channels, channels, 1, bias=False, activation=name, **keywords)
    weight = torch.zeros_like(layer.op.weight)
    weight[range(channels), range(channels)] = EXACTLY_ONE
    layer.op.weight.copy_(weight)
    layer.op.weight.requires_grad_(False)
    return layer


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
    weight = torch.zeros_like(layer.op.weight)
    own = 0 if groups > 1 else range(channels)
    for row, column in itertools.product((1, 2), (1, 2)):
        weight[range(channels), own, row, column] = EXACTLY_ONE
    layer.op.weight.copy_(weight)
    layer.op.weight.requires_grad_(False)
    return layer


@torch.no_grad()
def bordered(
    taken: int, channels: tuple[int, int], border: int, images: bool, keywords: Mapping[str, Any]
) -> Any:
    """Return a layer that puts channels of zeros before and behind those of a map, and a border of
    zeros (0 or 1) around it.
    """
    kind: Any = ai8x.Conv2d if images else ai8x.Conv1d
    size = 2 * border + 1
    layer = kind(taken, sum(channels) + taken, size, padding=2 * border, bias=False, **keywords)
    weight = torch.zeros_like(layer.op.weight)
    middle = (border,) * (weight.ndim - 2)
    weight[(range(channels[0], channels[0] + taken), range(taken), *middle)] = EXACTLY_ONE
    layer.op.weight.copy_(weight)
    layer.op.weight.requires_grad_(False)
    return layer
