"""Layers with weights, pooling and reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ai8xtools.frontends.graph.nodes import Node, constant
from ai8xtools.frontends.graph.operators import (
    BatchNormalization,
    Conv,
    ConvTranspose,
    Each,
    Function,
    Gemm,
    MatMul,
    Pads,
    Pool,
    Reduce,
    Reduction,
    Reshape,
    Shape,
)
from ai8xtools.frontends.onnx.attributes import refused_attributes
from ai8xtools.frontends.onnx.calls import Call, UnknownError, handles


@handles("Conv")
def conv(call: Call) -> Node:
    """Return a convolution."""
    weights = _weights(call)
    kernel = weights.shape[2:]
    _check(call, len(kernel), kernel)
    strides, dilations = _each(call, "strides", kernel), _each(call, "dilations", kernel)
    pads = _pads(call, call.data.shape[2:], kernel, strides, dilations)
    operator = Conv(strides, pads, dilations, call.get("group", 1))
    return call.make(operator, call.data, weights, *_bias(call))


@handles("ConvTranspose")
def _conv_transpose(call: Call) -> Node:
    weights = _weights(call)
    kernel, sizes = weights.shape[2:], call.data.shape[2:]
    _check(call, len(kernel), kernel)
    strides, dilations = _each(call, "strides", kernel), _each(call, "dilations", kernel)
    extra = tuple(call.get("output_padding") or (0,) * len(kernel))
    mode, shape = call.get("auto_pad", "NOTSET"), call.get("output_shape")
    pads = _explicit(call, kernel)
    if mode.startswith("SAME") and not shape:
        shape = [n * s for n, s in zip(sizes, strides, strict=True)]
    if shape:
        pairs = []
        for n, k, s, d, e, size in zip(sizes, kernel, strides, dilations, extra,
                                       shape[-len(kernel) :], strict=True):  # fmt: skip
            total = s * (n - 1) + e + d * (k - 1) + 1 - size
            more, missing = max(total, 0), max(-total, 0)
            begin = more // 2 if mode == "SAME_UPPER" else more - more // 2
            pairs.append((begin, more - begin - missing))
        pads = tuple(pairs)
    operator = ConvTranspose(strides, pads, dilations, extra, call.get("group", 1))
    return call.make(operator, call.data, weights, *_bias(call))


@handles("Gemm")
def gemm(call: Call) -> Node:
    """Return a fully connected layer."""
    if call.get("transA", 0):
        raise UnknownError("it turns its data around", "Use transA=0.")
    weights = _weights(call, 2)
    if not call.get("transB", 0):
        weights = _turned(weights)
    alpha, beta = float(call.get("alpha", 1.0)), float(call.get("beta", 1.0))
    if alpha != 1:
        weights = constant(np.asarray(weights.constant) * alpha, weights.place)
    bias = [call.make(Reshape((math.prod(one.shape),)), one) for one in _bias(call)]
    if beta != 1:
        bias = [call.make(Each(Function.MUL), one, constant(np.array(beta))) for one in bias]
    return call.make(Gemm(), call.data, weights, *bias)


@handles("MatMul")
def matmul(call: Call) -> Node:
    """Return a product with weights, or of two results."""
    if call.input(1).constant is None or call.data.constant is not None:
        return call.make(MatMul(), call.data, call.input(1))
    return call.make(Gemm(), call.data, _turned(_weights(call, 2)))


@handles("BatchNormalization")
def _batch_norm(call: Call) -> Node:
    if call.get("training_mode", 0):
        raise UnknownError(
            "it normalizes by the statistics of each batch",
            "Export the network behind its training: training_mode=0.",
        )
    factors = [call.input(number) for number in range(1, 5)]
    if any(one.constant is None for one in factors):
        raise UnknownError("its factors are not constants")
    momentum = float(call.get("momentum", 0.9))
    operator = BatchNormalization(float(call.get("epsilon", 1e-5)), momentum)
    return call.make(operator, call.data, *factors)


def _turned(weights: Node) -> Node:
    """Return weights [O, I] of [I, O] under their name."""
    return constant(np.asarray(weights.constant).transpose(), weights.place)


def _weights(call: Call, axes: int = 0) -> Node:
    """Return the weights, of so many axes, or of a convolution."""
    weights = call.input(1)
    if weights.constant is None:
        remedy = "Export the integers as weights, without quantize and dequantize nodes."
        if call.data.constant is not None:
            raise UnknownError("the weights stand on the left", "Multiply data by weights.")
        raise UnknownError("its weights are not constants", remedy)
    if len(weights.shape) != axes if axes else len(weights.shape) < 3:
        raise UnknownError(
            f"its weights have {len(weights.shape)} axes",
            "Give weights the axes that ONNX has for them.",
        )
    return weights


def _bias(call: Call) -> list[Node]:
    bias = call.inputs[2] if len(call.inputs) > 2 else None
    return [] if bias is None else [bias]


def _each(call: Call, name: str, kernel: Sequence[int], fill: int = 1) -> Shape:
    return tuple(call.get(name) or (fill,) * len(kernel))


def _explicit(call: Call, kernel: Sequence[int]) -> Pads:
    axes = len(kernel)
    flat = tuple(call.get("pads") or (0,) * 2 * axes)
    return tuple((flat[n], flat[axes + n]) for n in range(axes))


def _pads(call: Call, sizes: Shape, kernel: Shape, strides: Shape, dilations: Shape) -> Pads:
    """Return the padding of a convolution or pooling."""
    mode = call.get("auto_pad", "NOTSET")
    if not mode.startswith("SAME"):
        none = ((0, 0),) * len(kernel)
        return none if mode == "VALID" else _explicit(call, kernel)
    pairs = []
    for size, k, s, d in zip(sizes, kernel, strides, dilations, strict=True):
        total = max((math.ceil(size / s) - 1) * s + d * (k - 1) + 1 - size, 0)
        small, large = total // 2, total - total // 2
        pairs.append((small, large) if mode == "SAME_UPPER" else (large, small))
    return tuple(pairs)


def _check(call: Call, axes: int, kernel: Shape | None) -> None:
    wrong = refused_attributes(call.node, axes, kernel)
    if wrong is not None:
        raise UnknownError(wrong.why, wrong.remedy)


@handles("MaxPool", "AveragePool")
def _pool(call: Call) -> Node:
    axes = len(call.data.shape) - 2
    _check(call, axes, None)
    window = tuple(call.get("kernel_shape"))
    strides, dilations = _each(call, "strides", window), _each(call, "dilations", window)
    pads = _pads(call, call.data.shape[2:], window, strides, dilations)
    operator = Pool(
        call.name == "AveragePool", window, strides, pads, dilations,
        bool(call.get("ceil_mode", 0)), bool(call.get("count_include_pad", 0)),
    )  # fmt: skip
    return call.make(operator, call.data)


@handles("GlobalAveragePool", "GlobalMaxPool")
def _global(call: Call) -> Node:
    kind = Reduction.MAX if "Max" in call.name else Reduction.MEAN
    return call.make(Reduce(kind, tuple(range(2, len(call.data.shape))), True), call.data)


_REDUCTIONS = {"ReduceMean": Reduction.MEAN, "ReduceMax": Reduction.MAX,
               "ReduceMin": Reduction.MIN, "ReduceSum": Reduction.SUM,
               "ReduceL2": Reduction.L2}  # fmt: skip


@handles(*_REDUCTIONS)
def _reduce(call: Call) -> Node:
    count, stated = len(call.data.shape), call.integers(1, "axes")
    if not stated and call.get("noop_with_empty_axes", 0):
        return call.data
    axes = tuple(sorted({axis % count for axis in stated or range(count)}))
    return call.make(Reduce(_REDUCTIONS[call.name], axes, bool(call.get("keepdims", 1))), call.data)
