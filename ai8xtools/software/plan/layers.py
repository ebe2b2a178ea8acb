"""The layers of a graph as memory levels see them: geometry, kernels, weights in groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, lcm

from ai8xtools.software.graph import (
    Combine,
    Convolution,
    Copy,
    Elements,
    Insert,
    Int8,
    Pool,
    Roll,
    Step,
    StepGraph,
    Windows,
)
from ai8xtools.software.kernels import Kernel, Packed
from ai8xtools.software.memory import aligned
from ai8xtools.software.plan.geometry import Geometry


def geometry_of(step: Step, graph: StepGraph, kernels: Mapping[int, Kernel]) -> Geometry | None:
    """Return a step as a window that moves over images; None for one that only copies."""
    match step:
        case Convolution():
            return _of_convolution(step, graph, kernels[step.target])
        case Pool():
            return Geometry(
                in_size=step.in_size, channels=step.channels, out_size=step.out_size,
                filters=step.channels, stride=step.stride,
                reach=_reach(step.window, step.dilation), out_bytes=1,
            )  # fmt: skip
        case Combine():
            return Geometry(
                in_size=step.size, channels=step.channels, out_size=step.size,
                filters=step.channels, sources=len(step.sources),
            )  # fmt: skip
        case Elements() | Windows() | Copy() | Insert() | Roll():
            return None


def _reach(window: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int]:
    rows, columns = ((w - 1) * d + 1 for w, d in zip(window, dilation, strict=True))
    return rows, columns


def _of_convolution(step: Convolution, graph: StepGraph, kernel: Kernel) -> Geometry:
    reach = _reach(step.kernel, (step.dilation, step.dilation))
    stride, window, apart = step.stride, (1, 1), (1, 1)
    if step.pool is not None:
        window, apart = step.pool.window, step.pool.stride
        reach = (reach[0] + (window[0] - 1) * stride[0], reach[1] + (window[1] - 1) * stride[1])
        stride = (stride[0] * apart[0], stride[1] * apart[1])
    packed = kernel.pack(step).values.nbytes
    together = step.filters if step.groups > 1 else 2
    return Geometry(
        in_size=step.in_size, channels=step.channels, filters=step.filters,
        out_size=step.pool.out_size if step.pool else step.out_size,
        reach=reach, kernel=step.kernel, stride=stride, pad=step.pad, spread=step.spread,
        out_bytes=graph.tensors[step.target].bytes_per_value,
        filter_bits=8 * ceil(packed / aligned(step.filters, together)),
        filter_step=together, weight_bytes=packed, sum_window=window, sum_stride=apart,
    )  # fmt: skip


def takes_planes(step: Step) -> bool:
    """Whether a step can be computed an input channel at a time."""
    return isinstance(step, Convolution) and step.groups == 1 and not step.transposed


def sums_bytes(step: Convolution) -> int:
    """Return the bytes of the sums of a pooled row."""
    if step.pool is None or not step.pool.kind.averages:
        return 0
    return 2 * step.pool.out_size[1] * step.filters


def windows_at_once(step: Convolution, kernel: Kernel) -> int:
    """Return how many windows of a row are computed together, so that whole blocks of pixels are.

    Windows with pixels between them are computed one by one.
    """
    pool = step.pool
    if pool is None or pool.stride[1] != pool.window[1]:
        return 1
    count = lcm(kernel.pixels, pool.window[1]) // pool.window[1]
    return min(count, pool.out_size[1])


def window_bytes(step: Convolution, kernel: Kernel) -> int:
    """Return the bytes of the pixels of a row of windows that are pooled at once."""
    if step.pool is None:
        return 0
    return aligned(windows_at_once(step, kernel) * step.pool.window[1] * step.filters)


def scratch_bytes(step: Convolution, kernels: Mapping[int, Kernel]) -> int:
    """Return what a step needs only while it works on a part of a row."""
    kernel = kernels[step.target]
    return window_bytes(step, kernel) + aligned(kernel.scratch_bytes(step))


def scratch_of(step: Step, kernels: Mapping[int, Kernel]) -> int:
    """Return the bytes that a step needs besides data and weights."""
    if not isinstance(step, Convolution):
        return 0
    return scratch_bytes(step, kernels) + -(-sums_bytes(step) // 4) * 4


def part_of(step: Convolution, first: int, end: int) -> Convolution:
    """Return the convolution of some filters alone."""
    return replace(
        step, weights=step.weights[first:end], start=step.start[first:end],
        output=replace(step.output, low=step.output.low[first:end],
                       high=step.output.high[first:end]),
    )  # fmt: skip


def packed_groups(step: Convolution, kernel: Kernel, filters: int) -> tuple[Packed, ...]:
    """Return the packed weights of each `filters` filters; the last may be fewer."""
    if filters >= step.filters:
        return (kernel.pack(step),)
    starts = range(0, step.filters, filters)
    return tuple(kernel.pack(part_of(step, f, min(f + filters, step.filters))) for f in starts)


def packed_planes(step: Convolution, filters: int) -> tuple[Int8, ...]:
    """Return the weights of each group of filters and input channel, filter by filter."""
    parts: list[Int8] = []
    for first in range(0, step.filters, filters):
        some = step.weights[first : first + filters]
        parts += [some[:, channel].ravel() for channel in range(step.channels)]
    return tuple(parts)
