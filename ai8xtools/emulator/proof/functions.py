"""Functions of one whole number n, each made once, and where their values change.

A function is a number: that of an operation on other functions. What is equal for all n in reach
has equal pieces, however it was made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.proof.kernels import departure
from ai8xtools.values import frozen

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Exact = NDArray[np.object_]

_MOST = 2**13
"""Pieces of a function at most."""
_FEW = 2**16
"""Numbers that are tried one by one, at most."""
_FRACTION_BITS = 30
_ENTRIES = 2**8
"""Of a table: as many as a byte has values."""


@frozen
class Operation:
    """A function: the `name` of an operation, functions that it takes, and what else it needs."""

    name: str
    operands: tuple[int, ...]
    settings: tuple[object, ...]


@frozen
class Numbers:
    """`values` over `over`, which is 0 if they are fractions as floating point has them."""

    values: Exact | Floats
    over: int

    @property
    def floats(self) -> Floats:
        """The values in floating point."""
        values = np.asarray(self.values.astype(np.float64))
        return values / self.over if self.over else values

    def whole(self) -> tuple[Integers, int]:
        """Return the values as integers over the least power of two that has them."""
        if self.over:
            shared = reduce(math.gcd, self.values.tolist(), self.over)
            return (self.values // shared).astype(np.int64), self.over // shared
        values = self.floats
        for bits in range(_FRACTION_BITS):
            scaled = np.ldexp(values, bits)
            if (scaled == np.floor(scaled)).all() and (abs(scaled) < 2.0**62).all():
                return scaled.astype(np.int64), 2**bits
        raise departure("a value that is computed with is no whole number")


class Functions:
    """All functions of a comparison, by their numbers."""

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._numbers: dict[Operation, int] = {}
        self._directions: list[int | None] = []
        self._pieces: dict[tuple[int, int], tuple[Integers, Numbers] | None] = {}
        self._called: dict[str, Callable[..., Floats]] = {}

    def over(self, divisor: int) -> int:
        """Return the function n / divisor."""
        return self.line(1, 0, divisor)

    def line(self, factor: int, offset: int, over: int) -> int:
        """Return the function (factor * n + offset) / over."""
        shared = math.gcd(factor, offset, over)
        if factor == 0:
            return self.constant(offset, over)
        return self._new("line", (), factor // shared, offset // shared, over // shared)

    def constant(self, value: int, over: int) -> int:
        """Return the function that is always value / over."""
        shared = math.gcd(value, over)
        return self._new("constant", (), value // shared, over // shared)

    def called(self, name: str, function: Callable[..., Floats], *operands: int) -> int:
        """Return a function of floating point, which a name tells, of other functions."""
        self._called[name] = function
        return self._new("call", operands, name)

    def moved(self, function: int, factor: int, offset: int) -> int:
        """Return a function of factor * n + offset."""
        if (factor, offset) == (1, 0):
            return function
        operation = self._operations[function]
        match operation.name, operation.settings:
            case "line", (int(slope), int(start), int(over)):
                return self.line(slope * factor, slope * offset + start, over)
            case "constant", _:
                return function
        parts = tuple(self.moved(one, factor, offset) for one in operation.operands)
        return self.made(operation.name, parts, *operation.settings)

    def made(self, name: str, operands: tuple[int, ...], *settings: object) -> int:
        """Return the function that an operation makes: limits and constants move outwards."""
        if name in ("add", "mul", "max", "min"):
            first, second = sorted(operands, key=lambda one: (self._number(one) is not None, one))
            number = self._number(second)
            if number is not None:
                return self._with_number(name, first, *number)
            return self._new(name, (first, second))
        if name != "floor":
            return self._new(name, operands, *settings)
        (inner,) = operands
        operation = self._operations[inner]
        match operation.name, operation.settings:
            case "floor" | "root" | "look", _:
                return inner
            case "constant", (int(value), int(over)):
                return self.constant(value // over, 1)
            case "line", (int(factor), int(offset), int(over)):
                shared = math.gcd(factor, over)
                line = self.line(factor // shared, offset // shared, over // shared)
                return line if over == shared else self._new("floor", (line,))
            case (("max" | "min"), _):
                if self._number(operation.operands[1]) is not None:
                    parts = (self.made("floor", (one,)) for one in operation.operands)
                    return self.made(operation.name, (*parts,))
        return self._new("floor", operands)

    def _number(self, function: int) -> tuple[int, int] | None:
        """Return the value of a function that is a constant, and what that is over."""
        match self._operations[function].name, self._operations[function].settings:
            case "constant", (int(value), int(over)):
                return value, over
        return None

    def _with_number(self, name: str, function: int, value: int, over: int) -> int:
        """Return what an operation makes of a function and value / over."""
        operation = self._operations[function]
        number = self.constant(value, over)
        if self._number(function) is not None:
            result = _joined(name, *(self.value(one, np.zeros(1, object)) for one in
                                     (function, number)))  # fmt: skip
            return self.constant(int(result.values[0]), result.over)
        if (name, value, over) in (("add", 0, 1), ("mul", 1, 1)):
            return function
        if (name, value) == ("mul", 0):
            return number
        inner = operation.operands[0] if operation.operands else -1
        limit = self._number(operation.operands[1]) if len(operation.operands) == 2 else None
        match operation.name, operation.settings:
            case "line", (int(factor), int(offset), int(below)) if name == "add":
                return self.line(factor * over, offset * over + value * below, below * over)
            case "line", (int(factor), int(offset), int(below)) if name == "mul":
                return self.line(factor * value, offset * value, below * over)
            case ("add" | "mul") as same, _ if limit is not None and same == name:
                return self._with_number(name, inner, *_only(_joined(name, *self._both(
                    operation.operands[1], number))))  # fmt: skip
            case "add", _ if name == "mul":
                parts = (self._with_number("mul", one, value, over) for one in operation.operands)
                return self.made("add", (*parts,))
            case ("max" | "min") as pick, _ if limit is not None and name in ("add", "mul"):
                turned = {"max": "min", "min": "max"}[pick] if name == "mul" and value < 0 else pick
                parts = (self._with_number(name, one, value, over) for one in operation.operands)
                return self.made(turned, (*parts,))
            case ("max" | "min") as pick, _ if limit is not None:
                if pick == name:
                    return self._with_number(name, inner, *_only(_joined(name, *self._both(
                        operation.operands[1], number))))  # fmt: skip
                below = limit[0] * over <= value * limit[1]
                if pick == "min" and below:
                    return number  # what is limited to less is never more
                if pick == "max" and limit[0] * over >= value * limit[1]:
                    return number
                if pick == "min":  # the lower limit comes first
                    return self._new("min", (self._with_number("max", inner, value, over),
                                             operation.operands[1]))  # fmt: skip
        return self._new(name, (function, number))

    def _both(self, *functions: int) -> list[Numbers]:
        return [self.value(one, np.zeros(1, object)) for one in functions]

    def _new(self, name: str, operands: tuple[int, ...], *settings: object) -> int:
        operation = Operation(name, operands, settings)
        if operation not in self._numbers:
            self._numbers[operation] = len(self._operations)
            self._operations.append(operation)
            self._directions.append(self._turns(operation))
        return self._numbers[operation]

    def divisor(self, function: int) -> int | None:
        """Return by what n is divided if that is all, else None."""
        match self._operations[function].name, self._operations[function].settings:
            case "line", (1, 0, int(over)):
                return over
        return None

    def direction(self, function: int) -> int | None:
        """Return 1 if a function never falls, -1 if it never rises, 0 if it does neither, and None
        if that is not known.
        """
        return self._directions[function]

    def value(self, function: int, numbers: Exact) -> Numbers:
        """Return the values of a function for whole numbers."""
        operation = self._operations[function]
        settings: tuple[object, ...] = operation.settings
        match operation.name, settings:
            case "line", (int(factor), int(offset), int(over)):
                return Numbers(numbers * factor + offset, over)
            case "constant", (int(value), int(over)):
                return Numbers(np.full(numbers.shape, value, object), over)
        operands = [self.value(one, numbers) for one in operation.operands]
        match operation.name, settings:
            case "floor", ():
                return _floor(operands[0])
            case "root", ():
                roots = [math.isqrt(max(one, 0)) for one in _floor(operands[0]).values.tolist()]
                return Numbers(np.array(roots, object), 1)
            case "look", (bytes(table),):
                entries = np.frombuffer(table, np.int64).astype(object)
                return Numbers(entries[_floor(operands[0]).values.astype(np.int64) % _ENTRIES], 1)
            case "call", (str(name),):
                with np.errstate(all="ignore"):
                    return Numbers(self._called[name](*(one.floats for one in operands)) + 0.0, 0)
            case _:
                return _joined(operation.name, *operands)

    def ends(self, function: int, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Return between what a function is for n from `low` to `high`, as far as its parts tell;
        infinite for floating point.
        """
        operation = self._operations[function]
        settings = operation.settings
        match operation.name, settings:
            case "line", (int(factor), int(offset), int(over)):
                both = [(one * factor + offset) / over for one in (low, high)]
                return np.minimum(*both), np.maximum(*both)
            case "constant", (int(value), int(over)):
                return np.full(low.shape, value / over), np.full(low.shape, value / over)
            case "look", (bytes(table),):
                entries = np.roll(np.frombuffer(table, np.int64), 128)
                least, most = self.ends(operation.operands[0], low, high)
                first, last = int(max(least.min(), -128)), int(min(most.max(), 127))
                some = entries[first + 128 : last + 129]
                return np.full(low.shape, float(some.min())), np.full(low.shape, float(some.max()))
            case "call", _:
                return np.full(low.shape, -np.inf), np.full(low.shape, np.inf)
        parts = [self.ends(one, low, high) for one in operation.operands]
        match operation.name:
            case "floor":
                return np.floor(parts[0][0]), np.floor(parts[0][1])
            case "root":
                return np.floor(np.sqrt(np.maximum(parts[0][0], 0))), np.sqrt(parts[0][1])
            case "add":
                return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]
            case "mul":
                every = np.stack([a * b for a in parts[0] for b in parts[1]])
                return every.min(axis=0), every.max(axis=0)
            case _:
                pick = np.maximum if operation.name == "max" else np.minimum
                return pick(parts[0][0], parts[1][0]), pick(parts[0][1], parts[1][1])

    def pieces(self, function: int, reach: int) -> tuple[Integers, Numbers] | None:
        """Return where the values of a function begin for n from -reach - 1 to reach, and the
        values; None if there are too many.
        """
        bits = max(reach.bit_length(), 7)
        key = function, bits
        if key not in self._pieces:
            begins = self._begins(function, -(2**bits), 2**bits - 1)
            found = None
            if begins is not None:
                values = self.value(function, begins.astype(object))
                changes = np.flatnonzero(values.values[1:] != values.values[:-1]) + 1
                kept = np.concatenate([[0], changes])
                found = begins[kept], Numbers(values.values[kept], values.over)
            self._pieces[key] = found
        return self._pieces[key]

    def _begins(self, function: int, low: int, high: int) -> Integers | None:
        """Return numbers at which alone the values of a function may change."""
        if high - low < _MOST:
            return np.arange(low, high + 1)
        if self._directions[function] is not None:
            begins = self._changes(function, low, high)
            if begins is not None:
                return begins
        operation = self._operations[function]
        parts = [self._begins(one, low, high) for one in operation.operands]
        known = [one for one in parts if one is not None]
        if parts and len(known) == len(parts):
            return np.asarray(np.unique(np.concatenate(known)))
        return np.arange(low, high + 1) if high - low < _FEW else None

    def _changes(self, function: int, low: int, high: int) -> Integers | None:
        """Return where values of a function begin that never turns back."""
        left, right = np.array([low]), np.array([high])
        ends = self.value(function, np.array([low, high], object)).values
        before, behind, begins = ends[:1], ends[1:], [low]
        while len(left):
            inside = before != behind
            close = inside & (right - left == 1)
            begins += right[close].tolist()
            some = inside & ~close
            left, right, before, behind = left[some], right[some], before[some], behind[some]
            if len(begins) + len(left) > _MOST:
                return None
            middle = (left + right) // 2
            values = self.value(function, middle.astype(object)).values
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
            before, behind = np.concatenate([before, values]), np.concatenate([values, behind])
        return np.unique(begins)

    def _turns(self, operation: Operation) -> int | None:
        """Return the direction of what an operation makes."""
        parts = [self._directions[one] for one in operation.operands]
        match operation.name:
            case "line":
                return int(np.sign(int(str(operation.settings[0]))))
            case "constant":
                return 0
            case "floor" | "root":
                return parts[0]
            case "add" | "max" | "min":
                known = {one for one in parts if one != 0}
                return next(iter(known), 0) if len(known) < 2 else None
            case "mul":
                for one, other in ((0, 1), (1, 0)):
                    factor = self._operations[operation.operands[other]]
                    part = parts[one]
                    if factor.name == "constant" and part is not None:
                        return part * int(np.sign(int(str(factor.settings[0]))))
                return None
            case _:
                return None


def _only(numbers: Numbers) -> tuple[int, int]:
    return int(numbers.values[0]), numbers.over


def _floor(numbers: Numbers) -> Numbers:
    if numbers.over:
        return Numbers(numbers.values // numbers.over, 1)
    values = np.floor(numbers.floats)
    if not np.isfinite(values).all():
        return Numbers(values, 0)
    return Numbers(values.astype(np.int64).astype(object), 1)


def _joined(name: str, one: Numbers, two: Numbers) -> Numbers:
    if not (one.over and two.over):
        a, b = one.floats, two.floats
        floats = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
        with np.errstate(all="ignore"):
            return Numbers(floats[name](a, b) + 0.0, 0)
    if name == "mul":
        return Numbers(one.values * two.values, one.over * two.over)
    over = math.lcm(one.over, two.over)
    first, second = (part.values * (over // part.over) for part in (one, two))
    if name == "add":
        return Numbers(first + second, over)
    return Numbers((np.maximum if name == "max" else np.minimum)(first, second), over)
