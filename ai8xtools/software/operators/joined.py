"""Steps put together: what follows sums becomes part of the step that makes them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from ai8xtools.software import bounds, elements
from ai8xtools.software.graph import (
    Arithmetic,
    Convolution,
    Elements,
    Load,
    Number,
    Pair,
    Pool,
    PoolKind,
    Step,
    StepGraph,
    Windows,
    sources_of,
)

_FLOORS = 30
"""Bits by which sums are shifted, at most."""


def joined(graph: StepGraph) -> StepGraph:
    """Return a graph in which convolutions and windows do what alone follows them."""
    steps = _needed(graph)
    readers = Counter(source for step in steps for source in sources_of(step))
    makers = {step.target: step for step in steps}
    gone: set[int] = set()
    replaced: dict[int, list[Step]] = {}
    for step in steps:
        if not isinstance(step, Elements) or len(step.sources) != 1:
            continue
        (source,) = step.sources
        maker = makers.get(source)
        if readers[source] != 1 or source in graph.outputs or not _same_order(graph, step, maker):
            continue
        wide = graph.tensors[step.target].bytes_per_value == 4
        if isinstance(maker, Windows):
            parts: list[Step] = [replace(maker, target=step.target, element=step.element,
                                         bits=step.bits)]  # fmt: skip
        elif isinstance(maker, Convolution) and not wide:
            parts = _finished(maker, step)
        else:
            continue
        if parts:
            gone.add(source)
            replaced[step.target] = parts
    result: list[Step] = []
    tensors = [*graph.tensors]
    for step in steps:
        parts = replaced.get(step.target, [] if step.target in gone else [step])
        for part in parts:
            result.append(_plain(part, graph))
            if part.target in gone:
                tensors[part.target] = replace(tensors[part.target], bytes_per_value=1)
    return replace(graph, steps=tuple(result), tensors=tuple(tensors))


def _same_order(graph: StepGraph, step: Elements, maker: Step | None) -> bool:
    """Whether elements of a step are those that another makes, pixel by pixel."""
    if not isinstance(maker, Convolution | Windows):
        return False
    one = graph.tensors[step.sources[0]]
    return (one.rows, one.columns, one.channels) == (*step.size, step.channels)


def _finished(conv: Convolution, step: Elements) -> list[Step]:
    """Return a convolution that ends in 8 bits, with what limits it further; [] if none does."""
    element = step.element
    limits = {Arithmetic.MAX: -128, Arithmetic.MIN: 127}
    while isinstance(element, Pair) and element.op in limits and isinstance(element.b, Number):
        value = element.b.values
        if value.size > 1:
            return []
        pick = max if element.op is Arithmetic.MAX else min
        limits[element.op] = pick(limits[element.op], int(value.item()))
        element = element.a
    right = 0
    match element:
        case Pair(op=Arithmetic.FLOOR, b=Number() as by) if by.values.size == 1:
            right, element = int(by.values.item()).bit_length() - 1, element.a
            if by.values.item() != 1 << right or right > _FLOORS:
                return []
    offset = np.zeros(1, np.int64)
    match element:
        case Pair(op=Arithmetic.ADD, b=Number() as more) if more.values.shape[:2] == (1, 1):
            offset, element = more.values.ravel(), element.a
    if element != Load(0):
        return []
    start = conv.start + offset
    sums = bounds.sums_of(conv.weights, start, conv.groups, conv.input)
    if max(sums.most.max(), -sums.least.min(), abs(start).max()) > bounds.LARGEST:
        return []
    low, high = limits[Arithmetic.MAX], limits[Arithmetic.MIN]
    least = 0 if low >= 0 else -128
    output = bounds.narrowed(sums, right, least, absolute=False)
    finished = replace(conv, target=step.target, start=start, right=right, low=least, wide=False,
                       output=output)  # fmt: skip
    if low <= least and high >= min(127, int(output.high.max())):
        return [finished]
    limited = elements.larger(Load(0), elements.number(low))
    limited = elements.smaller(limited, elements.number(high))
    return [replace(finished, target=conv.target), replace(step, element=limited, bits=8)]


def _plain(step: Step, graph: StepGraph) -> Step:
    """Return pooling of its own kind for maxima within the data."""
    if not isinstance(step, Windows) or step.sums or step.element != Load(0):
        return step
    ends = ((o - 1) * s + (w - 1) * d + 1 for o, s, w, d in
            zip(step.out_size, step.stride, step.window, step.dilation, strict=True))  # fmt: skip
    inside = all(end <= n for end, n in zip(ends, step.in_size, strict=True))
    wide = graph.tensors[step.source].bytes_per_value != 1
    if step.pad != (0, 0) or not inside or wide:
        return step
    return Pool(
        source=step.source, target=step.target, layer=step.layer, name=step.name,
        channels=step.channels, in_size=step.in_size, out_size=step.out_size, kind=PoolKind.MAX,
        window=step.window, stride=step.stride, dilation=step.dilation,
    )  # fmt: skip


def _needed(graph: StepGraph) -> list[Step]:
    """Return the steps whose results are read."""
    needed, result = {*graph.outputs}, []
    for step in reversed(graph.steps):
        if step.target in needed:
            result.append(step)
            needed |= set(sources_of(step))
    return result[::-1]
