"""The cost of a task: computing, and copies that run at the same time.

Source: docs/memory-levels.md, "Cost".
"""

from __future__ import annotations

from collections.abc import Mapping

from ai8xtools.software.graph import Combine, Convolution, Pool, Step, sources_of
from ai8xtools.software.kernels import Core, Kernel
from ai8xtools.software.plan.buffers import bands_of, copied_weights, copies_of_weights
from ai8xtools.software.plan.layers import part_of
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.prediction import predicted, total_work, work_of
from ai8xtools.software.plan.schemes import Channels, Planes, Rows
from ai8xtools.software.plan.task import Task, Traffic
from ai8xtools.software.profile import Profile

_WAITING = 20.0
"""Cycles of starting and waiting for a unit."""
UNITS_STACK = 768
"""Estimated stack of a task in units, with its callees."""
_STACK_BYTES, _CALL_BYTES, _POINTER_BYTES = 432, 8, 4
"""Stack of a kernel with all below it, of the call of a step, and of a row that it asks for."""
_OTHERS = {"products": 8.0, "values": 20.0, "rows": 150.0}
"""Cycles on cores and of kernels that were not measured."""


def compute_cycles(task: Task, core: Core, kernels: Mapping[int, Kernel]) -> float:
    """Return the cycles of computing a task, all data in L1."""
    return cycles_of_work(work_of_task(task, kernels), task, core)


def work_of_task(task: Task, kernels: Mapping[int, Kernel]) -> dict[str, float]:
    """Return the amounts of work of a task, by how it is cut."""
    match task.cut:
        case Planes():
            return plane_work(task)
        case Channels():
            return channel_work(task)
        case _:
            return row_work(task, kernels)


def is_rough(plan: Plan) -> bool:
    """Whether the core of a plan, or a kernel of it, was not measured: cycles are rough then."""
    computing = (task for task in plan.layers if task.layer is not None)
    return any(
        predicted(work_of_task(task, plan.kernels), plan.core.name) is None for task in computing
    )


def cycles_of_plan(plan: Plan) -> float | None:
    """Return the cycles of an inference, or of a hop; None if they were not measured."""
    if plan.scheme is None:
        return None if is_rough(plan) else plan.cycles
    if plan.calls:  # of functions that were not measured
        return None
    shares = {step.target: float(plan.share_of(step)) for step in plan.graph.steps}
    whole = predicted(total_work(plan.graph.steps, plan.kernels, shares), plan.core.name)
    return None if whole is None else whole.cycles


def row_work(task: Task, kernels: Mapping[int, Kernel]) -> dict[str, float]:
    """Return the amounts of work of a step in rows; inputs are gathered for each group again."""
    step, cut = task.step, task.cut
    assert isinstance(cut, Rows)
    if not isinstance(step, Convolution) or cut.filters >= step.filters:
        return work_of(step, kernels)
    groups, rest = divmod(step.filters, cut.filters)
    amounts: dict[str, float] = {}
    for times, filters in ((groups, cut.filters), (1, rest)):
        some = work_of(part_of(step, 0, filters), kernels) if filters else {}
        for name, amount in some.items():
            amounts[name] = amounts.get(name, 0) + times * amount
    return amounts


def cycles_of_work(work: Mapping[str, float], task: Task, core: Core) -> float:
    """Return the cycles of amounts of work of a task."""
    step, layer = task.step, task.layer
    assert layer is not None
    if (cost := predicted(work, core.name)) is not None:
        return cost.cycles
    values = task.pixels * layer.filters
    return (
        products(step) * _OTHERS["products"]
        + values * _OTHERS["values"]
        + layer.out_size[0] * _OTHERS["rows"]
    )


