"""A plan of memory levels as text for people, and as plan.json for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from software.graph import Convolution
from software.levels.cost import is_rough
from software.levels.plan import Level, LevelPlan, Task
from software.levels.schemes import Channels, Planes, Rows, Weights
from software.profile import Profile

if TYPE_CHECKING:
    from software.levels.build import LevelBuilt

FORMAT = 1


def level_text(built: LevelBuilt, profile: Profile) -> str:
    """Return how each step is cut and why, what is copied, and what the memories hold."""
    plan = built.plan
    rough = f" (rough: not measured for {plan.core.name})" if is_rough(plan) else ""
    lines = [f"Plan: memory levels, {len(plan.tasks)} steps, {plan.graph.macs:,} MACs, about "
             f"{plan.cycles:,.0f} cycles{rough}"]  # fmt: skip
    for task in plan.tasks:
        lines += _task(plan, task)
    return "\n".join((*lines, "", *_sums(built, profile)))


def level_log(built: LevelBuilt, profile: Profile, command_line: str) -> str:
    """Return the text of the log."""
    head = (command_line, "", f"{profile.name} ({profile.core.name})", "")
    return "\n".join((*head, level_text(built, profile))) + "\n"


def _task(plan: LevelPlan, task: Task) -> Iterator[str]:
    target = plan.graph.tensors[task.step.target]
    shape = f"{target.rows}x{target.columns}x{target.channels}"
    named = f"  {_number(task):>5}  {task.name:28}"
    yield f"{named} {_places(plan, task):14} {shape:>12}  {unit_text(task)}"
    if task.reason:
        yield f"       {'':28} {task.reason}"


def _number(task: Task) -> str:
    return f"{task.index}-{task.last}" if task.links else str(task.index)


def _places(plan: LevelPlan, task: Task) -> str:
    sources = dict.fromkeys(level_of(plan, tensor) for tensor in task.sources)
    return f"{'+'.join(sources)} > {level_of(plan, task.step.target)}"


def level_of(plan: LevelPlan, tensor: int) -> str:
    """Return the memory of a tensor."""
    spot = plan.places.get(tensor)
    return str(Level.CALLER if spot is None else spot.level)


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
            what = f"{task.way}: {_size(task, task.cut)}"
            weights = _weights(task, task.cut)
            return f"{what}{', ' + weights if weights else ''}"
        case Planes():
            size = f"{task.cut.filters} filters of {task.cut.rows}x{task.cut.columns}"
            sums = "L2" if task.cut.in_l2 else "L1"
            turned = ", channel by channel" if task.planar else ""
            return f"{task.way}: {size}, sums in {sums}{turned}"
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
        case Weights.RESIDENT:
            return "weights in L1"
        case Weights.ROWS_OUTER:
            return f"{cut.filters} filters at a time, again for each band"
        case _:
            return f"{cut.filters} filters at a time, all rows for each"


def _sums(built: LevelBuilt, profile: Profile) -> Iterator[str]:
    plan, traffic = built.plan, built.plan.traffic
    yield f"L1: {built.ram:,} of {profile.l1:,} bytes: {plan.used[Level.L1]:,} of data and buffers"
    for level, size in ((Level.L2, profile.l2), (Level.L3, profile.l3)):
        if size:
            yield f"{level}: {plan.used[level]:,} of {size:,} bytes"
    yield (
        f"Copied: {traffic.total:,} bytes: {traffic.inputs:,} of inputs, {traffic.weights:,} of "
        f"weights, {traffic.outputs:,} of outputs"
    )


def level_plan_file(plan: LevelPlan, name: str) -> str:
    """Return the text of plan.json."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "name": name,
        "scheme": plan.scheme,
        "core": plan.core.name,
        "arena_bytes": plan.used[Level.L1],
        "l2_bytes": plan.used[Level.L2],
        "l3_bytes": plan.used[Level.L3],
        "macs": plan.graph.macs,
        "cycles": round(plan.cycles),
        "copied": {
            "inputs": plan.traffic.inputs,
            "weights": plan.traffic.weights,
            "outputs": plan.traffic.outputs,
        },
        "tasks": [
            {"index": task.index, "name": task.name, "layer": task.step.layer,
             "way": task.way, "unit": unit_text(task), "reason": task.reason,
             "cycles": round(task.cycles),
             "steps": [link.index for link in task.layers],
             "reads": [level_of(plan, tensor) for tensor in task.sources],
             "writes": level_of(plan, task.step.target)}
            for task in plan.tasks
        ],
        "blocks": [
            {"name": b.name, "tensor": b.tensor, "bytes": b.size, "offset": b.offset,
             "first": b.first, "last": b.last}
            for b in plan.blocks
        ],
    }  # fmt: skip
    return json.dumps(content, indent=1) + "\n"
