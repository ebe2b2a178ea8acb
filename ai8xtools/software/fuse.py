"""Pooling in the convolution in front of it: windows that do not overlap need no row of their own.

The pixels of a window are computed one after the other and pooled at once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ai8xtools.software.graph import Convolution, Pool, Step, StepGraph, sources_of


def fuse(graph: StepGraph) -> StepGraph:
    """Return a graph in which convolutions pool their results where only pooling reads these."""
    readers = Counter(source for step in graph.steps for source in sources_of(step))
    convolutions = {step.target: step for step in graph.steps if isinstance(step, Convolution)}
    fused: dict[int, Convolution] = {}
    for step in graph.steps:
        if not isinstance(step, Pool) or not _apart(step):
            continue
        conv = convolutions.get(step.source)
        alone = readers[step.source] == 1 and step.source not in graph.outputs
        if conv is not None and alone and not conv.wide and conv.out_size == step.in_size:
            fused[conv.target] = replace(conv, target=step.target, pool=step)
    pooled = {conv.target for conv in fused.values()}
    steps: list[Step] = []
    for step in graph.steps:
        if isinstance(step, Pool) and step.target in pooled:
            continue
        steps.append(fused.get(step.target, step))
    return replace(graph, steps=tuple(steps))


def _apart(pool: Pool) -> bool:
    """Whether the windows do not overlap and are small enough for sums of 16 bits."""
    if pool.dilation != (1, 1) and pool.window != (1, 1):
        return False
    fits = not pool.kind.averages or pool.window[0] * pool.window[1] <= 256
    return fits and all(w <= s for w, s in zip(pool.window, pool.stride, strict=True))
