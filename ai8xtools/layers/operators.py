"""Layers with an operator: convolutions and fully connected ones.

Source: docs/layers.md, "Parameters and their limits".
"""

from __future__ import annotations

from typing import Any, ClassVar, assert_never

from torch import Tensor, nn

from ai8xtools.layers.chips import chosen_chip, require
from ai8xtools.layers.choices import activation_clamp
from ai8xtools.layers.composition import QuantizationAwareModule
from ai8xtools.layers.elementary import Clamp, Empty, Quantize, get_activation
from ai8xtools.layers.limits import (
    ConvolutionShape,
    Limit,
    Size,
    check,
    operator_limits,
    pool_limits,
    single,
)
from ai8xtools.layers.parts import OperatorKind, PoolingKind
from device.layer_limits import trainable_names


class Convolution(QuantizationAwareModule):
    """The common base of convolutions; `kernel_size` None makes a layer that only pools.

    `pooling` ("Max", "Avg") comes first, `pool_stride` None is `pool_size`; `batchnorm` is "Affine"
    or "NoAffine" and divides by 4. Other keywords are those of `QuantizationAwareModule`. Exceeding
    a limit of the chip raises AssertionError.
    Source: docs/layers.md, "Parameters and their limits".
    """

    operators: ClassVar[dict[str, Any]] = {}
    max_pool: ClassVar[Any] = None
    average_pool: ClassVar[Any] = None
    batch_normalization: ClassVar[Any] = None

    def __init__(
        self, op: str, in_channels: int, out_channels: int, kernel_size: Size | None, *,
        pooling: str | None, pool_size: Size, pool_stride: Size | None, pool_dilation: int,
        stride: int, padding: int, dilation: int, bias: bool, batchnorm: str | None, groups: int,
        eps: float, momentum: float, **kwargs: Any,
    ) -> None:  # fmt: skip
        if op not in self.operators:
            raise ValueError(f"op={op!r}: use {' or '.join(self.operators)}")
        kernel = None if kernel_size is None else single(kernel_size, "kernel_size")
        shape = ConvolutionShape(
            OperatorKind(op),
            in_channels,
            kernel,
            stride,
            padding,
            dilation,
            groups,
            batchnorm,
            bool(bias),
        )
        check(operator_limits(shape, pooling), f"{type(self).__name__}: ")
        layer = bn = pool = None
        if pooling is not None:
            pool = self._pool(PoolingKind(pooling), pool_size, pool_stride, pool_dilation)
        if kernel is not None:
            extra = _extra_arguments(shape.kind)
            layer = self.operators[op](
                in_channels, out_channels, kernel, stride, padding,
                dilation=dilation, groups=groups, bias=bool(bias), **extra,
            )  # fmt: skip
            if batchnorm:
                affine = batchnorm == "Affine"
                bn = self.batch_normalization(out_channels, eps, momentum, affine)
        super().__init__(pooling, pool=pool, op=layer, bn=bn, **kwargs)

    def _pool(
        self, pooling: PoolingKind, size: Size, stride: Size | None, dilation: int
    ) -> nn.Module:
        """Return the pooling module; ValueError for an invalid size."""
        if not isinstance(size, int) and len(size) != 2:
            raise ValueError(f"pool_size={size}: give one integer or two")
        step = size if stride is None else single(stride, "pool_stride")
        check(pool_limits(pooling, size, step, dilation), f"{pooling} pooling: ")
        module: nn.Module
        match pooling:
            case PoolingKind.MAX:
                module = self.max_pool(size, step, padding=0, dilation=dilation)
            case PoolingKind.AVERAGE:
                module = self.average_pool(size, step, padding=0)
            case _:
                assert_never(pooling)
        return module


def _extra_arguments(kind: OperatorKind) -> dict[str, int]:
    """Return the constructor arguments that only this kind of operator has."""
    match kind:
        case OperatorKind.CONVTRANSPOSE2D:
            return {"output_padding": 1}
        case OperatorKind.CONV1D | OperatorKind.CONV2D | OperatorKind.LINEAR:
            return {}
        case _:
            assert_never(kind)


class Conv1d(Convolution):
    """One-dimensional convolution: input [N, in_channels, L], output [N, out_channels, L']."""

    operators: ClassVar = {"Conv1d": nn.Conv1d}
    max_pool: ClassVar = nn.MaxPool1d
    average_pool: ClassVar = nn.AvgPool1d
    batch_normalization: ClassVar = nn.BatchNorm1d

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Size | None,
        pooling: str | None = None, pool_size: Size = 2, pool_stride: Size | None = 2,
        pool_dilation: int = 1, stride: int = 1, padding: int = 0, dilation: int = 1,
        bias: bool = True, activation: str | None = None, wide: bool = False,
        batchnorm: str | None = None, weight_bits: int | None = None,
        bias_bits: int | None = None, quantize_activation: bool = False, groups: int = 1,
        eps: float = 1e-05, momentum: float = 0.05, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            "Conv1d", in_channels, out_channels, kernel_size, pooling=pooling,
            pool_size=_length(pool_size, "pool_size"),
            pool_stride=None if pool_stride is None else _length(pool_stride, "pool_stride"),
            pool_dilation=pool_dilation, stride=stride, padding=padding, dilation=dilation,
            bias=bias, activation=activation, wide=wide, batchnorm=batchnorm,
            weight_bits=weight_bits, bias_bits=bias_bits,
            quantize_activation=quantize_activation, groups=groups, eps=eps, momentum=momentum,
            **kwargs,
        )  # fmt: skip


