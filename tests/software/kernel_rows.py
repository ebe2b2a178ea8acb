"""Calls of kernels in C for some pixels of a row each, and what each must leave behind.

What is expected is computed here, from the definition of `nn_kernel` (software/runtime/nn.h) alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.software.kernels.depthwise import DEPTHWISE
from ai8xtools.software.kernels.dsp import DSP
from ai8xtools.software.kernels.lanes import LANES, SMALL_LANES
from ai8xtools.software.kernels.mve import DEPTHWISE_MVE, MVE
from ai8xtools.software.kernels.nomul import BUCKETS
from ai8xtools.software.kernels.pixel import DSP_PIXEL, PIXEL
from ai8xtools.software.kernels.registry import PORTABLE, Kernel
from ai8xtools.values import frozen
from ai8xtools.writing.templates import render
from tests.conftest import ROOT
from tools.kernel_layer import RUNTIME, layer

Ints = NDArray[np.int64]
DRIVER = ROOT / "tests" / "software" / "kernel_rows.c"
ROOM = 1 << 20
ABSOLUTE, WIDE, LIMITED = 1, 2, 4
_DEPTHWISE = (DEPTHWISE, DEPTHWISE_MVE)
_SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 13)


@frozen
class Shape:
    """A call: `conv` in the words of software/runtime/nn.h, pixels `x` to `x + count`."""

    channels: int
    filters: int
    width: int
    groups: int
    pad: int
    kernel: tuple[int, int]
    dilation: int
    spread: int
    stride: int
    right: int
    low: int
    flags: int
    x: int
    count: int
    missing: int


def shapes(kernel: Kernel, count: int, seed: int) -> Iterator[Shape]:
    """Yield shapes that a kernel has to compute; kinds with code of their own come often."""
    rng = np.random.default_rng(seed)

    def one(*choices: int) -> int:
        return int(rng.choice(choices))

    for number in range(count):
        channels, filters, kind = one(*_SIZES), one(*_SIZES), number % 4
        rows, columns = one(1, 1, 2, 3, 3), one(1, 1, 2, 3, 3, 4)
        dilation, stride, pad = one(1, 1, 2, 3), one(1, 1, 2, 3), one(0, 1, 1, 2, 4)
        groups = spread = 1
        if kind == 0:  # the most usual ones
            rows, columns, dilation, stride, pad = 3, 3, 1, 1, 1
            channels = channels if kernel in _DEPTHWISE else one(1, 1, channels)
        if kind == 1 and one(0, 1):  # whole pixels
            rows, columns, dilation, pad = 1, 1, 1, 0
            channels = one(4, 8, 16)
        if kernel is MVE:
            channels = one(channels, 15, 16, 17, 40)
        if kernel is DEPTHWISE_MVE:
            channels = one(16, 17, 24, 31, 33)
        if kernel in _DEPTHWISE:
            filters = groups = channels
        if kernel is PORTABLE and kind > 1:
            groups = one(*(n for n in (1, 2, 3) if channels % n == 0))
            filters = groups * one(1, 2, 3)
            spread = one(1, 2, 3)
            stride = stride if spread == 1 else 1
        flags = one(0, 0, 0, ABSOLUTE, WIDE, WIDE | LIMITED, WIDE | LIMITED | ABSOLUTE)
        low = one(-128, -128, 0)
        flags = 0 if kernel is DEPTHWISE_MVE else flags
        right = 0 if flags & WIDE else one(0, 1, 5, 7, 7, 9, 12, -1, -3)
        right = abs(right) if kernel is DEPTHWISE_MVE else right
        first, pixels = one(0, 0, 1, 2), one(1, 2, 3, 4, 5, 6, 7, 8, 9)
        missing = one(0, 0, 0, 0 if kind == 0 else 1, 1 << (rows - 1), 2)
        if kernel in (PIXEL, DSP_PIXEL):
            pixels = one(1, 1, 2)
        if kernel is DEPTHWISE and kind == 0:  # three pixels and four channels at once
            channels = filters = groups = one(4, 7, 8, 12, 13)
            flags, right, missing, pixels = 0, one(1, 5, 7), 0, one(3, 5, 7, 8, 9)
            stride = one(1, 1, 1, 2)
        reach = (columns - 1) * dilation + 1
        width = ((first + pixels - 1) * stride + reach - 2 * pad - 1) // spread + 1
        width = max(width + one(-1, 0, 0, 1, 2), 1)
        yield Shape(channels, filters, width, groups, pad, (rows, columns), dilation, spread,
                    stride, right, low, flags, first, pixels, missing)  # fmt: skip


def usual(kernel: Kernel) -> Shape:
    """Return the shape that kernels are made fast for: inside of the image, nothing but a shift."""
    pixels = 1 if kernel in (PIXEL, DSP_PIXEL) else 12
    groups = 16 if kernel in _DEPTHWISE else 1
    return Shape(channels=16, filters=16, width=16, groups=groups, pad=0, kernel=(3, 3),
                 dilation=1, spread=1, stride=1, right=7, low=-128, flags=0, x=1, count=pixels,
                 missing=0)  # fmt: skip


def one_call(kernel: Kernel, shape: Shape, number: int) -> bytes:
    """Return a call of a kernel, the `number`-th of the program, as the driver reads it."""
    call = _call(number, kernel, shape, np.random.default_rng(5))
    return struct.pack("<I", 1) + b"".join(call)


def _weights(shape: Shape, rng: np.random.Generator) -> NDArray[np.int8]:
    size = (shape.filters, shape.channels // shape.groups, *shape.kernel)
    kind = rng.integers(4)
    if kind == 0:
        return rng.choice(np.array([-128, -128, 127], np.int8), size)
    scale = (2, 8, 128)[kind - 1]
    return rng.integers(-scale, scale, size).astype(np.int8)


def _rows(shape: Shape, rng: np.random.Generator) -> list[Ints | None]:
    """Return rows [column, channel], the ends of the range among them; None: zeros."""
    found: list[Ints | None] = []
    for row in range(shape.kernel[0]):
        data = rng.integers(-128, 128, (shape.width, shape.channels))
        ends = np.where(data < 0, -128, 127)
        data = np.where(rng.random(data.shape) < rng.choice((0.1, 0.6, 1.0)), ends, data)
        found.append(None if shape.missing >> row & 1 else data)
    return found


def computed(
    shape: Shape, weights: NDArray[np.int8], start: Ints, rows: Sequence[Ints | None]
) -> Ints:
    """Return the pixels [pixel, filter]."""
    per_group = shape.channels // shape.groups, shape.filters // shape.groups
    sums = np.tile(start, (shape.count, 1))
    for pixel in range(shape.count):
        for i, k in np.ndindex(*shape.kernel):
            place = (shape.x + pixel) * shape.stride - shape.pad + k * shape.dilation
            column, between = divmod(place, shape.spread)
            row = rows[i]
            if row is None or between or not 0 <= column < shape.width:
                continue
            for group in range(shape.groups):
                read, made = (slice(group * n, (group + 1) * n) for n in per_group)
                sums[pixel, made] += weights[made, :, i, k].astype(np.int64) @ row[column, read]
    if shape.flags & WIDE and not shape.flags & LIMITED:
        return sums
    if not shape.flags & WIDE and shape.right >= 0:
        sums = sums >> shape.right
    elif not shape.flags & WIDE:
        sums = sums.clip(-128, 127) << -shape.right
    return (np.abs(sums) if shape.flags & ABSOLUTE else sums).clip(shape.low, 127)


def bytes_of(kernels: Sequence[Kernel], count: int, seed: int = 0) -> bytes:
    """Return `count` calls of each kernel as the driver reads them."""
    parts = [struct.pack("<I", count * len(kernels))]
    for number, kernel in enumerate(kernels):
        rng = np.random.default_rng(seed + 1)
        for shape in shapes(kernel, count, seed + number):
            parts += _call(number, kernel, shape, rng)
    return b"".join(parts)


def _call(number: int, kernel: Kernel, shape: Shape, rng: np.random.Generator) -> Iterator[bytes]:
    weights, rows = _weights(shape, rng), _rows(shape, rng)
    start = rng.integers(-(1 << 14), 1 << 14, shape.filters)
    last = (shape.x + shape.count - 1) * shape.stride - shape.pad
    inside = shape.pad == 0 and last < shape.width and all(row is not None for row in rows)
    size = shape.kernel[0] * shape.dilation, shape.width + shape.kernel[1] * shape.dilation
    conv = layer(
        size, weights, start, groups=shape.groups, dilation=shape.dilation,
        pad=(0, 0) if inside else (1, 1),
    )  # fmt: skip
    packed = kernel.pack(conv)
    stored = packed.values.tobytes()
    made = computed(shape, weights, start, rows)
    out = made.astype("<i4" if shape.flags & WIDE else "i1").tobytes()
    present = sum(1 << i for i, row in enumerate(rows) if row is not None)
    yield struct.pack(
        "<22i", number, shape.channels, shape.filters, shape.width, shape.groups, packed.flush,
        shape.pad, *shape.kernel, shape.dilation, shape.spread, shape.stride, shape.right,
        shape.low, shape.flags, shape.x, shape.count, present, len(stored),
        kernel.scratch_bytes(conv), len(out), 0,
    )  # fmt: skip
    yield _padded(stored)
    yield kernel.start(conv).astype("<i4").tobytes()
    yield from (_padded(row.astype(np.int8).tobytes()) for row in rows if row is not None)
    yield _padded(out)


def _padded(data: bytes) -> bytes:
    return data.ljust(-(-len(data) // 4) * 4, b"\0")


def program(kernels: Sequence[Kernel], core: str = "ANY") -> dict[str, str]:
    """Return the files of the driver with some kernels."""
    names = dict.fromkeys(n for one in kernels for n in ("patch.c", one.source))
    include = '#include "nn_kernels.h"\n'
    texts = [(RUNTIME / name).read_text().replace(include, "", 1) for name in names]
    heads = f"#define ROOM {ROOM}\n#define KERNELS {', '.join(k.function for k in kernels)}\n"
    return {
        "main.c": heads + DRIVER.read_text(),
        "nn.h": (RUNTIME / "nn.h").read_text(),
        "nn_kernels.h": render(
            "software/nn_kernels.h.j2", kernels=[k.function for k in kernels], core=core
        ),
        "nn_kernels.c": include + "".join(texts),
    }


DESK = (PORTABLE, DEPTHWISE, DSP, DSP_PIXEL, PIXEL, LANES, BUCKETS, MVE, DEPTHWISE_MVE)
"""In plain C."""
CORES = {
    "cortex-m0plus": (SMALL_LANES, PIXEL, DEPTHWISE, BUCKETS),
    "cortex-m4": (DSP, DSP_PIXEL, DEPTHWISE, LANES),
    "rv32imc": (LANES, DEPTHWISE),
}
"""With instructions of a core."""
