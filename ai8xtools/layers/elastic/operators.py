"""Layers of which a part computes: the first channels, the middle of the kernel.

A part computes in floating point; the whole layer is an ordinary layer in every arithmetic.
Source: docs/architecture-search.md, "The search space".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ai8xtools.layers.composition import QuantizationAwareModule
from ai8xtools.layers.operators import Conv1d, Conv2d, Linear


class _ElasticBatchNorm:
    """Batch normalization of the first channels.

    In training, statistics are kept only of all channels, or of any with `calibrating`: then they
    are the mean over all batches since `forget`.
    """

    calibrating = False

    def forget(self: Any) -> None:
        """Begin new statistics."""
        self.reset_running_stats()

    def forward(self: Any, x: Tensor) -> Tensor:
        """Return [N, C, ...] normalized, C at most `num_features`."""
        count = x.shape[1]
        mean, variance = self.running_mean[:count], self.running_var[:count]
        weight, bias = self.weight[:count], self.bias[:count]
        if not self.training:
            return functional.batch_norm(x, mean, variance, weight, bias, False, 0.0, self.eps)
        kept = self.calibrating or count == self.num_features
        if kept:
            self.num_batches_tracked.add_(1)
        factor = 1.0 / float(self.num_batches_tracked) if self.calibrating else self.momentum
        if not kept:
            mean = variance = None
        return functional.batch_norm(x, mean, variance, weight, bias, True, factor, self.eps)


class ElasticBatchNorm1d(_ElasticBatchNorm, nn.BatchNorm1d):
    """Batch normalization of the first channels of series."""


class ElasticBatchNorm2d(_ElasticBatchNorm, nn.BatchNorm2d):
    """Batch normalization of the first channels of images."""


class _ElasticConvolution:
    """A convolution of which the first channels and the middle of the kernel may compute.

    `width` are the output channels in use, `kernel` the rows and columns of the kernel; the input
    says how many input channels are in use.
    """

    width: int
    kernel: int
    functions = {1: functional.conv1d, 2: functional.conv2d}  # noqa: RUF012

    def choose(self: Any, width: int, kernel: int) -> None:
        """Let a part of the layer compute."""
        self.width, self.kernel = width, kernel

    def chosen_parameters(self: Any, in_channels: int) -> tuple[Tensor, Tensor | None]:
        """Return the weights [width, in_channels, ...] and biases [width] in use."""
        op, width = self.op, self.width
        margin = (op.kernel_size[0] - self.kernel) // 2
        weight = op.weight[:width, :in_channels]
        for axis in range(2, weight.ndim):
            weight = weight.narrow(axis, margin, self.kernel)
        return weight, None if op.bias is None else op.bias[:width]

    def _operate(self: Any, x: Tensor, down: Any, up: Any) -> Tensor:
        op = self.op
        whole = (self.width, x.shape[1], self.kernel)
        if whole == (op.out_channels, op.in_channels, op.kernel_size[0]):
            return super()._operate(x, down, up)  # type: ignore[misc]
        _require_floating_point(self)
        weight, bias = self.chosen_parameters(x.shape[1])
        factor = down * up
        if factor != 1.0:
            weight, bias = weight * factor, None if bias is None else bias * factor
        function = self.functions[weight.ndim - 2]
        return function(x, weight, bias, 1, (self.kernel - 1) // 2)


class ElasticConv1d(_ElasticConvolution, Conv1d):
    """`Conv1d` of stride 1 that keeps the length, of which a part may compute."""

    batch_normalization = ElasticBatchNorm1d


class ElasticConv2d(_ElasticConvolution, Conv2d):
    """`Conv2d` of stride 1 that keeps rows and columns, of which a part may compute."""

    batch_normalization = ElasticBatchNorm2d


class ElasticLinear(Linear):
    """`Linear` behind `channels` channels, of which the first may be there."""

    def __init__(self, channels: int, positions: int, out_features: int, **kwargs: Any) -> None:
        super().__init__(channels * positions, out_features, **kwargs)
        self.channels = channels

    def chosen_weight(self, features: int) -> Tensor:
        """Return the weights [out_features, features] of the first channels."""
        weight: Tensor = self.op.weight.unflatten(1, (self.channels, -1))
        return weight[:, : features // weight.shape[2]].flatten(1)

    def _operate(self, x: Tensor, down: Any, up: Any) -> Tensor:
        if x.shape[1] == self.op.in_features:
            return super()._operate(x, down, up)
        _require_floating_point(self)
        bias = self.op.bias
        factor = down * up
        weight = self.chosen_weight(x.shape[1]) * factor
        return functional.linear(x, weight, None if bias is None else bias * factor)


def _require_floating_point(layer: QuantizationAwareModule) -> None:
    """Raise RuntimeError for a part of a layer in the arithmetic of the chip."""
    if bool(layer.weight_bits.item()):
        raise RuntimeError("a part of an elastic layer computes in floating point only")


@torch.no_grad()
def reorder(layer: Any, outputs: Tensor | None, inputs: Tensor | None) -> None:
    """Put the output channels, and the input channels, of a convolution in another order."""
    op, bn = layer.op, layer.bn
    if outputs is not None:
        op.weight.copy_(op.weight[outputs].clone())
        of_channels = [op.bias]
        if bn is not None:
            of_channels += [bn.weight, bn.bias, bn.running_mean, bn.running_var]
        for values in of_channels:
            if values is not None:
                values.copy_(values[outputs].clone())
    if inputs is not None:
        op.weight.copy_(op.weight[:, inputs].clone())
