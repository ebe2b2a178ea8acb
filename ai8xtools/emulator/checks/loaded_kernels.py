"""Kernels that a layer needs and that were not loaded.

Source: docs/emulator.md, "What silicon would not tell you".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.checks.finding import LayerReport
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.weights import columns_of
from device.chip import (
    KERNEL_COLUMN_BYTES,
    PROCESSORS,
    PROCESSORS_PER_INSTANCE,
)


def check_kernels(report: LayerReport, later: Sequence[LayerConfig]) -> None:
    """Check that kernels of the layer were loaded."""
    config, memory = report.config, report.memory
    if not config.kind.has_kernels or config.kernels.bypass:
        return
    if config.kernels.four_at_once or memory.control_register("CTL")["fifo_quad"]:
        return  # their columns are spread over other places
    columns = columns_of(config)
    if columns.stop > memory.kernels.shape[1]:
        return  # refused when they are read
    replaced = memory.kernels_replaced[list(config.processors), columns]
    if replaced.any():
        _column(
            report,
            "{processor} has kernel column {column} of the layer at {address} overwritten by "
            f"other kernels ({np.count_nonzero(replaced)} such columns)",
            replaced,
        )
    written = memory.kernels_written[list(config.processors), columns]
    written = written | ~_needed_columns(config, later, np.any(written, axis=0))
    if written.all():
        return
    _column(
        report,
        "{processor} reads kernel column {column} of the layer at {address}, which was never "
        f"loaded ({np.count_nonzero(~written)} such columns)",
        ~written,
    )


def _column(report: LayerReport, message: str, wrong: NDArray[np.bool_]) -> None:
    """Report the first wrong kernel column of [processor, column]."""
    memory, config = report.memory, report.config
    index, column = (int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
    processor = config.processors[index]
    address = memory.addresses.apb_base + memory.chip.kernel_address(
        processor, column + columns_of(config).start
    )
    text = message.format(
        processor=f"processor {processor}", column=column, address=f"0x{address:08x}"
    )
    report.add(text, processor, address)


def _needed_columns(
    config: LayerConfig, later: Sequence[LayerConfig], loaded: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell for each column of the layer's kernels whether a kernel that is used reaches into it.

    The kernels of lanes that the output leaves out are not loaded, and not used. `loaded` is which
    columns any processor has.
    """
    kernels, output = config.kernels, config.output
    taps = kernels.shape[0] * kernels.shape[1]
    number = np.arange(max(kernels.count, 0))
    byte = kernels.start + number[:, None] // (8 // kernels.bits) * taps + np.arange(taps)
    columns = byte // KERNEL_COLUMN_BYTES - columns_of(config).start
    if not config.kind.sums_channels:
        used = number >= kernels.count - config.input.passes
    else:
        slot = number // config.input.passes
        present = slot < output.slots * output.passes
        slot %= output.slots
        holds = np.zeros(output.slots, np.bool_)
        holds[slot[loaded[columns].any(axis=1)]] = True
        used = present & _used_slots(config, later, holds)[slot]
    needed = np.zeros(len(loaded), np.bool_)
    needed[columns[used]] = True
    return needed


def _used_slots(
    config: LayerConfig, later: Sequence[LayerConfig], loaded: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell which outputs of a pass exist: those that the next reader of this output uses.

    If no layer reads it, lanes without any kernels (not `loaded`) may be unused; the last lane
    always exists.
    """
    start, count = config.start, config.output.slots
    processors = (start.instance * PROCESSORS_PER_INSTANCE + np.arange(count)) % PROCESSORS
    for layer in later:
        first = layer.input.read_word
        used = np.isin(processors, layer.processors)
        if first <= start.word < first + layer.input.operands and used.any():
            return used
    used = loaded.copy()
    used[: PROCESSORS_PER_INSTANCE - 1] = False  # another layer's may stand there
    used[-1] = True
    # What lacks at the end was not left out
    end = int(np.flatnonzero(loaded)[-1]) + 1 if loaded.any() else 0
    used[end:] = True
    return used
