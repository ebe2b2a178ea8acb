"""Calls of the functions of software/runtime/cmsis, with the bytes that each must leave behind.

What is expected is computed here, from the definitions of Arm's library alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.cmsis.functions import FUNCTIONS, prototypes_of, text_of
from ai8xtools.values import frozen
from ai8xtools.writing.templates import render
from tools.kernel_layer import RUNTIME

Ints = NDArray[np.int64]
_RNG = np.random.default_rng(79)
_MISMATCH = -3
_MAIN = """#include <stdio.h>
#include "arm_nn.h"
static q7_t out[{room}], data[{room}];
static union {{ q15_t numbers[{room}]; q31_t aligned; }} buffer;
static int wrong(const char *name, const void *found, const void *expected, size_t size)
{{
    const char *one = (const char *)found, *other = (const char *)expected;

    for (; size; size--) {{
        if (*one++ != *other++) {{
            puts(name);
            return 1;
        }}
    }}
    return 0;
}}
static int left(const char *name, unsigned from)
{{
    for (; from < sizeof buffer / sizeof buffer.numbers[0]; from++) {{
        if (buffer.numbers[from] != 0x5555) {{
            puts(name);
            return 1;
        }}
    }}
    return 0;
}}
{calls}
int main(void)
{{
    unsigned failed = 0;

{runs}
    puts(failed ? "*** FAIL ***" : "*** PASS ***");
    return failed != 0;
}}
"""
_CALL = """
static int call_{number}(void)
{{
{tables}
    memset(out, 85, sizeof out);
    memset(buffer.numbers, 85, sizeof buffer);
    {code}
    return wrong("{name}", {found}, expected, sizeof expected)
           || left("{name}: scratch memory", {scratch});
}}
"""
_ROOM = 512
_GUARD = 85


@frozen
class Call:
    """A statement in C on tables of bytes; `expected` is what stands in `found` then.

    It may write the first `scratch` numbers of the buffer.
    """

    name: str
    tables: dict[str, Ints]
    code: str
    expected: Ints
    kind: str = "q7_t"
    found: str = "out"
    scratch: int = 0


def _bytes(*shape: int) -> Ints:
    """Return numbers of 8 bits, the ends of their range among them."""
    found = _RNG.integers(-128, 128, shape)
    return np.where(_RNG.random(shape) < 0.2, np.where(found < 0, -128, 127), found)


def _sums(products: Ints, bias: Ints, bias_shift: int, out_shift: int) -> Ints:
    """Return the results of 32 bits: sums [.., filter] with their bias, rounded, shifted."""
    shifted: Ints = (products + (bias << bias_shift) + ((1 << out_shift) >> 1)) >> out_shift
    return shifted


def _narrow(sums: Ints) -> Ints:
    """Return values limited to 8 bits, flat, and the bytes behind them, which stay as they are."""
    return np.append(sums.clip(-128, 127).reshape(-1), [_GUARD] * 3)


def _windows(image: Ints, kernel: tuple[int, int], pad: tuple[int, int], stride: tuple[int, int],
             size: tuple[int, int], fill: int) -> Ints:  # fmt: skip
    """Return what lies under the kernel: [y, x, kernel row, kernel column, channel]."""
    rows, columns, channels = image.shape
    found = np.full((*size, *kernel, channels), fill)
    for y, x, i, j in np.ndindex(*size, *kernel):
        row, column = y * stride[0] + i - pad[0], x * stride[1] + j - pad[1]
        if 0 <= row < rows and 0 <= column < columns:
            found[y, x, i, j] = image[row, column]
    return found


SHAPES = (  # image, kernel, padding, strides: rows, columns; channels, filters
    ((4, 5), (2, 3), (1, 2), (1, 2), 3, 3), ((5, 4), (3, 2), (2, 0), (2, 1), 4, 2),
    ((3, 3), (3, 3), (1, 1), (1, 1), 4, 4), ((3, 3), (3, 3), (1, 1), (2, 2), 5, 1),
    ((5, 3), (1, 1), (0, 0), (1, 1), 5, 3), ((1, 1), (1, 1), (0, 0), (1, 1), 3, 5),
    ((4, 4), (2, 2), (2, 2), (3, 3), 1, 2), ((4, 3), (1, 3), (0, 0), (1, 1), 2, 3),
    ((3, 4), (2, 2), (0, 3), (1, 1), 3, 3), ((4, 3), (2, 2), (3, 0), (1, 1), 4, 2),
)  # fmt: skip
"""Also windows that begin beside the image, and as wide as it."""


def _convolutions() -> Iterator[Call]:
    for number, (size, kernel, pad, stride, channels, filters) in enumerate(SHAPES):
        shifts = number % 7, 4 + number
        (out_y, out_x) = made = tuple(
            (n + 2 * p - k) // s + 1 for n, k, p, s in zip(size, kernel, pad, stride, strict=True)
        )
        image, bias = _bytes(*size, channels), _bytes(max(filters, channels))
        windows = _windows(image, kernel, pad, stride, (out_y, out_x), 0)
        weights = _bytes(filters, *kernel, channels)
        apart = _bytes(*kernel, channels)
        products = {
            "convolve": np.einsum("yxijc,fijc->yxf", windows, weights),
            "depthwise_separable_conv": np.einsum("yxijc,ijc->yxc", windows, apart),
        }
        last = f"bias, {shifts[0]}, {shifts[1]}, out"
        square = all(one[0] == one[1] for one in (size, kernel, pad, stride))
        for kind, sums in products.items():
            count, taken = (filters, weights) if kind == "convolve" else (channels, apart)
            scratch = 2 * windows[0, 0].size if kind == "convolve" else 0
            tables = {"image": image, "weights": taken, "bias": bias[:count]}
            expected = _narrow(_sums(sums, bias[:count], *shifts))
            name = f"arm_{kind}_HWC_q7"
            basic = f"{name}_basic" if kind == "convolve" else name
            numbers = ", ".join(f"{one[1]}, {one[0]}" for one in (kernel, pad, stride))
            yield Call(
                f"{kind} {number}", tables,
                f"if ({basic}_nonsquare(image, {size[1]}, {size[0]}, {channels}, weights, {count}, "
                f"{numbers}, {last}, {made[1]}, {made[0]}, buffer.numbers, NULL)) return 1;",
                expected, scratch=scratch,
            )  # fmt: skip
            if not square:
                continue
            for function in (basic, f"{name}_fast") if kind == "convolve" else (basic,):
                fits = not function.endswith("fast") or (channels % 4 == 0 and filters % 2 == 0)
                yield Call(
                    f"{function} {number}", tables,
                    f"if ({function}(image, {size[0]}, {channels}, weights, {count}, {kernel[0]}, "
                    f"{pad[0]}, {stride[0]}, {last}, {made[0]}, buffer.numbers, NULL) != "
                    f"{0 if fits else _MISMATCH}) return 1;",
                    expected if fits else np.full(len(expected), _GUARD),
                    scratch=scratch if fits else 0,
                )  # fmt: skip
    for function, words in (("arm_convolve_HWC_q7_fast", "4, weights, 3"),
                            ("arm_convolve_HWC_q7_fast", "3, weights, 4"),
                            ("arm_depthwise_separable_conv_HWC_q7", "2, weights, 4")):  # fmt: skip
        yield Call(
            f"refusal of {words}", {"weights": _bytes(64)},
            f"if ({function}(data, 1, {words}, 1, 0, 1, weights, 0, 0, out, 1, buffer.numbers, "
            f"NULL) != {_MISMATCH}) return 1;", np.full(9, _GUARD),
        )  # fmt: skip


def _interleaved(weights: Ints) -> Ints:
    """Return weights in the order of `_opt`, number by number as Arm's documents list it."""
    rows, columns = weights.shape
    rank, place = "ababcdcdababcdcd", (1, 1, 3, 3, 1, 1, 3, 3, 2, 2, 4, 4, 2, 2, 4, 4)
    found: list[int] = []
    for top in range(0, rows - 3, 4):
        for left in range(0, columns - 3, 4):
            found += [weights[top + "abcd".index(a), left + n - 1]
                      for a, n in zip(rank, place, strict=True)]  # fmt: skip
        for column in range(columns // 4 * 4, columns):
            found += weights[top : top + 4, column].tolist()
    return np.array(found + weights[rows // 4 * 4 :].reshape(-1).tolist())


def _connected() -> Iterator[Call]:
    for rows, columns in ((1, 1), (2, 4), (3, 7), (4, 8), (5, 6), (8, 5), (9, 12), (6, 3)):
        shifts = rows % 5, columns % 4 + 6
        weights, vector, bias = _bytes(rows, columns), _bytes(columns), _bytes(rows)
        sums = _sums(weights @ vector, bias, *shifts)
        words = f"vector, weights, {columns}, {rows}, {shifts[0]}, {shifts[1]}, bias"
        for name, taken in (("", weights), ("_opt", _interleaved(weights))):
            function = f"arm_fully_connected_q7{name}"
            yield Call(
                f"{function} {rows}, {columns}",
                {"vector": vector, "weights": taken, "bias": bias},
                f"if ({function}({words}, out, buffer.numbers)) return 1;", _narrow(sums),
                scratch=columns,
            )  # fmt: skip
        yield Call(
            f"wide {rows}, {columns}", {"vector": vector, "weights": weights, "bias": bias},
            f"static q31_t wide[{rows + 1}];\n\n    wide[{rows}] = 7;\n"
            f"    if (arm_fully_connected_q7_q31({words}, wide, buffer.numbers)) return 1;",
            np.append(sums, 7), "q31_t", "wide", columns,
        )  # fmt: skip


def _pooled() -> Iterator[Call]:
    for number, (size, kernel, pad, stride, channels, _) in enumerate(SHAPES):
        pad = tuple(min(p, k - 1) for p, k in zip(pad, kernel, strict=True))  # type: ignore[assignment]
        out_y, out_x = (
            (n + 2 * p - k) // s + 1 for n, k, p, s in zip(size, kernel, pad, stride, strict=True)
        )
        image = _bytes(*size, channels)
        windows = _windows(image, kernel, pad, stride, (out_y, out_x), -128)
        expected = _narrow(windows.max((2, 3)))
        count = image.size
        copied = f"memcpy(data, image, {count});\n    "
        wide, high = f"{size[1]}, {size[0]}, {channels}", f"{size[0]}, {channels}"
        forms = {
            "arm_maxpool_nonsquare_q7_HWC_nonsquare":
                f"image, {wide}, {kernel[1]}, {kernel[0]}, {pad[1]}, {pad[0]}, {stride[1]}, "
                f"{stride[0]}, {out_x}, {out_y}, NULL, out",
        }  # fmt: skip
        if all(one[0] == one[1] for one in (kernel, pad, stride)):
            short = f"{kernel[0]}, {pad[0]}, {stride[0]}"
            forms["arm_maxpool_q7_HWC_nonsquare"] = (
                f"image, {wide}, {short}, {out_x}, {out_y}, NULL, out"
            )
            if size[0] == size[1]:
                forms["arm_maxpool_q7_HWC"] = f"data, {high}, {short}, {out_x}, NULL, out"
        for function, words in forms.items():
            yield Call(f"{function} {number}", {"image": image},
                       f"{copied}{function}({words});", expected)  # fmt: skip


def _activated() -> Iterator[Call]:
    every = np.arange(-128, 128)
    for size in (*range(9), 255, 256):
        for function, values in (("arm_relu_q7", every), ("arm_relu32_q7", every[::-1])):
            expected = np.where(np.arange(256) < size, np.maximum(values, 0), values)
            yield Call(
                f"{function} {size}", {"values": values},
                f"memcpy(data, values, 256);\n    {function}(data, {size});", expected,
                found="data",
            )  # fmt: skip


def calls() -> list[Call]:
    """Return all calls."""
    return [*_convolutions(), *_connected(), *_pooled(), *_activated()]


def _listed(values: Ints) -> str:
    return ", ".join(map(str, values.reshape(-1).tolist()))


def _text(number: int, call: Call) -> str:
    """Return the C of a call."""
    lines = [f"    static const q7_t {name}[] = {{ {_listed(values)} }};"
             for name, values in call.tables.items()]  # fmt: skip
    lines.append(f"    static const {call.kind} expected[] = {{ {_listed(call.expected)} }};")
    tables = "\n".join(lines)
    declared, blank, code = call.code.rpartition("\n\n")
    tables += f"\n    {declared}\n" if blank else "\n"
    return _CALL.format(
        number=number,
        name=call.name,
        found=call.found,
        code=code.strip(),
        tables=tables,
        scratch=call.scratch,
    )


def program() -> dict[str, str]:
    """Return the files of a program that makes all calls and says whether all are right."""
    texts = [_text(number, call) for number, call in enumerate(calls())]
    runs = "\n".join(f"    failed += (unsigned)call_{number}();" for number in range(len(texts)))
    include = '#include "nn_kernels.h"\n'
    return {
        "main.c": _MAIN.format(room=_ROOM, calls="".join(texts), runs=runs),
        "nn.h": (RUNTIME / "nn.h").read_text(),
        "nn_kernels.h": render("software/nn_kernels.h.j2", kernels={}, core="ANY"),
        "nn_kernels.c": include + (RUNTIME / "keep_max.c").read_text().replace(include, "", 1),
        "arm_nn.h": render(
            "software/cmsis/arm_nn.h.j2", library=None, prototypes=prototypes_of(FUNCTIONS)
        ),
        "arm_nn.c": text_of(FUNCTIONS),
    }
