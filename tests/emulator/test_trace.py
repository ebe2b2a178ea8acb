"""The program of an accelerator as a table."""

from __future__ import annotations

import numpy as np

from ai8xtools.emulator import AddressMap, Writes
from ai8xtools.emulator.report.trace import Row, as_csv, as_text, trace
from device import MAX78000, MAX78002
from device.chip import DEFAULT_APB_BASE, FAST_FIFO_DATA, FIFO_DATA
from tests.emulator.by_hand import Words, one_by_one


def rows(words: Words) -> list[Row]:
    return list(trace(Writes.of(words.rows), AddressMap(words.chip)))


def test_fields_that_are_not_zero_are_shown_with_their_meaning() -> None:
    words = Words()
    words.layer(3, "POST", group=2, shift=5, shift_right=1)
    assert rows(words) == [
        Row("0x50900" + "79c", "0x0002a000", "group 2 layer 3 POST", "shift", "5",
            "output shift, magnitude"),
        Row("0x50900" + "79c", "0x0002a000", "group 2 layer 3 POST", "shift_right", "1",
            "the output shift goes to the right"),
    ]  # fmt: skip


def test_register_that_is_zero_is_shown() -> None:
    words = Words()
    words.layer(0, "RCNT", group=0)
    assert [(row.place, row.field, row.value) for row in rows(words)] == [
        ("group 0 layer 0 RCNT", "", "0")
    ]


def test_stream_registers_of_max78002_have_their_own_names() -> None:
    words = Words(MAX78002)
    words.layer(1, "STREAM1", group=0, start=7)
    words.layer(1, "FMAX", group=0, words=70000)
    assert [(row.place, row.field, row.value) for row in rows(words)] == [
        ("group 0 layer 1 STREAM1", "start", "0x7"),
        ("group 0 layer 1 FMAX", "words", "0x11170"),
    ]


def test_memories_are_one_row_each() -> None:
    words = one_by_one(np.ones((5, 2, 2), int), np.ones((3, 5), int))
    words.bias([1, 2, 3])
    memories = [(row.place, row.value) for row in rows(words) if not row.field][-8:]
    assert memories == [
        *((f"processor {i} kernel column 0", "3 words") for i in range(5)),
        ("instance 0 word 0", "4 words"),
        ("instance 1 word 0", "4 words"),
        ("group 0 bias 0", "3 words"),
    ]


def test_packed_kernels_and_fifo_words_are_one_row_each() -> None:
    base = DEFAULT_APB_BASE + MAX78000.kernel_address(17) + 4 * 9
    words = Words()
    words.rows = [(1, base | 1, 1), *((4, base + 4 * i, i) for i in range(5))]
    words.rows += [(4, DEFAULT_APB_BASE + FIFO_DATA + 4 * (i % 2), i) for i in range(6)]
    words.rows += [(4, FAST_FIFO_DATA, 0)]
    assert [(row.place, row.value, row.meaning) for row in rows(words)] == [
        ("processor 17 kernel column 9", "5 words", "packed kernels"),
        ("FIFO 0, 1", "6 words", "input"),
        ("fast FIFO", "1 words", "input"),
    ]


def test_no_writes_are_no_rows() -> None:
    assert rows(Words()) == []
    assert as_text([]).split() == as_csv([]).strip().split(",")


def test_columns_of_the_text_are_aligned() -> None:
    words = Words()
    words.layer(0, "LCTL", group=0, shared_output=1, relu=1)
    lines = as_text(rows(words)).splitlines()
    column = lines[0].index("meaning")
    assert {line[column - 2 : column] for line in lines} == {"  "}
    assert lines[1][column:].startswith("activation ReLU")
