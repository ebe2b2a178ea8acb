"""The report of a project for a microcontroller: what it takes, where the time goes, what it gives.

Of a network that does not fit, the smallest plan is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.software.options import SoftwareOptions
from ai8xtools.commands.software.page import PIXELS, Shown, StepRow, limit, pages_of
from ai8xtools.commands.software.planning import Program, Results
from ai8xtools.diagnostics import Diagnostic
from ai8xtools.software.build import closest, need_of
from ai8xtools.software.emit.built import Built
from ai8xtools.software.emit.project import code_of
from ai8xtools.software.emit.text import further_levels, plan_text, unit_text
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import Convolution, Step, Tensor
from ai8xtools.software.plan.cost import cycles_of_plan, is_rough
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.prediction import predicted, work_of
from ai8xtools.software.plan.sliding import sliding_plan
from ai8xtools.software.plan.task import Task
from ai8xtools.software.profile import Profile
from ai8xtools.synthesis.emit.report_pictures import picture_of
from ai8xtools.synthesis.report.build import output_range

_Part = tuple[Step, StepRow]
"""A step, or the last one of a group, and what computes it."""


def report_of(
    built: Built,
    profile: Profile,
    results: Results,
    options: LoaderOptions,
    messages: Sequence[Diagnostic],
) -> tuple[str, str]:
    """Return page and JSON of a plan; an error among the messages is why it was refused."""
    tensors = built.plan.graph.tensors
    if built.plan.scheme is None:
        rough = is_rough(built.plan)
        parts = [_of_task(task, None if rough else task.cycles) for task in built.plan.tasks]
    else:
        parts = [*_of_steps(built.plan)]
    rows = tuple(_rows(parts, tensors, results))
    shown = _shown(built, profile, rows)
    return pages_of(shown, options.project, messages, options.accuracy)


def report_refusal(
    program: Program,
    profile: Profile,
    options: LoaderOptions,
    software: SoftwareOptions,
    messages: Sequence[Diagnostic],
) -> tuple[str, str]:
    """Return page and JSON of a network that does not fit: the smallest plan in one memory."""
    graph = program.graph
    if software.stream is None:
        built = closest(fuse(graph), profile, software.scheme, software.kernels)
    else:
        plan = sliding_plan(graph, profile.core, software.stream, software.kernels)
        built = Built(plan, need_of(plan, profile))
    return report_of(built, profile, program.results(), options, messages)


def _of_steps(plan: Plan) -> Iterator[_Part]:
    code = code_of(plan)
    kernels = {target: kernel.function for target, kernel in plan.kernels.items()}
    kernels |= {target: call.function for target, call in plan.calls.items()}
    for number, step in enumerate(plan.graph.steps):
        cost = None if plan.calls else predicted(work_of(step, plan.kernels), plan.core.name)
        share = plan.share_of(step)
        cycles = None if cost is None else cost.cycles * float(share)
        weights = code.weights[number].nbytes if number in code.weights else 0
        kernel = kernels.get(step.target, "")
        products = int(_products(step) * share)
        yield step, _row(step, step.name, kernel, products, cycles, weights)


def _of_task(task: Task, cycles: float | None) -> _Part:
    steps = [one.step for one in task.layers]
    weights = sum(step.weights.nbytes for step in steps if isinstance(step, Convolution))
    products = sum(map(_products, steps))
    return task.step, _row(task.step, task.name, unit_text(task), products, cycles, weights)


def _row(
    step: Step, name: str, kernel: str, products: int, cycles: float | None, weights: int
) -> StepRow:
    kind = type(step).__name__.lower()
    return StepRow(step.layer, name, kind, kernel, products, cycles, weights)


def _products(step: Step) -> int:
    return step.macs if isinstance(step, Convolution) else 0


def _shown(built: Built, profile: Profile, rows: tuple[StepRow, ...]) -> Shown:
    plan, need = built.plan, built.need
    further = further_levels(profile) if plan.scheme is None else {}
    cycle_sum = cycles_of_plan(plan)
    cycles = None if cycle_sum is None else round(cycle_sum)
    return Shown(
        core=plan.core.name,
        scheme=plan.name,
        needs=(
            ("L1" if plan.scheme is None else "RAM", need.ram, limit(profile.l1)),
            *((str(level), plan.used[level], size) for level, size in further.items()),
            ("Flash", need.flash, limit(profile.flash)),
        ),
        rows=rows,
        cycles=cycles,
        milliseconds=None if cycles is None else profile.milliseconds(cycles),
        joules=None if cycles is None else profile.joules(cycles),
        sentence=_sentence(rows, cycles),
        text=plan_text(built, profile),
        blocks=plan.blocks,
        moments=len(plan.tasks),
        arena=plan.arena_bytes,
    )


def _rows(parts: Sequence[_Part], tensors: Sequence[Tensor], results: Results) -> Iterator[StepRow]:
    cycles = [row.cycles for _, row in parts if row.cycles is not None]
    measure = cycles if len(cycles) == len(parts) else [float(row.products) for _, row in parts]
    whole = max(sum(measure), 1.0)
    last = {step.layer: number for number, (step, _) in enumerate(parts)}
    for number, (step, row) in enumerate(parts):
        values = results.get(step.layer) if last[step.layer] == number else None
        tensor = tensors[step.target] if step.target < len(tensors) else None
        yield replace(
            row,
            share=measure[number] / whole,
            shape="" if tensor is None else f"{tensor.channels}×{tensor.rows}×{tensor.columns}",
            result=None
            if values is None
            else output_range(values, wide=tensor is not None and tensor.bytes_per_value > 1),
            picture=None if values is None else picture_of(step.layer, values, PIXELS // len(last)),
        )


def _sentence(rows: Sequence[StepRow], cycles: int | None) -> str:
    """Say where most of the time goes."""
    if not rows:
        return "Nothing is computed: inputs are outputs."
    slowest = max(rows, key=lambda row: row.share)
    products = sum(row.products for row in rows)
    if cycles is None:
        return (
            "Cycles of this core, or of functions that are called, were not measured. "
            f"{slowest.share:.0%} of the {products:,} multiplications are in {slowest.name}."
        )
    kernel = f", in {slowest.kernel}" if slowest.kernel else ""
    return (
        f"An inference takes about {cycles:,} cycles (estimated), {products / max(cycles, 1):.2f} "
        f"multiplications in each; {slowest.share:.0%} of them go into {slowest.name}{kernel}."
    )
