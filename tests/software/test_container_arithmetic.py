"""Single layers of containers, computed value by value: Python and C give the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ai8xtools.quantization.lowbit import ENCODINGS, SIGNED, Encoding
from ai8xtools.quantization.lowbit import pack as pack_codes
from ai8xtools.software.container import run, unpack
from ai8xtools.software.container.execute import bytes_of, run_all, values_of
from ai8xtools.software.container.pack import Builder, pack
from ai8xtools.software.container.programs import DEPTH, Code
from ai8xtools.software.container.records import NONE, ROUNDED, Element, Follow, Op
from ai8xtools.values import frozen
from tests.software.compiled import compiler
from tests.software.nnb_in_c import build_driver, pattern, statuses

Ints = NDArray[np.int64]
INT8, INT16, INT32 = Element.INT8, Element.INT16, Element.INT32
FOLLOWS = (Follow.NOTHING, Follow.RELU, Follow.ABS)


@frozen
class Case:
    """A container of one layer, what it reads, and what it makes; [row, column, channel]."""

    name: str
    blob: bytes
    given: Ints
    expected: Ints
    kind: Element


def _limits(kind: Element) -> tuple[int, int]:
    half = 2 ** (kind.bits - 1)
    return -half, half - 1


def _limited(value: int, kind: Element) -> int:
    low, high = _limits(kind)
    return max(low, min(high, value))


def _followed(value: int, kind: Element, follow: int) -> int:
    """Limit a value to a type, and do what follows."""
    value = _limited(value, kind)
    if follow == Follow.RELU:
        return max(value, 0)
    return min(abs(value), _limits(kind)[1]) if follow == Follow.ABS else value


def _nearest(value: int, shift: int, kind: Element) -> int:
    """Shift to the right to the nearest, halves up; to the left after limiting."""
    if shift < 0:
        return _limited(value, kind) * 2**-shift
    return (2 * value + 2**shift) // 2 ** (shift + 1)


def _given(shape: tuple[int, int, int], kind: Element) -> Ints:
    """Return the input that the C driver makes."""
    builder = Builder()
    builder.layer(Op.COPY, [builder.activation(kind, shape)], builder.activation(kind, shape))
    tensor = unpack(pack(builder.container())).tensors[0]
    return values_of(tensor, pattern(tensor.size_bytes))


def _sized(builder: Builder, given: Ints, kind: Element) -> int:
    rows, columns, channels = given.shape
    return builder.activation(kind, (rows, columns, channels))


def _weights(
    random: np.random.Generator, builder: Builder, shape: tuple[int, int, int, int], bits: int,
    encoding: Encoding | None, rows: bool,
) -> tuple[int, Ints]:  # fmt: skip
    """Add weights [filter, row, column, channel]; return their number and values."""
    if encoding is not None:
        inputs = shape[1] * shape[2] * shape[3]
        codes = random.integers(0, len(encoding.values), (shape[0], inputs))
        number = builder.packed(pack_codes(codes, encoding), inputs, encoding, shape[1:3])
        return number, np.array(encoding.values, np.int64)[codes].reshape(shape)
    half = 1 << (bits - 1)
    values = random.integers(-half, half, shape)
    values.flat[0] = -half
    return builder.weights(values, bits, rows=rows), values


def _sums(number: int) -> Iterator[Case]:
    """Yield a layer with weights."""
    random = np.random.default_rng(number)

    def one(*choices: object) -> int:
        return int(choices[random.integers(len(choices))])  # type: ignore[call-overload]

    op = Op(one(Op.CONV, Op.CONV, Op.DEPTHWISE, Op.FC, Op.CONV_TRANSPOSED))
    kind, out = Element(one(INT8, INT8, INT16)), Element(one(INT8, INT16, INT32))
    size, channels = (one(2, 3, 5), one(1, 3, 4)), one(1, 2, 4, 6)
    kernel, stride, pad, apart = (one(1, 2, 3), one(1, 2)), (1, 1), (0, 0), (1, 1)
    groups = 1
    if op == Op.FC:
        kernel, made = (1, 1), (1, 1)
    elif op == Op.CONV_TRANSPOSED:
        stride, pad = (one(1, 2, 3), one(1, 2)), (one(0, 1), one(0, 1, 2))
        made = (one(2, 4, 7), one(3, 5, 6))
    else:
        stride, pad = (one(1, 2), one(1, 3)), (one(0, 1, 2), one(0, 1))
        apart = (one(1, 1, 2), one(1, 1, 3))
        made = tuple(
            (n + 2 * p - (k - 1) * a - 1) // s + 1
            for n, p, k, a, s in zip(size, pad, kernel, apart, stride, strict=True)
        )
    if min(made) < 1:
        return
    filters = one(1, 2, 3, 5)
    if op == Op.DEPTHWISE:
        groups, filters = channels, channels * one(1, 2)
    elif op != Op.FC and channels % 2 == 0 and one(0, 0, 1):
        groups, filters = 2, 4
    inputs = channels // groups
    if op == Op.FC:
        inputs = size[0] * size[1] * channels
    bits = one(8, 8, 16, 4, 2, 1)
    named = [*ENCODINGS.values(), *SIGNED.values()]
    encoding = named[one(*range(len(named)))] if one(0, 0, 1) else None
    builder = Builder()
    source = builder.activation(kind, (*size, channels))
    shape = (filters, *kernel, inputs)
    weights, values = _weights(random, builder, shape, bits, encoding, op == Op.FC)
    bias, biases = NONE, np.zeros(filters, np.int64)
    if one(0, 1, 1):
        width = one(8, 16, 32)
        half = 1 << (width - 1)
        biases = random.integers(-half, half, filters)
        bias = builder.bias(biases, width)
    follow, bias_shift, factor = one(*FOLLOWS), one(0, 1, 5), one(1, 1, 3, 1000)
    shift = one(-3, -1, 0, 1, 4, 9, 14)
    if op == Op.FC and out == INT8 and one(0, 0, 1):
        follow, shift, bias_shift = Follow.SHIFT_NORM, 0, 0
    output = builder.activation(out, (made[0], made[1], filters))
    builder.layer(op, [source], output, follow=follow, weights=weights, bias=bias, kernel=kernel,
                  stride=stride, pad=pad, dilation=apart, groups=groups, bias_shift=bias_shift,
                  out_shift=shift, factor=factor)  # fmt: skip
    given = _given((*size, channels), kind)
    total = np.zeros((*made, filters), object)
    per_group, in_group = filters // groups, channels // groups
    for y, x, f in np.ndindex(*made, filters):
        found = 0
        for i, k, c in np.ndindex(*values.shape[1:]):
            if op == Op.FC:
                found += int(given.reshape(-1)[c]) * int(values[f, 0, 0, c])
                continue
            if op == Op.CONV_TRANSPOSED:
                (row, rest), (column, other) = (
                    divmod(y + i - pad[0], stride[0]), divmod(x + k - pad[1], stride[1])
                )  # fmt: skip
                if rest or other:
                    continue
            else:
                row = y * stride[0] + i * apart[0] - pad[0]
                column = x * stride[1] + k * apart[1] - pad[1]
            if 0 <= row < size[0] and 0 <= column < size[1]:
                channel = f // per_group * in_group + c
                found += int(given[row, column, channel]) * int(values[f, i, k, c])
        total[y, x, f] = found * factor + int(biases[f]) * 2**bias_shift
    if follow == Follow.SHIFT_NORM:
        expected = _seven_bits(total)
    else:
        expected = _each(total, lambda v: _followed(_nearest(v, shift, out), out, follow))
    yield Case(f"{op.name} {number}", pack(builder.container()), given, expected, out)


def _each(values: NDArray[np.object_], what: Callable[[int], int]) -> Ints:
    found = [what(int(value)) for value in values.reshape(-1)]
    return np.array(found, np.int64).reshape(values.shape)


def _seven_bits(total: NDArray[np.object_]) -> Ints:
    """Shift so that the greatest value has 7 bits; what is negative becomes 0."""
    shift = 0
    while max(total.reshape(-1)) >> shift > 127:
        shift += 1
    return _each(total, lambda v: min(_nearest(max(v, 0), shift, INT32), 127))


def _pooled() -> Iterator[Case]:
    """Yield poolings with all that may follow."""
    random = np.random.default_rng(5)
    options = product((Op.MAXPOOL, Op.AVGPOOL), (INT8, INT16), FOLLOWS, (0, ROUNDED), range(3))
    for number, (op, kind, follow, rounded, variant) in enumerate(options):
        size, channels = (int(random.integers(3, 7)), int(random.integers(3, 6))), 2
        kernel = (int(random.integers(1, 4)), int(random.integers(1, 4)))
        pad, apart = ((kernel[0] // 2, kernel[1] // 2) if variant else (0, 0)), (1, 1)
        if not variant and min(size) > 2 * max(kernel) - 2:
            apart = (2, 1)
        stride = (int(random.integers(1, 4)), int(random.integers(1, 4)))
        made = tuple(
            (n + 2 * p - (k - 1) * a - 1) // s + 1
            for n, p, k, a, s in zip(size, pad, kernel, apart, stride, strict=True)
        )
        if min(made) < 1:
            continue
        builder = Builder()
        source = builder.activation(kind, (*size, channels))
        output = builder.activation(kind, (made[0], made[1], channels))
        builder.layer(op, [source], output, follow=follow | rounded, kernel=kernel, stride=stride,
                      pad=pad, dilation=apart)  # fmt: skip
        given = _given((*size, channels), kind)
        expected = np.zeros((*made, channels), np.int64)
        for y, x, c in np.ndindex(*made, channels):
            inside = [
                int(given[row, column, c])
                for i, k in np.ndindex(*kernel)
                if 0 <= (row := y * stride[0] + i * apart[0] - pad[0]) < size[0]
                and 0 <= (column := x * stride[1] + k * apart[1] - pad[1]) < size[1]
            ]
            value = max(inside) if op == Op.MAXPOOL else _mean(inside, bool(rounded))
            expected[y, x, c] = _followed(value, kind, follow)
        yield Case(f"{op.name} {number}", pack(builder.container()), given, expected, kind)


def _mean(values: Sequence[int], rounded: bool) -> int:
    """Return an average, truncated toward zero, or to nearest with halves away from it."""
    total, sign = abs(sum(values)), -1 if sum(values) < 0 else 1
    size = total // len(values)
    if rounded and 2 * (total - size * len(values)) >= len(values):
        size += 1
    return sign * size


_BY_BITS: dict[Op, Callable[[int, int], int]] = {
    Op.ADD: lambda a, b: a + b, Op.SUB: lambda a, b: a - b, Op.XOR: lambda a, b: a ^ b,
    Op.OR: lambda a, b: a | b,
}  # fmt: skip


def _joined() -> Iterator[Case]:
    """Yield joins of the input and of what stretched copies of it make, and moves."""
    for number, (op, kind, follow, count) in enumerate(
        product((*_BY_BITS, Op.CONCAT), (INT8, INT16), FOLLOWS, (2, 3))
    ):
        builder = Builder()
        shape = (2, 3, 3)
        source = builder.activation(kind, shape)
        half = builder.activation(kind, shape)
        builder.layer(Op.COPY, [source], half, follow=Follow.ABS)
        operands = [half, source, half][:count]
        channels = 3 * count if op == Op.CONCAT else 3
        output = builder.activation(kind, (2, 3, channels))
        builder.layer(op, operands, output, follow=follow)
        given = _given(shape, kind)
        positive = _each(given.astype(object), lambda v, k=kind: _followed(v, k, Follow.ABS))
        parts = [positive, given, positive][:count]
        total = np.concatenate(parts, axis=2).astype(object)
        if op != Op.CONCAT:
            total = parts[0].astype(object)
            for other in parts[1:]:
                pairs = zip(total.reshape(-1), other.reshape(-1), strict=True)
                joined = [_BY_BITS[op](int(a), int(b)) for a, b in pairs]
                total = np.array(joined, object).reshape(shape)
        expected = _each(total, lambda v, k=kind, f=follow: _followed(v, k, f))
        yield Case(f"{op.name} {number}", pack(builder.container()), given, expected, kind)


def _moved() -> Iterator[Case]:
    """Yield copies that count anew, widen and limit."""
    for number, (kind, out, follow) in enumerate(
        product((INT8, INT16), (INT8, INT16, INT32), FOLLOWS)
    ):
        builder = Builder()
        source = builder.activation(kind, (2, 3, 2))
        output = builder.activation(out, (3, 1, 4))
        builder.layer(Op.COPY, [source], output, follow=follow)
        given = _given((2, 3, 2), kind)
        expected = _each(given.astype(object), lambda v, o=out, f=follow: _followed(v, o, f))
        expected = expected.reshape(3, 1, 4)
        yield Case(f"COPY {number}", pack(builder.container()), given, expected, out)


def _shared(values: Sequence[int]) -> list[int]:
    """Return shares of 128 of 2 to the power of values, as far as seven below the greatest."""
    base = max(values) - 8
    weights = [2 ** min(max(value - base, 0), 7) for value in values]
    whole = 2**20 // sum(weights)
    return [min(whole // 2 ** min(max(13 + base - value, 0), 31), 127) for value in values]


def _softmax() -> Iterator[Case]:
    """Yield shares of values that a layer of the identity makes: the driver's input, shifted."""
    for count, shift, offset in product((1, 2, 3, 5, 8, 20), (0, 2, 4, 5, 6), (-90, 0, 90)):
        builder = Builder()
        source, middle, output = (builder.activation(INT8, (1, 1, count)) for _ in range(3))
        weights = builder.weights(np.eye(count, dtype=np.int64).reshape(count, 1, 1, count), 8)
        bias = builder.bias(np.full(count, offset), 8)
        builder.layer(Op.CONV, [source], middle, weights=weights, bias=bias, bias_shift=shift,
                      out_shift=shift)  # fmt: skip
        builder.layer(Op.SOFTMAX, [middle], output)
        given = _given((1, 1, count), INT8)
        near = [_limited(_nearest(int(v) + offset * 2**shift, shift, INT8), INT8)
                for v in given.reshape(-1)]  # fmt: skip
        expected = np.array(_shared(near)).reshape(1, 1, count)
        name = f"SOFTMAX {count}, {shift}, {offset}"
        yield Case(name, pack(builder.container()), given, expected, INT8)


