"""Layers with an operator: convolutions and fully connected ones (spec/training.md 1.6)."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import nn

from layers.chips import chosen_chip, require
from layers.composition import QuantizationAwareModule
from layers.limits import Limit, Operator, Size, check, operator_limits, pool_limits, single


class Conv1d(QuantizationAwareModule):
    """One-dimensional convolution: input [N, in_channels, L], output [N, out_channels, L'].

    `pooling` ("Max", "Avg") comes first; `batchnorm` is "Affine" or "NoAffine" and divides by 4;
    `kernel_size` None makes a layer that only pools; `pool_stride` None is `pool_size`. Further
    keywords are those of `QuantizationAwareModule`. Exceeding a limit of the chip raises
    AssertionError (spec/training.md 1.6).
    """

    operators: ClassVar = {"Conv1d": nn.Conv1d}
    pools: ClassVar = {"Max": nn.MaxPool1d, "Avg": nn.AvgPool1d}
    batch_normalization: ClassVar = nn.BatchNorm1d

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Size | None,
        pooling: str | None = None, pool_size: Size = 2, pool_stride: Size | None = 2,
        pool_dilation: int = 1, stride: int = 1, padding: int = 0, dilation: int = 1,
        bias: bool = True, *, op: str = "Conv1d", batchnorm: str | None = None, groups: int = 1,
        eps: float = 1e-05, momentum: float = 0.05, **kwargs: Any,
    ) -> None:  # fmt: skip
        if op not in self.operators:
            raise ValueError(f"op={op!r}: use {' or '.join(self.operators)}")
        if not isinstance(pool_size, int) and len(pool_size) != 2:
            raise ValueError(f"pool_size={pool_size}: give one integer or two")
        step = pool_size if pool_stride is None else single(pool_stride, "pool_stride")
        kernel = None if kernel_size is None else single(kernel_size, "kernel_size")
        operator = Operator(
            op, in_channels, kernel, stride, padding, dilation, groups, batchnorm, bool(bias)
        )
        check(operator_limits(operator, pooling), f"{type(self).__name__}: ")
        layer = bn = pool = None
        if pooling is not None:
            check(pool_limits(pooling, pool_size, step, pool_dilation), f"{pooling} pooling: ")
            extra = {"dilation": pool_dilation} if pooling == "Max" else {}
            pool = self.pools[pooling](pool_size, step, padding=0, **extra)
        if kernel is not None:
            extra = {"output_padding": 1} if op == "ConvTranspose2d" else {}
            layer = self.operators[op](
                in_channels, out_channels, kernel, stride, padding,
                dilation=dilation, groups=groups, bias=bool(bias), **extra,
            )  # fmt: skip
            if batchnorm:
                affine = batchnorm == "Affine"
                bn = self.batch_normalization(out_channels, eps, momentum, affine)
        super().__init__(pooling, pool=pool, op=layer, bn=bn, **kwargs)


class Conv2d(Conv1d):
    """Two-dimensional convolution, or with op="ConvTranspose2d" the transposed one of stride 2.

    Input [N, in_channels, H, W], output [N, out_channels, H', W']. Parameters as in `Conv1d`, with
    `op` in the fourth place.
    """

    operators: ClassVar = {"Conv2d": nn.Conv2d, "ConvTranspose2d": nn.ConvTranspose2d}
    pools: ClassVar = {"Max": nn.MaxPool2d, "Avg": nn.AvgPool2d}
    batch_normalization: ClassVar = nn.BatchNorm2d

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Size | None, op: str = "Conv2d",
        *args: Any, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, *args, op=op, **kwargs)


class Linear(QuantizationAwareModule):
    """Fully connected layer: input [N, in_features], output [N, out_features].

    Without bias unless `bias` is True; at most 1024 features each, otherwise AssertionError.
    """

    def __init__(
        self, in_features: int, out_features: int, pooling: str | None = None,
        bias: bool | None = None, *, batchnorm: str | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        require(chosen_chip().device != 84, "Linear: AI84 has no fully connected layers")
        features = range(1, chosen_chip().MAX_CHANNELS + 1)
        limits: list[Limit] = [
            ("pooling", pooling, (None,)),
            ("batchnorm", batchnorm, (None,)),
            ("in_features", in_features, features),
            ("out_features", out_features, features),
        ]
        check(limits, "Linear: ")
        super().__init__(op=nn.Linear(in_features, out_features, bias is True), **kwargs)
