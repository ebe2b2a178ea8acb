"""Large arrays as text, and as NumPy files."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from ai8xtools.synthesis.emit import check_options, emit_arrays
from ai8xtools.writing.arrays import macro_lines, matrix_lines
from tests.synthesis.programs import options, summary


def test_macro_has_eight_words_per_line_and_no_comma_at_the_end() -> None:
    text = macro_lines(np.arange(10, dtype=np.uint32), 8)
    first, second = text.splitlines()
    assert first == "  " + "".join(f"0x{i:08x}, " for i in range(8)) + "\\"
    assert second == "  0x00000008, 0x00000009 \\"
    assert text.endswith("\n")


def test_bytes_have_two_digits() -> None:
    assert macro_lines(np.array([1, 0xFE], np.uint8), 16) == "  0x01, 0xfe \\\n"


@given(arrays(np.uint32, st.integers(1, 40)), st.integers(1, 9))
def test_macro_holds_every_value_in_order(values: NDArray[np.uint32], per_line: int) -> None:
    lines = macro_lines(values, per_line).splitlines()
    assert [int(v, 16) for v in re.findall(r"0x[0-9a-f]{8}\b", " ".join(lines))] == values.tolist()
    assert len(lines) == -(-len(values) // per_line)
    assert all(line.endswith(", \\") for line in lines[:-1])
    assert re.search(r"[0-9a-f] \\$", lines[-1])


@given(
    arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 7)),
           elements=st.integers(-(2**62), 2**62))
)  # fmt: skip
def test_matrix_holds_every_value_in_aligned_columns(values: NDArray[np.int64]) -> None:
    lines = matrix_lines(values).splitlines()
    assert [[int(v) for v in line.split()] for line in lines] == values.tolist()
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_each_number_of_a_large_matrix_stands_at_its_place(kind: type) -> None:
    values = np.random.default_rng(1).integers(0, 256, (40, 30)).astype(np.uint8).view(kind)
    lines = matrix_lines(values).splitlines()
    assert [[int(v) for v in line.split()] for line in lines] == values.tolist()
    assert {len(line) for line in lines} == {5 * 30 - 1 if kind is np.int8 else 4 * 30 - 1}


@pytest.mark.parametrize(
    ("values", "text"),
    [([[0]], "0\n"), ([[-5, 10], [3, -100]], "  -5   10\n   3 -100\n"), ([[-1], [0]], "-1\n 0\n")],
)
def test_numbers_are_right_aligned(values: list[list[int]], text: str) -> None:
    assert matrix_lines(np.array(values)) == text


def test_result_of_the_simulation_becomes_a_numpy_file() -> None:
    result = np.arange(-6, 6).reshape(2, 3, 2)
    told = summary(result=result)
    assert emit_arrays(told, options()) == {}
    content = emit_arrays(told, options(sample_numpy_filename="out.npy"))["out.npy"]
    loaded = np.load(io.BytesIO(content), allow_pickle=False)
    assert loaded.dtype == np.int64 and np.array_equal(loaded, result)


def test_numpy_file_needs_a_name_of_its_own() -> None:
    for name in ("a/b.npy", "weights.h"):
        (found,) = check_options(options(sample_numpy_filename=name))
        assert str(found.place) == "option --sample-numpy-filename"
