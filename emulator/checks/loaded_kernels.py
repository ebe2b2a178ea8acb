"""Kernels that a layer needs and that were not loaded, and registers that do not agree on them.

Source: docs/emulator.md, "What silicon would not tell you".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from device.chip import (
    KERNEL_COLUMN_BYTES,
    PROCESSORS,
    PROCESSORS_PER_GROUP,
    PROCESSORS_PER_INSTANCE,
)
from emulator.bits import numbers_in
from emulator.checks.finding import LayerReport
from emulator.decode.config import LayerConfig
from emulator.decode.weights import columns_of


def check_kernels(report: LayerReport, later: Sequence[LayerConfig]) -> None:
    """Check the processor maps, and that kernels and biases of the layer were loaded."""
    config = report.config
    wanted = config.enabled
    if not config.kind.has_kernels or config.kernels.bypass:
        wanted = (0,) * len(config.enabled)
    if config.with_kernels != wanted:
        _kernel_masks(report, wanted)
    if config.kind.has_kernels and not config.kernels.bypass:
        _kernels(report, later)


def _kernel_masks(report: LayerReport, wanted: tuple[int, ...]) -> None:
    """Report that other processors than `wanted`, masks by group, have their kernels on."""
    masks, memory = report.config.with_kernels, report.memory
    group = next(g for g, (a, b) in enumerate(zip(masks, wanted, strict=True)) if a != b)
    differing = set(numbers_in(masks[group])) ^ set(numbers_in(wanted[group]))
    processor = group * PROCESSORS_PER_GROUP + min(differing)
    address = memory.addresses.apb_base + memory.chip.layer_address(
        group, report.config.layer, "ENA"
    )
    text = f"ENA enables kernels of processors {_masks(masks)}, not of {_masks(wanted)}"
    report.add(text, processor, address)


def check_kernel_count(report: LayerReport) -> None:
    """Report fewer kernels than the outputs of a convolution need; the others count as zero."""
    kernels, output = report.config.kernels, report.config.output
    needed = output.slots * output.passes * report.config.input.passes
    if output.passes > 1:  # the share of a pass is rounded up, and then to whole words
        surplus = PROCESSORS_PER_INSTANCE * output.passes - 1
        needed -= surplus * report.config.input.passes
    special = kernels.bypass or kernels.four_at_once
    if not report.config.kind.sums_channels or special or kernels.count >= needed:
        return
    name = "MCNT" if "MCNT" in report.memory.chip.layer_registers else "MCNT1"
    address = report.memory.addresses.apb_base + report.memory.chip.layer_address(
        0, report.config.layer, name
    )
    text = (
        f"{name} (0x{address:08x}) counts {kernels.count} kernels of each processor, but "
        f"{output.slots * output.passes} outputs and {report.config.input.passes} passes need "
        f"{'at least ' if output.passes > 1 else ''}{needed}"
    )
    report.add(text, address=address)


def _kernels(report: LayerReport, later: Sequence[LayerConfig]) -> None:
    config, memory = report.config, report.memory
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

    The kernels of lanes that the output leaves out are not loaded, and not used. `loaded` tells
    which columns any processor has.
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
    """Tell which outputs of a pass exist: those that the layer reads that reads this output.

    If none does, lanes that have no kernels at all (not `loaded`) may be left out; the last exists.
    """
    start, count = config.start, config.output.slots
    processors = (start.instance * PROCESSORS_PER_INSTANCE + np.arange(count)) % PROCESSORS
    for layer in later:
        first = layer.input.read_word
        used = np.isin(processors, layer.processors)
        if first <= start.word < first + layer.input.operands and used.any():
            return used
    used = loaded.copy()
    used[: min(PROCESSORS_PER_INSTANCE, count) - 1] = False  # another layer's may stand there
    used[-1] = True
    # What lacks at the end was not left out
    end = int(np.flatnonzero(loaded)[-1]) + 1 if loaded.any() else 0
    used[end:] = True
    return used


def _masks(masks: tuple[int, ...]) -> str:
    return " ".join(f"{mask:04x}" for mask in reversed(masks))