def _normalized() -> Iterator[Case]:
    """Yield sums that are biases alone, whose greatest just has seven bits or more."""
    for most in (0, 1, 126, 127, 128, 129, 254, 255, 256, 1 << 30):
        builder = Builder()
        source, output = (builder.activation(INT8, (1, 1, size)) for size in (2, 4))
        sums = np.array([most, -most, most // 2, most - 1])
        weights = builder.weights(np.zeros((4, 1, 1, 2), np.int64), 8, rows=True)
        builder.layer(Op.FC, [source], output, follow=Follow.SHIFT_NORM, weights=weights,
                      bias=builder.bias(sums, 32))  # fmt: skip
        expected = _seven_bits(sums.astype(object).reshape(1, 1, 4))
        given = _given((1, 1, 2), INT8)
        yield Case(f"SHIFT_NORM {most}", pack(builder.container()), given, expected, INT8)


def _long() -> Iterator[Case]:
    """Yield windows whose neighbouring pixels have more channels together than 16 bits count."""
    for channels in (32767, 32768):
        builder = Builder()
        source = builder.activation(INT8, (1, 2, channels))
        output = builder.activation(INT32, (1, 1, 1))
        values = np.random.default_rng(3).integers(-128, 128, (1, 1, 2, channels))
        builder.layer(Op.CONV, [source], output, weights=builder.weights(values, 8), kernel=(1, 2))
        given = _given((1, 2, channels), INT8)
        expected = np.array((values * given).sum()).reshape(1, 1, 1)
        yield Case(f"CONV {channels}", pack(builder.container()), given, expected, INT32)


def _many() -> Iterator[Case]:
    """Yield joins of as many operands as there may be."""
    for op, join in _BY_BITS.items():
        builder = Builder()
        source = builder.activation(INT8, (1, 2, 3))
        half = builder.activation(INT8, (1, 2, 3))
        builder.layer(Op.COPY, [source], half, follow=Follow.RELU)
        output = builder.activation(INT8, (1, 2, 3))
        builder.layer(op, [half, *[source] * 14, half], output)
        given = _given((1, 2, 3), INT8)
        total = []
        for value in given.reshape(-1).tolist():
            found = max(value, 0)
            for other in (*[value] * 14, max(value, 0)):
                found = join(found, other)
            total.append(_limited(found, INT8))
        expected = np.array(total).reshape(1, 2, 3)
        yield Case(f"{op.name} of 16", pack(builder.container()), given, expected, INT8)


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def _stacked(words: Sequence[int], loaded: Sequence[int], pool: Ints, places: Sequence[int]) -> int:
    """Return what a program makes of the elements that it loads, and numbers at places by axes."""
    stack: list[int] = []
    for first, argument in zip(words[::2], words[1::2], strict=True):
        code, axes = first & 255, first >> 8
        upper, lower = (stack[-1] if stack else 0), (stack[-2] if len(stack) > 1 else 0)
        if code == Code.END:
            break
        if code == Code.LOAD:
            stack.append(loaded[argument])
        elif code == Code.NUMBER:
            stack.append(int(pool[argument + places[axes]]))
        elif code in (Code.LOOK, Code.ROOT, Code.SHIFT):
            stack[-1] = {
                Code.LOOK: lambda x=upper, a=argument: int(pool[a + x % 256]),
                Code.ROOT: lambda x=upper: math.isqrt(max(x, 0)),
                Code.SHIFT: lambda x=upper, a=argument: x // 2**a,
            }[Code(code)]()
        else:
            both = {Code.ADD: lower + upper, Code.MUL: lower * upper, Code.MAX: max(lower, upper),
                    Code.MIN: min(lower, upper), Code.FLOOR: lower // max(upper, 1)}  # fmt: skip
            stack[-2:] = [_wrapped(both[Code(code)])]
    (result,) = stack
    return result


def _programmed() -> Iterator[Case]:
    """Yield random expressions of two operands, the second of which is one pixel."""
    for seed in range(90):
        random = np.random.default_rng(seed)
        given = _given((2, 3, 4), Element(seed % 3))
        builder = Builder()
        source = _sized(builder, given, Element(seed % 3))
        pixel, output = (builder.activation(INT32, one) for one in ((1, 1, 4), (2, 3, 4)))
        pick = [1, 0, 0, 4, 1, 8, 0, 0, 0, 0, 0, 0, 0]
        builder.layer(Op.GATHER, [source], pixel, program=pick)
        pool = random.integers(-(2**31), 2**31, 300) >> random.integers(0, 32, 300)
        words, depth = [], 0
        while len(words) < 40 or depth != 1:
            codes = [code for code in Code if code.taken <= depth and code is not Code.END]
            if len(words) >= 40:
                codes = [code for code in codes if code.taken == 2] or codes
            code = codes[random.integers(len(codes))]
            if code.taken == 0 and depth == DEPTH:
                continue
            most = {Code.LOAD: 2, Code.NUMBER: 276, Code.LOOK: 44, Code.SHIFT: 63}.get(code, 9)
            axes = int(random.integers(8)) if code is Code.NUMBER else 0
            words += [code | axes << 8, int(random.integers(most))]
            depth += 1 - code.taken
        words += [Code.END, 0]
        constants = builder.bias(pool, 32)
        builder.layer(Op.ELEMENTS, [source, pixel], output, weights=constants, program=words)
        expected = np.zeros((2, 3, 4), np.int64)
        for row, column, channel in np.ndindex(2, 3, 4):
            at = ((row, 2), (column, 3), (channel, 4))
            places = []
            for axes in range(8):
                place = 0
                for axis, (one, size) in enumerate(at):
                    place = place * size + one if axes >> axis & 1 else place
                places.append(place)
            loaded = [int(given[row, column, channel]), int(given.ravel()[8 + channel])]
            found = _stacked(words, loaded, pool, places)
            expected[row, column, channel] = _limited(found, INT32)
        yield Case(f"program {seed}", pack(builder.container()), given, expected, INT32)


def _copied() -> Iterator[Case]:
    """Yield runs of two operands in a map of threes."""
    given = _given((2, 3, 4), INT16)
    builder = Builder()
    source = _sized(builder, given, INT16)
    half, output = builder.activation(INT16, (2, 3, 4)), builder.activation(INT8, (3, 3, 3))
    builder.layer(Op.COPY, [source], half, follow=Follow.RELU)
    pieces = [2, 3, 0, 2, 4, 1, 0, 6, 0, 0, 0, 5, 0, 1, 3, 2, 20, 0, 0, 0, 19, 0, 4, 0]
    builder.layer(Op.GATHER, [source, half], output, program=pieces)
    flat, values = given.ravel().tolist(), [3] * 27
    for run_ in range(4):
        values[5 * run_ : 5 * run_ + 2] = flat[1 + 6 * run_ :][:2]
    for run_ in range(2):
        values[19 + 4 * run_ : 22 + 4 * run_] = [max(v, 0) for v in flat[20:23]]
    expected = np.array([_limited(value, INT8) for value in values]).reshape(3, 3, 3)
    yield Case("runs", pack(builder.container()), given, expected, INT8)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Return layers of every operation."""
    sums = [case for number in range(420) for case in _sums(number)]
    others = (_pooled, _joined, _moved, _softmax, _normalized, _long, _many, _programmed, _copied)
    return [*sums, *(case for some in others for case in some())]


def test_python_computes_every_value(cases: list[Case]) -> None:
    for case in cases:
        container = unpack(case.blob)
        found = run(container, case.given)
        assert found.tolist() == case.expected.tolist(), case.name
        known = run_all(container, case.given)
        assert known[container.layers[-1].output].tolist() == found.tolist()
        tensor = container.tensors[container.layers[-1].output]
        assert values_of(tensor, bytes_of(tensor, found)).tolist() == found.tolist()
    ops = {unpack(case.blob).layers[-1].op for case in cases}
    assert ops == {*Op}


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_c_computes_every_value(cases: list[Case], tmp_path: Path) -> None:
    program = build_driver(tmp_path, ("-O0",))
    found = statuses(program, [case.blob for case in cases], tmp_path, "run")
    for case, told in zip(cases, found, strict=True):
        tensor = unpack(case.blob).tensors[unpack(case.blob).layers[-1].output]
        assert told == f"ok {bytes_of(tensor, case.expected).hex()}", case.name
