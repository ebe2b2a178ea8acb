"""The operators in float64, with numpy alone: constants of graphs, and what passes must keep."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, assert_never

import numpy as np

from ai8xtools.frontends.graph.operators import (
    Array,
    BatchNormalization,
    Clip,
    Concat,
    Constant,
    Conv,
    ConvTranspose,
    Dropout,
    Each,
    Foreign,
    Function,
    Gemm,
    Input,
    LpNormalization,
    MatMul,
    MeanVarianceNormalization,
    Operator,
    Pad,
    Pool,
    Reduce,
    Reduction,
    Reshape,
    Resize,
    Slice,
    Softmax,
    Transpose,
)

_LEAST_LENGTH = 1e-12


def value_of(operator: Operator, operands: Sequence[Array]) -> Array | None:
    """Return the result of an operator, None of one that nothing here computes.

    Whole numbers stay whole; fractions are computed as they come.
    """
    x = operands[0] if operands else np.zeros(0)
    match operator:
        case Input() | Foreign():
            return None
        case Constant():
            return operator.value
        case Each():
            return np.asarray(_FUNCTIONS[operator.function](*operands))
        case Clip():
            return np.clip(x, operator.low, operator.high)
        case Conv():
            return _with_bias(_convolved(operator, x, operands[1]), operands[2:])
        case ConvTranspose():
            return _with_bias(_transposed(operator, x, operands[1]), operands[2:])
        case Gemm():
            return np.asarray(x @ operands[1].T + sum(operands[2:]))
        case MatMul():
            return np.asarray(x @ operands[1])
        case BatchNormalization():
            axes = (-1, *(1,) * (x.ndim - 2))
            factor, offset, mean, variance = (one.reshape(axes) for one in operands[1:])
            return (x - mean) / np.sqrt(variance + operator.epsilon) * factor + offset
        case MeanVarianceNormalization():
            less = x - x.mean(operator.axes, keepdims=True)
            variance = (less * less).mean(operator.axes, keepdims=True)
            return np.asarray(less / np.sqrt(variance + operator.epsilon))
        case Pool():
            return _pooled(operator, x)
        case Reduce():
            return np.asarray(
                _REDUCTIONS[operator.reduction](x, axis=operator.axes, keepdims=operator.keep)
            )
        case Reshape():
            return x.reshape(operator.shape)
        case Transpose():
            return x.transpose(operator.order)
        case Slice():
            moves = zip(operator.start, operator.step, operator.count, strict=True)
            return x[np.ix_(*(first + step * np.arange(count) for first, step, count in moves))]
        case Pad():
            values: Any = {"constant_values": operator.value} if operator.mode == "constant" else {}
            mode: Any = operator.mode
            return np.pad(x, operator.pads, mode, **values)
        case Concat():
            return np.concatenate(operands, operator.axis)
        case Resize():
            return x[np.ix_(*operator.places)]
        case Softmax():
            shifted = x - x.max(operator.axis, keepdims=True)
            total = np.exp(shifted).sum(operator.axis, keepdims=True)
            return shifted - np.log(total) if operator.log else np.exp(shifted) / total
        case LpNormalization():
            length = np.sqrt((x * x).sum(operator.axis, keepdims=True))
            return np.asarray(x / np.maximum(length, _LEAST_LENGTH))
        case Dropout():
            return x
        case _:
            assert_never(operator)


def _quotient(a: Array, b: Array) -> Array:
    whole = a.dtype.kind in "iu" and b.dtype.kind in "iu"
    return np.asarray(np.sign(a) * np.sign(b) * (abs(a) // abs(b)) if whole else a / b)


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _slanted(x: Array, slope: Array) -> Array:
    return np.where(x < 0, x * slope, x)


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))


_FUNCTIONS: dict[Function, Callable[..., Array]] = {
    Function.ABS: np.abs, Function.ADD: np.add, Function.CEIL: np.ceil, Function.DIV: _quotient,
    Function.EQUAL: np.equal, Function.ERF: _erf, Function.EXP: np.exp, Function.FLOOR: np.floor,
    Function.LOG: np.log, Function.MAX: np.maximum, Function.MIN: np.minimum,
    Function.MOD: np.mod, Function.MUL: np.multiply, Function.NEG: np.negative,
    Function.POW: np.power, Function.PRELU: _slanted, Function.ROUND: np.round,
    Function.SIGMOID: _sigmoid,
    Function.SIGN: np.sign, Function.SQRT: np.sqrt, Function.SUB: np.subtract,
    Function.TANH: np.tanh, Function.TRUNC: np.trunc,
}  # fmt: skip

_REDUCTIONS: dict[Reduction, Callable[..., Array]] = {
    Reduction.MEAN: np.mean, Reduction.MAX: np.max, Reduction.MIN: np.min, Reduction.SUM: np.sum,
    Reduction.L2: lambda x, axis, keepdims: np.sqrt((x * x).sum(axis=axis, keepdims=keepdims)),
}  # fmt: skip


def _windows(
    x: Array, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Array:
    """Return views [N, C, *results, *sizes] of windows of data [N, C, ...]."""
    reach = [d * (k - 1) + 1 for k, d in zip(sizes, dilations, strict=True)]
    axes = tuple(range(2, x.ndim))
    views = np.lib.stride_tricks.sliding_window_view(x, reach, axes)
    steps = tuple(slice(None, None, n) for n in (*strides, *dilations))
    return views[(slice(None), slice(None), *steps)]


def _with_bias(x: Array, bias: Sequence[Array]) -> Array:
    return x + bias[0].reshape(-1, *(1,) * (x.ndim - 2)) if bias else x


def _convolved(operator: Conv, x: Array, weights: Array) -> Array:
    x = np.pad(x, ((0, 0), (0, 0), *operator.pads))
    windows = _windows(x, weights.shape[2:], operator.strides, operator.dilations)
    axes = weights.ndim - 2
    own, filters = weights.shape[1], len(weights) // operator.groups
    parts = []
    for group in range(operator.groups):
        data = windows[:, group * own : (group + 1) * own]
        kernels = weights[group * filters : (group + 1) * filters]
        sums = np.tensordot(data, kernels, ([1, *range(2 + axes, 2 + 2 * axes)],
                                            [1, *range(2, 2 + axes)]))  # fmt: skip
        parts.append(np.moveaxis(sums, -1, 1))
    return np.concatenate(parts, 1)


def _transposed(operator: ConvTranspose, x: Array, weights: Array) -> Array:
    """Return what a convolution makes of pixels that are apart, by kernels turned around."""
    axes = range(weights.ndim - 2)
    wide = np.zeros((*x.shape[:2], *((n - 1) * s + 1 for n, s in zip(x.shape[2:], operator.strides,
                                                                     strict=True))))  # fmt: skip
    apart: Any = tuple(slice(None, None, s) for s in operator.strides)
    wide[..., *apart] = x
    reach = [d * (k - 1) for k, d in zip(weights.shape[2:], operator.dilations, strict=True)]
    pads = [(reach[i] - operator.pads[i][0], reach[i] - operator.pads[i][1]
             + operator.output_padding[i]) for i in axes]  # fmt: skip
    cut: Any = tuple(slice(-min(b, 0), n + min(e, 0)) for n, (b, e) in
                zip(wide.shape[2:], pads, strict=True))  # fmt: skip
    more = tuple((max(b, 0), max(e, 0)) for b, e in pads)
    plain = Conv((1,) * len(axes), more, operator.dilations, operator.groups)
    return _convolved(plain, wide[..., *cut], turned(weights, operator.groups))


def dilated(weights: Array, dilations: Sequence[int]) -> Array:
    """Return kernels [O, I, ...] with the zeros between their values."""
    if max(dilations) == 1:
        return weights
    sizes = ((k - 1) * d + 1 for k, d in zip(weights.shape[2:], dilations, strict=True))
    wide = np.zeros((*weights.shape[:2], *sizes))
    wide[:, :, *(slice(None, None, d) for d in dilations)] = weights
    return wide


def turned(weights: Array, groups: int) -> Array:
    """Return the kernels [O, I/groups, ...] of the convolution that a transposed one is."""
    inputs, filters, *kernel = weights.shape
    parts = weights.reshape(groups, inputs // groups, filters, *kernel).swapaxes(1, 2)
    joined = parts.reshape(groups * filters, -1, *kernel)
    return np.flip(joined, tuple(range(2, weights.ndim)))


def _pooled(operator: Pool, x: Array) -> Array:
    """Return maxima or averages; what lies outside of data and pads counts for nothing."""
    ends = []
    for n, w, s, p, d in zip(x.shape[2:], operator.window, operator.strides, operator.pads,
                             operator.dilations, strict=True):  # fmt: skip
        reach = d * (w - 1) + 1
        way = n + sum(p) - reach
        ends.append(s - way % s if operator.ceil and way % s else 0)
    around = ((0, 0), (0, 0), *operator.pads)
    beyond = ((0, 0), (0, 0), *((0, end) for end in ends))

    def windows(data: Array, pad: float, end: float) -> Array:
        data = np.pad(np.pad(data, around, constant_values=pad), beyond, constant_values=end)
        views = _windows(data, operator.window, operator.strides, operator.dilations)
        starts = (n + p[0] for n, p in zip(x.shape[2:], operator.pads, strict=True))
        counts = (-(-n // s) for n, s in zip(starts, operator.strides, strict=True))
        return views[(slice(None), slice(None), *map(slice, counts))] if operator.ceil else views

    axes = tuple(range(x.ndim, 2 * x.ndim - 2))
    if not operator.average:
        return np.asarray(windows(x, -np.inf, -np.inf).max(axes))
    counted = windows(np.ones_like(x, np.float64), float(operator.counted), 0).sum(axes)
    return np.asarray(windows(x, 0, 0).sum(axes) / counted)
