"""The calls of cnn_run in order, and the places of maps and buffers in its memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place
from ai8xtools.quantization.formats import limits
from ai8xtools.quantization.q15.graph import (
    Add,
    Clip,
    Concat,
    Constant,
    Enlarge,
    Flatten,
    Gather,
    Graph,
    Multiply,
    Pool,
    Step,
    Table,
    Weighted,
)
from ai8xtools.quantization.q15.network import QuantizedNetwork
from ai8xtools.software import graph as planner_graph
from ai8xtools.software.cores import CORES
from ai8xtools.software.kernels import Core
from ai8xtools.software.kernels.call import KernelCall
from ai8xtools.software.plan.buffers import SCRATCH
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.q15 import functions
from ai8xtools.software.q15.functions import Function
from ai8xtools.software.q15.windows import homes_of, planned_graph
from ai8xtools.values import frozen

_SIXTEEN_BITS = 1 << 16
_INPUT, _OUTPUT, _UNTIL = "in", "out", "nn_until"


@frozen
class StepCode:
    """A step as C: its `lines`, what they do, and the functions that they call."""

    lines: tuple[str, ...]
    comment: str
    functions: tuple[Function, ...]


@frozen(kw_only=True)
class RowStep:
    """A step that makes its rows when others ask: of map `target`, the lines for row `y`.

    `needs` are maps with how many of their rows it asks for, as C; `counter` counts its own.
    """

    call: StepCode
    target: int
    counter: int
    needs: tuple[tuple[int, str], ...]


@frozen(slots=False, kw_only=True)
class Program:
    """All calls; `layers` names the weights of weighted steps by target; where all maps stand.

    `arrays` are the names of tables, constants and numbers of rows. `steps` are those of the calls.
    With rings of rows `row_steps` are the steps that make rows, and `runs` what runs in which
    order. `interleaving`: weights of fully connected layers are those of `_opt`.
    """

    steps: tuple[Step, ...]
    calls: tuple[StepCode, ...]
    layers: Mapping[int, str]
    arrays: Mapping[int, str]
    plan: Plan
    interleaving: bool = False
    row_steps: tuple[RowStep, ...] = ()
    runs: tuple[str | StepCode, ...] = ()

    @property
    def asks_for_windows(self) -> bool:
        """Whether a step asks for more than the row of its own."""
        return any(_UNTIL in end for one in self.row_steps for _, end in one.needs)

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions, each once."""
        used = dict.fromkeys(f for call in self.calls for f in call.functions)
        return tuple(used)


def program(
    network: QuantizedNetwork,
    scheme: Scheme = Scheme.RESIDENT,
    core: Core = CORES["cortex-m4"],
    *,
    library: bool = False,
    interleaving: bool = False,
) -> Program:
    """Return what runs, with its places in memory, and buffers that Arm's `library` wants.

    With `interleaving` fully connected layers take the weights of `_opt`.
    Raises DiagnosticError E910 for maps that have too many rows or columns.
    """
    for step in network.graph.steps:
        sizes = [n for t in (*step.sources, step.target) for n in network.graph.shapes[t]]
        if isinstance(step, Weighted) and step.linear:
            sizes.append(step.weights[0].size)
        if max(sizes) >= _SIXTEEN_BITS:
            raise DiagnosticError(
                Diagnostic("E910", f"{step.name}: {max(sizes):,} rows, columns or channels, the "
                           f"limit is {_SIXTEEN_BITS - 1:,}", Place(),
                           "Use smaller images.")
            )  # fmt: skip
    return _Programmer(network, scheme, core, library, interleaving).program()


def array_names(graph: Graph) -> dict[int, str]:
    """Return TABLE1, CONSTANT1, GATHER1, ... by target."""
    steps = [one for one in graph.steps if isinstance(one, Table | Constant | Gather)]
    return {step.target: f"{type(step).__name__.upper()}{number}"
            for number, step in enumerate(steps, 1)}  # fmt: skip


def layer_names(graph: Graph) -> dict[int, str]:
    """Return CONV1, CONV2, ... and IP1, IP2, ... by target."""
    names: dict[int, str] = {}
    counts = {"CONV": 0, "IP": 0}
    for step in graph.steps:
        if isinstance(step, Weighted):
            kind = "IP" if step.linear else "CONV"
            counts[kind] += 1
            names[step.target] = f"{kind}{counts[kind]}"
    return names


