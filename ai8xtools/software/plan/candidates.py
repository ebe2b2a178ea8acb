"""The ways in which a step can be cut for the memory that it may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ai8xtools.software.graph import Combine, Convolution, Graph, Pool, Step
from ai8xtools.software.kernels import Kernel
from ai8xtools.software.plan.buffers import bytes_in
from ai8xtools.software.plan.geometry import Geometry
from ai8xtools.software.plan.layers import geometry_of, scratch_of, takes_planes
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
from ai8xtools.values import frozen


@frozen(kw_only=True)
class Setting:
    """What surrounds a step: bytes of L1 and L2 that it may use, and where its data are.

    With `reads` and `writes` its input and output are in L1; with `planar_in` and `planar_out`
    they stand channel by channel.
    """

    l1: int
    l2: int
    dma: bool
    in_place: bool
    reads: bool
    writes: bool
    planar_in: bool
    planar_out: bool


def candidates(
    index: int, step: Step, graph: Graph, kernels: Mapping[int, Kernel], setting: Setting
) -> Iterator[Task]:
    """Yield the ways that fit, by their order in `Scheme`; for a step that copies one without."""
    layer = geometry_of(step, graph, kernels)
    if layer is None:
        if not setting.planar_in and not setting.planar_out:
            yield Task(index=index, step=step)
        return
    rows_only = not takes_planes(step)
    for way in Scheme:
        planes = way.unit is Planes
        if (planes and rows_only) or (not planes and (setting.planar_in or setting.planar_out)):
            continue
        task = _fitting(index, step, layer, kernels, setting, way)
        if task is not None:
            yield task


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
    setting: Setting,
    way: Scheme,
) -> Task | None:
    """Return the largest units of a way whose buffers fit, or None."""
    in_place = setting.in_place or not isinstance(step, Convolution)
    l1 = setting.l1
    while True:
        room = Room(l1=l1, l2=setting.l2, dma=setting.dma, in_place=in_place,
                    scratch=scratch_of(step, kernels), reads=setting.reads,
                    writes=setting.writes)  # fmt: skip
        cut = cuts_of(layer, room)[way]
        if cut is None:
            return None
        task = _task(index, step, layer, cut, way, replace(setting, in_place=in_place))
        need = bytes_in(Level.L1, task, kernels)
        if need <= setting.l1:
            return task
        l1 -= need - setting.l1  # kernels pad the weights of a group


def _task(index: int, step: Step, layer: Geometry, cut: Cut, way: Scheme, setting: Setting) -> Task:
    pixels, input_bytes = layer.pixels, layer.input_bytes
    if isinstance(cut, Pixels):
        size = (-(-layer.pixels // cut.count), cut.count)
        layer = replace(layer, in_size=size, out_size=size)
        step = _resized(step, size)
        cut = Rows(weights=cut.weights, band=1, filters=cut.filters, columns=cut.count, tiles=1,
                   memory=cut.memory)  # fmt: skip
    if isinstance(cut, Rows) and cut.filters >= layer.filters and not setting.in_place:
        cut = replace(cut, weights=Weights.RESIDENT)
    outer = isinstance(cut, Rows) and cut.weights.filters_outer
    rows = isinstance(cut, Rows)
    return Task(
        index=index, step=step, layer=layer, scheme=way, cut=cut, reads=setting.reads and rows,
        writes=setting.writes and rows and not outer, ahead=setting.dma,
        in_place=setting.in_place, planar=setting.planar_out, pixels=pixels,
        input_bytes=input_bytes,
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
