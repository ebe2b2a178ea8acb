"""What becomes of sums in C, means, and places in rings: all of a small domain, and ends."""

from __future__ import annotations

import ctypes
import subprocess
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from ai8xtools.writing.templates import render
from tests.software.compiled import local_compiler
from tests.software.helper_calls import divided
from tools.kernel_layer import RUNTIME

ABSOLUTE, WIDE, LIMITED = 1, 2, 4
_C = """#include "nn_kernels.h"
/* Rows of an image that are looked for in another place than they are. */
unsigned misplaced(unsigned ring, unsigned rows)
{
    const nn_image image = { 3, NN_SHARE(ring), (uint16_t)rows, (uint16_t)ring };
    unsigned row, wrong = 0;

    for (row = 0; row < rows; row++) {
        wrong += nn_place(&image, row) != 3 * (row % ring);
    }
    return wrong;
}

void stored(int right, int low, int flags, unsigned filters, int fours, const int32_t *start,
            const int32_t *sums, void *pixel)
{
    nn_conv conv = { 0 };
    unsigned filter;

    conv.right = (int8_t)right;
    conv.low = (int8_t)low;
    conv.flags = (uint8_t)flags;
    conv.filters = filters;
    conv.start = start;
    for (filter = 0; filter < filters; filter += fours ? 4 : 1) {
        if (fours) {
            nn_store_four(&conv, pixel, filter, (const uint32_t *)sums + filter);
        } else {
            nn_store(&conv, pixel, filter, start[filter] + sums[filter]);
        }
    }
}
"""
Ints = NDArray[np.int64]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the functions above and those of keep_sum.c."""
    command = local_compiler()
    if command is None:
        pytest.skip("neither gcc nor clang is installed")
    folder = tmp_path_factory.mktemp("results")
    (folder / "nn.h").write_text((RUNTIME / "nn.h").read_text())
    (folder / "nn_kernels.h").write_text(render("software/nn_kernels.h.j2", kernels={}, core="ANY"))
    (folder / "all.c").write_text(_C + (RUNTIME / "keep_sum.c").read_text())
    subprocess.run(
        [command, "-std=c99", "-O1", "-fwrapv", "-shared", "-fPIC", "all.c", "-o", "all.so"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return ctypes.CDLL(str(folder / "all.so"))


def _place(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def test_rows_stand_in_their_place_of_a_ring(library: ctypes.CDLL) -> None:
    rings = (*range(1, 40), 63, 64, 65, 127, 255, 256, 257, 1000, 4096, 32767, 32768, 65534)
    assert [ring for ring in rings if library.misplaced(ring, 65535)] == []
    assert [ring for ring in range(1, 9) if library.misplaced(ring, ring)] == []


def test_means_of_all_sums(library: ctypes.CDLL) -> None:
    """Of as many values as sums of 16 bits have room for."""
    for count, rounded in product((*range(1, 65), 99, 127, 128, 129, 255, 256), (0, 1)):
        sums = np.arange(-128 * count, 127 * count + 1)
        given, found = sums.astype(np.int16), np.full(len(sums) + 2, 85, np.int8)
        library.nn_mean(_place(found[1:]), _place(given), len(sums), count, rounded)
        np.testing.assert_array_equal(found[1:-1], divided(sums, count, rounded))
        assert found[0] == found[-1] == 85


def _wanted(sums: Ints, right: int, low: int, flags: int) -> Ints:
    if flags & WIDE and not flags & LIMITED:
        return sums
    if not flags & WIDE:
        sums = sums >> right if right >= 0 else sums.clip(-128, 127) << -right
    return (abs(sums) if flags & ABSOLUTE else sums).clip(low, 127)


EDGES = sorted({0} | {
    sign * (1 << bit) + more
    for bit in range(31) for more in (-1, 0, 1) for sign in (-1, 1)
})  # fmt: skip
"""Sums around the powers of two."""


@pytest.mark.parametrize("fours", [0, 1])
def test_outputs_of_all_shifts_and_forms(library: ctypes.CDLL, fours: int) -> None:
    sums = np.array(EDGES, np.int64)
    starts = np.resize(np.array([0, 1, -1, 64, -128]), len(sums))
    given, start = (sums - starts).astype(np.int32), starts.astype(np.int32)
    forms = (0, ABSOLUTE, WIDE, WIDE | ABSOLUTE, WIDE | LIMITED, WIDE | LIMITED | ABSOLUTE)
    for right, low, flags in product(range(-8, 32), (-128, 0), forms):
        found = np.full(len(sums) + 4, 85, np.int32 if flags & WIDE else np.int8)
        library.stored(
            right, low, flags, len(sums), fours, _place(start), _place(given), _place(found)
        )
        wanted = _wanted(sums, right, low, flags)
        assert found[:-4].tolist() == wanted.tolist(), (right, low, flags)
        assert (found[-4:] == 85).all()


def test_fours_of_filters_end_where_filters_do(library: ctypes.CDLL) -> None:
    for filters, flags in product(range(1, 10), (0, ABSOLUTE, WIDE)):
        sums = np.arange(-filters, filters, 2).astype(np.int32)
        start = np.full(filters, 3, np.int32)
        found = np.full(filters + 4, 85, np.int32 if flags & WIDE else np.int8)
        library.stored(0, -128, flags, filters, 1, _place(start), _place(sums), _place(found))
        made = sums + 3
        assert found[:filters].tolist() == (abs(made) if flags == ABSOLUTE else made).tolist()
        assert (found[filters:] == 85).all()