class Conv2d(Convolution):
    """Two-dimensional convolution, or with op="ConvTranspose2d" the transposed one of stride 2.

    Input [N, in_channels, H, W], output [N, out_channels, H', W'].
    """

    operators: ClassVar = {"Conv2d": nn.Conv2d, "ConvTranspose2d": nn.ConvTranspose2d}
    max_pool: ClassVar = nn.MaxPool2d
    average_pool: ClassVar = nn.AvgPool2d
    batch_normalization: ClassVar = nn.BatchNorm2d

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Size | None, op: str = "Conv2d",
        pooling: str | None = None, pool_size: Size = 2, pool_stride: Size | None = 2,
        pool_dilation: int = 1, stride: int = 1, padding: int = 0, dilation: int = 1,
        bias: bool = True, activation: str | None = None, wide: bool = False,
        batchnorm: str | None = None, weight_bits: int | None = None,
        bias_bits: int | None = None, quantize_activation: bool = False, groups: int = 1,
        eps: float = 1e-05, momentum: float = 0.05, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            op, in_channels, out_channels, kernel_size, pooling=pooling, pool_size=pool_size,
            pool_stride=pool_stride, pool_dilation=pool_dilation, stride=stride, padding=padding,
            dilation=dilation, bias=bias, activation=activation, wide=wide, batchnorm=batchnorm,
            weight_bits=weight_bits, bias_bits=bias_bits,
            quantize_activation=quantize_activation, groups=groups, eps=eps, momentum=momentum,
            **kwargs,
        )  # fmt: skip


def _length(size: Size, name: str) -> int:
    """Return a size along a series; AssertionError for a pair."""
    require(isinstance(size, int), f"{name}={size}: series have one size, give one integer")
    assert isinstance(size, int)
    return size


class Linear(QuantizationAwareModule):
    """Fully connected layer: input [N, in_features], output [N, out_features].

    Without bias unless `bias` is True; at most 1024 features each, otherwise AssertionError.
    """

    def __init__(
        self, in_features: int, out_features: int, pooling: str | None = None,
        bias: bool | None = None, activation: str | None = None, wide: bool = False,
        batchnorm: str | None = None, weight_bits: int | None = None,
        bias_bits: int | None = None, quantize_activation: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        chip = chosen_chip()
        require(chip.limits.has_linear, f"Linear: {chip.name} has no fully connected layers")
        features = range(1, chip.MAX_CHANNELS + 1)
        limits: list[Limit] = [
            ("pooling", pooling, (None,)),
            ("batchnorm", batchnorm, (None,)),
            ("in_features", in_features, features),
            ("out_features", out_features, features),
        ]
        check(limits, "Linear: ")
        op: Any = nn.Linear(in_features, out_features, bias is True)
        for name in ("stride", "padding", "dilation", "groups"):  # as other operators have
            setattr(op, name, None)
        super().__init__(
            None, activation, wide, weight_bits, bias_bits, quantize_activation, op=op, **kwargs
        )


class FusedSoftwareLinearReLU(nn.Module):
    """Fully connected layer computed by the processor of AI84; `relu` False leaves results signed.

    It is not quantized; in simulation results are divided by 128, rounded and kept in 16 bits.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool | None = None, relu: bool = True
    ) -> None:
        super().__init__()
        chip = chosen_chip()
        if chip.limits.has_linear:
            names = " or ".join(trainable_names(lambda other: not other.has_linear))
            print(f"WARNING: SoftwareLinear is meant for {names}; {chip.name} has Linear")
        self.op: Any = nn.Linear(in_features, out_features, bool(bias))
        self.activate = get_activation("ReLU" if relu else None)
        limit = 2.0 ** (chip.FC_ACTIVATION_BITS - 1)
        self.quantize = Quantize(chip.DATA_BITS) if chip.simulate else Empty()
        self.clamp = Clamp(-limit, limit - 1) if chip.simulate else activation_clamp(chip)

    def forward(self, x: Tensor) -> Tensor:
        """Return [N, out_features] for [N, in_features]."""
        result: Tensor = self.clamp(self.quantize(self.activate(self.op(x))))
        return result


class SoftwareLinear(FusedSoftwareLinearReLU):
    """Fully connected layer computed by the processor of AI84, without activation."""

    def __init__(self, in_features: int, out_features: int, **kwargs: Any) -> None:
        super().__init__(in_features, out_features, relu=False, **kwargs)
