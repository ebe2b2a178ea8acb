"""Programs of graphs of operators on expressions: kernels, and steps that look at values.

Source: docs/proof.md, "Graphs of operators".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial

import numpy as np

from ai8xtools.emulator.cpu.elf import Image
from ai8xtools.emulator.proof.algebra import Algebra, Places, Terms, joined
from ai8xtools.emulator.proof.dataflow import CONSTANTS, Dataflow, Values
from ai8xtools.emulator.proof.fingerprints import LANES, Fingerprints, Mixer
from ai8xtools.emulator.proof.functions import Integers
from ai8xtools.emulator.proof.kernels import Convolution, departure
from ai8xtools.emulator.proof.program import TracedProgram
from ai8xtools.emulator.proof.steps import RowOfStep, Step
from ai8xtools.values import frozen

NOTHING = -(2**31)
"""In the place of a value's number: there is none."""
_WORD = 4
_WORDS = 2**32
_HIGHEST, _LOWEST = 127.0, -128.0


@frozen(slots=False)
class _Taken:
    """A row of a step, of sources in this order; with windows its inputs are their values."""

    row: RowOfStep
    loads: tuple[tuple[str, str], ...]

    __hash__, __eq__ = object.__hash__, object.__eq__


class OperatorProgram(TracedProgram):
    """A program whose `steps` are followed, too, with their `tables`."""

    def __init__(
        self,
        image: Image,
        in_bytes: int,
        out_bytes: int,
        time_limit: float,
        steps: Mapping[str, Step],
        tables: Mapping[str, Integers],
    ) -> None:
        self._steps, self._tables = steps, tables
        self._rows: dict[tuple[str, int], _Taken] = {}
        super().__init__(image, in_bytes, out_bytes, time_limit)
        missing = [name for name in steps if name not in image.symbols]
        if missing:
            raise departure(f"the compiler left no function {missing[0]}()")

    def _handlers(self) -> dict[str, Callable[[], None]]:
        return super()._handlers() | {name: partial(self._step, name) for name in self._steps}

    def _step(self, name: str) -> None:
        step = self._steps[name]
        arguments = self._arguments(step.by_row + len(step.sources) + 1)
        y = arguments[0] if step.by_row else 0
        out, sources = (
            arguments[-1],
            dict(zip(step.sources, arguments[step.by_row :], strict=False)),
        )
        if out % step.width:
            raise departure("memory is not aligned")
        taken = self._row(name, step, y)
        if step.window is None:
            columns = [
                self._read(sources[source] + step.index(kind) * step.sources[source],
                           step.sources[source], out, step.width)
                for source, kind in taken.loads
            ]  # fmt: skip
            inputs = np.stack(columns, axis=1) if columns else np.zeros((step.count, 0), np.int64)
        else:
            inputs = self._windows(step, y, sources["rows"], out)
        self.flow.write(out, self.flow.compute(taken, inputs, 1, step.width), step.width)

    def _row(self, name: str, step: Step, y: int) -> _Taken:
        key = name, y if step.by_row and step.window is None else -1
        if step.window is not None:
            key = name, y
        if key not in self._rows:
            loads = [one for one in step.statements if one.form == "load"
                     and one.parts[0] not in step.sources]  # fmt: skip
            constants = {
                one.parts: self._table(
                    one.parts[0], int(one.parts[1] or 0) * y, step.index(one.parts[2])
                )
                for one in loads
            }
            looks = {one.parts[0] for one in step.statements if one.form == "look"}
            tables = {one: self._table(one, 0, np.arange(256)) for one in looks}
            taken = _Taken(RowOfStep(step, constants, tables), tuple(step.loads()))
            alike = (
                one for (other, _), one in self._rows.items() if other == name
                and all(np.array_equal(one.row.constants[n], constants[n]) for n in constants)
            )  # fmt: skip
            self._rows[key] = next(alike, taken)
        return self._rows[key]

    def _table(self, name: str, begin: int, places: Integers) -> Integers:
        table = self._tables.get(name, np.zeros(0, np.int64))
        if begin + int(places.max(initial=0)) >= len(table):
            raise departure(f"the table {name} ends before its last value is read")
        return table[begin + places]

    def _windows(self, step: Step, y: int, base: int, out: int) -> Integers:
        """Return the numbers of the values of windows [result, value]; NOTHING outside."""
        window, width = step.window, step.sources["rows"]
        assert window is not None
        rows = y * window.stride[0] - window.pad[0] + np.arange(window.size[0]) * window.step[0]
        columns = np.arange(step.columns)[:, None] * window.stride[1] - window.pad[1] + (
            np.arange(window.size[1]) * window.step[1]
        )  # fmt: skip
        inside = ((rows >= 0) & (rows < window.in_size[0]))[None, :, None] & (
            (columns >= 0) & (columns < window.in_size[1]))[:, None]  # fmt: skip
        starts = base + _places(window.image, np.maximum(rows, 0))
        places = starts[None, :, None] + columns[:, None] * window.channels * width
        every = places[:, None] + (np.arange(step.channels) * width)[:, None, None]
        used = np.broadcast_to(inside[:, None], every.shape).reshape(step.count, -1)
        every = every.reshape(step.count, -1)
        numbers = np.full(every.shape, NOTHING, np.int64)
        which = np.broadcast_to(np.arange(step.count)[:, None], every.shape)
        numbers[used] = self._read(every[used], width, out, step.width, which[used])
        return numbers

    def _read(
        self,
        places: Integers,
        width: int,
        out: int,
        out_width: int,
        results: Integers | None = None,
    ) -> Integers:
        """Return the numbers of values at places, of these results, which are written in turn."""
        results = np.arange(len(places)) if results is None else results
        if width == 1:
            numbers = self.flow.read(places)
        else:
            some, inverse = np.unique(places, return_inverse=True)
            numbers = self._words(some)[inverse.reshape(-1)]
        lost = (places + width > out) & (places < out + results * out_width)
        if lost.any():
            numbers[lost] = self.flow.unknown(int(lost.sum()))
        return numbers

    def _words(self, places: Integers) -> Integers:
        """Return the numbers of values of 32 bits; bytes that are constants make one, too."""
        if not len(places):
            return places
        parts = [self.flow.read_wide(int(some[0]), len(some), _WORD) for some in _runs(places)]
        codes = np.concatenate([self.flow.codes(int(some[0]), _WORD * len(some))
                                for some in _runs(places)]).reshape(-1, _WORD)  # fmt: skip
        numbers = np.concatenate(parts)
        fixed = ((codes >= 0) & (codes < CONSTANTS * _WORD) & (codes % _WORD == 0)).all(axis=1)
        if fixed.any():
            content = (codes[fixed] // _WORD).astype(np.uint8)
            words = content.copy().view("<i4")[:, 0].astype(np.int64)
            for word in np.unique(words).tolist():
                made = self.flow.compute(("constant", word), np.zeros((1, 0), np.int64), 1, _WORD)
                numbers[np.flatnonzero(fixed)[words == word]] = made[0]
        return numbers


class OperatorValues(Values):
    """Values of a data flow as the algebra has them."""

    def __init__(self, flow: Dataflow, mixer: Mixer, algebra: Algebra) -> None:
        super().__init__(flow, mixer)
        self.algebra = algebra
        constants = np.arange(CONSTANTS).astype(np.int8).astype(np.int64)
        self.terms = algebra.constants(constants)

    def of(self, numbers: Integers) -> Fingerprints:
        """Return the expressions of values; those that are fractions are like nothing."""
        terms, over = self.algebra.numerators(self._known(numbers.reshape(-1)))
        prints = terms.sums
        prints[over != 1] = self._mixer.of("fraction", prints[over != 1])
        return prints.reshape(*numbers.shape, LANES)

    def give(self, first: int, expressions: Fingerprints) -> None:
        """Give leaves, any bytes, their expressions."""
        self._grow()
        n = len(expressions)
        leaves = self.algebra.leaves(expressions, np.full(n, _LOWEST), np.full(n, _HIGHEST))
        self.terms.put(first + np.arange(n), leaves)

    def _known(self, numbers: Integers) -> Terms:
        """Return values; what is unknown is like nothing else."""
        terms = self.terms.take(np.maximum(numbers, 0))
        if (terms.function < 0).any():
            raise departure("what is not complete yet is read")
        unknown = numbers < 0
        if unknown.any():
            arguments = np.zeros((int(unknown.sum()), LANES), np.int64)
            arguments[:, 0] = -numbers[unknown]
            ends = np.full(len(arguments), _LOWEST), np.full(len(arguments), _HIGHEST)
            terms.put(unknown, self.algebra.leaves(self._mixer.of("unknown", arguments), *ends))
        return terms

    def _grow(self) -> None:
        more = self._flow.count - len(self.terms)
        if more > 0:
            empty = self.algebra.constants(np.zeros(1)).take(np.zeros(more, np.int64))
            empty.function[:] = -1
            self.terms = joined([self.terms, empty])

    def _produced(self, targets: Integers) -> Fingerprints:
        return self.of(targets)

    def _compute(self, kind: Hashable, inputs: Integers, targets: Integers) -> None:
        algebra = self.algebra
        if isinstance(kind, Convolution):
            result = self._convolved(kind, inputs)
        elif isinstance(kind, _Taken):
            result = self._of_step(kind, inputs)
        else:
            match kind:
                case ("max", _):
                    values = self._known(inputs.reshape(-1))
                    result = algebra.maxima(values, np.arange(inputs.size).reshape(inputs.shape))
                case ("constant", int(word)):
                    result = algebra.constants(np.full(len(targets), word))
                case ("byte", int(part)):
                    sums = self._mixer.of(("byte", part), self.of(inputs[:, 0]))
                    ends = np.full(len(sums), _LOWEST), np.full(len(sums), _HIGHEST)
                    result = algebra.leaves(sums, *ends)
                case (str(name), *_):
                    raise departure(f"{name} of several values is no step of a graph")
                case _:
                    raise AssertionError(kind)
        self.terms.put(targets, result)

    def _of_step(self, kind: _Taken, inputs: Integers) -> Terms:
        window, algebra = kind.row.step.window, self.algebra
        if window is None:
            taken = {load: self._known(inputs[:, n]) for n, load in enumerate(kind.loads)}
            return kind.row.value(algebra, taken, len(inputs))
        used = inputs != NOTHING
        some, inverse = np.unique(inputs[used], return_inverse=True)
        places = np.full(inputs.shape, -1, np.int64)
        places[used] = inverse.reshape(-1)
        pick = algebra.totals if window.sums else algebra.maxima
        return kind.row.value(algebra, {("v", ""): pick(self._known(some), places)}, len(inputs))

    def _convolved(self, conv: Convolution, inputs: Integers) -> Terms:
        params, algebra = conv.parameters, self.algebra
        if conv.passes_on:
            return self._known(inputs.reshape(-1))
        if params.right < 0 or (params.wide and params.activation != "none") or (
            params.activation.startswith("abs")):  # fmt: skip
            raise departure(f"no step of a graph ends with {params.activation!r} of a shift "
                            f"by {params.right}")  # fmt: skip
        used, inverse = np.unique(inputs, return_inverse=True)
        places = inverse.reshape(inputs.shape)
        values = self._known(used)
        low, high = algebra.bounds(values)
        bounds = np.stack([low, high], axis=-1).astype(np.int64)
        each = conv.grouped(places)
        rows = max(1, 2**20 // inputs.shape[1])
        for first in range(0, len(inputs), rows):
            conv.bounds(bounds[each[:, first : first + rows]])
        if conv.runs:
            ends = bounds[each[0]]
            conv.refuse_long_runs(ends[..., 0].min(axis=0), ends[..., 1].max(axis=0))
        pixels, groups = len(inputs), len(conv.weights)

        def compute(numbers: np.ndarray, weights: np.ndarray) -> np.ndarray:
            shaped = weights.reshape(conv.weights.shape).swapaxes(1, 2)
            parts = [
                numbers[each[:, first : first + rows]] @ shaped for first in range(0, pixels, rows)
            ]
            whole = np.concatenate(parts, axis=1)  # [group, pixel, filter of the group]
            return np.asarray(whole.swapaxes(0, 1).reshape(-1))

        flat = conv.weights.reshape(conv.filters, -1).astype(np.float64)
        filters = np.tile(np.arange(groups * conv.weights.shape[1]), pixels)
        total = algebra.weighted(compute, values, flat, conv.start[filters], filters)
        if params.wide:
            return total
        shifted = algebra.floor(algebra.scaled(total, 1, 2**params.right))
        limits = (np.full(len(total), float(end)) for end in (params.low, 127))
        least, most = map(algebra.constants, limits)
        return algebra.smallest(algebra.largest(shifted, least), most)


def _places(image: tuple[int, ...], rows: Integers) -> Integers:
    """Return where rows of an image are, as nn_place() says."""
    row_bytes, shared, many, ring = image
    if ring < many:
        rows = rows - (rows * (_WORDS // 2**16 // shared + 1) % _WORDS // 2**16) * ring
        rows = np.where(rows % _WORDS < ring, rows, rows + ring)
    return np.asarray(rows * row_bytes)


def _runs(places: Places) -> list[Places]:
    """Return words one behind another together."""
    return np.split(places, np.flatnonzero(np.diff(places) != _WORD) + 1)
