"""The ways in which a step can be cut for the memory that it may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ai8xtools.software.graph import Combine, Convolution, Pool, Step, StepGraph
from ai8xtools.software.kernels import Kernel
from ai8xtools.software.plan.buffers import bytes_in
from ai8xtools.software.plan.geometry import Geometry
from ai8xtools.software.plan.layers import geometry_of, takes_planes
from ai8xtools.software.plan.schemes import (
    Cut,
    Pixels,
    Planes,
    Room,
    Rows,
    Scheme,
    Weights,
    cuts_of,
)
from ai8xtools.software.plan.task import Level, Task


def candidates(
    index: int,
    step: Step,
    graph: StepGraph,
    kernels: Mapping[int, Kernel],
    room: Room,
    planar: tuple[bool, bool],
) -> Iterator[Task]:
    """Yield the ways that fit, by their order in `Scheme`; for a step that copies one without.

    `planar`: whether its input and its output stand channel by channel.
    """
    layer = geometry_of(step, graph, kernels)
    if layer is None:
        if not any(planar):
            yield Task(index=index, step=step)
        return
    rows_only = not takes_planes(step)
    for way in Scheme:
        planes = way.unit is Planes
        if rows_only if planes else any(planar):
            continue
        task = _fitting(index, step, layer, kernels, room, way)
        if task is not None:
            yield replace(task, planar=planar[1])


def impossible(step: Step, layer: Geometry | None, ways: frozenset[Scheme]) -> str:
    """Return in words why a step is not cut in any of these ways."""
    way = min(ways, key=[*Scheme].index)
    why = "it does not fit"
    if layer is None:
        why = "it only copies"
    elif ways & {Scheme.ROW_CHAIN, Scheme.CHAIN}:
        why = "no layer beside it takes its rows or gives it rows alone, or their rings do not fit"
    elif way.unit is Pixels and not layer.pointwise:
        why = "a result needs more than the pixel in its place"
    elif way.unit is Planes and not isinstance(step, Convolution):
        why = "it has no weights"
    elif way.unit is Planes and isinstance(step, Convolution) and step.groups > 1:
        why = "its channels are not summed"
    elif way.unit is Planes and isinstance(step, Convolution) and step.transposed:
        why = "it is transposed"
    return f"not {way}: {why}"


def _fitting(
    index: int,
    step: Step,
    layer: Geometry,
    kernels: Mapping[int, Kernel],
    room: Room,
    way: Scheme,
) -> Task | None:
    """Return the largest units of a way whose buffers fit, or None."""
    l1 = room.l1
    while (cut := cuts_of(layer, replace(room, l1=l1))[way]) is not None:
        task = _task(index, step, layer, cut, way, room)
        need = bytes_in(Level.L1, task, kernels)
        if need <= room.l1:
            return task
        l1 -= need - room.l1  # kernels pad the weights of a group
    return None


def _task(index: int, step: Step, layer: Geometry, cut: Cut, way: Scheme, room: Room) -> Task:
    pixels, input_bytes = layer.pixels, layer.input_bytes
    if isinstance(cut, Pixels):
        size = (-(-layer.pixels // cut.count), cut.count)
        layer = replace(layer, in_size=size, out_size=size)
        step = _resized(step, size)
        cut = Rows(weights=cut.weights, band=1, filters=cut.filters, columns=cut.count, tiles=1,
                   memory=cut.memory)  # fmt: skip
    if isinstance(cut, Rows) and cut.filters >= layer.filters and not room.in_place:
        cut = replace(cut, weights=Weights.RESIDENT)
    outer = isinstance(cut, Rows) and cut.weights.filters_outer
    rows = isinstance(cut, Rows)
    return Task(
        index=index, step=step, layer=layer, scheme=way, cut=cut, reads=room.reads and rows,
        writes=room.writes and rows and not outer, ahead=room.dma, in_place=room.in_place,
        pixels=pixels, input_bytes=input_bytes,
    )  # fmt: skip


def _resized(step: Step, size: tuple[int, int]) -> Step:
    """Return a pointwise step on another arrangement of the same pixels."""
    match step:
        case Convolution():
            return replace(step, in_size=size, out_size=size)
        case Combine():
            return replace(step, size=size)
        case Pool():
            return replace(step, in_size=size, out_size=size)
        case _:
            return step
