"""The plan of a project as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from software.build import Built
from software.graph import Convolution
from software.memory import Block
from software.plan.plan import Plan
from software.profile import UNLIMITED, Profile


def plan_text(built: Built, profile: Profile) -> str:
    """Return what runs in which order, where everything stands and what it takes."""
    return "\n".join((*_steps(built.plan), "", *_blocks(built.plan), "", *_sums(built, profile)))


def log_text(built: Built, profile: Profile, command_line: str) -> str:
    """Return the text of the log: how the project came about, its tensors and its plan."""
    tensors = (
        f"  {one.index:3}  {one.name:32} {one.rows}x{one.columns}x{one.channels}"
        f"{', 32 bits' if one.bytes_per_value == 4 else ''}"
        for one in built.plan.graph.tensors
    )
    head = (command_line, "", f"{profile.name} ({profile.core.name})", "", "Tensors:", *tensors)
    return "\n".join((*head, "", plan_text(built, profile))) + "\n"


def amount(used: int, limit: int) -> str:
    """Return what is used of a memory, with its size if it has one."""
    return f"{used:,}" if limit == UNLIMITED else f"{used:,} of {limit:,}"


def _steps(plan: Plan) -> Iterator[str]:
    yield f"Plan: {plan.scheme}, {len(plan.segments)} segments, {plan.graph.macs:,} MACs"
    for number, segment in enumerate(plan.segments):
        for step in plan.steps_of(segment):
            target = plan.graph.tensors[step.target]
            shape = f"{target.rows}x{target.columns}x{target.channels}"
            function = plan.function_of(step)
            kernel = "" if function is None else f"  {function}"
            if isinstance(step, Convolution):
                pooled = f", {step.pool.kind} pooling" if step.pool else ""
                kernel += f", {step.macs:,} MACs{pooled}"
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
        for moment in range(len(plan.segments))
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
