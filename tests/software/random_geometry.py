"""Random small layers as memory levels see them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ai8xtools.software.plan.geometry import Geometry, Size


def small_layers(seed: int, count: int) -> Iterator[Geometry]:
    """Yield layers of a few pixels, some with zeros between pixels, some pooled."""
    choice = random.Random(seed)
    while count:
        size = choice.randint(1, 9), choice.randint(1, 9)
        kernel = choice.randint(1, 3), choice.randint(1, 3)
        apart = choice.choice(((1, 1), (1, 1), (1, 1), (2, 2), (3, 1), (1, 2)))
        stride = (1, 1) if apart != (1, 1) else (choice.randint(1, 3), choice.randint(1, 3))
        pad = choice.randint(0, 2), choice.randint(0, 2)
        if choice.random() < 0.25:
            kernel, stride, pad, apart = (1, 1), (1, 1), (0, 0), (1, 1)
        window, step = (1, 1), (1, 1)
        if apart == (1, 1) and choice.random() < 0.3:
            window, step = (choice.randint(1, 3), 2), (choice.randint(1, 3), 2)
        reach = _pair(kernel, window, stride)
        whole = stride[0] * step[0], stride[1] * step[1]
        made = _made(size, reach, whole, pad, apart)
        if min(made) < 1:
            continue
        channels, filters = choice.randint(1, 5), choice.randint(1, 9)
        bits = 8 * kernel[0] * kernel[1] * channels
        filter_step = choice.choice((1, 2, 2, filters))
        packed = -(-filters // filter_step) * filter_step * bits // 8
        count -= 1
        yield Geometry(
            in_size=size, channels=channels, out_size=made, filters=filters, reach=reach,
            kernel=kernel, stride=whole, pad=pad, spread=apart, out_bytes=choice.choice((1, 1, 4)),
            filter_bits=bits, filter_step=filter_step, weight_bytes=packed,
            sources=choice.choice((1, 1, 2)), sum_window=window, sum_stride=step,
        )  # fmt: skip


def _pair(kernel: Size, window: Size, stride: Size) -> Size:
    return (
        kernel[0] + (window[0] - 1) * stride[0],
        kernel[1] + (window[1] - 1) * stride[1],
    )


def _made(size: Size, reach: Size, stride: Size, pad: Size, apart: Size) -> Size:
    rows, columns = (
        ((n - 1) * a + 1 + 2 * p - r) // s + 1
        for n, a, p, r, s in zip(size, apart, pad, reach, stride, strict=True)
    )
    return rows, columns
