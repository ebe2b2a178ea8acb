"""Kernels and biases as the loader transfers them.

Source: docs/hardware/memory.md, "Writing kernels"; docs/generated-project.md, "Arrays".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import KernelMemory, Placement
from ai8xtools.synthesis.program import BiasBlock, KernelBlock
from device import Chip
from device.chip import GROUPS, KERNEL_COLUMN_STRIDE_BYTES
from device.packing import express_words, plain_words


def kernel_blocks(
    memory: KernelMemory, chip: Chip, options: EncodeOptions
) -> Iterator[KernelBlock]:
    """Yield the written columns as runs of neighbours, processor by processor.

    A run may go on into the next processor where the addresses are contiguous. With `zero_sram`
    the memory is zero already and zero columns are left out.
    """
    written = memory.owner >= 0
    if options.zero_sram:
        written = np.logical_and(written, memory.data.any(axis=2))
    if options.place.old_kernel_loader:  # its arrays have no holes
        before = np.maximum.accumulate(written, axis=1)
        behind = np.maximum.accumulate(written[:, ::-1], axis=1)[:, ::-1]
        written = np.logical_and(before, behind)
    processors, columns = np.nonzero(written)
    if not len(processors):
        return
    bases = np.array([chip.kernel_address(p) for p in range(written.shape[0])])
    addresses = options.apb_base + bases[processors] + columns * KERNEL_COLUMN_STRIDE_BYTES
    breaks = np.flatnonzero(np.diff(addresses) != KERNEL_COLUMN_STRIDE_BYTES) + 1
    data = memory.data[processors, columns]
    for run in np.split(np.arange(len(addresses)), breaks):
        address = int(addresses[run[0]])
        if options.express:
            address = chip.express_address(address)
            words = express_words(data[run])
        else:
            words = plain_words(data[run])
        yield KernelBlock(int(processors[run[0]]), address, words)


def bias_blocks(placement: Placement, chip: Chip, options: EncodeOptions) -> Iterator[BiasBlock]:
    """Yield the bias bytes of each group that has some."""
    for group in range(GROUPS):
        values = placement.bias_memory[group]
        if values.size:
            address = chip.bias_address(group, placement.bias_start[group])
            yield BiasBlock(group, options.apb_base + address, values)
