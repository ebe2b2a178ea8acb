"""Plans of a graph: whole tensors, or rings of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import lcm

from ai8xtools.software.graph import Combine, Convolution, Elements, Graph, Pool, Step, sources_of
from ai8xtools.software.kernels import Core, Kernel, choose
from ai8xtools.software.kernels.call import Call
from ai8xtools.software.memory import Block, Overlap, aligned
from ai8xtools.software.plan.arena import place
from ai8xtools.software.plan.lines import in_lines
from ai8xtools.software.plan.plan import DELIVERED, Output, Plan, Scheme, Segment
from ai8xtools.software.plan.streaming import Pull, parts_of, rows_of, streams
from ai8xtools.software.plan.task import Level, Spot

_STACK_BYTES, _CALL_BYTES, _POINTER_BYTES = 384, 8, 4
"""Stack of a kernel with all below it, of the call of a step, and of a row that it asks for."""


def plan(
    graph: Graph,
    core: Core,
    scheme: Scheme,
    kernels: frozenset[str] | None = None,
    calls: Mapping[int, Call] | None = None,
    *,
    outside: bool = False,
) -> Plan:
    """Return a plan of one scheme, whether or not it fits any memory.

    `calls` are the steps that a library computes, by target; with them (even if there are none)
    outputs stand in the arena, unless these and the input are always `outside`. Steps that count
    rows anew are made by rows with those in front of them if that takes less memory.
    """
    if not scheme.by_rows:
        return plan_of(in_lines(graph), core, scheme, kernels, calls, outside=outside)
    ways = dict.fromkeys(tuple(segments_of(graph, recounted=some)) for some in (False, True))
    plans = [
        plan_of(graph, core, scheme, kernels, calls, segments, outside=outside) for segments in ways
    ]
    return min(plans, key=lambda one: one.arena_bytes + stack_bytes(one))


def plan_of(
    graph: Graph,
    core: Core,
    scheme: Scheme,
    kernels: frozenset[str] | None,
    calls: Mapping[int, Call] | None,
    segments: tuple[Segment, ...] | None = None,
    *,
    outside: bool,
) -> Plan:
    """Return the plan of some segments (None: each step by itself)."""
    if segments is None:
        segments = tuple(_segment(graph, [index]) for index in range(len(graph.steps)))
    outputs = outputs_of(graph)
    elsewhere = {one.tensor for one in outputs if not one.copied}
    elsewhere |= {graph.input} if outside else set()
    lives = _lives(graph, segments, outputs)
    rings = _rings(graph, segments, lives, elsewhere, scheme)
    chosen = {
        step.target: choose(step, core, kernels)
        for step in graph.steps
        if isinstance(step, Convolution) and step.target not in (calls or {})
    }
    blocks = [
        Block(name=graph.tensors[tensor].name, size=rows * graph.tensors[tensor].row_bytes,
              first=lives[tensor][0], last=lives[tensor][1], tensor=tensor, rows=rows)
        for tensor, rows in rings.items()
    ]  # fmt: skip
    for number, segment in enumerate(segments):
        blocks += _helpers(graph, segment, number, chosen, calls or {})
    if calls is not None and not outside:
        blocks.append(_delivered(graph, outputs, lives, len(segments) - 1))
    overlaps = tuple(_overlaps(graph, segments, rings, lives, calls or {}))
    placed, peak = place(blocks, overlaps)
    return Plan(
        graph=graph, scheme=scheme, core=core, segments=segments, rings=rings, kernels=chosen,
        outputs=outputs, blocks=placed, overlaps=overlaps,
        used=dict.fromkeys([Level.L1], aligned(peak)),
        places={b.tensor: Spot(Level.L1, b.offset) for b in placed if b.tensor is not None},
        calls=calls or {},
    )  # fmt: skip


def segments_of(graph: Graph, *, recounted: bool) -> Iterator[Segment]:
    """Yield steps that run together by rows, in order of execution."""
    together: list[int] = []
    for index, step in enumerate(graph.steps):
        if streams(step, graph, recounted=recounted):
            together.append(index)
            continue
        if together:
            yield _segment(graph, together)
        together = []
        yield _segment(graph, [index])
    if together:
        yield _segment(graph, together)


def _segment(graph: Graph, steps: Sequence[int]) -> Segment:
    """Return a segment; its roots are needed behind it."""
    later = {
        source
        for index, step in enumerate(graph.steps)
        if index not in steps and index > steps[0]
        for source in sources_of(step)
    } | {*graph.outputs}
    targets = [graph.steps[index].target for index in steps]
    return Segment(tuple(steps), tuple(target for target in targets if target in later))


def outputs_of(graph: Graph) -> tuple[Output, ...]:
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


def _delivered(
    graph: Graph, outputs: Sequence[Output], lives: Mapping[int, tuple[int, int]], last: int
) -> Block:
    """Return the block of all outputs, from the first that is made there."""
    final = outputs[-1]
    first = min([last, *(lives[o.tensor][0] for o in outputs if not o.copied)])
    size = final.offset + graph.tensors[final.tensor].size_bytes
    return Block(name="output", size=size, first=first, last=last, tensor=DELIVERED)


def lives_of(graph: Graph, outputs: Sequence[Output]) -> dict[int, tuple[int, int]]:
    """Return the first and the last step in which each tensor exists, one step after the other."""
    alone = tuple(_segment(graph, [index]) for index in range(len(graph.steps)))
    return _lives(graph, alone, outputs)


def _lives(
    graph: Graph, segments: Sequence[Segment], outputs: Sequence[Output]
) -> dict[int, tuple[int, int]]:
    """Return the first and the last segment in which each tensor exists."""
    last = len(segments) - 1
    lives: dict[int, tuple[int, int]] = {graph.input: (0, 0)}
    for number, segment in enumerate(segments):
        for index in segment.steps:
            step = graph.steps[index]
            for tensor in (*sources_of(step), step.target):
                first, _ = lives.get(tensor, (number, number))
                lives[tensor] = (first, number)
    for output in outputs:
        if output.copied:
            lives[output.tensor] = (lives.get(output.tensor, (0, 0))[0], last)
    if graph.kept is not None:
        lives[graph.kept] = (0, last)
    return lives


def _rings(
    graph: Graph,
    segments: Sequence[Segment],
    lives: Mapping[int, tuple[int, int]],
    outside: set[int],
    scheme: Scheme,
) -> dict[int, int]:
    """Return the rows in the arena of each tensor that stands there."""
    rings: dict[int, int] = {}
    delivered = {*graph.outputs}
    for number, segment in enumerate(segments):
        steps = [graph.steps[index] for index in segment.steps]
        touched = dict.fromkeys(t for step in steps for t in (*sources_of(step), step.target))
        inside = {t for t in touched if lives[t] == (number, number) and t not in delivered}
        by_rows = scheme.by_rows and streams(steps[0], graph, recounted=len(steps) > 1)
        inside = inside - outside if by_rows else set()
        rings |= {t: graph.tensors[t].rows for t in touched if t not in inside}
        if inside:
            rings |= _demanded(graph, segment, steps, inside)
    needs_input = scheme.by_rows and _is_ring(graph, rings)
    skipped = outside if needs_input else outside | {graph.input}
    return {tensor: rows for tensor, rows in rings.items() if tensor not in skipped}


def _is_ring(graph: Graph, rings: Mapping[int, int]) -> bool:
    """Whether less than the whole input has to exist at the same time."""
    return rings.get(graph.input, 1 << 30) < graph.tensors[graph.input].rows


def _demanded(
    graph: Graph, segment: Segment, steps: Sequence[Step], inside: set[int]
) -> dict[int, int]:
    """Return the rows of the rings of a segment, found by following the demand."""
    targets = {step.target for step in steps}
    touched = {t for step in steps for t in sources_of(step)}
    before = touched - targets - inside
    pull = Pull(graph, steps, {tensor: graph.tensors[tensor].rows for tensor in before})
    for root in segment.roots:
        maker = next(step for step in steps if step.target == root)
        for row in range(rows_of(maker, graph)):
            pull.demand(root, row + 1)
    return {tensor: pull.ring(tensor) for tensor in inside}


def _helpers(
    graph: Graph,
    segment: Segment,
    number: int,
    kernels: Mapping[int, Kernel],
    calls: Mapping[int, Call],
) -> Iterator[Block]:
    """Yield the sums of pooling and the scratch memory of a segment."""
    scratch = 0
    for index in segment.steps:
        step = graph.steps[index]
        if step.target in calls:
            scratch = max(scratch, calls[step.target].scratch_bytes)
        elif isinstance(step, Convolution):
            scratch = max(scratch, scratch_bytes(step, kernels))
            if sums := sums_bytes(step):
                yield Block(name=f"{step.name} sums", size=sums, first=number, last=number,
                            tensor=sums_of(step))  # fmt: skip
    if scratch:
        yield Block(name="scratch", size=scratch, first=number, last=number)


def sums_of(step: Convolution) -> int:
    """Return the number that stands for the sums of a step's pooling among tensors."""
    return -2 - step.target


