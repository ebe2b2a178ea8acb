"""plan.json: the steps of a project, their memory and their kernels, for programs to read."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ai8xtools.software.emit.code import Code
from ai8xtools.software.emit.interface import Interface
from ai8xtools.software.emit.text import level_of, unit_text
from ai8xtools.software.graph import Convolution, sources_of
from ai8xtools.software.plan.layers import scratch_bytes
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.task import Level

FORMAT = 1


def plan_file(plan: Plan, code: Code, name: str, interface: Interface) -> str:
    """Return the text of plan.json; the library of the `interface` is compiled with the project."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "name": name,
        "scheme": plan.name,
        "core": plan.core.name,
        "arena_bytes": plan.arena_bytes,
    }
    content |= _tasks(plan) if plan.scheme is None else _segments(plan, code)
    if interface.library is not None:
        content["library"] = asdict(interface.library)
    if interface.naming is not None and interface.naming.power:
        content["power"] = {**interface.naming.power}
    return json.dumps(content, indent=1) + "\n"


def _segments(plan: Plan, code: Code) -> dict[str, Any]:
    """Return the description of a plan in one memory."""
    graph = plan.graph
    return {
        "data_bytes": plan.data_bytes,
        "lower_bound": plan.lower_bound,
        "macs": graph.macs,
        "takes_rows": plan.takes_rows,
        "tensors": [
            {"index": t.index, "name": t.name, "rows": t.rows, "columns": t.columns,
             "channels": t.channels, "bytes": t.size_bytes}
            for t in graph.tensors
        ],
        "segments": [
            {"steps": [_step(plan, code, index) for index in task.steps]} for task in plan.tasks
        ],
        "blocks": [
            {"name": b.name, "tensor": b.tensor if (b.tensor or 0) >= 0 else None, "rows": b.rows,
             "bytes": b.size, "offset": b.offset, "first": b.first, "last": b.last}
            for b in plan.blocks
        ],
        "outputs": [{"tensor": o.tensor, "offset": o.offset} for o in plan.outputs],
    }  # fmt: skip


def _tasks(plan: Plan) -> dict[str, Any]:
    """Return the description of a plan for levels of memory."""
    return {
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
             "way": task.scheme, "unit": unit_text(task), "reason": task.reason,
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


def _step(plan: Plan, code: Code, index: int) -> dict[str, Any]:
    step = plan.graph.steps[index]
    entry: dict[str, Any] = {
        "index": index,
        "kind": type(step).__name__.lower(),
        "layer": step.layer,
        "name": step.name,
        "reads": list(sources_of(step)),
        "writes": step.target,
    }
    if (call := plan.calls.get(step.target)) is not None:
        entry |= {"kernel": call.function, "scratch_bytes": call.scratch_bytes}
    elif isinstance(step, Convolution):
        entry |= {
            "kernel": plan.kernels[step.target].function,
            "scratch_bytes": scratch_bytes(step, plan.kernels),
        }
    if step.target in plan.reasons:
        entry["own_kernel"] = plan.reasons[step.target]
    if isinstance(step, Convolution):
        entry |= {
            "macs": step.macs,
            "weight_bytes": code.weights[code.shared.get(index, index)].nbytes,
        }
    return entry
