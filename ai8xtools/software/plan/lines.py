"""One-dimensional data as one row of pixels: kernels work on several pixels of a row at once.

Bytes stand as before; only where tensors exist as a whole can rows be counted anew.
"""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.software.graph import Combine, Convolution, Pool, Size, Step, StepGraph


def in_lines(graph: StepGraph) -> StepGraph:
    """Return a graph whose steps on a single column work on a single row instead."""
    return replace(graph, steps=tuple(map(_in_line, graph.steps)))


def _in_line(step: Step) -> Step:
    match step:
        case Convolution() if (
            _column(step.in_size)
            and _column(step.out_size)
            and (step.kernel[1] == 1 and step.pad[1] == 0)
        ):
            return replace(
                step,
                weights=step.weights.swapaxes(2, 3),
                in_size=_turned(step.in_size),
                out_size=_turned(step.out_size),
                pad=_turned(step.pad),
                stride=_turned(step.stride),
                spread=_turned(step.spread),
                pool=None if step.pool is None else _pool(step.pool),
            )
        case Pool() if _column(step.in_size) and step.window[1] == 1:
            return _pool(step)
        case Combine() if _column(step.size):
            return replace(step, size=_turned(step.size))
        case _:
            return step


def _pool(pool: Pool) -> Pool:
    return replace(
        pool,
        in_size=_turned(pool.in_size),
        out_size=_turned(pool.out_size),
        window=_turned(pool.window),
        stride=_turned(pool.stride),
        dilation=_turned(pool.dilation),
    )


def _column(size: Size) -> bool:
    return size[1] == 1 and size[0] > 1


def _turned(pair: Size) -> Size:
    return pair[1], pair[0]
