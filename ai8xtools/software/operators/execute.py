"""Steps in Python, as their C computes them: what was lowered is compared with the graph itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from ai8xtools.integers import execution, kernels
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
    sources_of,
)


def execute(graph: StepGraph, sample: Int64, state: Int64 | None = None) -> list[Int64]:
    """Return the results of steps for a sample [row, column, channel], each in one line.

    `state` is what the graph keeps from the run before, and becomes what it keeps from this one.
    """
    given, wanted = {graph.input: sample.ravel()}, graph.outputs
    if graph.kept is None or state is None:
        values = execution.execute(_nodes(graph), given, wanted)
    else:
        given |= {graph.kept: state}
        values = execution.execute(_nodes(graph), given, (*wanted, graph.kept))
        state[:] = values[graph.kept]
    return [values[one] for one in graph.outputs]


def execute_all(graph: StepGraph, sample: Int64) -> dict[int, Int64]:
    """Return what all steps compute for a sample, by tensor, each in one line."""
    return execution.execute(_nodes(graph), {graph.input: sample.ravel()})


def _nodes(graph: StepGraph) -> list[execution.Node]:
    return [
        execution.Node(step.target, sources_of(step), partial(_checked, graph, step))
        for step in graph.steps
    ]


def _checked(graph: StepGraph, step: Step, values: Sequence[Int64]) -> Int64:
    """Return the result of a step in one line; raises ValueError if its tensor cannot hold it."""
    tensor = graph.tensors[step.target]
    if isinstance(step, Copy):
        data = _copied(step, dict(zip(step.sources, values, strict=True)), tensor)
    else:
        data = _computed(step, values).ravel()
    low, high = (-128, 127) if tensor.bytes_per_value == 1 else (-(1 << 31), (1 << 31) - 1)
    if data.size != tensor.pixels * tensor.channels or data.min() < low or data.max() > high:
        raise ValueError(f"{step.name} leaves its tensor")
    return data


def _computed(step: Step, values: Sequence[Int64]) -> Int64:
    """Return the result of a step [row, column, channel]."""
    match step:
        case Convolution():
            windows = kernels.Windows(step.out_size, step.kernel, step.stride, step.pad,
                                      (step.dilation, step.dilation), step.spread)  # fmt: skip
            data = _planes(values[0], step.in_size)[None]
            sums = kernels.convolved(data, step.weights, windows, step.groups)[0]
            total: Int64 = sums.transpose(1, 2, 0) + step.start
            return total if step.wide else (total >> step.right).clip(step.low, 127)
        case Pool() | Windows():
            pad = step.pad if isinstance(step, Windows) else (0, 0)
            windows = kernels.Windows(step.out_size, step.window, step.stride, pad, step.dilation)
            data = _planes(values[0], step.in_size)
            if isinstance(step, Pool):
                return kernels.maxima(data, windows).transpose(1, 2, 0)
            reduced = (
                kernels.reduced(data, windows, np.add)
                if step.sums
                else kernels.maxima(data, windows)
            )
            return elements.value(step.element, [reduced.transpose(1, 2, 0)])
        case Elements():
            operands = [one.reshape(shape) for one, shape in
                        zip(values, step.shapes, strict=True)]  # fmt: skip
            result = elements.value(step.element, operands)
            return np.broadcast_to(result, (*step.size, step.channels))
        case _:
            raise ValueError(f"{step.name} is of no graph of operators")


def _planes(values: Int64, size: tuple[int, int]) -> Int64:
    """Return a map [channel, row, column]."""
    return values.reshape(*size, -1).transpose(2, 0, 1)


def _copied(step: Copy, values: Mapping[int, Int64], target: Tensor) -> Int64:
    width = target.bytes_per_value
    result = np.full(target.pixels * target.channels, step.fill or 0, np.int64)
    for one in step.pieces:
        runs, places = np.arange(one.count)[:, None], np.arange(one.length // width)
        from_ = one.from_start // width + runs * (one.from_step // width) + places
        result[one.to_start // width + runs * (one.to_step // width) + places] = values[one.source][
            from_
        ]
    return result
