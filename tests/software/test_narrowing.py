"""What becomes of a sum, in C and Python: all shifts, limits, flags, against plain integers."""

from __future__ import annotations

import dataclasses
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.software.graph import Pool, PoolKind
from ai8xtools.synthesis.network import Combination
from tests import plain_arithmetic as plain
from tests.software.compiled import SANITIZED, compiler
from tests.software.oracle.arithmetic import finished, joined, mean
from tests.software.test_kernels import LAYERS
from tools.kernel_layer import RUNTIME

_MAIN = """#include <stdio.h>
#include "nn.h"
int main(void)
{
    nn_conv conv = {0};
    nn_image image;
    int32_t start[7] = {0}, a, b, c, d, sum;
    nn_word out[8];
    char what;

    conv.start = start;
    while (scanf(" %c %d %d %d %d %d", &what, &a, &b, &c, &d, &sum) == 6) {
        conv.right = (int8_t)a;
        conv.low = (int8_t)b;
        conv.flags = (uint8_t)c;
        if (what == 'n') {
            printf("%d\\n", nn_narrow(&conv, sum));
        } else if (what == 's') { /* the outputs of one filter and of up to four, d in all */
            uint32_t sums[4] = {(uint32_t)sum, (uint32_t)sum, (uint32_t)sum, (uint32_t)sum};
            int i;

            conv.filters = (uint32_t)d;
            memset(out, 0x55, sizeof out);
            nn_store(&conv, out, 1, sum);
            nn_store_four(&conv, out, 3, sums);
            for (i = 0; i < 8; i++) {
                printf("%d ", c & NN_WIDE ? out[i] : ((const int8_t *)out)[i]);
            }
            printf("\\n");
        } else if (what == 'd') {
            printf("%d\\n", nn_divide(sum, a, b));
        } else {
            image.row_bytes = (uint32_t)c;
            image.rows = (uint16_t)a;
            image.ring = (uint16_t)b;
            image.share = NN_SHARE((uint32_t)b);
            printf("%u\\n", (unsigned)nn_place(&image, (uint32_t)sum));
        }
    }
    return 0;
}
"""
ABSOLUTE, WIDE, LIMITED = 1, 2, 4


