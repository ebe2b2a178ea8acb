"""The buffers of a task in L1 and L2: what each holds and how many bytes it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from software.graph import Convolution
from software.kernels import Kernel
from software.levels.geometry import Geometry, aligned
from software.levels.layers import packed_groups, scratch_of
from software.levels.plan import Level, Task, sums_rows
from software.levels.schemes import Planes, Rows, Weights

_SUM_BYTES = 4


def buffers_of(task: Task, kernels: Mapping[int, Kernel]) -> Iterator[tuple[str, int, Level]]:
    """Yield the name, the bytes and the memory of each buffer of a task."""
    match task.cut:
        case Rows():
            found = _of_rows(task, task.cut, kernels)
        case Planes():
            found = _of_planes(task, task.cut)
        case _:
            return
    for name, size, level in found:
        if size:
            yield name, aligned(size, task.align), level


def _of_rows(
    task: Task, cut: Rows, kernels: Mapping[int, Kernel]
) -> Iterator[tuple[str, int, Level]]:
    layer = _layer(task)
    if not task.reads:
        row = max(widest(layer, cut.columns), 1) * layer.channels * layer.in_bytes
        size = (task.slots - 1) * task.pitch + row
        for source in range(layer.sources):
            yield f"input {source}", size, Level.L1
    if not task.writes:
        for number in range(min(2, bands_of(layer, cut.band))):
            yield f"output {number}", output_bytes(task), Level.L1
    step = task.step
    if isinstance(step, Convolution):
        if not task.in_place:
            sizes = weight_sizes(task, kernels)
            for number in range(min(2, len(sizes))):
                yield f"weights {number}", max(sizes), Level.L1
        yield "scratch", scratch_of(step, kernels), Level.L1


def _layer(task: Task) -> Geometry:
    assert task.layer is not None
    return task.layer


def bands_of(layer: Geometry, rows: int) -> int:
    """Return the bands into which the output rows are cut."""
    return -(-layer.out_size[0] // rows)


def output_bytes(task: Task) -> int:
    """Return the bytes of one output buffer of rows."""
    layer, cut = _layer(task), task.cut
    assert isinstance(cut, Rows)
    filters = cut.filters if task.filters_outer else layer.filters
    rows = min(cut.band, layer.out_size[0])
    return rows * min(cut.columns, layer.out_size[1]) * filters * layer.out_bytes


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


def tallest(layer: Geometry, rows: int) -> int:
    """Return the most input rows of a band."""
    height = layer.out_size[0]
    starts = [*range(0, height, rows), height]
    return max(layer.needed(end - 1)[1] - layer.needed(y)[0] for y, end in pairwise(starts))


def _of_planes(task: Task, cut: Planes) -> Iterator[tuple[str, int, Level]]:
    layer, step = _layer(task), task.step
    assert isinstance(step, Convolution)
    units = bands_of(layer, cut.rows) * task.groups * step.channels
    units *= -(-layer.out_size[1] // cut.columns)
    plane = max(tallest(layer, cut.rows) * widest(layer, cut.columns), 1) * layer.in_bytes
    for number in range(min(2, units)):
        yield f"input {number}", plane, Level.L1
    rows, columns = sums_rows(task)
    level = Level.L2 if cut.in_l2 else Level.L1
    yield "sums", _SUM_BYTES * cut.filters * rows * columns, level
    if not task.in_place:
        for number in range(min(2, units)):
            yield f"weights {number}", cut.filters * step.kernel[0] * step.kernel[1], Level.L1


def takes_rows_outer(task: Task) -> bool:
    """Whether the weights are streamed again for every band."""
    return isinstance(task.cut, Rows) and task.cut.weights is Weights.ROWS_OUTER
