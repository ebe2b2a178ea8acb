"""What cnn_run calls, one step after another, and where in its memory maps and buffers stand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from diagnostics import Diagnostic, DiagnosticError, Place
from quantization.formats import limits
from quantization.q15.graph import Add, Clip, Concat, Enlarge, Graph, Pool, Step, Weighted
from quantization.q15.network import QuantizedNetwork
from software.memory import Block, Overlap, aligned
from software.plan.arena import place
from software.q15 import functions
from software.q15.functions import Function
from values import frozen

_SIXTEEN_BITS = 1 << 16
_INPUT, _OUTPUT = "in", "out"


@frozen
class Call:
    """A step as C: its `lines`, what they do, and the functions that they call."""

    lines: tuple[str, ...]
    comment: str
    functions: tuple[Function, ...]


@frozen
class Program:
    """All calls; `layers` names the weights of weighted steps by target; bytes of memory.

    `interleaving`: weights of fully connected layers are those of `_opt`.
    """

    calls: tuple[Call, ...]
    layers: Mapping[int, str]
    blocks: tuple[Block, ...]
    arena_bytes: int
    interleaving: bool = False

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions, each once."""
        used = dict.fromkeys(f for call in self.calls for f in call.functions)
        return tuple(used)


def program(
    network: QuantizedNetwork, *, library: bool = False, interleaving: bool = False
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
    return _Programmer(network, library, interleaving).program()


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
    def __init__(self, network: QuantizedNetwork, library: bool, interleaving: bool) -> None:
        self._network = network
        self._library, self._interleaving = library, interleaving
        self._graph = network.graph
        self._bits = network.bits
        self._names = layer_names(self._graph)
        self._homes = _homes(self._graph)
        self._blocks, self._bytes = place(list(self._wanted()), self._overlaps())
        self._places = {
            b.tensor: b.offset * 8 // self._bits for b in self._blocks if b.tensor is not None
        }
        self._scratch = {b.first: b.offset for b in self._blocks if b.tensor is None}

    def program(self) -> Program:
        """Return the calls of all steps."""
        calls = [self._call(number, step) for number, step in enumerate(self._graph.steps)]
        used = tuple(calls), self._names, self._blocks, aligned(self._bytes)
        return Program(*used, self._interleaving)

    def _wanted(self) -> Iterator[Block]:
        """Yield the memory of maps and buffers with the steps in which they are used."""
        steps = self._graph.steps
        for home in sorted(set(self._homes.values()) - {0, self._homes[self._graph.output]}):
            at = [
                number
                for number, step in enumerate(steps)
                if home in {self._homes[t] for t in (*step.sources, step.target)}
            ]
            size = aligned(self._size(home) * self._bits // 8)
            yield Block(name=f"map {home}", size=size, first=at[0], last=at[-1], tensor=home)
        for number, step in enumerate(steps):
            size = aligned(2 * self._buffer(step))
            if size:
                yield Block(name=f"buffer of {step.name}", size=size, first=number, last=number)

    def _overlaps(self) -> Iterator[Overlap]:
        """Yield where a result may take the place of its data.

        Without a border, pooling writes no value behind one that it has yet to read.
        """
        output = self._homes[self._graph.output]
        for step in self._graph.steps:
            if isinstance(step, Pool) and step.padding == (0, 0):
                source, target = self._homes[step.source], self._homes[step.target]
                if source != 0 and target != output:
                    yield Overlap(source, target, 0)

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
        return functions.function_of(step, self._graph, self._bits, interleaving=self._interleaving)

    def _size(self, tensor: int) -> int:
        return math.prod(self._graph.shapes[tensor])

    def _at(self, tensor: int) -> str:
        """Return where a map stands, as C."""
        home = self._homes[tensor]
        if home == 0:
            return _INPUT
        if home == self._homes[self._graph.output]:
            return _OUTPUT
        return f"ARENA + {self._places[home]}"

    def _call(self, number: int, step: Step) -> Call:
        channels, rows, columns = self._graph.shapes[step.target]
        comment = f"{step.name}: {rows} rows, {columns} columns, {channels} channels"
        pairs = list(self._statements(number, step))
        used = dict.fromkeys(function for function, _ in pairs)
        lines = [
            f"{function.name}({', '.join(map(str, arguments))});" for function, arguments in pairs
        ]
        return Call(tuple(_wrapped(lines)), comment, tuple(used))

    def _statements(self, number: int, step: Step) -> Iterator[tuple[Function, list[object]]]:
        """Yield functions and arguments of a step."""
        if isinstance(step, Weighted):
            yield self._function(step), self._weighted(number, step)
        elif isinstance(step, Pool):
            yield functions.pool(self._bits, average=step.average), self._pool(step)
        elif isinstance(step, Clip):
            yield from self._clip(step)
        elif isinstance(step, Add):
            operands = [self._at(source) for source in step.sources]
            target, size = self._at(step.target), self._size(step.target)
            for place_, operand in enumerate(operands[1:]):
                one = operands[0] if place_ == 0 else target
                yield functions.add(self._bits), [one, operand, target, size]
        elif isinstance(step, Enlarge):
            channels, rows, columns = self._graph.shapes[step.source]
            sizes = [columns, rows, channels, *step.factor[::-1]]
            yield functions.enlarge(self._bits), [
                self._at(step.source), *sizes, self._at(step.target)
            ]  # fmt: skip
        else:
            assert isinstance(step, Concat)
            yield from self._concat(step)

    def _weighted(self, number: int, step: Weighted) -> list[object]:
        name = self._names[step.target]
        weights, bias = f"{name.lower()}_wt", f"{name.lower()}_bias"
        shifts = [f"{name}_BIAS_LSHIFT", f"{name}_OUT_RSHIFT"]
        source, target = self._at(step.source), self._at(step.target)
        offset = self._scratch.get(number)
        buffer = "NULL" if offset is None else f"cnn_arena + {offset // 2}"
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
        apart: list[int] = []
        if self._function(step).body == "groups":
            apart = [*step.spread[::-1], step.groups]
        return [
            source, columns, rows, channels, weights, filters, *step.kernel[::-1],
            *step.padding[::-1], *step.stride[::-1], *apart, bias, *shifts, target, out_columns,
            out_rows, buffer, "NULL",
        ]  # fmt: skip

    def _pool(self, step: Pool) -> list[object]:
        channels, rows, columns = self._graph.shapes[step.source]
        _, out_rows, out_columns = self._graph.shapes[step.target]
        return [
            self._at(step.source), columns, rows, channels, *step.window[::-1],
            *step.padding[::-1], *step.stride[::-1], self._at(step.target), out_columns, out_rows,
        ]  # fmt: skip

    def _clip(self, step: Clip) -> Iterator[tuple[Function, list[object]]]:
        low, high = self._network.limits_of(step)
        target, size = self._at(step.target), self._size(step.target)
        if self._homes[step.source] != self._homes[step.target]:
            copy: list[object] = [self._at(step.source), 1, size, target, size]
            yield functions.copy_channels(self._bits), copy
        if low == 0 and high == limits(self._bits)[1] and size < _SIXTEEN_BITS:
            yield functions.relu(self._bits), [target, size]
        else:
            yield functions.clip(self._bits), [target, size, low, high]

    def _concat(self, step: Concat) -> Iterator[tuple[Function, list[object]]]:
        channels, rows, columns = self._graph.shapes[step.target]
        first = 0
        for source in step.sources:
            count = self._graph.shapes[source][0]
            target = f"{self._at(step.target)} + {first}" if first else self._at(step.target)
            arguments = [self._at(source), rows * columns, count, target, channels]
            yield functions.copy_channels(self._bits), list(arguments)
            first += count


def _homes(graph: Graph) -> dict[int, int]:
    """Return for each map the one in whose memory it stands: clips work in place if they can."""
    homes = {0: 0}
    for step in graph.steps:
        homes[step.target] = step.target
        if isinstance(step, Clip) and step.source != 0 and len(graph.users(step.source)) == 1:
            homes[step.target] = homes[step.source]
    return homes


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
