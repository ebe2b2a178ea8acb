"""What a program computes of what, followed through its memory without any numbers.

Every byte of data memory holds the number of a value. Operations are collected while the program
runs, and computed afterwards, those of the same kind at once: as expressions, and as intervals.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.proof.fingerprints import (
    LANES,
    LARGEST_MAGNITUDE,
    PRIME,
    Fingerprints,
    Mixer,
)
from ai8xtools.emulator.proof.kernels import Convolution, departure
from ai8xtools.emulator.proof.machine import combined, finished, first_bytes, pooled
from ai8xtools.reading.progress import tracked
from ai8xtools.values import frozen

Integers = NDArray[np.int64]

ZERO, CONSTANTS = 0, 256
"""The number of the value 0; numbers below CONSTANTS are those of bytes."""
_PARTS = 4
"""Bytes of a value at most. The code of a byte is its place plus the value's number times this."""
_SUM_BYTES = 2
_LOWEST, _HIGHEST = -128, 127
_NONE = np.array([_HIGHEST, _LOWEST])
"""The interval of what is computed of unknown data: no value of the network is that."""
_AT_ONCE = 1 << 21  # numbers that are multiplied at once
_MISSING = -1
_UNIT = 7  # sums are shifted right by this, less the shift of the layer


@frozen
class Operation:
    """Values from number `first` on, one for each row of `inputs` or several, that something
    hashable tells how to compute. All inputs are of a lower `level`.
    """

    kind: Hashable
    inputs: Integers
    first: int
    level: int


@frozen
class _Region:
    base: int
    codes: Integers

    @property
    def end(self) -> int:
        return self.base + len(self.codes)


@frozen
class Mark:
    """How many operations and values there are, and the codes of the result."""

    operations: int
    count: int
    codes: Integers


