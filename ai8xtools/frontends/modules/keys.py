"""The keys of a description that say what a layer of ai8x computes."""

from __future__ import annotations

from typing import Any, assert_never

from torch import nn

import ai8x
from ai8x import OperatorKind
from ai8xtools.frontends.layers import short, times


def pooling_keys(pool: Any) -> dict[str, Any]:
    """Return the keys of pooling."""
    if pool is None:
        return {}
    if isinstance(pool, nn.AvgPool1d | nn.AvgPool2d):
        keys = {"avg_pool": short(pool.kernel_size)}
    elif isinstance(pool, nn.MaxPool1d | nn.MaxPool2d):
        keys = {"max_pool": short(pool.kernel_size)}
    else:
        raise TypeError(f"{type(pool).__name__} is not a pooling of a layer")
    keys["pool_stride"] = short(pool.stride)
    dilation = short(getattr(pool, "dilation", 1))
    return keys if dilation == 1 else {**keys, "pool_dilation": dilation}


def operator_keys(layer: Any) -> dict[str, Any]:
    """Return the keys of an operator."""
    keys: dict[str, Any] = {}
    kind = ai8x.kind_of(layer.op)
    match kind:
        case OperatorKind.CONV1D | OperatorKind.CONV2D:
            keys |= _kernel(layer.op, usual_stride=1)
        case OperatorKind.CONVTRANSPOSE2D:
            keys |= _kernel(layer.op, usual_stride=2)
        case OperatorKind.LINEAR:
            pass
        case _:
            assert_never(kind)
    keys["activate"] = layer.activation or "None"
    if layer.wide:
        keys["output_width"] = 32
    return keys


def _kernel(op: Any, usual_stride: int) -> dict[str, Any]:
    """Return the keys of a kernel and how it moves."""
    size = op.kernel_size
    keys: dict[str, Any] = {
        "kernel_size": size[0] if len(size) == 1 else times(size),
        "pad": short(op.padding),
    }
    if short(op.stride) != usual_stride:
        keys["stride"] = short(op.stride)
    if short(op.dilation) != 1 and max(size) > 1:  # it is a distance of taps
        keys["dilation"] = short(op.dilation)
    if op.groups > 1:
        keys["groups"] = op.groups
    return keys
