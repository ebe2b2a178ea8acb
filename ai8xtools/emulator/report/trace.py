"""The program of an accelerator as a table, for people who debug it by hand.

Registers are taken apart into their fields, in the order of the writes; successive writes to a
memory or a FIFO are one row.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from itertools import pairwise

import numpy as np

from ai8xtools.emulator.bits import word_address
from ai8xtools.emulator.words.addresses import (
    BIAS,
    DATA,
    INSTANCES_PER_GROUP,
    KERNELS,
    OUTSIDE,
    REGISTERS,
    TRAM,
    AddressMap,
)
from ai8xtools.emulator.words.writes import Writes
from ai8xtools.values import frozen
from device.chip import KERNEL_COLUMN_STRIDE_BYTES, PROCESSORS_PER_GROUP
from device.registers import Field

HEADS = ("address", "word", "place", "field", "value", "meaning")


@frozen
class Row:
    """One field of a register, or a run of words: what was written where, and what it means."""

    address: str
    word: str
    place: str
    field: str
    value: str
    meaning: str


def trace(writes: Writes, addresses: AddressMap) -> Iterator[Row]:
    """Yield the rows of all writes, in order."""
    group, area, offset = addresses.split(writes.address)
    chip = addresses.chip
    strides = {TRAM: chip.tram_stride, KERNELS: chip.kernel_stride, DATA: chip.instance_stride}
    unit = np.zeros_like(offset)
    for kind, stride in strides.items():
        unit = np.where(area == kind, offset // stride, unit)
    single = (area == REGISTERS) | (area == OUTSIDE)
    # A run ends where the memory changes; registers stand alone, except FIFOs
    pushed = np.isin(word_address(writes.address), list(addresses.fifos))
    key = np.stack([group, area, unit, np.where(pushed, -1, np.arange(len(writes)))])
    key[3, ~single] = 0
    ends = np.flatnonzero(np.any(key[:, 1:] != key[:, :-1], axis=0)) + 1
    starts = [0, *ends.tolist()][: len(writes)]
    for start, end in pairwise([*starts, len(writes)]):
        part = Writes(writes.size[start:end], writes.address[start:end], writes.value[start:end])
        if pushed[start]:
            yield _pushes(part, addresses)
        elif single[start]:
            yield from _register(int(part.address[0]), int(part.value[0]), addresses)
        else:
            kind = int(area[start])
            rest = int(offset[start]) % strides.get(kind, chip.group_stride)
            yield _memory(part, kind, int(group[start]), int(unit[start]), rest)


def as_text(rows: Iterable[Row]) -> str:
    """Return the table with aligned columns."""
    cells = [HEADS, *map(astuple, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        + "\n"
        for row in cells
    )


def as_csv(rows: Iterable[Row]) -> str:
    """Return the table as comma-separated values."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADS)
    writer.writerows(map(astuple, rows))
    return text.getvalue()


def format_value(field: Field, value: int) -> str:
    """Return the value of a field as text: masks, pointers and other wide fields in hexadecimal."""
    return f"0x{value:x}" if field.width > 10 else str(value)


def _register(address: int, word: int, addresses: AddressMap) -> Iterator[Row]:
    """Yield the fields of a register that are not zero, or one row if all are."""
    place = addresses.describe(address)
    shown = f"0x{address:08x}", f"0x{word:08x}", place
    register = addresses.registers.get(address)
    fields = [] if register is None else [f for f in register.fields if f.unpack(word)]
    if register is None or not fields:
        yield Row(*shown, "", str(word), "" if register is None else register.meaning)
    for field in fields:
        text = format_value(field, field.unpack(word))
        yield Row(*shown, field.name, text, field.meaning)


def _pushes(part: Writes, addresses: AddressMap) -> Row:
    address = int(part.address[0])
    count = len(part)
    names = {addresses.fifos[a] for a in np.unique(word_address(part.address)).tolist()}
    place = "fast FIFO" if -1 in names else "FIFO " + ", ".join(map(str, sorted(names)))
    return Row(f"0x{address:08x}", "", place, "", f"{count} words", "input")


def _memory(part: Writes, kind: int, group: int, unit: int, offset: int) -> Row:
    count = len(part)
    processor = group * PROCESSORS_PER_GROUP + unit
    packed = kind == KERNELS and int(part.size[0]) == 1
    value = f"{count - packed} words"
    if kind == BIAS:
        place, meaning = f"group {group} bias {offset // 4}", "biases, one byte in each word"
    elif kind == KERNELS:
        column = offset // (4 if packed else KERNEL_COLUMN_STRIDE_BYTES)
        place = f"processor {processor} kernel column {column}"
        meaning = "packed kernels" if packed else "kernels"
    elif kind == TRAM:
        place, meaning = f"processor {processor} line buffer", ""
    else:
        instance = group * INSTANCES_PER_GROUP + unit
        place, meaning = f"instance {instance} word {offset // 4}", "data memory"
    return Row(f"0x{int(part.address[0]):08x}", "", place, "", value, meaning)
