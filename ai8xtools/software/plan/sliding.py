"""Windows that slide over a stream: which rows of each tensor are new after a hop.

A row that no padding reaches moves with the data: it is computed once. The first and the last rows
of a window, which padding reaches, are computed for each window: the first ones as soon as their
data are there, so that data need not stay until they are the start of the window. What depends on
all rows, such as a fully connected layer, is computed anew; it is the tail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import lcm

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import (
    Convolution,
    Element,
    Elements,
    Insert,
    Look,
    Number,
    Pair,
    Pool,
    Roll,
    Root,
    Step,
    StepGraph,
    Windows,
    sources_of,
)
from ai8xtools.software.kernels import Core, choose
from ai8xtools.software.memory import Block, aligned
from ai8xtools.software.plan.arena import place
from ai8xtools.software.plan.buffers import whole_buffers
from ai8xtools.software.plan.plan import Plan, Slide, Sliding
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.plan.streaming import rows_of, streams
from ai8xtools.software.plan.task import Level, Spot, Task
from ai8xtools.values import frozen

FIRST, LAST = "first rows", "last rows"
"""Names of the buffers of rows that padding reaches."""
_LONGEST = 32767
_LISTED = 8
_OPTION = Place(option="--stream")


@frozen
class _Window:
    """The rows that a row reads: row y from y * `stride` - `pad` on, `reach` more."""

    stride: int
    pad: int
    reach: int

    def first(self, row: int) -> int:
        """Return the first row that a row reads."""
        return row * self.stride - self.pad

    def end(self, row: int) -> int:
        """Return the row behind the last one that a row reads."""
        return self.first(row) + self.reach + 1


@frozen
class _Rows:
    """Rows `first` to before `end` move with the data, `stride` rows of the input apart."""

    first: int
    end: int
    stride: int


@frozen(slots=False)
class _Split:
    """What slides by `hop`: `rows` of its tensors, steps of the `head` and of the `tail`."""

    hop: int
    rows: Mapping[int, _Rows]
    head: tuple[Step, ...]
    tail: tuple[Step, ...]


def sliding_plan(graph: StepGraph, core: Core, hop: int, kernels: frozenset[str] | None) -> Plan:
    """Return the plan of a graph whose window slides by `hop` rows; the graph is not fused.

    Raises DiagnosticError E914 for a hop that does not suit, E915 for a step that cannot slide.
    """
    window = graph.tensors[graph.input].rows
    if window > _LONGEST:
        raise _refusal(f"a window of {window:,} rows, the limit is {_LONGEST:,}", "Use less rows.")
    try:
        split = _split(graph, hop)
    except _StrideError as exc:
        good = [n for n in range(1, window) if window % n == 0 and _suits(graph, n)]
        if not good:
            raise
        listed = ", ".join(f"{n:,}" for n in good[:_LISTED]) + ", ..." * (len(good) > _LISTED)
        (diagnostic,) = exc.diagnostics
        raise DiagnosticError([replace(diagnostic, remedy=f"Hops that suit: {listed}.")]) from None
    plans = [_Planned(graph, core, split, kernels, early=early).plan() for early in (True, False)]
    return min(plans, key=lambda one: one.arena_bytes)


class _StrideError(DiagnosticError):
    """A hop does not suit the window or the strides."""


def _refusal(message: str, remedy: str) -> _StrideError:
    return _StrideError([Diagnostic("E914", message, _OPTION, remedy)])


def _cannot(step: Step, reason: str) -> DiagnosticError:
    return DiagnosticError(
        [Diagnostic("E915", f"{step.name} cannot be computed from a stream: {reason}", _OPTION,
                    "Leave --stream out, or change the layer.")]
    )  # fmt: skip


def _suits(graph: StepGraph, hop: int) -> bool:
    """Whether a graph can slide by a hop."""
    try:
        _split(graph, hop)
    except DiagnosticError:
        return False
    return True


def _split(graph: StepGraph, hop: int) -> _Split:
    """Return which steps slide. Raises DiagnosticError as `sliding_plan` does."""
    window = graph.tensors[graph.input].rows
    stateful = graph.kept is not None
    if hop > window - (not stateful) or window % hop:
        raise _refusal(
            f"a window of {window:,} rows is no multiple of a hop of {hop:,}, or no more",
            "Use a window that is a multiple of the hop.",
        )
    rows = {graph.input: _Rows(0, window, 1)}
    if hop == window:  # all rows are new
        return _Split(hop, rows, (), graph.steps)
    head: list[Step] = []
    tail: list[Step] = []
    apart: dict[int, tuple[str, int]] = {}
    for step in graph.steps:
        sources, count = sources_of(step), rows_of(step, graph)
        if isinstance(step, Roll | Insert):
            raise _cannot(step, "it keeps data from one inference to the next")
        moving = None
        if all(source in rows for source in sources):
            moving = _slid(step, graph, [rows[source] for source in sources])
        behind = next((apart[source] for source in sources if source in apart), None)
        if moving is not None and (moving.end - moving.first) * moving.stride > hop and count > 1:
            if hop % moving.stride == 0:
                rows[step.target] = moving
                head.append(step)
                continue
            behind = (step.name, moving.stride)
        if behind is not None:
            apart[step.target] = behind
            if isinstance(step, Convolution) and count > 1:
                name, stride = behind
                raise _refusal(
                    f"{name}: its rows are {stride:,} rows of the input apart, so that a hop of "
                    f"{hop:,} moves none of them to the place of another",
                    f"Use a window that is a multiple of {stride:,}.",
                )
        tail.append(step)
    return _Split(hop, rows, tuple(head), tuple(tail))


def _slid(step: Step, graph: StepGraph, sources: Sequence[_Rows]) -> _Rows | None:
    """Return the rows that a step makes of rows that slide; None if it depends on all of them."""
    if isinstance(step, Convolution) and step.spread[0] > 1:
        raise _cannot(step, "it makes several rows of each")
    if not streams(step, graph):
        whole = rows_of(step, graph) == 1 or isinstance(step, Elements)
        if not whole and graph.kept is None:  # else the window has few rows more than a hop
            raise _cannot(step, "it reads its data in other rows")
        return None
    if len({one.stride for one in sources}) > 1:
        raise _cannot(step, "its operands have strides of their own")
    window = _window(step)
    count = rows_of(step, graph)
    before = max(one.first for one in sources) + window.pad
    behind = min(one.end for one in sources) - 1 - window.reach + window.pad
    first = -(-before // window.stride)
    rows = _Rows(min(first, count), max(min(behind // window.stride + 1, count), 0),
                 sources[0].stride * window.stride)  # fmt: skip
    placed = isinstance(step, Elements | Windows) and _placed(step.element, rows)
    return None if placed else rows


def _placed(element: Element, rows: _Rows) -> bool:
    """Whether an expression has constants that differ from one of the rows to another."""
    match element:
        case Number():
            moving = element.values[rows.first : rows.end]
            return len(element.values) > 1 and bool((moving != moving[:1]).any())
        case Look() | Root():
            return _placed(element.data, rows)
        case Pair():
            return _placed(element.a, rows) or _placed(element.b, rows)
        case _:
            return False


def _window(step: Step) -> _Window:
    match step:
        case Convolution():
            return _Window(step.stride[0], step.pad[0], (step.kernel[0] - 1) * step.dilation)
        case Pool():
            return _Window(step.stride[0], 0, (step.window[0] - 1) * step.dilation[0])
        case Windows():
            reach = (step.window[0] - 1) * step.dilation[0]
            return _Window(step.stride[0], step.pad[0], reach)
        case _:
            return _Window(1, 0, 0)


class _Planned:
    """Follows what slides: how far ahead first rows are made, and how many rows must stay.

    Work goes by beats, in which each tensor gets as many rows as strides need. The first rows of a
    window are made `ahead` beats before it begins: as soon as possible (`early`), or then.
    """

    def __init__(
        self,
        graph: StepGraph,
        core: Core,
        split: _Split,
        kernels: frozenset[str] | None,
        *,
        early: bool,
    ) -> None:
        self.graph, self.core, self.split, self.allowed = graph, core, split, kernels
        self.early = early
        beat = lcm(*(one.stride for one in split.rows.values()))
        self.beats = split.hop // beat
        self.new = {tensor: beat // one.stride for tensor, one in split.rows.items()}
        tail = StepGraph(name=graph.name, tensors=graph.tensors, steps=split.tail,
                         input=graph.input, outputs=graph.outputs, kept=graph.kept)  # fmt: skip
        self.tail = plan(fuse(tail), core, Scheme.RESIDENT, kernels)
        read = {source for step in split.tail for source in sources_of(step)}
        self.whole = {tensor for tensor in split.rows if tensor in {*read, *graph.outputs}}
        self.readers = {tensor: [step for step in split.head if tensor in sources_of(step)]
                        for tensor in split.rows}  # fmt: skip
        self.ahead = {graph.input: 0}
        for step in split.head:
            self.ahead[step.target] = self._ahead(step)

    def _ahead(self, step: Step) -> int:
        """Return by how many beats the first rows of a window are made before it begins."""
        rows, window = self.split.rows, _window(step)
        limits = [0]
        needed = window.end(rows[step.target].first - 1)
        if self.early and rows[step.target].first and needed > 0:
            limits = []
            for source in sources_of(step):
                limits.append((rows[source].end - needed) // self.new[source])
                limits += [self.ahead[source]] if rows[source].first else []
        return min(limits)

    def _slide(self, tensor: int, ring: int) -> Slide:
        own, one = self.split.rows[tensor], self.graph.tensors[tensor]
        whole = tensor in self.whole
        until = [0] if whole else []
        until += [self.ahead[step.target] for step in self.readers[tensor]
                  if self.split.rows[step.target].first]  # fmt: skip
        waiting = self.ahead[tensor] - min(until, default=self.ahead[tensor])
        return Slide(
            tensor=tensor, first=own.first, end=own.end, new=self.new[tensor], whole=whole,
            ring=one.rows if whole else ring, ahead=self.ahead[tensor],
            windows=waiting // self.beats + 1 if own.first else 0,
        )  # fmt: skip

    def plan(self) -> Plan:
        """Return the plan: the head, if there is one, is its first task."""
        graph, split, tail = self.graph, self.split, self.tail
        beat = _Beat(self)
        beat.follow()
        slides = [self._slide(tensor, beat.rings[tensor]) for tensor in split.rows]
        kernels = {step.target: choose(step, self.core, self.allowed)
                   for step in split.head if isinstance(step, Convolution)}  # fmt: skip
        count = len(split.head)
        head = (
            [Task(index=0, step=split.head[-1], count=count, scheme=Scheme.ROWS)] if count else []
        )
        tasks = (*head, *(replace(one, index=one.index + count) for one in tail.tasks))
        last = max(len(tasks) - 1, 0)
        blocks = list(self._blocks(slides, last))
        blocks += whole_buffers(0, split.head, kernels, {})
        blocks += [
            replace(block, last=last)
            if block.tensor is not None and block.tensor == graph.kept
            else _moved(block, len(head), count)
            for block in tail.blocks
            if block.tensor not in split.rows
        ]
        overlaps = tuple(one for one in tail.overlaps if one.data not in split.rows)
        placed, peak = place(blocks, overlaps)
        return Plan(
            graph=replace(graph, steps=(*split.head, *tail.graph.steps)), tasks=tasks,
            scheme=Scheme.RESIDENT, core=self.core,
            rings={t: rows for t, rows in tail.rings.items() if t not in split.rows},
            kernels={**kernels, **tail.kernels}, outputs=tail.outputs, blocks=placed,
            overlaps=overlaps, used=dict.fromkeys([Level.L1], aligned(peak)),
            places={b.tensor: Spot(Level.L1, b.offset) for b in placed if b.tensor is not None},
            buffers={b.buffer: Spot(Level.L1, b.offset) for b in placed if b.buffer is not None},
            sliding=Sliding(split.hop, self.beats, tuple(slides), tuple(beat.order)),
        )  # fmt: skip

    def _blocks(self, slides: Sequence[Slide], last: int) -> Iterator[Block]:
        """Yield the blocks of rings, and of rows at the edges, which are named by tensor."""
        for slide in slides:
            one = self.graph.tensors[slide.tensor]
            yield Block(name=one.name, size=slide.ring * one.row_bytes, first=0, last=last,
                        tensor=slide.tensor, rows=slide.ring)  # fmt: skip
            stays = slide.first_stays(self.beats)
            edges = {FIRST: 0 if stays else slide.first * slide.windows,
                     LAST: 0 if slide.whole else one.rows - slide.end}  # fmt: skip
            for name, count in edges.items():
                if count:
                    yield Block(name=f"{one.name}, {name}, {slide.tensor}",
                                size=count * one.row_bytes, first=0, last=last * (name == FIRST),
                                buffer=(slide.tensor, name))  # fmt: skip


def _moved(block: Block, tasks: int, steps: int) -> Block:
    """Return a block of what runs behind some tasks and their steps."""
    index, name = block.buffer or (0, "")
    buffer = None if block.buffer is None else (index + steps, name)
    return replace(block, first=block.first + tasks, last=block.last + tasks, buffer=buffer)


class _Beat:
    """The order in which rows are made in a beat: each as soon as its data are there.

    Rows are counted in the window at the end of the beat. `order` has the number of a tensor for a
    row of it, and that plus the number of all tensors for its first rows.
    """

    def __init__(self, planned: _Planned) -> None:
        self.planned, self.rows = planned, planned.split.rows
        self.done = {tensor: one.end - planned.new[tensor] for tensor, one in self.rows.items()}
        self.begun: set[int] = set()
        self.rings = dict.fromkeys(self.rows, 1)
        self.order: list[int] = []
        self.numbers = {tensor: number for number, tensor in enumerate(self.rows)}

    def follow(self) -> None:
        """Make all rows of a beat; those behind come first, so that few rows wait."""
        source = self.planned.graph.input
        for _ in range(self.planned.new[source] + 1):
            while self._step():
                pass
            if self.done[source] < self.rows[source].end:
                self._write(source)

    def _step(self) -> bool:
        """Make what can be made behind all others; whether there was something."""
        for step in reversed(self.planned.split.head):
            target = step.target
            if self.rows[target].first and target not in self.begun and self._may_begin(step):
                self.begun.add(target)
                self.order.append(self.numbers[target] + len(self.rows))
                return True
            needed = _window(step).end(self.done[target])
            if self.done[target] < self.rows[target].end and all(
                needed <= self.done[source] for source in sources_of(step)
            ):
                self._write(target)
                return True
        return False

    def _may_begin(self, step: Step) -> bool:
        """Whether the data of the first rows of a window are there."""
        ahead = self.planned.ahead
        needed = _window(step).end(self.rows[step.target].first - 1)
        return all(
            ahead[step.target] * self.planned.new[source] + needed <= self.done[source]
            and (
                not self.rows[source].first
                or ahead[source] > ahead[step.target]
                or source in self.begun
            )
            for source in sources_of(step)
        )

    def _write(self, tensor: int) -> None:
        row = self.done[tensor]
        lowest = min((self._lowest(tensor, step) for step in self.planned.readers[tensor]),
                     default=row)  # fmt: skip
        self.rings[tensor] = max(self.rings[tensor], row + 1 - min(lowest, row))
        self.order.append(self.numbers[tensor])
        self.done[tensor] = row + 1

    def _lowest(self, tensor: int, step: Step) -> int:
        """Return the lowest row that a step still reads."""
        window, own, first = _window(step), self.rows[tensor], self.rows[step.target].first
        lowest = window.first(self.done[step.target])
        if first and window.end(first - 1) > own.first:
            windows = self.planned.ahead[step.target] + (step.target in self.begun)
            lowest = min(lowest, windows * self.planned.new[tensor] + own.first)
        return lowest
