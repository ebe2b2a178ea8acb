"""Layers of ai8x, in floating point."""

from __future__ import annotations

import math
from typing import Any

from torch import nn

import ai8x
from ai8xtools.frontends.graph.nodes import Node as Result
from ai8xtools.frontends.graph.nodes import make
from ai8xtools.frontends.graph.operators import Clip, Each, Function, Layer
from ai8xtools.frontends.layers import ELEMENTWISE
from ai8xtools.frontends.modules.calls import Call, attributes, handled, operand
from ai8xtools.frontends.modules.keys import operator_keys, pooling_keys

_LIMIT = 127 / 128


def whole_layer(module: Any, shape: tuple[int, ...]) -> Layer:
    """Return a layer of ai8x as descriptions have it."""
    names = [kind.__name__ for kind in type(module).__mro__]
    if isinstance(module, ai8x.Eltwise):
        return Layer(names[0], shape, op=next(name for name in names if name in ELEMENTWISE))
    pool = pooling_keys(module.pool)
    if module.op is None:
        return Layer(names[0], shape, pool=pool)
    return Layer(names[0], shape, op=type(module.op).__name__, keys=operator_keys(module),
                 pool=pool, bias=module.op.bias is not None)  # fmt: skip


def ai8x_layer(call: Call, layer: Any) -> Result:
    """Return the result of a layer of ai8x: pooling, operator, factor, activation, limits."""
    result = call.data
    if layer.pool is not None:
        name = "avgpool" if isinstance(layer.pool, nn.AvgPool1d | nn.AvgPool2d) else "maxpool"
        settings = attributes(layer.pool)
        place = call.place if layer.op is None else f"{call.place}_pool"
        result = handled(Call(place, name, [result], settings, call.shape))
    if layer.op is None:
        return result
    names = {nn.Linear: "linear", nn.ConvTranspose2d: "convtranspose"}
    name = next((n for kind, n in names.items() if isinstance(layer.op, kind)), "conv")
    inner = Call(call.place, name, [result], attributes(layer.op), call.shape)
    down, up = layer.scales()
    factor = float(down) * (1.0 if layer.wide else float(up))
    result = call.make(Each(Function.MUL), handled(inner), operand(factor))
    if layer.takes_magnitudes:
        result = call.make(Each(Function.ABS), result)
    limited = not layer.wide and (not layer.has_thresholds or bool(layer.clamp_activation))
    low, high = (-1.0, _LIMIT) if limited else (-math.inf, math.inf)
    low = 0.0 if layer.rectifies else low
    if low == -math.inf and high == math.inf:
        return result
    return make(f"{call.place}.clamp", Clip(low, high), result)


def ai8x_elements(call: Call, module: Any) -> Result:
    """Return the result of an element-wise layer of ai8x, with its limits."""
    functions = {ai8x.Add: Function.ADD, ai8x.Sub: Function.SUB}
    function = next((f for kind, f in functions.items() if isinstance(module, kind)), None)
    if function is None:
        return call.foreign(type(module).__name__)
    result = call.data
    for one in call.args[1:]:
        result = call.make(Each(function), result, one)
    if isinstance(module.clamp, ai8x.Empty):
        return result
    return make(f"{call.place}.clamp", Clip(-1.0, _LIMIT), result)