class Dataflow:
    """Data memory of which each byte holds the code of a value, and operations on values.

    Codes below 0 are bytes of which nothing is known, each unlike all others.
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.count = CONSTANTS
        self.superseded: set[int] = set()
        self._widths, self._levels = np.ones(1024, np.int8), np.zeros(1024, np.int32)
        self._regions: list[_Region] = []
        self._unknown = 0
        self._gathered: dict[int, Integers] = {}
        self._firsts: list[int] = []

    def add_region(self, base: int, size: int) -> None:
        """Follow so many bytes from an address on; nothing is known of them."""
        self._regions.append(_Region(base, self.unknown(size)))

    def holds(self, address: int) -> bool:
        """Tell whether the byte at an address is followed."""
        return any(one.base <= address < one.end for one in self._regions)

    def unknown(self, count: int) -> Integers:
        """Return codes of bytes of which nothing is known."""
        self._unknown += count
        return -self._unknown + np.arange(count)

    def codes(self, address: int, size: int) -> Integers:
        """Return the codes of bytes from an address on, which may be changed."""
        for region in self._regions:
            if region.base <= address and address + size <= region.end:
                return region.codes[address - region.base :][:size]
        raise departure(f"{size} bytes at address 0x{address:08x} are no memory for data")

    def constants(self, address: int, size: int) -> bytes:
        """Return bytes from an address on; raises EmulatorError if they are data."""
        numbers = self.codes(address, size) // _PARTS
        if (numbers < 0).any() or (numbers >= CONSTANTS).any():
            raise departure(f"the program, or what a kernel takes for weights, reads data itself, "
                            f"at address 0x{address:08x}")  # fmt: skip
        return numbers.astype(np.uint8).tobytes()

    def leaves(self, count: int, width: int = 1) -> int:
        """Return the first of new values."""
        return self._new(count, width, 0)

    def read(self, addresses: Integers) -> Integers:
        """Return the numbers of the values of 8 bits at addresses; ZERO for -1."""
        codes = np.full(addresses.shape, ZERO)
        left = addresses >= 0
        for region in self._regions:
            here = left & (addresses >= region.base) & (addresses < region.end)
            if here.any():
                codes[here] = region.codes[addresses[here] - region.base]
                left &= ~here
        if left.any():
            raise departure(f"a kernel reads address 0x{int(addresses[left][0]):08x}, which is no "
                            "memory for data")  # fmt: skip
        return self._as_bytes(codes)

    def read_wide(self, address: int, count: int, width: int) -> Integers:
        """Return the numbers of values of several bytes; of those below 0 nothing is known."""
        codes = self.codes(address, count * width).reshape(count, width)
        numbers = codes[:, 0] // _PARTS
        whole = (codes >= 0) & (codes == numbers[:, None] * _PARTS + np.arange(width))
        right = whole.all(axis=1) & (self._widths[np.maximum(numbers, 0)] == width)
        return np.where(right, numbers, self.unknown(count))

    def write(self, address: int, numbers: Integers, width: int = 1) -> None:
        """Write values one after the other."""
        codes = numbers[:, None] * _PARTS + np.arange(width)
        if width == 1:
            codes = np.where(numbers < 0, numbers, numbers * _PARTS)[:, None]
        self.codes(address, codes.size)[:] = codes.reshape(-1)

    def forget(self, address: int, size: int) -> None:
        """Let bytes be unknown."""
        if size:
            self.codes(address, size)[:] = self.unknown(size)

    def compute(self, kind: Hashable, inputs: Integers, results: int = 1, width: int = 1
                ) -> Integers:  # fmt: skip
        """Return the numbers of what is computed of inputs [row, input], `results` of each row."""
        level = 1 + int(self._levels[np.maximum(inputs, 0)].max(initial=0))
        first = self._new(len(inputs) * results, width, level)
        self.operations.append(Operation(kind, inputs.astype(np.int32), first, level))
        return first + np.arange(len(inputs) * results)

    def mark(self, result: int, size: int) -> Mark:
        """Return how far the program is, and the codes of its result at an address."""
        return Mark(len(self.operations), self.count, self.codes(result, size).copy())

    def repeats(self, begin: Mark, one: Mark, two: Mark) -> bool:
        """Tell whether between the later marks the same is computed as between the first ones, with
        the same codes but for what is unknown both times.
        """
        earlier = self.operations[begin.operations : one.operations]
        later = self.operations[one.operations : two.operations]
        shift, codes = two.count - one.count, one.codes
        moved = _shifted(codes // _PARTS, shift) * _PARTS + codes % _PARTS
        same = (moved == two.codes) | ((codes < 0) & (two.codes < 0))
        return len(earlier) == len(later) and bool(same.all()) and all(
            one.kind == two.kind and one.first + shift == two.first
            and np.array_equal(_shifted(one.inputs, shift), two.inputs)
            for one, two in zip(earlier, later, strict=True)
        )  # fmt: skip

    def goes_on(self, begin: Mark, one: Mark, two: Mark) -> bool:
        """Tell whether all that follows is as between the later marks, if the program's variables
        are the same at all three: that repeats what is between the first ones, and uses nothing
        older.
        """
        oldest = (
            np.where(some.inputs < CONSTANTS, self.count, some.inputs).min(initial=self.count)
            for some in self.operations[one.operations : two.operations]
        )
        return min(oldest, default=self.count) >= begin.count and self.repeats(begin, one, two)

    def gather(self, name: str, earlier: Integers | None, more: Integers, width: int = 1
               ) -> Integers:  # fmt: skip
        """Return the numbers of greatest values, or sums, of `more` [value, input], and of what the
        `earlier` ones of the same kind were made of.
        """
        inputs = more
        if earlier is not None:
            before = self._gathered.get(int(earlier[0]))
            if before is None or (np.diff(earlier) != 1).any() or len(before) != len(earlier):
                before = earlier[:, None]
                if name == "sum":
                    raise departure("something is added to what is no sum")
            else:
                self.superseded.add(int(earlier[0]))
            inputs = np.concatenate([before, more], axis=1)
        numbers = self.compute((name, inputs.shape[1]), inputs, width=width)
        self._gathered[int(numbers[0])] = inputs
        self._firsts.append(int(numbers[0]))
        return numbers

    def terms(self, sums: Integers) -> Integers:
        """Return what sums are made of, [sum, input]."""
        parts, done = [], 0
        while done < len(sums):
            number = int(sums[done])
            place = bisect_right(self._firsts, number) - 1
            first = self._firsts[place] if place >= 0 else number + 1
            inputs = self._gathered.get(first, np.zeros((0, 1), np.int64))[number - first :]
            some = sums[done : done + len(inputs)]
            if number < 0 or not len(some) or (some != number + np.arange(len(some))).any():
                raise departure("an average is made of what are no sums")
            parts.append(inputs[: len(some)])
            done += len(some)
        if len({part.shape[1] for part in parts}) != 1:
            raise departure("an average is made of sums of different sizes")
        return np.concatenate(parts)

    def _as_bytes(self, codes: Integers) -> Integers:
        numbers = np.where(codes < 0, codes, codes // _PARTS)
        wide = self._widths[np.maximum(numbers, 0)] != 1
        wide &= codes >= 0
        for part in np.unique(codes[wide] % _PARTS):
            some = wide & (codes % _PARTS == part)
            numbers[some] = self.compute(("byte", int(part)), numbers[some][:, None])
        return numbers

    def _new(self, count: int, width: int, level: int) -> int:
        first, self.count = self.count, self.count + count
        if self.count > len(self._widths):
            more = max(self.count, 2 * len(self._widths)) - len(self._widths)
            self._widths = np.concatenate([self._widths, np.ones(more, np.int8)])
            self._levels = np.concatenate([self._levels, np.zeros(more, np.int32)])
        self._widths[first : self.count] = width
        self._levels[first : self.count] = level
        return first


class Values:
    """Expressions and intervals of the values of a data flow, which may go on."""

    def __init__(self, flow: Dataflow, mixer: Mixer) -> None:
        self._flow, self._mixer = flow, mixer
        constants = np.arange(CONSTANTS).astype(np.int8).astype(np.int64)
        # 32 bits hold both
        self._table = mixer.constants(constants).astype(np.int32)
        self._bounds = np.stack([constants, constants], axis=1).astype(np.int32)
        self._done = 0

    def of(self, numbers: Integers) -> Fingerprints:
        """Return the expressions of values."""
        return self._of(numbers).astype(np.int64)

    def _of(self, numbers: Integers) -> NDArray[np.int32]:
        expressions: NDArray[np.int32] = self._table[np.maximum(numbers, 0)]
        if (expressions[..., 0] == _MISSING).any():
            raise departure("what is not complete yet is read")
        unknown = numbers < 0
        if unknown.any():
            arguments = np.zeros((int(unknown.sum()), LANES), np.int64)
            arguments[:, 0] = -numbers[unknown]
            expressions[unknown] = self._mixer.of("unknown", arguments)
        return expressions

    def give(self, first: int, expressions: Fingerprints) -> None:
        """Give leaves, any bytes, their expressions."""
        self._grow()
        self._table[first : first + len(expressions)] = expressions
        self._bounds[first : first + len(expressions)] = _LOWEST, _HIGHEST

    def compute(self) -> Fingerprints:
        """Compute what has been added to the data flow, and return its expressions; raises
        EmulatorError for sums that may leave their bits.
        """
        self._grow()
        groups: dict[tuple[int, Hashable], list[Operation]] = defaultdict(list)
        for one in self._flow.operations[self._done :]:
            if one.first not in self._flow.superseded:
                groups[one.level, one.kind].append(one)
        self._done = len(self._flow.operations)
        produced = [np.zeros(0, np.int64)]
        ordered = sorted(groups.items(), key=lambda item: item[0][0])
        for (_, kind), operations in tracked("Operations of the program", ordered):
            inputs = np.concatenate([one.inputs for one in operations])
            results = kind.filters if isinstance(kind, Convolution) else 1
            targets = np.concatenate(
                [one.first + np.arange(len(one.inputs) * results) for one in operations]
            )
            self._compute(kind, inputs, targets)
            produced.append(targets)
        return self._produced(np.concatenate(produced))

    def _produced(self, targets: Integers) -> Fingerprints:
        return self._table[targets].astype(np.int64)

    def _grow(self) -> None:
        size = len(self._table)
        if self._flow.count > size:  # by half at least, so that all is not copied each time
            rows = max(self._flow.count, size + size // 2)
            for name in ("_table", "_bounds"):
                old = getattr(self, name)
                new = np.empty((rows, old.shape[1]), old.dtype)
                new[:size] = old
                setattr(self, name, new)
            self._table[size:, 0] = _MISSING

    def _bounds_of(self, numbers: Integers) -> Integers:
        bounds = self._bounds[np.maximum(numbers, 0)].astype(np.int64)
        bounds[numbers < 0] = _NONE
        return bounds

    def _compute(self, kind: Hashable, inputs: Integers, targets: Integers) -> None:
        if isinstance(kind, Convolution):
            self._convolve(kind, inputs, targets)
            return
        assert isinstance(kind, tuple)
        mixer, values, bounds = self._mixer, self.of(inputs), self._bounds_of(inputs)
        match kind:
            case ("byte", 0):
                expressions = first_bytes(values[:, 0], mixer)
            case ("byte", _):
                expressions = mixer.of(kind, values[:, 0])
            case ("max", count):
                total = values.sum(axis=1) % PRIME
                expressions = pooled(total, count, maximum=True, rounding=False, mixer=mixer)
            case ("sum", count):
                total = values.sum(axis=1) % PRIME
                expressions = mixer.of(kind, total)
                if count * max(-_LOWEST, _HIGHEST) > 2 ** (8 * _SUM_BYTES - 1):
                    raise departure(f"a sum of {count} values may leave 16 bits")
            case ("average", count, rounded):
                total = values.sum(axis=1) % PRIME
                expressions = pooled(total, count, maximum=False, rounding=rounded, mixer=mixer)
            case (str(operation), _):
                expressions = combined(values.swapaxes(0, 1), operation, mixer)
            case _:
                raise AssertionError(kind)
        self._table[targets] = expressions
        self._bounds[targets] = _bounds_after(kind[0], bounds)

    def _convolve(self, conv: Convolution, inputs: Integers, targets: Integers) -> None:
        if conv.passes_on:
            values = inputs.reshape(-1)
            self._table[targets], self._bounds[targets] = self.of(values), self._bounds_of(values)
            return
        conv.refuse_magnitudes(LARGEST_MAGNITUDE)
        ends = np.empty((inputs.shape[1], 2), np.int64)
        ends[:] = _HIGHEST, _LOWEST
        rows = max(1, _AT_ONCE // inputs.shape[1])
        for first in range(0, len(inputs), rows):
            some = inputs[first : first + rows]
            place = targets[first * conv.filters :][: len(some) * conv.filters]
            grouped = conv.grouped(some)
            self._table[place] = self._outputs(conv, grouped)
            bounds = self._bounds_of(grouped)
            unknown = (bounds == _NONE).all(axis=-1)
            bounds[unknown] = _LOWEST, _HIGHEST
            results = conv.bounds(bounds)
            if unknown.any():
                lost = (unknown.astype(np.float64) @ (conv.factors != 0) > 0).swapaxes(0, 1)
                results[lost.reshape(-1)] = _NONE
                bounds = bounds[
                    :, ~lost.all(axis=(1, 2))
                ]  # others share a register with known ones
            self._bounds[place] = results
            if conv.runs:
                ends[:, 0] = np.minimum(ends[:, 0], bounds[0, ..., 0].min(axis=0, initial=_HIGHEST))
                ends[:, 1] = np.maximum(ends[:, 1], bounds[0, ..., 1].max(axis=0, initial=_LOWEST))
        conv.refuse_long_runs(ends[:, 0], ends[:, 1])

    def _outputs(self, conv: Convolution, grouped: Integers) -> Fingerprints:
        """Return the expressions of the results of inputs [group, pixel, input]."""
        params = conv.parameters
        values = self._of(grouped).astype(np.float64)
        lanes = [values[..., lane] @ conv.factors for lane in range(LANES)]
        sums = np.stack(lanes, axis=-1).astype(np.int64).swapaxes(0, 1)
        half = 0 if params.wide or params.right <= 0 else 2**params.right // 2
        start = self._mixer.constants(conv.start - half)
        totals = (sums.reshape(len(sums), -1, LANES) + start) % PRIME
        outputs = finished(
            totals, wide=params.wide, shift=_UNIT - params.right, activation=params.activation,
            mixer=self._mixer,
        )  # fmt: skip
        return outputs.reshape(-1, LANES)


def _bounds_after(name: str, bounds: Integers) -> Integers:
    """Return least and greatest results [value, 2] of operands with such, [value, operand, 2]."""
    low, high = bounds[..., 0], bounds[..., 1]
    unknown = (bounds == _NONE).all(axis=-1).any(axis=1)
    match name:
        case "max":
            ends = low.max(axis=1), high.max(axis=1)
        case "average":
            ends = low.min(axis=1), high.max(axis=1)
        case "add":
            ends = low.sum(axis=1), high.sum(axis=1)
        case "sub":
            ends = low[:, 0] - high[:, 1:].sum(axis=1), high[:, 0] - low[:, 1:].sum(axis=1)
        case "or" | "xor":
            least = np.where((low >= 0).all(axis=1), 0, _LOWEST)
            ends = least, np.full(len(low), _HIGHEST)
        case _:
            ends = np.full(len(low), _LOWEST), np.full(len(low), _HIGHEST)
    found = np.clip(np.stack(ends, axis=-1), _LOWEST, _HIGHEST)
    return np.where(unknown[:, None], _NONE, found)


def _shifted(numbers: Integers, by: int) -> Integers:
    return np.where(numbers < CONSTANTS, numbers, numbers + by)


def overlap(one: int, size: int, other: int, length: int) -> bool:
    """Tell whether bytes from two addresses on have any in common."""
    return one < other + length and other < one + size


def within(addresses: Integers, spans: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
    """Tell which addresses lie in spans of an address and a size."""
    inside = np.zeros(addresses.shape, np.bool_)
    for base, size in spans:
        inside |= (addresses >= base) & (addresses < base + size)
    return inside
