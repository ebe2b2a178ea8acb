"""The plan of a graph: how its steps are joined and cut into tasks, and where all data stand.

Tasks follow each other; between two of them a tensor stands row by row or channel by channel. The
best tasks for the first steps with the last tensor in either order follow from those for fewer
steps. In levels of memory steps are cut into units that are copied, and tensors move into L1 as
long as that makes the whole cheaper. A single memory has no copies: a task is a step as a whole, or
steps that ask each other for rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.software.graph import Convolution, Insert, Step, StepGraph, sources_of
from ai8xtools.software.kernels import IN_TILES, KERNELS, Core, Kernel, choose
from ai8xtools.software.kernels.call import KernelCall
from ai8xtools.software.memory import Block, aligned
from ai8xtools.software.plan.arena import place
from ai8xtools.software.plan.buffers import SCRATCH, buffers_of, copied_weights, whole_buffers
from ai8xtools.software.plan.candidates import candidates, impossible
from ai8xtools.software.plan.chains import Chains, passes
from ai8xtools.software.plan.channels import Stacks
from ai8xtools.software.plan.cost import (
    compute_cycles,
    copy_cycles,
    cycles_of,
    stack_bytes,
    traffic_of,
    units_of,
)
from ai8xtools.software.plan.layers import (
    geometry_of,
    scratch_of,
    takes_planes,
)
from ai8xtools.software.plan.lines import in_lines
from ai8xtools.software.plan.plan import DELIVERED, NoRoomError, Plan
from ai8xtools.software.plan.schemes import Planes, Room, Scheme, smallest
from ai8xtools.software.plan.streaming import streams
from ai8xtools.software.plan.task import Level, Spot, Task, Traffic
from ai8xtools.software.plan.tensors import Lives, lives_of, outputs_of, overlaps_of, rings_of
from ai8xtools.software.profile import UNLIMITED, Profile
from ai8xtools.values import frozen

_Choice = tuple[int, float, tuple[Task, ...]]
"""Steps that are not cut as was asked, cycles, and tasks."""


@frozen(kw_only=True)
class Wish:
    """The settings of the planner.

    `schemes` are taken where they are possible (none: any). `first`: the first that fits, without a
    cost model. `in_place`: weights are read where they are. Without `units` there is one memory,
    and one of the schemes resident and rows; with `recounted` a step may read each row as several,
    or several as one. `outside`: input and outputs stand in memory of the caller.
    """

    schemes: frozenset[Scheme] = frozenset()
    first: bool = False
    in_place: bool = True
    kernels: frozenset[str] | None = None
    units: bool = True
    recounted: bool = False
    outside: bool = False

    @property
    def by_rows(self) -> bool:
        """Whether steps in one memory ask each other for rows."""
        return not self.units and any(scheme.by_rows for scheme in self.schemes)


def plan(
    graph: StepGraph,
    core: Core,
    scheme: Scheme,
    kernels: frozenset[str] | None = None,
    calls: Mapping[int, KernelCall] | None = None,
    *,
    outside: bool = False,
) -> Plan:
    """Return a plan in one memory of a scheme, whether or not it fits any.

    `calls` are the steps that a library computes, by target; with them (even if there are none)
    outputs stand in the arena, unless these and the input are always `outside`.
    """
    wish = Wish(units=False, schemes=frozenset({scheme}), kernels=kernels, outside=outside)
    return best_plan(graph, Profile("", core, UNLIMITED, UNLIMITED), 1 << 62, wish, calls)


def best_plan(
    graph: StepGraph,
    profile: Profile,
    l1: int,
    wish: Wish,
    calls: Mapping[int, KernelCall] | None = None,
) -> Plan:
    """Return the best plan for `l1` bytes of data in L1; `calls` as in `plan`.

    One-dimensional data stand in columns, which can be cut into rows, or in lines, where kernels
    take fewer cycles. Raises NoRoomError if no plan fits.
    """
    plans: list[Plan] = []
    refusals: list[NoRoomError] = []
    for variant, settings in _variants(graph, wish):
        try:
            plans.append(Planner(variant, profile, l1, settings, calls).plan())
        except NoRoomError as refusal:
            refusals.append(refusal)
    if not plans:
        raise refusals[0]
    return plans[0] if wish.first else min(plans, key=lambda one: cost_of(one, wish))


def _variants(graph: StepGraph, wish: Wish) -> Iterator[tuple[StepGraph, Wish]]:
    """Yield what the plan of a graph may be that of."""
    if wish.by_rows:
        yield graph, wish
        if any(streams(one, graph) != streams(one, graph, recounted=True) for one in graph.steps):
            yield graph, replace(wish, recounted=True)
        return
    lines = in_lines(graph)
    if wish.units:
        yield graph, wish
    if not wish.units or any(a is not b for a, b in zip(graph.steps, lines.steps, strict=True)):
        yield lines, wish


def cost_of(plan: Plan, wish: Wish) -> tuple[int, float, int]:
    """Return how many layers are not cut as was asked, the cycles, and the bytes of L1."""
    missed = sum(_missed(task, wish) for task in plan.layers)
    return missed, plan.cycles, plan.arena_bytes + stack_bytes(plan)


def _missed(task: Task, wish: Wish) -> int:
    """Return 1 for a task that is not cut as was asked."""
    return int(wish.units and bool(wish.schemes) and task.scheme not in wish.schemes)


class Planner:
    """Plans a graph for a profile, whose L1 has `l1` bytes for data; `calls` as in `plan`."""

    def __init__(
        self,
        graph: StepGraph,
        profile: Profile,
        l1: int,
        wish: Wish,
        calls: Mapping[int, KernelCall] | None = None,
    ) -> None:
        self.graph, self.profile, self.l1, self.wish = graph, profile, l1, wish
        self.calls, self.delivers = calls or {}, calls is not None and not wish.outside
        self.kernels: dict[int, Kernel] = {
            step.target: choose(
                step, profile.core, wish.kernels, IN_TILES if wish.units else KERNELS
            )
            for step in graph.steps
            if isinstance(step, Convolution) and step.target not in self.calls
        }
        self.outputs = outputs_of(graph)
        self.lives = lives_of(graph, self.outputs, [range(n, n + 1) for n in self._numbers])
        self.tasks: dict[tuple[int, Room, tuple[bool, bool]], tuple[Task, ...]] = {}
        self.caller = {o.tensor for o in self.outputs if not o.copied}
        self.caller |= {graph.input} if wish.units or wish.outside else set()
        self.l1_only = set() if graph.kept is None else {graph.kept}  # moving it takes the core
        self.far = self._levels()
        self.chains = Chains(graph, profile, self.kernels, in_place=wish.in_place)
        self.stacks = Stacks(graph, profile, self.kernels, in_place=wish.in_place)
        self.with_chains = wish.units and not wish.first
        self.wished_chains = wish.schemes or {Scheme.ROW_CHAIN, Scheme.CHAIN}

    @property
    def _numbers(self) -> range:
        return range(len(self.graph.steps))

    def _levels(self) -> dict[int, Level]:
        """Return the memory of each tensor if it does not stand in L1: L2 while it has room."""
        levels: dict[int, Level] = {}
        tensors = [t for t in self.lives if t not in self.caller | self.l1_only]
        inside: list[Block] = []
        for tensor in sorted(tensors, key=lambda t: -self.graph.tensors[t].size_bytes):
            block = self._block(tensor, self.lives, self.graph.tensors[tensor].rows)
            if self.profile.l2 and place([*inside, block], ())[1] <= self.profile.l2:
                inside.append(block)
                levels[tensor] = Level.L2
            elif self.profile.l3 and self.profile.l3_writable:
                levels[tensor] = Level.L3
            else:
                levels[tensor] = Level.L1
        return levels

    def _standing(self, level: Level) -> set[int]:
        """Return the tensors that stand in a memory unless they are taken into L1."""
        return {tensor for tensor in self.far if self.far[tensor] is level}

    def _block(self, tensor: int, lives: Lives, rows: int) -> Block:
        one, (first, last) = self.graph.tensors[tensor], lives[tensor]
        size = rows * one.row_bytes
        return Block(name=one.name, size=aligned(size) if self.wish.units else size, first=first,
                     last=last, tensor=tensor, rows=rows)  # fmt: skip

    def plan(self) -> Plan:
        """Return the plan; raise NoRoomError if there is none."""
        best = self._best_plan()
        if best is None and self.with_chains:  # input and output of a chain exist at the same time
            self.with_chains = False
            best = self._best_plan()
        if best is None:
            raise NoRoomError(self._refusal())
        return best

    def _best_plan(self) -> Plan | None:
        inside = self._standing(Level.L1) | self.l1_only
        best = self._tasks(inside)
        order = sorted(self.far, key=lambda t: self.lives[t])
        for tensor in order:
            if tensor in inside:
                continue
            tried = self._tasks(inside | {tensor})
            if tried is not None and (best is None or _cost(tried) < _cost(best)):
                placed = self._placed(tried, inside | {tensor})
                if placed is not None:
                    best, inside = tried, inside | {tensor}
        return None if best is None else self._placed(best, inside)

    def _live(self, index: int, inside: set[int], last: int | None = None) -> int:
        """Return the bytes of tensors that live in a step, or in steps to `last`."""
        end = index if last is None else last
        passing = {step.target for step in self.graph.steps[index:end]}
        return sum(
            aligned(self.graph.tensors[t].size_bytes)
            for t in inside - passing
            if self.lives[t][0] <= end and index <= self.lives[t][1]
        )

    def _tasks(self, inside: set[int]) -> tuple[Task, ...] | None:
        """Return the best way of each step with these tensors in L1; None if one does not fit."""
        best: list[dict[bool, _Choice]] = [{} for _ in range(len(self.graph.steps) + 1)]
        best[0][False] = (0, 0.0, ())
        for index in self._numbers:
            for planar, before in best[index].items():
                for task in self._candidates(index, inside, planar):
                    _keep(best[task.last + 1], before, _missed(task, self.wish), task)
        return best[-1][False][2] if best[-1] else None

    def _candidates(self, index: int, inside: set[int], planar: bool) -> Iterator[Task]:
        """Yield the tasks that may begin with a step, whose input is `planar` or not."""
        if not self.wish.units:
            yield self._whole(index)
            return
        for turned in (False, True) if self._may_turn(index, inside) else (False,):
            task = self._best(index, self.graph.steps[index], inside, planar, turned)
            if task is not None:
                yield task
        if not planar:
            yield from self._chained(index, inside)

    def _whole(self, index: int) -> Task:
        """Return a step as a whole, or all from it on that ask each other for rows."""
        graph, recounted = self.graph, self.wish.recounted
        behind = graph.steps[index:] if self.wish.by_rows else ()
        run = [*takewhile(lambda step: streams(step, graph, recounted=recounted), behind)]
        by_rows = len(run) > 1 or (bool(run) and streams(run[0], graph))
        run = run or [graph.steps[index]]
        later = graph.steps[index + len(run) :]
        read = {source for step in later for source in sources_of(step)} | {*graph.outputs}
        return Task(
            index=index, step=run[-1], count=len(run),
            roots=tuple(step.target for step in run if step.target in read),
            scheme=Scheme.ROWS if by_rows else Scheme.RESIDENT,
        )  # fmt: skip

    def _chained(self, first: int, inside: set[int]) -> Iterator[Task]:
        """Yield the chains that begin with a step and fit."""
        steps, wished = self.graph.steps, self.wished_chains
        rows = self.chains.most[first] if Scheme.ROW_CHAIN in wished else 0
        channels = self.stacks.most[first] if Scheme.CHAIN in wished else 0
        for count in range(1, max(rows, channels) + 1 if self.with_chains else 0):
            end = first + count - 1
            ends = {*sources_of(steps[first]), steps[end].target}
            far = Level.L3 in map(self.far.get, ends - inside)
            reads = inside.issuperset(sources_of(steps[first]))
            writes = steps[end].target in inside
            l1 = self.l1 - self._live(first, inside, end)
            tasks = []
            if 2 <= count <= rows:
                tasks.append(self.chains.of(first, count, l1, reads=reads, writes=writes, far=far))
            if count <= channels:
                tasks.append(self.stacks.of(first, count, l1, far=far))
            for task in filter(None, tasks):
                yield replace(task, reason=self._why(task, inside))

    def _why(self, task: Task, inside: set[int]) -> str:
        """Return why layers are computed together."""
        alone = [self._best(link.index, link.step, inside, False, False) for link in task.links]
        if None in alone:
            return f"{task.cycles:,.0f} cycles; layer by layer does not fit"
        cycles = sum(one.cycles for one in alone if one is not None)
        return f"{task.cycles:,.0f} cycles; layer by layer would take {cycles:,.0f} cycles"

    def _may_turn(self, index: int, inside: set[int]) -> bool:
        """Whether the result of a step may stand channel by channel: the next step alone reads it,
        and can do so by planes."""
        match self.graph.steps[index : index + 2]:
            case (Convolution() as producer, Convolution() as following):
                size = producer.pool.out_size if producer.pool else producer.out_size
                return (
                    producer.target not in inside
                    and passes(self.graph, producer, following)
                    and takes_planes(producer)
                    and takes_planes(following)
                    and size == following.in_size
                )
            case _:
                return False

    def _best(
        self, index: int, step: Step, inside: set[int], planar_in: bool, planar_out: bool
    ) -> Task | None:
        planar = planar_in, planar_out
        room = replace(self._room(index, inside), l1=self.l1 - self._live(index, inside))
        key = (index, room, planar)
        if key not in self.tasks:
            self.tasks[key] = tuple(
                self._priced(task, planar, inside)
                for task in candidates(index, step, self.graph, self.kernels, room, planar)
            )
        tasks = self.tasks[key]
        wished = [t for t in tasks if t.scheme in self.wish.schemes]
        tasks = tuple(wished) or tasks
        if not tasks:
            return None
        best, reason = self._chosen(tasks)
        if self.wish.schemes and not wished:
            layer = geometry_of(step, self.graph, self.kernels)
            reason = f"{impossible(step, layer, self.wish.schemes)}; {reason}"
        return replace(best, reason=reason)

    def _chosen(self, tasks: Sequence[Task]) -> tuple[Task, str]:
        """Return the best of some ways, and why it is."""
        if self.wish.first or len(tasks) == 1:
            return tasks[0], "the only one that fits" if len(tasks) == 1 else "the first that fits"
        best, second = sorted(tasks, key=lambda t: t.cycles)[:2]
        more = f"{second.scheme} would take {second.cycles:,.0f} cycles"
        return best, f"{best.cycles:,.0f} cycles; {more}"

    def _room(self, index: int, inside: set[int]) -> Room:
        """Return what a step may use, without L1."""
        step = self.graph.steps[index]
        live = self._live(index, self._standing(Level.L2) - inside)
        return Room(l1=0, l2=max(self.profile.l2 - live, 0), dma=self.profile.ahead,
                    in_place=self.wish.in_place or not isinstance(step, Convolution),
                    scratch=scratch_of(step, self.kernels),
                    reads=all(source in inside for source in sources_of(step)),
                    writes=step.target in inside)  # fmt: skip

    def _priced(self, task: Task, planar: tuple[bool, bool], inside: set[int]) -> Task:
        if task.layer is None:
            return task
        traffic = traffic_of(task, self.kernels)
        tensors = {*sources_of(task.step), task.step.target} - inside
        far = Level.L3 in map(self.far.get, tensors)
        compute = compute_cycles(task, self.profile.core, self.kernels)
        copies = copy_cycles(task, traffic, self.profile, far=far)
        if isinstance(task.cut, Planes):  # values of a channel that stand apart come one by one
            copies += 3 * (traffic.inputs * (not planar[0]) + traffic.outputs * (not planar[1]))
        cycles = cycles_of(compute, copies, units_of(task), dma=self.profile.ahead)
        return replace(task, cycles=cycles)

    def _placed(self, tasks: tuple[Task, ...], inside: set[int]) -> Plan | None:
        """Return a plan with all places; None if a memory is too small for the arrangement."""
        graph, wish = self.graph, self.wish
        lives = lives_of(graph, self.outputs, [task.steps for task in tasks])
        rings = rings_of(graph, tasks, lives, self.caller)
        blocks: dict[Level, list[Block]] = {level: [] for level in Level}
        for tensor, rows in rings.items():
            level = Level.L1 if tensor in inside else self.far.get(tensor, Level.L1)
            blocks[level].append(self._block(tensor, lives, rows))
        for number, task in enumerate(tasks):
            for level, block in self._buffers(task):
                blocks[level].append(replace(block, first=number, last=number))
        if self.delivers:
            blocks[Level.L1].append(self._delivered(lives, len(tasks) - 1))
        overlaps = () if wish.units else (*overlaps_of(graph, tasks, rings, lives, self.calls),)
        limits = {Level.L1: self.l1, Level.L2: self.profile.l2, Level.L3: self.profile.l3}
        places: dict[int, Spot] = {}
        buffers: dict[tuple[int, str], Spot] = {}
        used: dict[Level, int] = {}
        for level, some in blocks.items():
            blocks[level][:], peak = place(some, overlaps if some else ())
            if peak > limits[level]:
                return None
            used[level] = aligned(peak)
            spots = [(block, Spot(level, block.offset)) for block in blocks[level]]
            places |= {block.tensor: spot for block, spot in spots if block.tensor is not None}
            buffers |= {block.buffer: spot for block, spot in spots if block.buffer is not None}
        for task in tasks:
            spot = buffers.get((task.index, SCRATCH))
            for link in task.links:  # they work one after the other
                if spot is not None and scratch_of(link.step, self.kernels):
                    buffers[link.index, SCRATCH] = spot
        stored = self._stored(tasks, used)
        if used[Level.L3] > self.profile.l3:
            return None
        traffic = sum((self._copied(one) for task in tasks for one in task.layers), Traffic())
        return Plan(
            graph=graph, core=self.profile.core, kernels=self.kernels, tasks=tasks,
            scheme=None if wish.units else next(iter(wish.schemes)), rings=rings,
            outputs=self.outputs, places=places, planar=self._planar(tasks), buffers=buffers,
            blocks=tuple(blocks[Level.L1]), used=used, stored=stored, traffic=traffic,
            overlaps=overlaps, calls=self.calls,
        )  # fmt: skip

    def _buffers(self, task: Task) -> Iterator[tuple[Level, Block]]:
        """Yield the memory and the block of each buffer of a task."""
        if self.wish.units:
            for index, name, size, level in buffers_of(task, self.kernels):
                yield level, Block(name=f"{task.name}: {name}, {index}", size=aligned(size),
                                   first=0, last=0, buffer=(index, name))  # fmt: skip
        else:
            steps = self.graph.steps[task.index : task.last + 1]
            for block in whole_buffers(task.index, steps, self.kernels, self.calls):
                yield Level.L1, block

    def _delivered(self, lives: Lives, last: int) -> Block:
        """Return the block of all outputs, from the first that is made there."""
        final = self.outputs[-1]
        first = min([last, *(lives[o.tensor][0] for o in self.outputs if not o.copied)])
        size = final.offset + self.graph.tensors[final.tensor].size_bytes
        return Block(name="output", size=size, first=first, last=last, tensor=DELIVERED)

    def _copied(self, task: Task) -> Traffic:
        step = task.step
        if task.layer is not None:
            return traffic_of(task, self.kernels)
        if isinstance(step, Insert):
            return Traffic(inputs=self.graph.tensors[step.source].size_bytes)
        pieces = getattr(step, "pieces", ())
        return Traffic(inputs=sum(piece.length * piece.count for piece in pieces))

    def _planar(self, tasks: Sequence[Task]) -> frozenset[int]:
        return frozenset(task.step.target for task in tasks if task.planar)

    def _stored(self, tasks: Sequence[Task], used: dict[Level, int]) -> dict[int, Spot]:
        """Return where weights are that are copied; L3 grows by them."""
        stored: dict[int, Spot] = {}
        for task in (link for one in tasks for link in one.layers):
            if size := copied_weights(task, self.kernels):
                stored[task.index] = Spot(Level.L3, used[Level.L3])
                used[Level.L3] += aligned(size)
        return stored

    def _refusal(self) -> Diagnostic:
        """Complain that nothing fits, with the least memory that would do."""
        inside = self._standing(Level.L1) | self.l1_only
        least, index = max(
            (self._least(index, inside), -index) for index in range(len(self.graph.steps))
        )
        step = self.graph.steps[-index]
        taken = self.profile.l1 - self.l1
        return Diagnostic(
            "E905",
            f"{step.name} needs {least + taken:,} bytes of l1 at least, {self.profile.name} has "
            f"{self.profile.l1:,}: {least + taken - self.profile.l1:,} are missing",
            self.profile.place("l1"),
            "Use a microcontroller with more l1, or give it l2 or an l3 that is writable.",
        )

    def _least(self, index: int, inside: set[int]) -> int:
        step = self.graph.steps[index]
        live = self._live(index, inside)
        layer = geometry_of(step, self.graph, self.kernels)
        if layer is None:
            return live
        room = self._room(index, inside)
        least = smallest(layer, room, by_planes=takes_planes(step))
        if not self.wish.first and Scheme.CHAIN in self.wished_chains and self.stacks.most[index]:
            least = min(least, self.stacks.memory(index, 1))
        return live + least


def _keep(kept: dict[bool, _Choice], before: _Choice, missed: int, task: Task) -> None:
    """Keep what takes least, its last tensor in one order."""
    candidate = (before[0] + missed, before[1] + task.cycles, (*before[2], task))
    if task.planar not in kept or candidate[:2] < kept[task.planar][:2]:
        kept[task.planar] = candidate


def _cost(tasks: Sequence[Task] | None) -> float:
    return float("inf") if tasks is None else sum(task.cycles for task in tasks)
