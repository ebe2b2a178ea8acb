"""The plan of a project as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from ai8xtools.software.emit.built import Built
from ai8xtools.software.graph import Convolution
from ai8xtools.software.memory import Block
from ai8xtools.software.plan.cost import is_rough
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.schemes import Channels, Planes, Rows, Weights
from ai8xtools.software.plan.task import Level, Task
from ai8xtools.software.profile import UNLIMITED, Profile


def plan_text(built: Built, profile: Profile) -> str:
    """Return what runs in which order, where everything stands and what it takes."""
    plan = built.plan
    if plan.scheme is None:
        return "\n".join((*_tasks(plan), "", *_levels(built, profile)))
    return "\n".join((*_steps(plan), "", *_blocks(plan), "", *_sums(built, profile)))


def sentence(built: Built, profile: Profile) -> str:
    """Return one line about the memory that a project needs."""
    plan, need = built.plan, built.need
    if plan.scheme is None:
        where = "in place" if need.in_place else "in l3"
        return (
            f"{profile.name}: {need.ram:,} of {profile.l1:,} bytes of l1 (plan: memory levels), "
            f"{plan.traffic.total:,} bytes copied, {need.weights:,} of weights {where}"
        )
    return (
        f"{profile.name}: {amount(need.ram, profile.l1)} bytes of RAM ({need.arena:,} of data, "
        f"plan: {plan.name}), {amount(need.flash, profile.flash)} bytes of flash "
        f"({need.weights:,} of weights)"
    )


def log_text(built: Built, profile: Profile, command_line: str) -> str:
    """Return the text of the log: how the project came about, its tensors and its plan."""
    tensors = (
        f"  {one.index:3}  {one.name:32} {one.rows}x{one.columns}x{one.channels}"
        f"{', 32 bits' if one.bytes_per_value == 4 else ''}"
        for one in built.plan.graph.tensors
    )
    shown = () if built.plan.scheme is None else ("Tensors:", *tensors, "")
    return log_of(profile, command_line, *shown, plan_text(built, profile))


def log_of(profile: Profile, command_line: str, *lines: str) -> str:
    """Return the text of a log with these lines: what was asked for stands above them."""
    return "\n".join((command_line, "", f"{profile.name} ({profile.core.name})", "", *lines)) + "\n"


def amount(used: int, limit: int) -> str:
    """Return how much of a memory is used, with its size if it has one."""
    return f"{used:,}" if limit == UNLIMITED else f"{used:,} of {limit:,}"


def _steps(plan: Plan) -> Iterator[str]:
    hop = "" if plan.sliding is None else f", {plan.macs:,} of a hop of {plan.sliding.hop:,} rows"
    yield f"Plan: {plan.name}, {len(plan.tasks)} segments, {plan.graph.macs:,} MACs{hop}"
    for number, task in enumerate(plan.tasks):
        for step in plan.steps_of(task):
            target = plan.graph.tensors[step.target]
            shape = f"{target.rows}x{target.columns}x{target.channels}"
            function = plan.function_of(step)
            kernel = "" if function is None else f"  {function}"
            if isinstance(step, Convolution):
                pooled = f", {step.pool.kind} pooling" if step.pool else ""
                kernel += f", {int(step.macs * plan.share_of(step)):,} MACs{pooled}"
            name = f"{step.name} {type(step).__name__.lower()}"
            yield f"  {number:3}  {name:32} {shape:>14}{kernel}"
            if step.target in plan.reasons:
                yield f"       own kernel: {plan.reasons[step.target]}"


def _blocks(plan: Plan) -> Iterator[str]:
    yield f"Memory: {plan.arena_bytes:,} bytes"
    yield f"  {'offset':>8} {'bytes':>8} {'rows':>9}  {'segments':>9}  of"
    for block in sorted(plan.blocks, key=lambda one: (one.offset, one.first)):
        lives = f"{block.first}..{block.last}"
        yield f"  {block.offset:8} {block.size:8} {_rows(plan, block):>9}  {lives:>9}  {block.name}"


def _rows(plan: Plan, block: Block) -> str:
    """Return how many rows of a tensor have room."""
    if block.tensor is None or block.tensor < 0:
        return ""
    return f"{block.rows} of {plan.graph.tensors[block.tensor].rows}"


def _sums(built: Built, profile: Profile) -> Iterator[str]:
    plan, need = built.plan, built.need
    sums = (
        sum(b.size for b in plan.blocks if b.name != "scratch" and b.first <= moment <= b.last)
        for moment in range(len(plan.tasks))
    )
    data = max(sums, default=0)
    yield (
        f"RAM: {amount(need.ram, profile.l1)} bytes: {plan.arena_bytes:,} of memory above, "
        f"{need.counters:,} of counters, {need.stack:,} kept for the stack"
    )
    yield f"Rings, maps and sums that exist at the same time: {data:,} bytes"
    yield (
        f"Flash: {amount(need.flash, profile.flash)} bytes: {need.weights:,} of weights and "
        f"tables, about {need.code:,} of code"
    )


def _tasks(plan: Plan) -> Iterator[str]:
    rough = f" (rough: not measured for {plan.core.name})" if is_rough(plan) else ""
    yield (
        f"Plan: memory levels, {len(plan.tasks)} steps, {plan.graph.macs:,} MACs, about "
        f"{plan.cycles:,.0f} cycles{rough}"
    )
    for task in plan.tasks:
        yield from _task(plan, task)


def _task(plan: Plan, task: Task) -> Iterator[str]:
    target = plan.graph.tensors[task.step.target]
    shape = f"{target.rows}x{target.columns}x{target.channels}"
    named = f"  {_number(task):>5}  {task.name:28}"
    yield f"{named} {_places(plan, task):14} {shape:>12}  {unit_text(task)}"
    if task.reason:
        yield f"       {'':28} {task.reason}"


def _number(task: Task) -> str:
    return f"{task.index}-{task.last}" if task.links else str(task.index)


def _places(plan: Plan, task: Task) -> str:
    sources = dict.fromkeys(level_of(plan, tensor) for tensor in task.sources)
    return f"{'+'.join(sources)} > {level_of(plan, task.step.target)}"


def level_of(plan: Plan, tensor: int) -> str:
    """Return the memory of a tensor."""
    spot = plan.places.get(tensor)
    return "caller" if spot is None else spot.level


def further_levels(profile: Profile) -> dict[Level, int]:
    """Return the bytes of the memories behind L1 that there are."""
    sizes = {Level.L1: 0, Level.L2: profile.l2, Level.L3: profile.l3}
    return {level: size for level, size in sizes.items() if size}


def unit_text(task: Task) -> str:
    """Return how a step is cut, in words."""
    if isinstance(task.cut, Channels):
        size = f"{task.cut.memory:,} bytes"
        weights = "" if all(link.in_place for link in task.links) else ", weights in L1"
        return f"chain: a channel at a time through {len(task.links)} layers in {size}{weights}"
    if task.links:
        rings = ", ".join(str(link.slots) for link in task.links)
        resident = any(not link.in_place for link in task.links)
        return f"chain: rings of {rings} rows{', weights in L1' if resident else ''}"
    match task.cut:
        case Rows():
            what = f"{task.scheme}: {_size(task, task.cut)}"
            weights = _weights(task, task.cut)
            return f"{what}{', ' + weights if weights else ''}"
        case Planes():
            size = f"{task.cut.filters} filters of {task.cut.rows}x{task.cut.columns}"
            sums = "L2" if task.cut.in_l2 else "L1"
            turned = ", channel by channel" if task.planar else ""
            return f"{task.scheme}: {size}, sums in {sums}{turned}"
        case _:
            return "copy"


def _size(task: Task, cut: Rows) -> str:
    assert task.layer is not None
    if cut.band >= task.layer.out_size[0] and cut.tiles == 1:
        return "all rows"
    return f"bands of {cut.band}x{cut.columns}"


def _weights(task: Task, cut: Rows) -> str:
    if task.in_place or not isinstance(task.step, Convolution):
        return ""
    match cut.weights:
        case Weights.IN_PLACE:
            return ""
        case Weights.RESIDENT:
            return "weights in L1"
        case Weights.ROWS_OUTER:
            return f"{cut.filters} filters at a time, again for each band"
        case Weights.WEIGHTS_OUTER:
            return f"{cut.filters} filters at a time, all rows for each"
        case _:
            assert_never(cut.weights)


def _levels(built: Built, profile: Profile) -> Iterator[str]:
    plan, traffic = built.plan, built.plan.traffic
    ram, data = built.need.ram, plan.arena_bytes
    yield f"L1: {ram:,} of {profile.l1:,} bytes: {data:,} of data and buffers"
    for level, size in further_levels(profile).items():
        yield f"{level}: {plan.used[level]:,} of {size:,} bytes"
    yield (
        f"Copied: {traffic.total:,} bytes: {traffic.inputs:,} of inputs, {traffic.weights:,} of "
        f"weights, {traffic.outputs:,} of outputs"
    )
