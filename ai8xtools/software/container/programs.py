"""Programs in the input list: expressions of elements, and which runs of values are copied.

Source: docs/container.md, "Programs".
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from typing import assert_never

import numpy as np

from ai8xtools.software import elements
from ai8xtools.software.container.records import LISTED, NONE, Container, LayerRecord, Tensor
from ai8xtools.software.container.records import Element as Type
from ai8xtools.software.graph import (
    Arithmetic,
    Element,
    Int64,
    Load,
    Look,
    Number,
    Pair,
    Piece,
    Root,
)
from ai8xtools.values import frozen

OPERANDS = 16
"""Of a layer with a program, at most."""
DEPTH = 16
"""Values that an expression has at a time, at most."""
LONGEST = 4096
"""Instructions of an expression that is written, at most."""
_TABLE = 256
_WORD = 0xFFFF
_PIECE = 11
"""Words of a run."""
_LONGEST_SHIFT = 62
_POOLED = Type.INT32
"""The type of constants."""
_UPPER = 24
"""Bits of the lower part of a number that 32 bits do not hold."""


class Code(enum.IntEnum):
    """Instructions: values are taken from a stack, and the result is put there."""

    END = 0
    LOAD = 1
    NUMBER = 2
    LOOK = 3
    ROOT = 4
    ADD = 5
    MUL = 6
    MAX = 7
    MIN = 8
    FLOOR = 9
    SHIFT = 10

    @property
    def taken(self) -> int:
        """Values that it takes."""
        match self:
            case Code.LOAD | Code.NUMBER:
                return 0
            case Code.LOOK | Code.ROOT | Code.SHIFT | Code.END:
                return 1
            case Code.ADD | Code.MUL | Code.MAX | Code.MIN | Code.FLOOR:
                return 2
            case _:
                assert_never(self)

    @property
    def left(self) -> int:
        """Values that it leaves."""
        return int(bool(self))


_CODES = {
    Arithmetic.ADD: Code.ADD, Arithmetic.MUL: Code.MUL, Arithmetic.MAX: Code.MAX,
    Arithmetic.MIN: Code.MIN, Arithmetic.FLOOR: Code.FLOOR,
}  # fmt: skip
_ARITHMETIC = {code: op for op, code in _CODES.items()}


class LengthError(ValueError):
    """No program stands for an expression; the message says why."""


@frozen
class Instruction:
    """`axes` of a constant: bit 0 one for each row, bit 1 column, bit 2 channel."""

    code: Code
    argument: int = 0
    axes: int = 0


class Compiler:
    """The program of an expression; `constants` are its numbers and tables, in 32 bits."""

    def __init__(self, element: Element) -> None:
        self.constants: list[int] = []
        self.words: list[int] = []
        self._depth = 0
        self._put(element)
        self._state(Code.END)

    def _state(self, code: Code, argument: int = 0, axes: int = 0) -> None:
        self._depth += code.left - code.taken
        if self._depth > DEPTH or len(self.words) >= 2 * LONGEST or argument > _WORD:
            raise LengthError(f"what is computed of its elements takes more than {LONGEST} "
                              f"instructions, {_WORD} constants or {DEPTH} values")  # fmt: skip
        self.words += [code | axes << 8, argument]

    def _put(self, element: Element) -> None:
        match element:
            case Load():
                self._state(Code.LOAD, element.operand)
            case Number():
                self._number(element.values)
            case Look():
                self._put(element.data)
                self._state(Code.LOOK, self._kept(element.table))
            case Root():
                self._put(element.data)
                self._state(Code.ROOT)
            case Pair(op=Arithmetic.FLOOR, b=Number() as by) if _is_power(by.values):
                self._put(element.a)
                self._state(Code.SHIFT, int(by.values.item()).bit_length() - 1)
            case Pair():
                self._put(element.a)
                self._put(element.b)
                self._state(_CODES[element.op])
            case _:
                assert_never(element)

    def _number(self, values: Int64) -> None:
        if abs(values).max() >> 31:
            upper = elements.number(values >> _UPPER)
            lower = elements.number(values & ((1 << _UPPER) - 1))
            scaled = Pair(Arithmetic.MUL, upper, elements.number(1 << _UPPER))
            self._put(Pair(Arithmetic.ADD, scaled, lower))
            return
        axes = sum(1 << axis for axis in range(3) if values.shape[axis] > 1)
        self._state(Code.NUMBER, self._kept(values.ravel()), axes)

    def _kept(self, values: Int64) -> int:
        """Return where constants stand, which are stored once."""
        added = values.tolist()
        ends = range(len(self.constants) - len(added) + 1)
        for start in ends if len(added) < _TABLE else ():
            if self.constants[start : start + len(added)] == added:
                return start
        self.constants += added
        return len(self.constants) - len(added)


def _is_power(values: Int64) -> bool:
    return values.size == 1 and int(values.item()).bit_count() == 1


def runs(pieces: Sequence[Piece], width: int, sources: Sequence[int], fill: int) -> list[int]:
    """Return the program of pieces of values of `width` bytes. Raises LengthError."""
    words = [len(pieces), fill & _WORD]
    for one in pieces:
        counts = [sources.index(one.source), one.length // width, one.count]
        places = [
            value // width for value in (one.from_start, one.from_step, one.to_start, one.to_step)
        ]
        words += [*counts, *(half for place in places for half in (place & _WORD, place >> 16))]
    if max(words) > _WORD:
        raise LengthError(f"it copies more than {_WORD} runs, or longer ones")
    return words


def why_no_runs(layer: LayerRecord, container: Container) -> str | None:
    """Return why the program of a layer copies no runs."""
    found = pieces_of(layer, container) if _has_program(layer, container) else None
    sources = [container.tensors[number] for number in container.inputs_of(layer)]
    output = container.tensors[layer.output]
    if found is None or not all(_inside(one, sources, output) for one in found[1]):
        return "no runs of its operands, or such that leave their tensors"
    return None


def why_no_expression(layer: LayerRecord, container: Container) -> str | None:
    """Return why the program of a layer is no expression."""
    output, pool = container.tensors[layer.output], 0
    if layer.weights != NONE:
        constants = container.tensors[layer.weights]
        pool = constants.elements if constants.type == _POOLED else -1
    sources = [container.tensors[number] for number in container.inputs_of(layer)]
    program = program_of(layer, container) if _has_program(layer, container) else None
    broadcast = all(_broadcasts(one.shape, output.shape) for one in sources)
    if program is None or pool < 0 or not broadcast:
        return "no expression of its operands and constants"
    depth = 0
    for one in program:
        taken, depth = one.code.taken, depth + 1 - one.code.taken
        if depth < 1 or depth > DEPTH or not _is_sound(one, len(sources), output, pool):
            return f"an expression that takes {taken} values that are not there, or too many"
    return None if depth == 1 else "an expression of no value, or of several"


def _has_program(layer: LayerRecord, container: Container) -> bool:
    listed = layer.second_input != NONE and layer.second_input & LISTED
    return bool(listed) and len(container.inputs_of(layer)) <= OPERANDS


def program_of(layer: LayerRecord, container: Container) -> list[Instruction] | None:
    """Return the instructions of an expression without their end, None if it has none."""
    result: list[Instruction] = []
    words = _words(layer, container)
    for first, argument in zip(words, words, strict=False):
        code = first & 0xFF
        if not code:
            return result
        if code > max(Code):
            return None
        result.append(Instruction(Code(code), argument, first >> 8 & 7))
    return None


def pieces_of(layer: LayerRecord, container: Container) -> tuple[int, list[Piece]] | None:
    """Return what stands where no run leads, and the runs, in values; None if they are cut off."""
    words = [*_words(layer, container)]
    if len(words) < 2 or len(words) < 2 + words[0] * _PIECE:
        return None
    pieces = []
    for at in range(2, 2 + words[0] * _PIECE, _PIECE):
        source, length, count, *halves = words[at : at + _PIECE]
        a, b, c, d = (halves[i] | halves[i + 1] << 16 for i in range(0, 8, 2))
        pieces.append(Piece(source, a, b, c, d, length, count))
    return (words[1] ^ 0x8000) - 0x8000, pieces


def value_of(program: Sequence[Instruction], operands: Sequence[Int64], pool: Int64,
             shape: tuple[int, int, int]) -> Int64:  # fmt: skip
    """Return the value of an expression for operands [row, column, channel], modulo 2^64."""
    stack: list[Element] = []
    for one in program:
        match one.code:
            case Code.LOAD:
                stack.append(Load(one.argument))
            case Code.NUMBER:
                size = _size(one.axes, shape)
                values = pool[one.argument :][: math.prod(size)].reshape(size)
                stack.append(Number(values))
            case Code.LOOK:
                stack.append(Look(stack.pop(), pool[one.argument :][:_TABLE]))
            case Code.ROOT:
                stack.append(Root(elements.larger(stack.pop(), elements.number(0))))
            case Code.SHIFT:
                power = elements.number(1 << one.argument)
                stack.append(Pair(Arithmetic.FLOOR, stack.pop(), power))
            case Code.FLOOR:
                by = Pair(Arithmetic.MAX, stack.pop(), elements.number(1))
                stack.append(Pair(Arithmetic.FLOOR, stack.pop(), by))
            case Code.ADD | Code.MUL | Code.MAX | Code.MIN:
                b = stack.pop()
                stack.append(Pair(_ARITHMETIC[one.code], stack.pop(), b))
            case Code.END:
                break
            case _:
                assert_never(one.code)
    return np.broadcast_to(elements.value(stack.pop(), operands), shape)


def _words(layer: LayerRecord, container: Container) -> Iterator[int]:
    """Yield the words behind the inputs of a layer."""
    start = layer.first_input + (layer.second_input & ~LISTED)
    return iter(container.listed[start:])


def _size(axes: int, shape: tuple[int, int, int]) -> tuple[int, int, int]:
    rows, columns, channels = (n if axes >> axis & 1 else 1 for axis, n in enumerate(shape))
    return rows, columns, channels


def _broadcasts(shape: tuple[int, int, int], output: tuple[int, int, int]) -> bool:
    return all(n in (1, size) for n, size in zip(shape, output, strict=True))


def _is_sound(one: Instruction, operands: int, output: Tensor, pool: int) -> bool:
    """Whether an instruction takes operands and constants that are there."""
    match one.code:
        case Code.LOAD:
            return one.argument < operands
        case Code.NUMBER:
            return one.argument + math.prod(_size(one.axes, output.shape)) <= pool
        case Code.LOOK:
            return one.argument + _TABLE <= pool
        case Code.SHIFT:
            return one.argument <= _LONGEST_SHIFT
        case Code.ROOT | Code.ADD | Code.MUL | Code.MAX | Code.MIN | Code.FLOOR | Code.END:
            return True
        case _:
            assert_never(one.code)


def _inside(one: Piece, sources: Sequence[Tensor], output: Tensor) -> bool:
    """Whether the runs of a piece are apart, and within their tensors."""
    if one.source >= len(sources) or not one.length or not one.count:
        return False
    last = one.count - 1
    return (
        one.from_start + last * one.from_step + one.length <= sources[one.source].elements
        and one.to_start + last * one.to_step + one.length <= output.elements
        and (not last or one.to_step >= one.length)
    )
