"""The tensors of a plan: which have a place, from which task to which, and how many of their rows.

Tasks are ranges of steps in order of execution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ai8xtools.software.graph import (
    Combine,
    Convolution,
    Elements,
    Pool,
    Step,
    StepGraph,
    sources_of,
)
from ai8xtools.software.kernels.call import KernelCall
from ai8xtools.software.memory import Overlap
from ai8xtools.software.plan.plan import Output
from ai8xtools.software.plan.streaming import Pull, parts_of, rows_of
from ai8xtools.software.plan.task import Task

Lives = Mapping[int, tuple[int, int]]
"""The first and the last task in which each tensor exists."""


def outputs_of(graph: StepGraph) -> tuple[Output, ...]:
    """Return where outputs go: those of steps are made in place, others are copied there."""
    outputs: list[Output] = []
    offset = 0
    targets = {step.target for step in graph.steps} - {graph.kept}
    direct: set[int] = set()
    for tensor in graph.outputs:
        value_bytes = graph.tensors[tensor].bytes_per_value
        copied = tensor not in targets or tensor in direct or offset % value_bytes != 0
        direct.add(tensor)
        outputs.append(Output(tensor, offset, copied))
        offset += graph.tensors[tensor].size_bytes
    return tuple(outputs)


def lives_of(graph: StepGraph, outputs: Sequence[Output], tasks: Sequence[range]) -> Lives:
    """Return when each tensor exists."""
    last = len(tasks) - 1
    lives: dict[int, tuple[int, int]] = {graph.input: (0, 0)}
    for number, task in enumerate(tasks):
        for tensor in _touched(graph.steps[task.start : task.stop]):
            lives[tensor] = (lives.get(tensor, (number,))[0], number)
    for output in outputs:
        if output.copied:
            lives[output.tensor] = (lives.get(output.tensor, (0,))[0], last)
    if graph.kept is not None:
        lives[graph.kept] = (0, last)
    return lives


def _touched(steps: Sequence[Step]) -> Iterator[int]:
    return (tensor for step in steps for tensor in (*sources_of(step), step.target))


def rings_of(
    graph: StepGraph, tasks: Sequence[Task], lives: Lives, outside: set[int]
) -> dict[int, int]:
    """Return the rows that have room of each tensor that has a place; `outside`: those of callers.

    The input has one if fewer rows than all of it have to exist at the same time.
    """
    rings: dict[int, int] = {}
    for number, task in enumerate(tasks):
        steps = graph.steps[task.index : task.last + 1]
        touched = dict.fromkeys(_touched(steps))
        inside = {t for t in touched if lives[t] == (number, number)} - {*graph.outputs}
        by_rows = task.cut is None and task.scheme is not None and task.scheme.by_rows
        passing = {link.step.target for link in task.links[:-1]}
        inside = inside - outside if by_rows else inside & passing
        rings |= {t: graph.tensors[t].rows for t in touched if t not in inside}
        if by_rows and inside:
            rings |= _demanded(graph, task, steps, inside)
    whole = rings.get(graph.input) == graph.tensors[graph.input].rows
    skipped = outside | {graph.input} if whole else outside
    return {tensor: rows for tensor, rows in rings.items() if tensor not in skipped}


def _demanded(
    graph: StepGraph, task: Task, steps: Sequence[Step], inside: set[int]
) -> dict[int, int]:
    """Return the rows of the rings of a task, found by following the demand."""
    targets = {step.target for step in steps}
    before = {t for step in steps for t in sources_of(step)} - targets - inside
    pull = Pull(graph, steps, {tensor: graph.tensors[tensor].rows for tensor in before})
    for root in task.roots:
        maker = next(step for step in steps if step.target == root)
        for row in range(rows_of(maker, graph)):
            pull.demand(root, row + 1)
    return {tensor: pull.ring(tensor) for tensor in inside}


def overlaps_of(
    graph: StepGraph,
    tasks: Sequence[Task],
    rings: Mapping[int, int],
    lives: Lives,
    calls: Mapping[int, KernelCall],
) -> Iterator[Overlap]:
    """Yield what may be made in the memory of data that die with that step."""
    for number, task in enumerate(tasks):
        step = graph.steps[task.index]
        begins = step.target in rings and lives[step.target][0] == number
        if task.count != 1 or not begins or step.target == graph.kept:
            continue
        for source in dict.fromkeys(sources_of(step)):
            whole = rings.get(source) == graph.tensors[source].rows
            if whole and lives[source][1] == number and source != graph.kept:
                call = calls.get(step.target)
                distance = (
                    _distance(step, graph, source) if call is None else 0 if call.in_place else None
                )
                if distance is not None:
                    yield Overlap(source, step.target, distance)


def _distance(step: Step, graph: StepGraph, source: int) -> int | None:
    """Return by how many bytes a result has to lie below the data that it is made from."""
    if isinstance(step, Elements):  # values are read before the one in their place is written
        width, own = (graph.tensors[one].bytes_per_value for one in (source, step.target))
        shape = step.shapes[step.sources.index(source)]
        return 0 if shape == (*step.size, step.channels) and width >= own else None
    if graph.tensors[step.target].bytes_per_value != 1:
        return None
    match step:
        case Combine() | Pool():  # a value is written when nothing in front of it is needed
            return 0
        case Convolution():
            data = step.in_size[1] * step.channels
            size = step.pool.out_size if step.pool else step.out_size
            row_bytes = size[1] * step.filters
            rows = range(rows_of(step, graph))
            return max((y + 1) * row_bytes - parts_of(step, y)[0].first * data for y in rows)
        case _:
            return None
