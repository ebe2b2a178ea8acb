"""Expressions of elements, and windows with what follows them, as C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

import numpy as np

from ai8xtools.software.graph import (
    Arithmetic,
    Element,
    Elements,
    Int64,
    Load,
    Look,
    Number,
    Pair,
    Root,
    Windows,
)
from ai8xtools.values import frozen

Shape = tuple[int, int, int]
Tables = dict[str, np.ndarray[Any, Any]]


@frozen
class Statement:
    """A value that C names: what `operation` makes of others by name, or of an array's element."""

    name: str
    operation: str
    a: str
    b: str = ""


class Expression:
    """Writes an expression as statements; `tables` collects its constants by name.

    `load` gives the C of an operand, `size` are the columns and channels of a row.
    """

    def __init__(
        self, prefix: str, bits: int, size: tuple[int, int], load: Callable[[int], str],
        tables: Tables,
    ) -> None:  # fmt: skip
        self.kind = "i4" if bits <= 32 else "i8"
        self.statements: list[Statement] = []
        self._prefix, self._size, self._load, self._tables = prefix, size, load, tables
        self._names: dict[int, str] = {}
        self._own = 0

    def text(self, element: Element) -> str:
        """Return the C of a value, which statements made if it takes any."""
        if id(element) not in self._names:
            self._names[id(element)] = self._written(element)
        return self._names[id(element)]

    def _written(self, element: Element) -> str:
        match element:
            case Load():
                return self._stated("load", self._load(element.operand))
            case Number():
                return self._number(element.values)
            case Look():
                return self._stated("look", self.text(element.data), self._table(element.table))
            case Root():
                return self._stated("root", self.text(element.data))
            case Pair():
                return self._pair(element)
            case _:
                assert_never(element)

    def _pair(self, pair: Pair) -> str:
        a = self.text(pair.a)
        by = pair.b.values if isinstance(pair.b, Number) else np.zeros(0, np.int64)
        if pair.op is Arithmetic.FLOOR and by.size == 1 and int(by.item()).bit_count() == 1:
            return self._stated("shift", a, str(int(by.item()).bit_length() - 1))
        return self._stated(str(pair.op), a, self.text(pair.b))

    def _stated(self, operation: str, a: str, b: str = "") -> str:
        self.statements.append(Statement(f"t{len(self.statements)}", operation, a, b))
        return self.statements[-1].name

    def _number(self, values: Int64) -> str:
        if values.size == 1:
            value = int(values.item())
            text = f"{value}LL" if abs(value) >= 1 << 31 else f"{value}"
            return f"({text})" if value < 0 else text
        index = index_of((values.shape[0], values.shape[1], values.shape[2]), self._size)
        if values.shape[0] > 1:
            index = f"y * {values.shape[1] * values.shape[2]}u + {index}"
        return self._stated("load", f"{self._table(values)}[{index}]")

    def _table(self, values: Int64) -> str:
        kinds = (np.int8, np.int16, np.int32, np.int64)
        low, high = values.min(), values.max()
        kind = next(k for k in kinds if np.iinfo(k).min <= low and high <= np.iinfo(k).max)
        array = values.ravel().astype(kind)
        for name, other in self._tables.items():
            if other.dtype == array.dtype and np.array_equal(other, array):
                return name
        name = f"{self._prefix}_{self._own}"
        self._own += 1
        self._tables[name] = array
        return name


def index_of(shape: Shape, size: tuple[int, int]) -> str:
    """Return the index of an element within a row [column, channel] of an operand."""
    match (shape[1] == size[0], shape[2] == size[1]):
        case (True, True):
            return "i"
        case (False, True):
            return "c"
        case (True, False):
            return "x"
        case _:
            return "0"


def elements(step: Elements, number: int, tables: Tables) -> dict[str, Any]:
    """Return the loops and statements of a step of elements: `a0`, `a1` are rows of operands."""
    size = step.size[1], step.channels
    expression = Expression(
        f"elements_{number}", step.bits, size,
        lambda operand: f"a{operand}[{index_of(step.shapes[operand], size)}]", tables,
    )  # fmt: skip
    described = _described(expression, step.element, size)
    loaded = [one.a for one in expression.statements if one.operation == "load"]
    return described | {"apart": any(one.endswith(("c]", "x]")) for one in loaded),
                        "by_row": any("[y *" in one for one in loaded)}  # fmt: skip


def windows(step: Windows, number: int, tables: Tables) -> dict[str, Any]:
    """Return the statements that follow the value `v` of a window, and its geometry."""
    size = step.out_size[1], step.channels
    expression = Expression(f"elements_{number}", step.bits, size, lambda _: "v", tables)
    return _described(expression, step.element, size) | {
        "sums": step.sums, "window": step.window, "stride": step.stride, "pad": step.pad,
        "dilation": step.dilation, "in_size": step.in_size,
    }  # fmt: skip


def _described(expression: Expression, element: Element, size: tuple[int, int]) -> dict[str, Any]:
    result = expression.text(element)
    divides = any(one.operation == Arithmetic.FLOOR for one in expression.statements)
    return {
        "statements": expression.statements, "result": result, "divides": divides,
        "roots": any(one.operation == "root" for one in expression.statements),
        "value": expression.kind, "columns": size[0], "channels": size[1],
    }  # fmt: skip
