"""Weight and bias arrays as the loaders of `cnn.c` read them.

Source: docs/hardware/memory.md, "Writing kernels"; docs/generated-project.md, "Arrays".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.program import KernelBlock, Program, Words
from ai8xtools.values import frozen
from device.chip import KERNEL_COLUMN_BYTES, KERNEL_COLUMN_STRIDE_BYTES, PROCESSORS

_WORDS_PER_COLUMN = KERNEL_COLUMN_STRIDE_BYTES // 4
_STORED_WORDS_PER_COLUMN = 3


@frozen
class KernelArray:
    """The weights of one processor for the loader with one array per processor.

    `start` is the address of the first column, `base` where the words are stored, `latch` the
    address that selects the first column in express mode, `columns` their number.
    """

    processor: int
    start: int
    base: int
    latch: int
    columns: int
    words: Words


def block_list(program: Program) -> Words:
    """Return all blocks as one array: address, number of words, words; the end is a 0."""
    parts = []
    for block in program.kernels:
        parts.append(np.array([block.address, len(block.words)], np.uint32))
        parts.append(block.words)
    return np.concatenate([*parts, np.zeros(1, np.uint32)])


def processor_arrays(program: Program) -> list[KernelArray]:
    """Return one array per processor that has weights, from its first column to its last.

    Columns in between that hold nothing are zero.
    """
    stride = program.chip.kernel_stride
    columns: dict[int, dict[int, bytes]] = {}
    for block in program.kernels:
        base = block.address & ~(stride - 1)
        first = column_address(block.address, program) & stride - 1
        for i, data in enumerate(block_columns(block, express=program.express)):
            offset = first + i * KERNEL_COLUMN_STRIDE_BYTES
            # a block may go on into the next processor
            place = base + offset // stride * stride
            columns.setdefault(place, {})[offset % stride] = data.tobytes()
    processors = {program.apb_base + program.chip.kernel_address(p): p for p in range(PROCESSORS)}
    return [
        _processor_array(base, processors[base], columns[base], express=program.express)
        for base in sorted(columns)
    ]


def column_address(block_address: int, program: Program) -> int:
    """Return the address of the first column of a block."""
    if not program.express:
        return block_address
    return program.chip.column_address(block_address)


def block_columns(block: KernelBlock, *, express: bool) -> NDArray[np.uint8]:
    """Return the columns of a block: uint8 [column, 9]."""
    stream = np.frombuffer(block.words.astype(">u4").tobytes(), np.uint8)
    if express:
        count = len(stream) // KERNEL_COLUMN_BYTES
        return stream[: count * KERNEL_COLUMN_BYTES].reshape(count, KERNEL_COLUMN_BYTES)
    # four words per column: byte 0, bytes 1 to 4, bytes 5 to 8, and the zero that stores them
    return stream.reshape(-1, KERNEL_COLUMN_STRIDE_BYTES)[:, 3 : 3 + KERNEL_COLUMN_BYTES]


def _processor_array(
    base: int, processor: int, columns: dict[int, bytes], *, express: bool
) -> KernelArray:
    first, last = min(columns), max(columns)
    count = (last - first) // KERNEL_COLUMN_STRIDE_BYTES + 1
    data = np.zeros((count, KERNEL_COLUMN_BYTES), np.uint8)
    for offset, column in columns.items():
        data[(offset - first) // KERNEL_COLUMN_STRIDE_BYTES] = np.frombuffer(column, np.uint8)
    if express:
        stream = np.zeros(-(-data.size // 4) * 4, np.uint8)
        stream[: data.size] = data.reshape(-1)
    else:
        padded = np.zeros((count, 4 * _STORED_WORDS_PER_COLUMN), np.uint8)
        padded[:, 3:] = data
        stream = padded.reshape(-1)
    words = stream.view(">u4").astype(np.uint32)
    latch = base + first // _WORDS_PER_COLUMN
    return KernelArray(processor, base + first, base, latch, count, words)
