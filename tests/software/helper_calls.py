"""Calls of the C functions that are no kernels, with the bytes that each must leave behind.

What is expected is computed here, from the definitions alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ai8xtools.values import frozen
from ai8xtools.writing.templates import render
from tools.kernel_layer import RUNTIME

Bytes = NDArray[np.int8]

SOURCES = (
    "copy.c", "data.c", "join_add.c", "join_or.c", "join_sub.c", "join_xor.c", "keep_max.c",
    "keep_sum.c", "pool_max.c", "pool_mean.c", "roll.c",
)  # fmt: skip
ROOM = 96
"""Bytes that a call may change; those that it must not are among them."""
_RNG = np.random.default_rng(61)
_MAIN = """#include <stdio.h>
#include "nn_kernels.h"
static const int8_t data[] = {{ {data} }};
static const int8_t before[{room}] = {{ {before} }};
static union {{ int8_t bytes[{room}]; nn_sum sums[{room} / 2]; }} out;
static int wrong(const char *name, const int8_t *expected)
{{
    unsigned i, found = 0;

    for (i = 0; i < {room}; i++) {{
        found += out.bytes[i] != expected[i];
        out.bytes[i] = before[i];
    }}
    if (found) {{
        puts(name);
    }}
    return found != 0;
}}
{calls}
int main(void)
{{
    unsigned failed = 0;

    memcpy(out.bytes, before, {room});
{runs}
    puts(failed ? "*** FAIL ***" : "*** PASS ***");
    return failed != 0;
}}
"""
_CALL = """
static int call_{number}(void)
{{
    static const int8_t expected[] = {{ {expected} }};
    {code}
    return wrong("{name}", expected);
}}
"""


def _values(number: int) -> Bytes:
    """Return numbers of 8 bits, the ends of their range among them."""
    found = _RNG.integers(-128, 128, number)
    return np.where(_RNG.random(number) < 0.3, np.where(found < 0, -128, 127), found).astype(
        np.int8
    )


DATA, BEFORE = _values(240), _values(ROOM)
DATA[:14] = -128
BEFORE[:2] = 77, -33  # no result of the ends of sums


@frozen
class Call:
    """Statements in C that work on `data` and `out`, and what `out` holds then, int8 [ROOM]."""

    name: str
    code: str
    expected: Bytes


def _with(start: int, made: Bytes) -> Bytes:
    """Return what is in memory if a call puts bytes there."""
    found = BEFORE.copy()
    found[start : start + len(made)] = made
    return found


def divided(sums: NDArray[np.int64], count: int, rounded: int) -> Bytes:
    """Return averages: toward zero, or to nearest with halves away from zero."""
    size = np.abs(sums)
    size = (2 * size + count) // (2 * count) if rounded else size // count
    limited: Bytes = np.clip(np.sign(sums) * size, -128, 127).astype(np.int8)
    return limited


def _kept() -> Iterator[Call]:
    """Yield pooling of windows that follow each other."""
    for channels, count, again in np.ndindex(10, 4, 2):
        channels, count = channels + 1, count + 1
        window = DATA[: channels * count].reshape(count, channels).astype(np.int64)
        most = window.max(0)
        most = np.maximum(most, BEFORE[:channels]) if again else most
        words = f"data, {count}, {channels}, {again}"
        yield Call(
            f"max {words}", f"nn_keep_max(out.bytes, {words});", _with(0, most.astype(np.int8))
        )
        sums = window.sum(0) + (BEFORE.view("<i2")[:channels] if again else 0)
        if abs(sums).max() >= 1 << 15:
            continue
        yield Call(
            f"sum {words}", f"nn_keep_sum(out.sums, {words});",
            _with(0, sums.astype("<i2").view(np.int8)),
        )  # fmt: skip


def _means() -> Iterator[Call]:
    for count, rounded in (
        (1, 0),
        (2, 1),
        (3, 0),
        (3, 1),
        (4, 0),
        (4, 1),
        (6, 1),
        (9, 0),
        (256, 1),
    ):
        ends = [-128 * count, -128 * count + 1, 127 * count, 127 * count - 1]
        near = [
            -count - 1,
            -count,
            -1,
            0,
            1,
            count // 2,
            (count + 1) // 2,
            -(count // 2),
            count - 1,
        ]
        sums = np.array([*ends, *near], np.int64)
        given = ", ".join(map(str, sums))
        yield Call(
            f"mean of {count}, {rounded}",
            f"static const nn_sum sums[] = {{ {given} }};\n"
            f"    nn_mean(out.bytes, sums, {len(sums)}, {count}, {rounded});",
            _with(0, divided(sums, count, rounded)),
        )


def _pooled() -> Iterator[Call]:
    for number, (channels, width, rows, columns, stride, dilation) in enumerate(
        ((1, 5, 2, 2, 2, 1), (3, 4, 3, 2, 1, 2), (4, 2, 2, 3, 3, 1), (2, 3, 1, 4, 2, 2))
    ):
        image = DATA.reshape(4, 60)[:rows].reshape(rows, -1, channels).astype(np.int64)
        places = [x * stride + np.arange(columns) * dilation for x in range(width)]
        windows = np.stack([image[:, place].reshape(-1, channels) for place in places])
        count, rounded = rows * columns, number % 2
        made = {"max": windows.max(1), "mean": divided(windows.sum(1), count, rounded)}
        for kind, values in made.items():
            yield Call(
                f"pool {kind} {number}",
                "static const int8_t *const rows[] = { data, data + 60, data + 120, data + 180 };\n"
                f"    static const nn_pool pool = {{ {channels}, {width}, {rows}, {columns}, "
                f"{stride}, {dilation}, {rounded} }};\n"
                f"    nn_pool_{kind}(&pool, rows, out.bytes);",
                _with(0, values.astype(np.int8).reshape(-1)),
            )


def _joined() -> Iterator[Call]:
    joins: dict[str, Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]] = {
        "add": np.add, "sub": np.subtract, "or": np.bitwise_or, "xor": np.bitwise_xor,
    }  # fmt: skip
    for name, join in joins.items():
        for count, number in ((2, 1), (2, 30), (3, 45), (5, 40)):
            operands = [DATA[13 * n : 13 * n + number].astype(np.int64) for n in range(count)]
            made = np.clip(reduce(join, operands), -128, 127).astype(np.int8)
            places = ", ".join(f"data + {13 * n}" for n in range(count))
            yield Call(
                f"{name} of {count}",
                f"static const int8_t *const operands[] = {{ {places} }};\n"
                f"    nn_{name}(operands, {count}, {number}, out.bytes);",
                _with(0, made),
            )


def _moved() -> Iterator[Call]:
    for to_step, from_step, length, count in ((7, 5, 3, 4), (4, 4, 4, 1), (9, 0, 2, 3)):
        made = BEFORE.copy()
        for n in range(count):
            made[n * to_step : n * to_step + length] = DATA[n * from_step : n * from_step + length]
        words = f"{to_step}, data, {from_step}, {length}, {count}"
        yield Call(f"copy {words}", f"nn_copy(out.bytes, {words});", made)
    for size, dropped in ((12, 3), (9, 9), (30, 1)):
        rolled = np.concatenate([BEFORE[dropped:size], np.zeros(dropped, np.int8)])
        yield Call(
            f"roll {size}, {dropped}", f"nn_roll(out.bytes, {size}, {dropped});", _with(0, rolled)
        )


def _windows() -> Iterator[Call]:
    for rows, ring, count, first, step, spread in (
        (6, 6, 3, -1, 1, 1), (6, 6, 3, 4, 1, 1), (6, 3, 3, 2, 1, 1), (9, 4, 4, -2, 2, 1),
        (4, 4, 5, -1, 1, 2), (4, 2, 6, 1, 1, 3), (5, 5, 2, 5, 1, 1), (3, 3, 7, 0, 1, 2),
    ):  # fmt: skip
        found = []
        for place in range(first, first + count * step, step):
            row, between = divmod(place, spread)
            there = not between and 0 <= row < rows
            found.append(row % ring * 10 + 1 if there else 0)
        yield Call(
            f"window {rows}, {ring}, {count}, {first}, {step}, {spread}",
            f"static const nn_image image = {{ 10, NN_SHARE({ring}), {rows}, {ring} }};\n"
            f"    const int8_t *rows[{count}];\n    unsigned i;\n\n"
            f"    nn_window(rows, {count}, {first}, {step}, {spread}, &image, data);\n"
            f"    for (i = 0; i < {count}; i++) {{\n"
            "        out.bytes[i] = (int8_t)(rows[i] == NULL ? 0 : rows[i] - data + 1);\n    }",
            _with(0, np.array(found, np.int8)),
        )
    asked = [
        (-1, 1, 5),
        (-4, 2, 5),
        (0, 1, 5),
        (3, 1, 5),
        (4, 1, 5),
        (7, 1, 5),
        (5, 2, 9),
        (0, 3, 1),
    ]
    ends = [0 if bottom < 0 else min(bottom // spread + 1, rows) for bottom, spread, rows in asked]
    calls = "\n    ".join(
        f"out.bytes[{n}] = (int8_t)nn_end({', '.join(map(str, one))});"
        for n, one in enumerate(asked)
    )
    yield Call("end", calls, _with(0, np.array(ends, np.int8)))


def calls() -> list[Call]:
    """Return all calls."""
    return [*_kept(), *_means(), *_pooled(), *_joined(), *_moved(), *_windows()]


def program(made: Sequence[Call]) -> dict[str, str]:
    """Return the files of a program that makes calls and says whether all are right."""
    numbers = [*enumerate(made)]
    texts = [
        _CALL.format(number=n, name=one.name, code=one.code, expected=_listed(one.expected))
        for n, one in numbers
    ]
    sources = ['#include "nn_kernels.h"\n']
    sources += [(RUNTIME / name).read_text().replace(sources[0], "", 1) for name in SOURCES]
    return {
        "main.c": _MAIN.format(
            data=_listed(DATA), before=_listed(BEFORE), room=ROOM, calls="".join(texts),
            runs="\n".join(f"    failed += (unsigned)call_{n}();" for n, _ in numbers),
        ),
        "nn.h": (RUNTIME / "nn.h").read_text(),
        "nn_kernels.h": render("software/nn_kernels.h.j2", kernels={}, core="ANY"),
        "nn_kernels.c": "".join(sources),
    }  # fmt: skip


def _listed(values: Bytes) -> str:
    return ", ".join(map(str, values.tolist()))
