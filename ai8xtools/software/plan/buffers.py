"""The buffers of a task in L1 and L2: what each holds and how many bytes it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ai8xtools.software.graph import Convolution, Step
from ai8xtools.software.kernels import Kernel
from ai8xtools.software.kernels.call import KernelCall
from ai8xtools.software.memory import Block, aligned
from ai8xtools.software.plan.geometry import Geometry
from ai8xtools.software.plan.layers import (
    packed_groups,
    packed_planes,
    scratch_bytes,
    scratch_of,
    sums_bytes,
)
from ai8xtools.software.plan.schemes import Channels, Planes, Rows, Weights
from ai8xtools.software.plan.task import Level, Task

_SUM_BYTES = 4
DONE_BYTES = 2
"""Bytes of the number of rows that a link of a chain made."""
SCRATCH, DONE, SUMS = "scratch", "done", "sums"
"""Names of buffers: memory that kernels work in, the rows that each link of a chain made, and the
sums of pooling."""


def buffers_of(task: Task, kernels: Mapping[int, Kernel]) -> Iterator[tuple[int, str, int, Level]]:
    """Yield index and name, the bytes and the memory of each buffer of a task.

    The links of a chain work one after the other in the same scratch memory, that of the first.
    """
    for link in task.layers:
        for name, size, level in _buffers(link, kernels):
            if not task.links or name != SCRATCH:
                yield link.index, name, size, level
    if isinstance(task.cut, Channels):
        for number in range(min(1 + task.ahead, _layer(task).channels)):
            yield task.index, f"work {number}", aligned(task.cut.memory), Level.L1
    elif task.links:
        yield task.index, DONE, aligned(DONE_BYTES * len(task.links)), Level.L1
        if most := max(scratch_of(link.step, kernels) for link in task.links):
            yield task.index, SCRATCH, aligned(most), Level.L1


def whole_buffers(
    first: int,
    steps: Sequence[Step],
    kernels: Mapping[int, Kernel],
    calls: Mapping[int, KernelCall],
) -> Iterator[Block]:
    """Yield the blocks of sums of pooling and of the scratch memory of steps from `first` on.

    These are not cut; they work one after the other in the same scratch memory.
    """
    scratch = 0
    for index, step in enumerate(steps, first):
        if step.target in calls:
            scratch = max(scratch, calls[step.target].scratch_bytes)
        elif isinstance(step, Convolution):
            scratch = max(scratch, scratch_bytes(step, kernels))
            if sums := sums_bytes(step):
                yield Block(name=f"{step.name} sums", size=sums, first=0, last=0,
                            buffer=(index, SUMS))  # fmt: skip
    if scratch:
        yield Block(name=SCRATCH, size=scratch, first=0, last=0, buffer=(first, SCRATCH))


def bytes_in(level: Level, task: Task, kernels: Mapping[int, Kernel]) -> int:
    """Return the bytes of the buffers of a task in a memory."""
    return sum(size for *_, size, where in buffers_of(task, kernels) if where is level)


def _buffers(task: Task, kernels: Mapping[int, Kernel]) -> Iterator[tuple[str, int, Level]]:
    match task.cut:
        case Rows():
            buffers = _of_rows(task, task.cut, kernels)
        case Planes():
            buffers = _of_planes(task, task.cut)
        case Channels():
            buffers = _of_channels(task)
        case _:
            return
    for name, size, level in buffers:
        if size:
            yield name, aligned(size), level


def _of_rows(
    task: Task, cut: Rows, kernels: Mapping[int, Kernel]
) -> Iterator[tuple[str, int, Level]]:
    layer = _layer(task)
    if not task.reads:
        size = ring_bytes(task)
        for source in range(layer.sources):
            yield f"input {source}", size, Level.L1
    if not task.writes:
        yield from _pair("output", _by_turns(output_sizes(task)))
    step = task.step
    if isinstance(step, Convolution):
        if not task.in_place:
            times = min(copies_of_weights(layer, cut), 2)  # then all were in both buffers or none
            yield from _pair("weights", _by_turns(weight_sizes(task, kernels) * times))
        yield SCRATCH, scratch_of(step, kernels), Level.L1


def _by_turns(sizes: Sequence[int]) -> tuple[int, int]:
    """Return the bytes of two buffers that units use in turn: each holds its largest unit."""
    return max(sizes[::2], default=0), max(sizes[1::2], default=0)


def _pair(name: str, sizes: tuple[int, int]) -> Iterator[tuple[str, int, Level]]:
    for number, size in enumerate(sizes):
        yield f"{name} {number}", size, Level.L1


def copies_of_weights(layer: Geometry, cut: Rows) -> int:
    """Return how often the weights are copied."""
    tiles, bands = -(-layer.out_size[1] // cut.columns), bands_of(layer, cut.band)
    return {
        Weights.IN_PLACE: 1, Weights.RESIDENT: 1, Weights.ROWS_OUTER: tiles * bands,
        Weights.WEIGHTS_OUTER: tiles,
    }[cut.weights]  # fmt: skip


def _layer(task: Task) -> Geometry:
    assert task.layer is not None
    return task.layer


def bands_of(layer: Geometry, rows: int) -> int:
    """Return the bands into which the output rows are cut."""
    return -(-layer.out_size[0] // rows)


def ring_bytes(task: Task) -> int:
    """Return the bytes of the input rows of one source; the last row of pixels may be shorter."""
    layer, cut = _layer(task), task.cut
    assert isinstance(cut, Rows)
    row = widest(layer, cut.columns) * layer.channels * layer.in_bytes
    row = layer.row_bytes if task.chained else row
    if not row or not layer.needed(task.rows - 1)[1]:
        return 0  # results of padding alone
    slots, short = task.slots, task.input_bytes - (layer.in_size[0] - 1) * layer.row_bytes
    if slots == layer.in_size[0] > 1 and short < row:
        return max((slots - 2) * task.pitch + row, (slots - 1) * task.pitch + short)
    return (slots - 1) * task.pitch + min(row, task.input_bytes)


def output_sizes(task: Task) -> list[int]:
    """Return the bytes of the results of each band; the last may be smaller."""
    layer, cut = _layer(task), task.cut
    assert isinstance(cut, Rows)
    filters = cut.filters if task.filters_outer else layer.filters
    rows, width = layer.out_size
    pixel = min(filters, layer.filters) * layer.out_bytes
    columns = min(cut.columns, width)
    sizes = [min(cut.band, rows - y) * columns * pixel for y in range(0, rows, cut.band)]
    left = task.pixels - (rows - 1) * width
    if left < columns:  # the last row of pixels
        sizes[-1] -= (columns - left) * pixel
    return sizes


def copied_weights(task: Task, kernels: Mapping[int, Kernel]) -> int:
    """Return the bytes of the packed weights of a task, 0 if they are read in place."""
    step = task.step
    if not isinstance(step, Convolution) or task.in_place:
        return 0
    match task.cut:
        case Channels():
            return int(step.weights.size)
        case Planes():
            return sum(one.nbytes for one in packed_planes(step, task.cut.filters))
        case Rows():
            return sum(weight_sizes(task, kernels))
        case _:
            return 0


def weight_sizes(task: Task, kernels: Mapping[int, Kernel]) -> list[int]:
    """Return the bytes of the weights of each group of filters."""
    step = task.step
    assert isinstance(step, Convolution) and isinstance(task.cut, Rows)
    groups = packed_groups(step, kernels[step.target], task.cut.filters)
    return [one.values.nbytes for one in groups]


def widest(layer: Geometry, columns: int) -> int:
    """Return the most input columns of a tile."""
    width = layer.out_size[1]
    tiles = (layer.needed_columns(x, min(columns, width - x)) for x in range(0, width, columns))
    return max(end - first for first, end in tiles)


def _of_channels(task: Task) -> Iterator[tuple[str, int, Level]]:
    if isinstance(task.step, Convolution) and not task.in_place:
        yield "weights 0", task.step.weights.size, Level.L1


def _of_planes(task: Task, cut: Planes) -> Iterator[tuple[str, int, Level]]:
    layer, step = _layer(task), task.step
    assert isinstance(step, Convolution)
    groups = [min(cut.filters, layer.filters - f) for f in range(0, layer.filters, cut.filters)]
    planes, weights = [], []
    some = range(min(step.channels, 2))  # then all were in both buffers, or in one only
    taps = step.kernel[0] * step.kernel[1]
    for x in range(0, layer.out_size[1], cut.columns):
        first, end = layer.needed_columns(x, min(cut.columns, layer.out_size[1] - x))
        for y in range(0, layer.out_size[0], cut.rows):
            last = min(y + cut.rows, layer.out_size[0]) - 1
            size = (end - first) * (layer.needed(last)[1] - layer.needed(y)[0]) * layer.in_bytes
            planes += [size for _ in groups for _ in some]
            weights += [filters * taps for filters in groups for _ in some]
    yield from _pair("input", _by_turns(planes))
    level = Level.L2 if cut.in_l2 else Level.L1
    yield "sums", _SUM_BYTES * cut.filters * layer.sum_size(cut.rows, cut.columns), level
    if not task.in_place:
        yield from _pair("weights", _by_turns(weights))
