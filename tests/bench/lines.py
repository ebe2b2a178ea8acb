"""Lines with faults, and the C of a bench program compiled for this computer behind them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.bench.description import BenchDescription, OutputShape
from ai8xtools.writing.templates import render

INPUT_BYTES, OUTPUT_BYTES = 700, 600
DESCRIPTION = BenchDescription("model", (7, 10, 10), (OutputShape(10, 5, 3, 32),))
_MODEL = """
#include "bench.h"
static int8_t input[700];
static uint8_t result[600], sent[1 << 16];
static uint32_t count;
static uint8_t output(uint32_t at) { return result[at]; }
static void send(const uint8_t *bytes, uint32_t number)
{
    for (; number != 0 && count < sizeof sent; number--) {
        sent[count++] = *bytes++;
    }
}
static bench_board board;
int possible = 1;
void start(const uint8_t *told, uint32_t bytes)
{
    memset(&board, 0, sizeof board);
    memset(input, 0, sizeof input);
    board.input = input;
    board.input_bytes = sizeof input;
    board.output_bytes = sizeof result;
    board.told = told;
    board.told_bytes = bytes;
    board.output = output;
    board.send = send;
    bench_start(&board);
}
uint32_t take(const uint8_t *bytes, uint32_t number, uint8_t *to)
{
    uint32_t i, sum;

    for (; number != 0; number--) {
        if (bench_take(&board, *bytes++)) {
            for (i = 0, sum = 0; i < sizeof input; i++) {
                sum = sum * 31u + (uint8_t)input[i];
                result[i % sizeof result] = (uint8_t)(sum >> 8);
            }
            bench_finish(&board, possible, 7);
        }
    }
    memcpy(to, sent, number = count);
    count = 0;
    return number;
}
"""


def expected(data: bytes) -> bytes:
    """Return what the model computes."""
    result, total = bytearray(OUTPUT_BYTES), 0
    for place, byte in enumerate(data):
        total = (total * 31 + byte) & 0xFFFFFFFF
        result[place % OUTPUT_BYTES] = total >> 8 & 0xFF
    return bytes(result)


@dataclass(frozen=True)
class Fault:
    """After so many good bytes: `what` is lose, double, change or noise, with a `value`."""

    after: int
    what: str
    value: int = 1


class Noise:
    """Faults of one direction of a line; behind the last one it is good."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._faults: Iterator[Fault] = iter(faults)
        self._next = next(self._faults, None)
        self._good = 0

    def of(self, data: bytes) -> bytes:
        """Return what arrives."""
        out = bytearray()
        for byte in data:
            fault = self._next
            if fault is None or self._good < fault.after:
                self._good += 1
                out.append(byte)
                continue
            self._good, self._next = 0, next(self._faults, None)
            out += {
                "lose": b"",
                "double": bytes([byte, byte]),
                "change": bytes([byte ^ (fault.value & 0xFF or 1)]),
                "noise": bytes([byte]) + fault.value.to_bytes(8, "little"),
            }[fault.what]
        return bytes(out)


class Model:
    """A line to the C of a bench program. `now` passes only while nothing comes.

    The board restarts after each of the numbers of bytes in `resets`.
    """

    def __init__(
        self, c: Any, there: Noise | None = None, back: Noise | None = None,
        resets: Iterable[int] = (),
    ) -> None:  # fmt: skip
        self.time = 0.0
        self.silent = False
        self._c, self._there, self._back = c, there or Noise(), back or Noise()
        self._resets = iter(resets)
        self._left = next(self._resets, None)
        self._told = ctypes.create_string_buffer(DESCRIPTION.encoded())
        self._coming = b""
        self.restart()

    def now(self) -> float:
        return self.time

    def restart(self, told: bytes | None = None) -> None:
        if told is not None:
            self._told = ctypes.create_string_buffer(told)
        self._c.start(self._told, len(self._told) - 1)
        self._take(b"")

    def read(self, seconds: float) -> bytes:
        coming, self._coming = self._coming, b""
        if not coming:
            self.time += seconds
        return coming

    def write(self, data: bytes) -> None:
        data = self._there.of(data)
        while self._left is not None and self._left <= len(data):
            self._take(data[: self._left])
            data = data[self._left :]
            self.restart()
            self._left = next(self._resets, None)
        if self._left is not None:
            self._left -= len(data)
        self._take(data)

    def _take(self, data: bytes) -> None:
        buffer = ctypes.create_string_buffer(1 << 16)
        count = self._c.take(data, len(data), buffer)
        if not self.silent:
            self._coming += self._back.of(buffer.raw[:count])


def compiled(folder: Path) -> Any:
    """Return the C of a bench program as a library."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler for this computer")
    (folder / "bench.h").write_text(render("application/bench.h.j2"))
    (folder / "model.c").write_text(_MODEL)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-shared", "-fPIC"]
    library = folder / "model.so"
    subprocess.run([compiler, *flags, "model.c", "-o", str(library)], cwd=folder, check=True)
    return ctypes.CDLL(str(library))
