"""Limits of the chips for the parameters of layers.

Source: docs/layers.md, "Parameters and their limits".
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, assert_never

from ai8xtools.layers.chips import chosen_chip, require
from ai8xtools.layers.parts import OperatorKind, PoolingKind
from device.layer_limits import LayerLimits, trainable_names

Size = int | tuple[int, int]
Limit = tuple[str, Any, Container[Any]]  # name of a parameter, its value, what is allowed


@dataclass(frozen=True, slots=True)
class ConvolutionShape:
    """A convolution as far as its limits go; `kernel` None: there is none."""

    kind: OperatorKind
    in_channels: int
    kernel: int | None
    stride: int
    padding: int
    dilation: int
    groups: int
    batchnorm: str | None
    bias: bool


def operator_limits(o: ConvolutionShape, pooling: str | None) -> Iterator[Limit]:
    """Yield the limits of a convolution.

    Source: docs/layers.md, "Parameters and their limits".
    """
    limits = chosen_chip().limits
    yield "pooling", pooling, (None, *PoolingKind)
    if not limits.has_depthwise:
        names = " or ".join(trainable_names(lambda chip: chip.has_depthwise))
        yield f"groups (set the device to {names} for depthwise layers)", o.groups, (1,)
    yield "batchnorm", o.batchnorm, (None, "Affine", "NoAffine")
    if o.batchnorm:  # it has a bias of its own, which moves into the operator's
        hint = " (enable --use-bias for models where bias is optional)"
        require(o.bias, f"batchnorm={o.batchnorm}: `bias` must be set{hint}")
    if o.kernel is None:
        return
    match o.kind:
        case OperatorKind.CONV1D:
            yield from _series_limits(o, o.kernel, pooling, limits)
        case OperatorKind.CONVTRANSPOSE2D:
            yield "chip", limits.name, trainable_names(lambda chip: chip.has_transposed)
            yield "stride", o.stride, (2,)
            yield from _image_limits(o, o.kernel, limits)
        case OperatorKind.CONV2D:
            yield "stride", o.stride, (1,) if pooling else (1, 2, 3)
            yield from _image_limits(o, o.kernel, limits)
        case OperatorKind.LINEAR:  # has no kernel
            return
        case _:
            assert_never(o.kind)


def _series_limits(
    o: ConvolutionShape, kernel: int, pooling: str | None, limits: LayerLimits
) -> Iterator[Limit]:
    yield "kernel_size", kernel, limits.conv1d_kernels
    yield "stride", o.stride, (1,) if pooling else limits.conv1d_strides
    yield "padding", o.padding, limits.conv1d_padding
    most = limits.conv1d_padded_channels
    if most is not None and o.in_channels > most:
        yield f"padding with more than {most} channels", o.padding, (0,)
    if o.padding or kernel > 3:
        yield "(kernel_size-1)*dilation", (kernel - 1) * o.dilation, range(9)


def _image_limits(o: ConvolutionShape, kernel: int, limits: LayerLimits) -> Iterator[Limit]:
    yield "kernel_size", kernel, limits.conv2d_kernels
    yield "padding", o.padding, (0, 1, 2)
    yield "dilation", o.dilation, (1,)


def pool_limits(pooling: PoolingKind, size: Size, stride: Size, dilation: int) -> Iterator[Limit]:
    """Yield the limits of pooling.

    Source: docs/layers.md, "Parameters and their limits".
    """
    chip = chosen_chip()
    extents = (size,) if isinstance(size, int) else size
    match pooling:
        case PoolingKind.MAX:
            largest, dilations = chip.MAX_POOL, range(1, chip.MAX_POOL_DILATION + 1)
        case PoolingKind.AVERAGE:
            largest, dilations = chip.MAX_AVG_POOL, range(1, 2)
        case _:
            assert_never(pooling)
    step = chip.limits.pool_step
    sizes = range(step, largest + 1, step)
    for extent in extents:
        yield "pool_size", extent, sizes
    for distance in (stride,) if isinstance(stride, int) else stride:
        yield "pool_stride", distance, range(1, largest + 1)
    yield "pool_dilation", dilation, dilations


def check(limits: Iterable[Limit], where: str) -> None:
    """Raise AssertionError with parameter, value and limit for the first value not allowed."""
    for name, value, allowed in limits:
        if value in allowed:
            continue
        choices = ", ".join(map(str, allowed))  # type: ignore[call-overload]
        if isinstance(allowed, range) and allowed.step == 1 and len(allowed) > 1:
            choices = f"{allowed[0]} to {allowed[-1]}"
        raise AssertionError(f"{where}{name}={value}; {chosen_chip().name} allows {choices}")


def single(size: Size, name: str) -> int:
    """Return the number in an int or a pair of equal ints; AssertionError if they differ."""
    height, width = (size, size) if isinstance(size, int) else size
    require(height == width, f"{name}={size}: both values must be equal")
    return height
