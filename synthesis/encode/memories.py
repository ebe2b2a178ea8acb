"""Kernels and biases as the loader transfers them.

Source: spec/memory.md sections 1.8 and 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from device import Chip
from device.chip import GROUPS, KERNEL_COLUMN_BYTES, KERNEL_COLUMN_STRIDE_BYTES
from synthesis.options import EncodeOptions
from synthesis.place import KernelMemory, Placement
from synthesis.program import BiasBlock, KernelBlock, Words


def kernel_blocks(
    memory: KernelMemory, chip: Chip, options: EncodeOptions
) -> Iterator[KernelBlock]:
    """Yield the written columns as runs of neighbours, processor by processor.

    A run may go on into the next processor where the addresses are contiguous. With `zero_sram`
    the memory is zero already and zero columns are left out.
    """
    wanted = memory.owner >= 0
    if options.zero_sram:
        wanted &= memory.data.any(axis=2)
    if options.old_kernel_loader:  # its arrays have no holes
        before = np.maximum.accumulate(wanted, axis=1)
        wanted = before & np.maximum.accumulate(wanted[:, ::-1], axis=1)[:, ::-1]
    processors, columns = np.nonzero(wanted)
    if not len(processors):
        return
    bases = np.array([chip.kernel_address(p) for p in range(wanted.shape[0])])
    addresses = options.apb_base + bases[processors] + columns * KERNEL_COLUMN_STRIDE_BYTES
    breaks = np.flatnonzero(np.diff(addresses) != KERNEL_COLUMN_STRIDE_BYTES) + 1
    data = memory.data[processors, columns]
    for run in np.split(np.arange(len(addresses)), breaks):
        address = int(addresses[run[0]])
        if options.express:
            low = chip.kernel_stride - 1
            address = address & ~low | (address & low) >> 2
            words = _express_words(data[run])
        else:
            words = _plain_words(data[run])
        yield KernelBlock(int(processors[run[0]]), address, words)


def _express_words(columns: NDArray[np.uint8]) -> Words:
    """Pack 9-byte columns into words, first byte in the most significant position."""
    stream = columns.reshape(-1)
    padded = np.zeros(-(-stream.size // 4) * 4, np.uint8)
    padded[: stream.size] = stream
    return padded.view(">u4").astype(np.uint32)


def _plain_words(columns: NDArray[np.uint8]) -> Words:
    """Return four words per column: byte 0, bytes 1 to 4, bytes 5 to 8, and zero to store them."""
    words = np.zeros((len(columns), 4), np.uint32)
    words[:, 0] = columns[:, 0]
    tail = np.ascontiguousarray(columns[:, 1:KERNEL_COLUMN_BYTES])
    words[:, 1:3] = tail.view(">u4").astype(np.uint32)
    return words.reshape(-1)


def bias_blocks(placement: Placement, chip: Chip, options: EncodeOptions) -> Iterator[BiasBlock]:
    """Yield the bias bytes of each group that has some."""
    for group in range(GROUPS):
        values = placement.bias_memory[group]
        if values.size:
            yield BiasBlock(group, options.apb_base + chip.bias_address(group), values)
