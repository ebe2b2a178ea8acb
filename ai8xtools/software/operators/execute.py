"""Steps in Python, as their C computes them: what was lowered is compared with the graph itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ai8xtools.frontends.graph.execute import value_of
from ai8xtools.frontends.graph.operators import Conv
from ai8xtools.frontends.graph.operators import Pool as Pooling
from ai8xtools.software import elements
from ai8xtools.software.graph import (
    Convolution,
    Copy,
    Elements,
    Int64,
    Pool,
    Step,
    StepGraph,
    Tensor,
    Windows,
)


def execute(graph: StepGraph, sample: Int64) -> list[Int64]:
    """Return the results of steps for a sample [row, column, channel], each in one line."""
    values: list[Int64] = [np.zeros(0, np.int64)] * len(graph.tensors)
    values[graph.input] = sample.ravel()
    for step in graph.steps:
        tensor = graph.tensors[step.target]
        if isinstance(step, Copy):
            data = _copied(step, values, tensor)
        else:
            data = _computed(step, values).ravel()
        low, high = (-128, 127) if tensor.bytes_per_value == 1 else (-(1 << 31), (1 << 31) - 1)
        if data.size != tensor.pixels * tensor.channels or data.min() < low or data.max() > high:
            raise ValueError(f"{step.name} leaves its tensor")
        values[step.target] = data
    return [values[one] for one in graph.outputs]


def _computed(step: Step, values: Sequence[Int64]) -> Int64:
    match step:
        case Convolution():
            return _convolved(step, values[step.source])
        case Pool():
            return _taken(step, (0, 0), values[step.source], sums=False)
        case Windows():
            result = _taken(step, step.pad, values[step.source], sums=step.sums)
            return elements.value(step.element, [result])
        case Elements():
            operands = [values[one].reshape(shape) for one, shape in
                     zip(step.sources, step.shapes, strict=True)]  # fmt: skip
            result = elements.value(step.element, operands)
            return np.broadcast_to(result, (*step.size, step.channels))
        case _:
            raise ValueError(f"{step.name} is of no graph of operators")


def _planes(values: Int64, size: tuple[int, int]) -> Int64:
    return values.reshape(1, *size, -1).transpose(0, 3, 1, 2)


def _convolved(step: Convolution, values: Int64) -> Int64:
    data = _planes(values, step.in_size)
    rows, columns = ((n - 1) * s + 1 for n, s in zip(step.in_size, step.spread, strict=True))
    wide = np.zeros((*data.shape[:2], rows, columns))
    wide[:, :, :: step.spread[0], :: step.spread[1]] = data
    pads = []
    for n, k, o, s, p in zip((rows, columns), step.kernel, step.out_size, step.stride, step.pad,
                             strict=True):  # fmt: skip
        pads.append((p, (o - 1) * s + (k - 1) * step.dilation + 1 - n - p))
    cut = tuple(slice(max(-b, 0), n + min(e, 0)) for n, (b, e) in
                zip((rows, columns), pads, strict=True))  # fmt: skip
    more = tuple((max(b, 0), max(e, 0)) for b, e in pads)
    operator = Conv(step.stride, more, (step.dilation,) * 2, step.groups)
    weights = step.weights.astype(np.float64)
    result = value_of(operator, [wide[:, :, cut[0], cut[1]], weights])
    assert result is not None
    sums: Int64 = result[0].transpose(1, 2, 0).astype(np.int64) + step.start
    if step.wide:
        return sums
    limited: Int64 = (sums >> step.right).clip(step.low, 127)
    return limited


def _taken(step: Pool | Windows, pad: tuple[int, int], values: Int64, *, sums: bool) -> Int64:
    """Return what windows become; what is outside counts for nothing."""
    data = _planes(values, step.in_size).astype(np.float64)
    ends = [max((o - 1) * s + (w - 1) * d + 1 - n - p, 0) for o, s, w, d, n, p in
            zip(step.out_size, step.stride, step.window, step.dilation, step.in_size, pad,
                strict=True)]  # fmt: skip
    pads = tuple(zip(pad, ends, strict=True))
    operator = Pooling(False, step.window, step.stride, pads, step.dilation)
    if sums:
        ones = np.ones((data.shape[1], 1, *step.window))
        conv = Conv(step.stride, pads, step.dilation, data.shape[1])
        result = value_of(conv, [data, ones])
    else:
        result = value_of(operator, [data])
    assert result is not None
    rows, columns = step.out_size
    return result[0, :, :rows, :columns].transpose(1, 2, 0).astype(np.int64)


def _copied(step: Copy, values: Sequence[Int64], target: Tensor) -> Int64:
    width = target.bytes_per_value
    result = np.full(target.pixels * target.channels, step.fill or 0, np.int64)
    for one in step.pieces:
        runs, places = np.arange(one.count)[:, None], np.arange(one.length // width)
        from_ = one.from_start // width + runs * (one.from_step // width) + places
        result[one.to_start // width + runs * (one.to_step // width) + places] = values[one.source][
            from_
        ]
    return result