def asked(lines: list[tuple[str, int, int, int, int, int]], folder: Path) -> list[str]:
    """Compile the program and return its answers."""
    (folder / "main.c").write_text(_MAIN)
    command = compiler()
    assert command is not None
    subprocess.run(
        [*command, "-std=c99", *SANITIZED, f"-I{RUNTIME}", folder / "main.c", "-o", folder / "a"],
        check=True,
    )
    text = "\n".join(" ".join(map(str, line)) for line in lines)
    done = subprocess.run([folder / "a"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def sums_of(right: int) -> list[int]:
    """Return sums around outputs that matter, with the half that rounds in them."""
    half = 1 << right >> 1 if right > 0 else 0
    step = 2.0**right
    near = {round(step * (v + h)) for v in (-129, -128, -127, -2, -1, 0, 1, 126, 127, 128)
            for h in (0, 0.5)}  # fmt: skip
    every = {value + i for value in near for i in (-1, 0, 1)} | {-(2**29), 2**29}
    return sorted(value + half for value in every)


def narrow(total: int, right: int, low: int, flags: int) -> int:
    """Return the output for a sum that has its half."""
    half = 1 << right >> 1 if right > 0 else 0
    value = plain.narrowed(total - half, 7 - right)
    return plain.limited(abs(value) if flags & ABSOLUTE else value, low, 127)


NARROWED = [
    (right, low, flags, total)
    for right in range(-8, 23)
    for low, flags in ((-128, 0), (0, 0), (-128, ABSOLUTE))
    for total in sums_of(right)
]


def wide(total: int, low: int, flags: int) -> int:
    """Return the output of 32 bits."""
    if not flags & LIMITED:
        return total
    return plain.limited(abs(total) if flags & ABSOLUTE else total, low, 127)


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_c_narrows_stores_divides_and_wraps(tmp_path: Path) -> None:
    lines: list[tuple[str, int, int, int, int, int]] = []
    wanted: list[str] = []
    for right, low, flags, total in NARROWED:
        lines.append(("n", right, low, flags, 0, total))
        wanted.append(str(narrow(total, right, low, flags)))
    four = [
        *((right, low, 0) for right, low in ((7, -128), (7, 0), (0, 0), (-2, 0))),
        *((right, -128, ABSOLUTE) for right in (7, -1)),
        *((0, low, WIDE | more) for low in (-128, 0) for more in (0, LIMITED)),
        (0, -128, WIDE | LIMITED | ABSOLUTE),
    ]
    for (right, low, flags), filters, total in product(four, range(4, 8), (-9000, -129, 5, 8000)):
        lines.append(("s", right, low, flags, filters, total))
        value = wide(total, low, flags) if flags & WIDE else narrow(total, right, low, flags)
        stored = [0x55555555 if flags & WIDE else 0x55] * 8
        for place in (1, *range(3, filters)):
            stored[place] = value
        wanted.append(" ".join(map(str, stored)) + " ")
    for count in range(1, 257):
        ends = (
            -128 * count,
            127 * count,
            -1,
            0,
            1,
            count // 2,
            -count // 2,
            (count + 1) // 2,
            count,
        )
        for total, rounded in product((*ends, -count, 3 * count + count // 2 + 1), (0, 1)):
            lines.append(("d", count, rounded, 0, 0, total))
            values = [total // count + (i < total % count) for i in range(count)]
            wanted.append(str(plain.average(values, bool(rounded))))
    for ring, row in product((1, 2, 3, 5, 7, 13, 64, 100, 255, 1000), (0, 1, 6, 99, 999, 65535)):
        for rows in (65535, ring):
            if rows > ring or row < ring:
                lines.append(("p", rows, ring, 10, 0, row))
                wanted.append(str(row % ring * 10))
    found = asked(lines, tmp_path)
    assert [x for x in zip(lines, found, wanted, strict=True) if x[1] != x[2]] == []


def test_python_narrows_alike() -> None:
    step = LAYERS["one pixel"]
    for right, low, flags, total in NARROWED:
        one = dataclasses.replace(step, right=right, low=low, absolute=bool(flags), wide=False)
        assert finished(np.array([[total]]), one).item() == narrow(total, right, low, flags)
    for total, low, flags in product((-9000, -128, -5, 0, 127, 128), (-128, 0), (0, 4, 5)):
        one = dataclasses.replace(
            step, wide=True, limited=bool(flags), low=low, absolute=bool(flags & 1)
        )
        assert finished(np.array([[total]]), one).item() == wide(total, low, flags)


def test_python_averages_alike() -> None:
    for count, kind in product((1, 2, 3, 4, 6, 9, 256), (PoolKind.ROUNDED, PoolKind.AVERAGE)):
        pool = Pool(
            source=0, target=1, layer=0, name="", channels=1, in_size=(1, count), out_size=(1, 1),
            kind=kind, window=(1, count), stride=(1, 1),
        )  # fmt: skip
        sums = [*range(-128 * count, 127 * count + 1, max(1, count // 8))]
        columns = [[s // count + (i < s % count) for i in range(count)] for s in sums]
        wanted = [plain.average(column, kind is PoolKind.ROUNDED) for column in columns]
        assert mean(np.array(sums), pool).tolist() == wanted


@pytest.mark.parametrize("join", Combination)
def test_python_joins_all_pairs_of_bytes_alike(join: Combination) -> None:
    first, second = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128), indexing="ij")
    rows = [side.astype(np.int8).reshape(-1) for side in (first, second)]
    pairs = zip(rows[0].tolist(), rows[1].tolist(), strict=True)
    assert joined(join, rows).tolist() == [
        plain.combined(pair, join.name.lower()) for pair in pairs
    ]