class _Programmer:
    def __init__(
        self,
        network: QuantizedNetwork,
        scheme: Scheme,
        core: Core,
        library: bool,
        interleaving: bool,
    ) -> None:
        self._network = network
        self._row: str | None = None  # that is made, as C; None while maps are made as a whole
        self._by_rows = scheme.by_rows
        self._library, self._interleaving = library, interleaving
        self._graph = network.graph
        self._bits = network.bits
        self._names = layer_names(self._graph)
        self._arrays = array_names(self._graph)
        self._makers = {step.target: step for step in self._graph.steps}
        self._homes = homes_of(network)
        planned = planned_graph(network, self._homes)
        steps = [self._graph.steps[one.layer] for one in planned.steps]
        self._plan = plan(
            planned, core, scheme, None, {one.target: self._planned(one, scheme) for one in steps},
            outside=True,
        )  # fmt: skip
        self._plan.validate()
        self._tasks = {step.target: task for task in self._plan.tasks
                       for step in self._plan.steps_of(task)}  # fmt: skip

    def _planned(self, step: Step, scheme: Scheme) -> KernelCall:
        """Return the properties of a step for the planner."""
        in_place = isinstance(step, Pool) and step.padding == (0, 0)
        in_place |= isinstance(step, Add) and len(step.sources) == 2 and not self._fixed(step)
        buffer = self._buffer(step)
        if scheme.by_rows and isinstance(step, Weighted) and not step.linear:
            buffer = max(buffer, math.prod(step.kernel) * int(step.weights.shape[1]))
        return KernelCall(function=step.name, arguments=(), in_place=in_place,
                          buffer_bytes=2 * buffer)  # fmt: skip

    def _fixed(self, step: Step) -> bool:
        """Whether a step reads a constant map."""
        constants = {one.target for one in self._graph.steps if isinstance(one, Constant)}
        return not constants.isdisjoint(step.sources)

    def program(self) -> Program:
        """Return the calls of all steps."""
        row_steps: list[RowStep] = []
        runs: list[str | StepCode] = []
        steps: tuple[Step, ...] = tuple(
            one for one in self._graph.steps if not isinstance(one, Constant)
        )
        if not self._by_rows:
            calls = tuple(map(self._call, steps))
        else:
            calls = tuple(self._all_calls(row_steps, runs))
            steps = tuple(self._graph.steps[step.layer] for step in self._plan.graph.steps)
        return Program(
            steps=steps, calls=calls, layers=self._names, arrays=self._arrays, plan=self._plan,
            row_steps=tuple(row_steps), runs=tuple(runs), interleaving=self._interleaving,
        )  # fmt: skip

    def _all_calls(
        self, row_steps: list[RowStep], runs: list[str | StepCode]
    ) -> Iterator[StepCode]:
        """Yield the calls of a plan of rows, and note which make rows and what runs."""
        for task in self._plan.tasks:
            for one in self._plan.steps_of(task):
                self._row = "y" if task.count > 1 else None
                behind = [step for step in self._graph.steps
                          if self._homes[step.target] == one.target]  # fmt: skip
                parts = [self._call(step) for step in behind]
                lines = tuple(line for part in parts for line in part.lines)
                functions = tuple(f for part in parts for f in part.functions)
                call = StepCode(lines, parts[0].comment, functions)
                yield call
                if self._row is None:
                    runs.append(call)
                    continue
                row_steps.append(RowStep(call=call, target=one.target, counter=len(row_steps),
                                         needs=tuple(self._needs(one))))  # fmt: skip
                if one.target in task.roots:
                    rows = self._graph.shapes[one.target][1]
                    runs.append(f"need_{one.target}({rows});")

    def _needs(self, step: planner_graph.Step) -> Iterator[tuple[int, str]]:
        """Yield the maps of its task that a step reads, and until which row."""
        for source in dict.fromkeys(planner_graph.sources_of(step)):
            if self._tasks.get(source) is not self._tasks[step.target]:
                continue
            if isinstance(step, planner_graph.Convolution):
                last = f"(int)y * {step.stride[0]} + {step.kernel[0] - 1 - step.pad[0]}"
                yield source, f"{_UNTIL}({last}, {step.spread[0]}, {step.in_size[0]})"
            else:
                yield source, "y + 1"

    def _buffer(self, step: Step) -> int:
        """Return how many numbers of 16 bits the function of a step wants for itself."""
        if not isinstance(step, Weighted):
            return 0
        function = self._function(step)
        if step.linear:
            return math.prod(self._graph.shapes[step.source]) if self._bits == 8 else 0
        pixels = function.library_pixels if self._library else function.pixels
        group = step.groups if function.body == "groups" else 1
        return pixels * math.prod(step.kernel) * self._graph.shapes[step.source][0] // group

    def _function(self, step: Weighted) -> Function:
        if self._row is not None and not step.linear:
            return functions.grouped(self._bits)
        return functions.function_of(step, self._graph, self._bits, interleaving=self._interleaving)

    def _size(self, tensor: int) -> int:
        """Return the values of a map, or of the row that is made."""
        channels, rows, columns = self._graph.shapes[tensor]
        return channels * columns * (rows if self._row is None else 1)

    def _at(self, tensor: int) -> str:
        """Return where a map stands, as C."""
        home = self._homes[tensor]
        if home == 0:
            return _INPUT
        if isinstance(self._makers.get(tensor), Constant):
            return self._arrays[tensor].lower()
        if (spot := self._plan.places.get(home)) is None:
            return _OUTPUT
        return f"ARENA + {spot.offset * 8 // self._bits}"

    def _ring(self, tensor: int) -> int:
        """Return how many rows of a map have room."""
        return self._plan.rings.get(self._homes[tensor], self._graph.shapes[tensor][1])

    def _row_at(self, tensor: int, row: str | None = None) -> str:
        """Return where the row that is made, or another, stands; a whole map where it begins."""
        if self._row is None:
            return self._at(tensor)
        channels, rows, columns = self._graph.shapes[tensor]
        row, ring = row or self._row, self._ring(tensor)
        place = row if ring >= rows else f"{row} % {ring}"
        return f"{self._at(tensor)} + (size_t)({place}) * {columns * channels}"

    def _call(self, step: Step) -> StepCode:
        channels, rows, columns = self._graph.shapes[step.target]
        comment = f"{step.name}: {rows} rows, {columns} columns, {channels} channels"
        pairs = list(self._statements(step))
        used = dict.fromkeys(function for function, _ in pairs)
        lines = [
            f"{function.name}({', '.join(map(str, arguments))});" for function, arguments in pairs
        ]
        return StepCode(tuple(_wrapped(lines)), comment, tuple(used))

    def _statements(self, step: Step) -> Iterator[tuple[Function, list[object]]]:
        """Yield functions and arguments of a step."""
        match step:
            case Weighted():
                yield self._function(step), self._weighted(step)
            case Pool():
                by_rows = self._row is not None
                function = functions.pool(self._bits, average=step.average, by_rows=by_rows)
                yield function, self._pool(step)
            case Clip():
                yield from self._clip(step)
            case Add():
                operands = [self._row_at(source) for source in step.sources]
                target, size = self._row_at(step.target), self._size(step.target)
                for place_, operand in enumerate(operands[1:]):
                    one = operands[0] if place_ == 0 else target
                    yield functions.add(self._bits), [one, operand, target, size]
            case Enlarge():
                channels, rows, columns = self._graph.shapes[step.source]
                data, (down, across) = self._at(step.source), step.factor
                if self._row is not None:
                    data, rows, down = self._row_at(step.source, f"(y / {down})"), 1, 1
                sizes: list[object] = [columns, rows, channels, across, down]
                yield functions.enlarge(self._bits), [data, *sizes, self._row_at(step.target)]
            case Multiply():
                yield functions.multiply(self._bits), self._product(step)
            case Table():
                points = len(self._network.arrays[step.target])
                words: list[object] = [self._row_at(step.source), self._arrays[step.target].lower()]
                words += [self._row_at(step.target), self._size(step.target)]
                words += [17 - (points - 1).bit_length()] if self._bits > 8 else []
                yield functions.table(self._bits), words
            case Gather():
                channels, rows, columns = self._graph.shapes[step.target]
                sizes = [self._graph.shapes[step.source][2], channels]
                places = self._arrays[step.target].lower()
                yield functions.gather(self._bits), [
                    self._at(step.source), *sizes, f"{places}_rows", rows, f"{places}_columns",
                    columns, self._at(step.target),
                ]  # fmt: skip
            case Flatten():
                counts = channels, rows, columns = self._graph.shapes[step.source]
                steps = (1, columns * channels, channels)
                axes = [number for axis in step.order for number in (counts[axis], steps[axis])]
                data, target = self._at(step.source), self._at(step.target)
                yield functions.flatten(self._bits), [data, *axes, target]
            case Concat():
                yield from self._concat(step)
            case Constant():
                raise TypeError(f"{step.name} is computed by no function")
            case _:
                assert_never(step)

    def _weighted(self, step: Weighted) -> list[object]:
        name = self._names[step.target]
        weights, bias = f"{name.lower()}_wt", f"{name.lower()}_bias"
        shifts = [f"{name}_BIAS_LSHIFT", f"{name}_OUT_RSHIFT"]
        source, target = self._at(step.source), self._row_at(step.target)
        spot = self._plan.buffers.get((self._tasks[step.target].index, SCRATCH))
        buffer = "NULL" if spot is None else f"cnn_arena + {spot.offset // 2}"
        if step.linear:
            sizes = [self._size(step.source), self._size(step.target)]
            return [source, weights, *sizes, *shifts, bias, target, buffer]
        channels, rows, columns = self._graph.shapes[step.source]
        filters, out_rows, out_columns = self._graph.shapes[step.target]
        if self._function(step).body == "square":
            return [
                source, rows, channels, weights, filters, step.kernel[0], step.padding[0],
                step.stride[0], bias, *shifts, target, out_rows, buffer, "NULL",
            ]  # fmt: skip
        windows: list[object] = [
            source, columns, rows, channels, weights, filters, *step.kernel[::-1],
            *step.padding[::-1], *step.stride[::-1],
        ]  # fmt: skip
        if self._function(step).body == "groups":
            weighted = [bias, *shifts, target, out_columns]
            return [*windows, *step.spread[::-1], step.groups, *weighted,
                    *self._rows(step.source, out_rows), buffer]  # fmt: skip
        return [*windows, bias, *shifts, target, out_columns, out_rows, buffer, "NULL"]

    def _rows(self, source: int, rows: int) -> list[object]:
        """Return which rows are made, and how many of the source have room."""
        bounds: list[object] = [0, rows] if self._row is None else ["y", "y + 1"]
        return [*bounds, self._ring(source)]

    def _product(self, step: Multiply) -> list[object]:
        one, two = step.sources
        channels, rows, columns = self._graph.shapes[one]
        _, height, width = self._graph.shapes[two]
        steps = [int(n > 1) for n in self._graph.shapes[two]]
        depth = self._graph.shapes[two][0]
        second = self._at(two) if height == 1 else self._row_at(two)
        return [
            self._row_at(one), second, self._row_at(step.target),
            rows if self._row is None else 1, columns, channels, steps[1] * width * depth,
            steps[2] * depth, steps[0], self._network.shift_of(step),
        ]  # fmt: skip

    def _pool(self, step: Pool) -> list[object]:
        channels, rows, columns = self._graph.shapes[step.source]
        _, out_rows, out_columns = self._graph.shapes[step.target]
        bounds = [out_rows] if self._row is None else self._rows(step.source, out_rows)
        return [
            self._at(step.source), columns, rows, channels, *step.window[::-1],
            *step.padding[::-1], *step.stride[::-1], self._row_at(step.target), out_columns,
            *bounds,
        ]  # fmt: skip

    def _clip(self, step: Clip) -> Iterator[tuple[Function, list[object]]]:
        low, high = self._network.limits_of(step)
        target, size = self._row_at(step.target), self._size(step.target)
        if self._homes[step.source] != self._homes[step.target]:
            copy: list[object] = [self._row_at(step.source), 1, size, target, size]
            yield functions.copy_channels(self._bits), copy
        if low == 0 and high == limits(self._bits)[1] and size < _SIXTEEN_BITS:
            yield functions.relu(self._bits), [target, size]
        else:
            yield functions.clip(self._bits), [target, size, low, high]

    def _concat(self, step: Concat) -> Iterator[tuple[Function, list[object]]]:
        channels, rows, columns = self._graph.shapes[step.target]
        first, rows = 0, rows if self._row is None else 1
        for source in step.sources:
            count, target = self._graph.shapes[source][0], self._row_at(step.target)
            target = f"{target} + {first}" if first else target
            arguments = [self._row_at(source), rows * columns, count, target, channels]
            yield functions.copy_channels(self._bits), list(arguments)
            first += count


def _wrapped(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines of at most about 100 characters."""
    for line in lines:
        current, indent = "", ""
        for word in line.split(" "):
            if len(current) + len(word) > 92:
                yield current
                current, indent = "    " + word, " "
            else:
                current = f"{current} {word}" if current.strip() else indent + word
        yield current