def plane_work(task: Task) -> dict[str, float]:
    """Return the amounts of work of a convolution that is computed an input channel at a time."""
    step, cut = task.step, task.cut
    assert isinstance(step, Convolution) and isinstance(cut, Planes)
    rows = step.out_size[0] * -(-step.out_size[1] // cut.columns)
    taps = step.kernel[0] * step.kernel[1]
    lines = rows * step.filters * step.channels
    bands = -(-step.out_size[0] // cut.rows)
    tiles = -(-step.out_size[1] // cut.columns)
    return {
        "planes units": bands * tiles * -(-step.filters // cut.filters) * step.channels,
        "planes products": step.macs,
        "planes taps": lines * taps,
        "planes lines": lines,
        "planes values": step.out_size[0] * step.out_size[1] * step.filters,
    }


def channel_work(task: Task) -> dict[str, float]:
    """Return the amounts of work of a layer that is computed a channel at a time, in place."""
    step, layer = task.step, task.layer
    assert layer is not None
    results = layer.pixels * layer.channels
    if not isinstance(step, Convolution):
        return {"channels values": products(step), "channels windows": results}
    sums = step.out_size[0] * step.out_size[1] * step.filters
    pooled = results * (step.pool is not None)
    return {"channels products": step.macs, "channels sums": sums, "channels pooled": pooled}


def products(step: Step) -> int:
    """Return the products of a convolution, the values in windows of a pooling, the operands."""
    match step:
        case Convolution():
            return step.macs
        case Pool():
            window = step.window[0] * step.window[1]
            return window * step.out_size[0] * step.out_size[1] * step.channels
        case Combine():
            return len(step.sources) * step.size[0] * step.size[1] * step.channels
        case _:
            return 0


def traffic_of(task: Task, kernels: Mapping[int, Kernel]) -> Traffic:
    """Return the bytes that a task copies."""
    layer, cut = task.layer, task.cut
    if layer is None or cut is None:
        return Traffic()
    stored = copied_weights(task, kernels)
    if isinstance(cut, Channels):
        return Traffic(inputs=0 if task.chained else layer.input_bytes, weights=stored,
                       outputs=0 if task.writes else layer.output_bytes)  # fmt: skip
    assert isinstance(cut, Rows | Planes)
    width = layer.out_size[1]
    tiles = range(0, width, cut.columns)
    ends = [layer.needed_columns(x, min(cut.columns, width - x)) for x in tiles]
    columns = sum(end - first for first, end in ends)
    outputs = task.pixels * layer.filters * layer.out_bytes
    pixel = layer.channels * layer.in_bytes
    if isinstance(cut, Planes):
        height = layer.out_size[0]
        rows = sum(
            layer.needed(min(y + cut.rows, height) - 1)[1] - layer.needed(y)[0]
            for y in range(0, height, cut.rows)
        )
        bands = bands_of(layer, cut.rows)
        return Traffic(inputs=rows * columns * pixel * task.groups,
                       weights=stored * bands * len(tiles), outputs=outputs)  # fmt: skip
    times = task.groups if task.filters_outer else 1
    rows = layer.needed(task.rows - 1)[1]
    data = min(rows * columns * pixel, task.input_bytes) if len(tiles) == 1 else (
        rows * columns * pixel)  # fmt: skip
    return Traffic(
        inputs=0 if task.reads or task.chained else data * layer.sources * times,
        weights=stored * copies_of_weights(layer, cut),
        outputs=0 if task.writes else outputs,
    )


def units_of(task: Task) -> int:
    """Return how many units a task has."""
    layer, cut = task.layer, task.cut
    assert layer is not None
    match cut:
        case Rows():
            groups = task.groups if task.filters_outer else 1
            return bands_of(layer, cut.band) * groups * cut.tiles
        case Planes():
            tiles = -(-layer.out_size[1] // cut.columns)
            return bands_of(layer, cut.rows) * task.groups * layer.channels * tiles
        case Channels():
            return layer.channels
        case _:
            return 1


def copy_cycles(task: Task, traffic: Traffic, profile: Profile, *, far: bool) -> float:
    """Return the cycles of all copies of a task; `far`: its data are in L3, not in L2."""
    data = profile.bw31 if far else profile.bw21
    cycles = (traffic.inputs + traffic.outputs) / data + traffic.weights / profile.bw31
    return cycles + 2 * units_of(task) * profile.t_dma * (traffic.total > 0)


def cycles_of(compute: float, copies: float, units: int, *, dma: bool) -> float:
    """Return the cycles of units whose copies go on beside the computation, or before it."""
    if not copies:
        return compute
    if not dma:
        return compute + copies
    first = copies / units
    return first + max(compute, copies) + units * _WAITING


def stack_bytes(plan: Plan) -> int:
    """Return what a plan takes of the stack: an estimate, which compilers keep from -Os on.

    Steps that ask each other for rows are called from each other.
    """
    if plan.scheme is None:
        return UNITS_STACK
    calls = (sum(map(_call_bytes, plan.steps_of(task))) for task in plan.tasks)
    return _STACK_BYTES + max(calls, default=0)


def _call_bytes(step: Step) -> int:
    """Return the bytes of the stack while a step asks for its rows."""
    match step:
        case Convolution():
            rows = step.kernel[0]
        case Pool():
            rows = step.window[0]
        case _:
            rows = len(sources_of(step))
    return _CALL_BYTES + _POINTER_BYTES * rows