def sums_bytes(step: Convolution) -> int:
    """Return the bytes of the sums of a pooled row."""
    if step.pool is None or not step.pool.kind.averages:
        return 0
    return 2 * step.pool.out_size[1] * step.filters


def windows_at_once(step: Convolution, kernel: Kernel) -> int:
    """Return how many windows of a row are computed together, so that whole blocks of pixels are.

    Windows with pixels between them are computed one by one.
    """
    pool = step.pool
    if pool is None or pool.stride[1] != pool.window[1]:
        return 1
    count = lcm(kernel.pixels, pool.window[1]) // pool.window[1]
    return min(count, pool.out_size[1])


def window_bytes(step: Convolution, kernel: Kernel) -> int:
    """Return the bytes of the pixels of a row of windows that are pooled at once."""
    if step.pool is None:
        return 0
    return aligned(windows_at_once(step, kernel) * step.pool.window[1] * step.filters)


def scratch_bytes(step: Convolution, kernels: Mapping[int, Kernel]) -> int:
    """Return what a step needs only while it works on a part of a row."""
    kernel = kernels[step.target]
    return window_bytes(step, kernel) + aligned(kernel.scratch_bytes(step))


def _overlaps(
    graph: Graph,
    segments: Sequence[Segment],
    rings: Mapping[int, int],
    lives: Mapping[int, tuple[int, int]],
    calls: Mapping[int, Call],
) -> Iterator[Overlap]:
    """Yield what may be made in the memory of data that die with that step."""
    for number, segment in enumerate(segments):
        if len(segment.steps) != 1:
            continue
        step = graph.steps[segment.steps[0]]
        if step.target not in rings or lives[step.target][0] != number:
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


def _distance(step: Step, graph: Graph, source: int) -> int | None:
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


def stack_bytes(plan: Plan) -> int:
    """Return what a plan takes of the stack: an estimate, which compilers keep from -Os on.

    Steps that ask each other for rows are called from each other.
    """
    calls = [[_call_bytes(step) for step in plan.steps_of(one)] for one in plan.segments]
    return _STACK_BYTES + max(map(sum, calls), default=0)


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
