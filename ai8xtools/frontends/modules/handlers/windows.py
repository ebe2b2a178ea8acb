"""Pooling, reductions and extremes."""

from __future__ import annotations

import math

from ai8xtools.frontends.graph.nodes import Node as Result
from ai8xtools.frontends.graph.operators import Each, Function, Pool, Reduce, Reduction
from ai8xtools.frontends.modules.calls import Call, alike, handles, operand

_REDUCING = {"mean": Reduction.MEAN, "amax": Reduction.MAX, "amin": Reduction.MIN,
             "sum": Reduction.SUM}  # fmt: skip


@handles("maxpool maxpoolwithindices",
          "kernel_size stride padding dilation ceil_mode return_indices")  # fmt: skip
def _max_pool(call: Call) -> Result:
    if call.get("return_indices", False):
        return call.foreign("MaxPool with indices")
    return _pool(call, average=False)


@handles("avgpool", "kernel_size stride padding ceil_mode count_include_pad divisor_override")
def _avg_pool(call: Call) -> Result:
    pooled = _pool(call, average=True)
    divisor, size = call.get("divisor_override"), math.prod(call.each_axis("kernel_size"))
    if divisor is None:
        return pooled
    return call.make(Each(Function.MUL), pooled, operand(size / divisor))


def _pool(call: Call, *, average: bool) -> Result:
    window = call.each_axis("kernel_size")
    strides = call.each_axis("stride", window) if call.get("stride") != [] else window
    operator = Pool(
        average, window, strides, alike(call.each_axis("padding", 0)),
        call.each_axis("dilation", 1), bool(call.get("ceil_mode", False)),
        bool(call.get("count_include_pad", True)),
    )  # fmt: skip
    return call.make(operator, call.data)


@handles("adaptiveavgpool adaptivemaxpool", "output_size")
def _adaptive(call: Call) -> Result:
    before, after = call.data.shape[2:], call.shape[2:]
    if len(before) != len(after):
        return call.foreign(f"{call.name} with indices")
    if any(n % m for n, m in zip(before, after, strict=True)):
        return call.foreign("pooling by windows of different sizes")
    window, ones = tuple(n // m for n, m in zip(before, after, strict=True)), (1,) * len(before)
    average = call.name == "adaptiveavgpool"
    return call.make(Pool(average, window, window, alike((0,) * len(before)), ones), call.data)


@handles(" ".join(_REDUCING), "dim keepdim")
def _reduce(call: Call) -> Result:
    dims, axes = call.get("dim"), len(call.data.shape)
    listed = range(axes) if dims in (None, [], ()) else [dims] if isinstance(dims, int) else dims
    if set(listed) == set(range(axes)):
        return call.foreign(f"{call.name} over all axes")
    chosen = tuple(sorted(one % axes for one in listed))
    if 0 in chosen:
        return call.foreign(f"{call.name} over the samples of a batch")
    keep = len(call.shape) == axes
    return call.make(Reduce(_REDUCING[call.name], chosen, keep), call.data)


@handles("max min", "other")
def _extreme(call: Call) -> Result:
    if len(call.args) < 2 or not isinstance(call.args[1], Result):
        return call.foreign(call.name)
    function = Function.MAX if call.name == "max" else Function.MIN
    return call.make(Each(function), call.data, call.args[1])
