"""A network of 16 or 8 bits as the planner sees it: which rows of its maps each step reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, assert_never

import numpy as np

from ai8xtools.diagnostics import Place
from ai8xtools.quantization.q15.graph import (
    Add,
    Clip,
    Concat,
    Constant,
    Enlarge,
    Flatten,
    Gather,
    Multiply,
    Pair,
    Pool,
    Step,
    Table,
    Weighted,
)
from ai8xtools.quantization.q15.network import QuantizedNetwork
from ai8xtools.software import graph
from ai8xtools.synthesis.network import Combination

_ANYTHING = graph.Interval(np.zeros(1, np.int64), np.zeros(1, np.int64))
Homes: TypeAlias = Mapping[int, int]


def homes_of(network: QuantizedNetwork) -> dict[int, int]:
    """Return for each map the one in whose memory it stands: clips work in place if they can."""
    homes = {0: 0}
    for step in network.graph.steps:
        homes[step.target] = step.target
        if isinstance(step, Clip) and step.source != 0:
            alone = len(network.graph.users(step.source)) == 1
            homes[step.target] = homes[step.source] if alone else step.target
    return homes


def planned_graph(network: QuantizedNetwork, homes: Homes) -> graph.StepGraph:
    """Return the steps that have memory of their own; tensors have the numbers of their maps."""
    shapes = network.graph.shapes
    tensors = tuple(
        graph.Tensor(number, f"map {number}", rows, columns, channels, network.bits // 8)
        for number, (channels, rows, columns) in enumerate(shapes)
    )
    steps = tuple(
        _planned(step, number, network, homes)
        for number, step in enumerate(network.graph.steps)
        if homes[step.target] not in {homes[source] for source in step.sources}
        and not isinstance(step, Constant)
    )
    return graph.StepGraph(name="network", tensors=tensors, steps=steps, input=0,
                           outputs=(homes[network.graph.output],))  # fmt: skip


def _planned(step: Step, number: int, network: QuantizedNetwork, homes: Homes) -> graph.Step:
    """Return a step with its windows; values are of no concern."""
    shapes = network.graph.shapes
    constants = {one.target for one in network.graph.steps if isinstance(one, Constant)}
    sources = tuple(homes[source] for source in step.sources if source not in constants)
    channels, rows, columns = shapes[step.target]
    match step:
        case Weighted() if step.linear:
            return _window(step, number, sources[0], shapes, (1, 1))
        case Weighted():
            return _window(step, number, sources[0], shapes, step.kernel, step.padding, step.stride,
                           step.spread)  # fmt: skip
        case Pool():
            return _window(step, number, sources[0], shapes, step.window, step.padding, step.stride)
        case Enlarge():
            border = step.factor[0] - 1, step.factor[1] - 1
            return _window(step, number, sources[0], shapes, step.factor, border,
                           spread=step.factor)  # fmt: skip
        case Add() if len(sources) == len(step.sources):
            return graph.Combine(
                sources=sources, target=step.target, layer=number, name=step.name,
                channels=channels, size=(rows, columns), join=Combination.ADD,
            )  # fmt: skip
        case Clip() | Concat() | Add() | Multiply() | Table() | Gather() | Flatten():
            alike = {shapes[one][1] for one in sources} == {rows}
            by_rows = alike and not isinstance(step, Gather | Flatten)
            return graph.Copy(sources=sources, target=step.target, layer=number, name=step.name,
                              pieces=(), by_rows=by_rows)  # fmt: skip
        case Constant():
            raise TypeError(f"{step.name} reads nothing")
        case _:
            assert_never(step)


def _window(
    step: Step,
    number: int,
    source: int,
    shapes: tuple[tuple[int, int, int], ...],
    kernel: Pair,
    padding: Pair = (0, 0),
    stride: Pair = (1, 1),
    spread: Pair = (1, 1),
) -> graph.Convolution:
    """Return a step as windows over the rows of a map; all of it at once for a 1x1 `linear` one."""
    (channels, *size), (filters, rows, columns) = shapes[source], shapes[step.target]
    whole = isinstance(step, Weighted) and step.linear
    return graph.Convolution(
        source=source, target=step.target, layer=number, name=step.name, place=Place(),
        weights=np.broadcast_to(np.int8(0), (filters, channels, *kernel)),
        start=np.zeros(1, np.int64), in_size=(1, 1) if whole else (size[0], size[1]),
        out_size=(rows, columns), pad=padding, stride=stride, spread=spread, input=_ANYTHING,
        output=_ANYTHING,
    )  # fmt: skip
