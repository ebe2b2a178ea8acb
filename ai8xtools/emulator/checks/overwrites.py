"""Output on top of data that is still needed, or behind the memory.

Source: docs/emulator.md, "What silicon would not tell you".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.checks.finding import LayerReport, Severity
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.state.data_memory import DataMemory

Integers = NDArray[np.int64]

_INSTANCE_WORDS = 0x400000  # more than an instance has: combines instance and word to one number


def check_writes(
    report: LayerReport, target: DataMemory, instance: Integers, offset: Integers
) -> None:
    """Report output behind the memory, or on top of output that nobody has read."""
    limit = report.memory.chip.instance_bytes
    beyond = offset >= limit
    if beyond.any():
        index = np.unravel_index(np.argmax(beyond), beyond.shape)
        place = int(instance[index]), int(offset[index]) // 4
        report.at_word(
            f"output word {place[1]} of data memory instance {place[0]} ({{address}}) is "
            f"beyond the {limit // 4} that it has ({np.count_nonzero(beyond)} such bytes)",
            4 * place[0] + int(offset[index]) % 4,
            place,
        )
    wrapped = offset % target.data.shape[1]
    for layer, count in target.lost(instance, wrapped, report.config.layer).items():
        if count == 1:
            continue  # layers that reset average pooling write a byte that nobody needs
        hit = target.writer[instance, wrapped] == layer
        index = np.unravel_index(np.argmax(hit), hit.shape)
        byte = int(wrapped[index])
        report.at_word(
            f"output overwrites that of layer {layer} before anything has read it, at data "
            f"memory {{place}} ({count} bytes)",
            4 * int(instance[index]) + byte % 4,
            (int(instance[index]), byte // 4),
            flow=True,
        )


def check_own_input(
    report: LayerReport,
    read: tuple[Integers, Integers],
    write: tuple[Integers, Integers, Integers],
) -> None:
    """Report output on top of the layer's own input.

    `read`: instances and byte offsets [processor, operand, pass, pixel]. `write`: instances
    [output], words [output, pixel] and pixels. It is harmless where a layer that takes the
    pixels one after the other has read what it overwrites.
    """
    instance, offset = read
    if offset.size == 1:
        return  # of a single value nothing is left to read, as in layers that reset average pooling
    needed = np.full(report.memory.data.shape, -1, np.int64)  # last read, as a pooled pixel
    last = np.broadcast_to(_last_use(report.config), offset.shape)
    np.maximum.at(needed, (instance, offset // 4), last)
    touched = np.zeros(needed.shape, np.bool_)
    touched[instance, offset // 4] = True
    where = np.broadcast_to(write[0][:, None], write[1].shape)
    words = write[1] % needed.shape[1]
    overlap = touched[where, words]
    if not overlap.any():
        return
    early = overlap & (needed[where, words] > _read_before(report.config)[write[2]])
    shown = early if early.any() else overlap
    index = np.unravel_index(np.argmax(shown), shown.shape)
    place = int(where[index]), int(words[index])
    count = len(np.unique(where[shown] * _INSTANCE_WORDS + words[shown]))
    report.at_word(
        f"output overwrites the layer's own input in data memory {{place}} ({count} words)"
        + (", before it is read" if early.any() else ", which has been read by then"),
        4 * place[0],
        place,
        severity=Severity.WARNING if early.any() else Severity.NOTE,
    )


def _last_use(config: LayerConfig) -> Integers:
    """Return for each pixel of the input the last pooled pixel that needs it, -1 if none does."""
    inputs = config.input
    window = inputs.pool if inputs.pooling else (1, 1)
    last = []
    for length, count, width, step in zip(
        inputs.size, inputs.pooled, window, inputs.pool_dilation, strict=True
    ):
        position = np.full(length, -1, np.int64)
        for number in range(count):
            start = number * inputs.stride
            position[start : start + (width - 1) * step + 1 : step] = number
        last.append(position)
    rows, columns = last[0][:, None], last[1]
    used = (rows >= 0) & (columns >= 0)
    return np.where(used, rows * inputs.pooled[1] + columns, -1).reshape(-1)


def _read_before(config: LayerConfig) -> Integers:
    """Return for each pixel of the output the last pooled pixel that is read before it is known."""
    inputs = config.input
    rows, columns = config.output_size
    kernel = config.kernels.shape if config.kind.has_kernels else (1, 1)
    needed = []
    for length, taps, pad in zip((rows, columns), kernel, inputs.pad, strict=True):
        last = np.arange(length) + (taps - 1 - pad if taps > 1 else 0)
        if config.transposed:
            last //= 2
        needed.append(np.clip(last, 0, None))
    row, column = needed[0][:, None], needed[1]
    height, width = inputs.pooled
    behind = row * width + np.minimum(column, width - 1)
    return np.where(row >= height, height * width - 1, behind).reshape(-1)
