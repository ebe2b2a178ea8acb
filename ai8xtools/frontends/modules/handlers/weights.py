"""Layers with weights, and what stands in for them in training."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ai8xtools.frontends.graph.compositions import chosen
from ai8xtools.frontends.graph.nodes import Node as Result
from ai8xtools.frontends.graph.nodes import constant
from ai8xtools.frontends.graph.operators import (
    BatchNormalization,
    Conv,
    ConvTranspose,
    Dropout,
    Each,
    Function,
    Gemm,
    MatMul,
    Pads,
    Softmax,
    Transpose,
)
from ai8xtools.frontends.modules.calls import Call, alike, handles, operand
from ai8xtools.frontends.modules.handlers.sizes import padded


@handles("conv", "weight bias stride padding dilation groups")
def _conv(call: Call) -> Result:
    weights, strides = operand(call.get("weight")), call.each_axis("stride", 1)
    dilations, padding = call.each_axis("dilation", 1), call.get("padding", 0)
    data = call.data
    if padding in ("same", "valid"):
        reach = [d * (k - 1) if padding == "same" else 0
                 for k, d in zip(weights.shape[2:], dilations, strict=True)]  # fmt: skip
        pads: Pads = tuple((n // 2, n - n // 2) for n in reach)
    else:
        pads = alike(call.each_axis("padding", 0))
    mode = call.get("padding_mode", "zeros")
    if mode != "zeros":
        data = padded(call, data, ((0, 0), (0, 0), *pads), mode)
        pads = ((0, 0),) * len(pads)
    operator = Conv(strides, pads, dilations, int(call.get("groups", 1)))
    return call.make(operator, data, weights, *_bias(call))


@handles("convtranspose", "weight bias stride padding output_padding groups dilation")
def _conv_transpose(call: Call) -> Result:
    operator = ConvTranspose(
        call.each_axis("stride", 1), alike(call.each_axis("padding", 0)),
        call.each_axis("dilation", 1), call.each_axis("output_padding", 0),
        int(call.get("groups", 1)),
    )  # fmt: skip
    return call.make(operator, call.data, operand(call.get("weight")), *_bias(call))


@handles("linear", "weight bias")
def _linear(call: Call) -> Result:
    return call.make(Gemm(), call.data, operand(call.get("weight")), *_bias(call))


@handles("matmul")
def _matmul(call: Call) -> Result:
    a, b = map(operand, call.args)
    if b.constant is not None and len(b.shape) == 2:
        return call.make(Gemm(), a, constant(b.constant.T))
    return call.make(MatMul(), a, b)


@handles("scaleddotproductattention", "key value attn_mask dropout_p is_causal scale")
def _attention(call: Call) -> Result:
    q, k, v = call.data, operand(call.get("key")), operand(call.get("value"))
    axes, scale = len(k.shape), call.get("scale", 1 / math.sqrt(q.shape[-1]))
    mask = call.get("attn_mask")
    if call.get("dropout_p", 0.0) or (mask is not None and operand(mask).constant is None):
        return call.foreign(f"{call.shown} with dropout, or a mask of data")
    turned = call.make(Transpose((*range(axes - 2), axes - 1, axes - 2)), k)
    scores = call.make(MatMul(), q, turned)
    scores = call.make(Each(Function.MUL), scores, operand(scale))
    if call.get("is_causal", False):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if isinstance(mask, Tensor) and mask.dtype == torch.bool:
        scores = chosen(call.place, mask.numpy(), scores, operand(-math.inf))
    elif mask is not None:
        scores = call.make(Each(Function.ADD), scores, operand(mask))
    return call.make(MatMul(), call.make(Softmax(axes - 1), scores), v)


@handles("batchnorm", "running_mean running_var weight bias training momentum eps")
def _batch_norm(call: Call) -> Result:
    mean, variance = call.get("running_mean"), call.get("running_var")
    if mean is None or call.get("training", False):
        return call.foreign("normalization by the statistics of each batch")
    gain, offset = call.get("weight", torch.ones_like(mean)), call.get("bias", 0 * mean)
    momentum = call.get("momentum", 0.1)
    operator = BatchNormalization(float(call.get("eps", 1e-5)), 1 - float(momentum))
    return call.make(operator, call.data, *map(operand, (gain, offset, mean, variance)))


def _bias(call: Call) -> list[Result]:
    bias = call.get("bias")
    return [] if bias is None else [operand(bias)]


@handles("dropout", "p training")
def _dropout(call: Call) -> Result:
    """Return what training needs of a module; a function that is off passes its data on."""
    if not call.shown.startswith("Dropout"):
        on = call.get("training", call.get("train", True)) and call.get("p", 0.5)
        return call.foreign(f"{call.shown} that is not off in evaluation") if on else call.data
    axes = 0 if call.shown == "Dropout" else int(call.shown[-2])
    return call.make(Dropout(float(call.get("p")), axes), call.data)
