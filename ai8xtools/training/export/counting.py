"""Counts of zeros in weights and of multiplications."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import torch
from torch import Tensor, nn

import ai8x
from ai8x import OperatorKind
from ai8xtools.diagnostics.errors import InputError, reason_of

_OPERATORS = (nn.Conv1d, nn.Conv2d, nn.ConvTranspose2d, nn.Linear)


@dataclass(frozen=True, slots=True)
class Sparsity:
    """How many values of a parameter are not 0."""

    name: str
    shape: torch.Size
    nonzero: int

    @property
    def volume(self) -> int:
        """How many values there are."""
        return self.shape.numel()

    @property
    def percent(self) -> float:
        """The share of zeros."""
        return 100 * (1 - self.nonzero / max(1, self.volume))


@dataclass(frozen=True, slots=True)
class Effort:
    """The computation of a layer for one sample: shapes without the batch, multiplications.

    `input_shape` is what the operator receives, after pooling.
    """

    name: str
    kind: str
    attributes: str
    input_shape: torch.Size
    output_shape: torch.Size
    weights: int
    macs: int


def count_zeros(model: nn.Module) -> list[Sparsity]:
    """Return the sparsity of each parameter of two or more dimensions."""
    return [
        Sparsity(name, parameter.shape, int(parameter.count_nonzero()))
        for name, parameter in model.named_parameters()
        if parameter.ndim > 1
    ]


@torch.no_grad()
def count_effort(model: nn.Module, example: Tensor) -> list[Effort]:
    """Return the effort of each layer with an operator, in the order of a pass over `example`.

    A layer that is used twice counts twice. Raises InputError when the network cannot take the
    sample.
    """
    efforts: list[Effort] = []
    names = {module: name for name, module in model.named_modules()}

    def watch(layer: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ours = isinstance(layer, ai8x.QuantizationAwareModule)
        op = layer.op if ours else layer
        x = inputs[0]
        if ours and layer.pool is not None:
            x = layer.pool(x)
        efforts.append(_effort(names[layer], op, x.shape[1:], output.shape[1:]))

    hooks = [
        module.register_forward_hook(watch)
        for module in names
        if isinstance(module, _OPERATORS)
        or (isinstance(module, ai8x.QuantizationAwareModule) and module.op is not None)
    ]
    try:
        run(model, example)
    finally:
        for hook in hooks:
            hook.remove()
    return efforts


def run(model: nn.Module, example: Tensor) -> Any:
    """Return the output of a network for a sample; InputError when it cannot take the sample."""
    try:
        with torch.no_grad():
            return model(example)
    except (RuntimeError, ValueError, TypeError, IndexError, AssertionError) as exc:
        reason = reason_of(exc)
        raise InputError(
            "E630", f"the network cannot take inputs of {dimensions(example.shape[1:])}: {reason}",
            "--model", "Choose another network or data set.",
        ) from exc  # fmt: skip


def _effort(name: str, op: Any, input_shape: torch.Size, output_shape: torch.Size) -> Effort:
    """Return the effort of an operator: each weight is used once per position."""
    by_position = math.prod(op.weight.shape[1:])
    kind = ai8x.kind_of(op)
    match kind:
        case OperatorKind.CONVTRANSPOSE2D:
            positions = input_shape
        case OperatorKind.CONV1D | OperatorKind.CONV2D | OperatorKind.LINEAR:
            positions = output_shape
        case _:
            assert_never(kind)
    return Effort(
        name,
        type(op).__name__,
        _attributes(op),
        input_shape,
        output_shape,
        op.weight.numel(),
        by_position * positions.numel(),
    )


def _attributes(op: Any) -> str:
    """Return kernel, stride, padding and so on where they differ from the defaults."""
    if isinstance(op, nn.Linear):
        return ""
    parts = [f"k={dimensions(op.kernel_size)}"]
    usual = {"stride": 1, "padding": 0, "dilation": 1}
    for name, value in usual.items():
        sizes = getattr(op, name)
        if any(size != value for size in sizes):
            parts.append(f"{name}={dimensions(sizes)}")
    return ", ".join(parts if op.groups == 1 else [*parts, f"groups={op.groups}"])


def dimensions(shape: Sequence[int]) -> str:
    """Return a shape as text such as 64x3x3."""
    return "x".join(map(str, shape))
