"""What programs make of outputs, in integers, against PyTorch."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ai8xtools.writing.templates import render

_OF_ONE_PIXEL = ("hysteresis", "top-k", "cosine")
CALLS = """
int steady(const int32_t *v, int n, int32_t on, int32_t off, int last)
{ return head_steady(v, n, on, off, last); }
void best(const int32_t *v, int n, int k, int *to) { head_best(v, n, k, to); }
void unit(const int32_t *v, int n, int8_t *to) { head_normalize(v, n, to); }
int32_t cosine(const int8_t *a, const int8_t *b, int n) { return head_cosine(a, b, n); }
"""


@pytest.fixture(scope="module")
def heads(tmp_path_factory: pytest.TempPathFactory) -> Any:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler for this computer")
    folder = tmp_path_factory.mktemp("heads")
    texts = [render("application/head.h.j2", head=head) for head in _OF_ONE_PIXEL]
    for number, text in enumerate(texts):
        (folder / f"head{number}.h").write_text(text.replace("HEAD_H", f"HEAD_{number}_H"))
    includes = "".join(f'#include "head{number}.h"\n' for number in range(len(texts)))
    (folder / "calls.c").write_text(includes + CALLS)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-shared", "-fPIC"]
    library: Path = folder / "heads.so"
    subprocess.run([compiler, *flags, "calls.c", "-o", str(library)], cwd=folder, check=True)
    return ctypes.CDLL(str(library))


def _of(values: Any, dtype: str) -> tuple[Any, Any]:
    array = np.ascontiguousarray(values, dtype)
    return array, array.ctypes.data_as(ctypes.c_void_p)


def test_the_greatest_come_first_and_equals_in_order(heads: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        count = int(rng.integers(1, 30))
        number = int(rng.integers(1, count + 1))
        values, address = _of(rng.integers(-5, 6, count) * rng.choice([1, 2**28]), "i4")
        found, to = _of(np.full(number, -1), "i4")
        heads.best(address, count, number, to)
        wanted = torch.sort(torch.from_numpy(values), descending=True, stable=True).indices
        assert found.tolist() == wanted[:number].tolist()


def test_a_class_stays_until_it_is_below_the_lower_threshold(heads: Any) -> None:
    scores = [0, 99, 100, 60, 50, 49, 120, 90, 10]
    last, seen = -1, []
    for score in scores:
        _, address = _of([score, 5, -7], "i4")
        last = heads.steady(address, 3, 100, 50, last)
        seen.append(last)
    assert seen == [-1, -1, 0, 0, 0, -1, 0, 0, -1]
    _, address = _of([60, 5, 130], "i4")
    assert heads.steady(address, 3, 100, 50, 0) == 2


@pytest.mark.parametrize("size", [1, 127, 40_000, 2**31 - 1])
def test_normalization_is_that_of_torch(size: int, heads: Any) -> None:
    rng = np.random.default_rng(size)
    for count in (1, 3, 64, 1024):
        values, address = _of(rng.integers(-size - 1, size, count, endpoint=True), "i4")
        found, to = _of(np.zeros(count), "i1")
        heads.unit(address, count, to)
        exact = torch.nn.functional.normalize(torch.from_numpy(values).double(), dim=0) * 127
        assert np.abs(found - exact.numpy()).max() <= 0.5 + 1e-4


def test_cosine_is_that_of_torch(heads: Any) -> None:
    rng = np.random.default_rng(1)
    for count in (1, 2, 64, 1024):
        for _ in range(50):
            a, first = _of(rng.integers(-128, 128, count), "i1")
            b, second = _of(rng.choice([a, -a, rng.integers(-128, 128, count)]), "i1")
            found = heads.cosine(first, second, count)
            vectors = (torch.from_numpy(one.astype(float)) for one in (a, b))
            exact = float(torch.nn.functional.cosine_similarity(*vectors, dim=0)) * 1024
            assert abs(found) - 1e-6 <= abs(exact) < abs(found) + 1 + 1e-6
            assert found * exact >= 0
    assert heads.cosine(_of([0, 0], "i1")[1], _of([1, 2], "i1")[1], 2) == 0
