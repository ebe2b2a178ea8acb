"""Data that a layer reads although no layer, or more than one, wrote it.

Source: docs/emulator.md, "What silicon would not tell you".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.checks.finding import LayerReport
from ai8xtools.emulator.state.data_memory import OUTSIDE, DataMemory
from device.chip import (
    PROCESSORS_PER_INSTANCE,
)

Integers = NDArray[np.int64]


def check_reads(
    report: LayerReport, source: DataMemory, instance: Integers, offset: Integers
) -> None:
    """Report bytes that nobody wrote, and images that two layers wrote in part.

    `instance` and `offset` are [processor, operand, pass, pixel].
    """
    written = source.written[instance, offset]
    if not written.all():
        index = np.unravel_index(np.argmin(written), written.shape)
        report.at_word(
            "processor {processor} reads data memory {place}, which was never written "
            f"({np.count_nonzero(~written)} such bytes)",
            report.config.processors[index[0]],
            (int(instance[index]), int(offset[index]) // 4),
            flow=True,
        )
    if source.private:
        return
    _mixture(report, source, instance, offset, written)


def _mixture(
    report: LayerReport,
    source: DataMemory,
    instance: Integers,
    offset: Integers,
    written: NDArray[np.bool_],
) -> None:
    """Report an image that a layer wrote and another has overwritten in part.

    Layers may add to an image (rolling buffers), but then all their output is read with it.
    """
    writers = source.writers(report.config.layer, report.config.processors, instance, offset)
    if report.config.input.size == (1, 1) and report.config.input.stride == 1:
        # with a stride, pixels of a larger image may be skipped on purpose
        _flattened(report, source, writers, instance, offset, written)
        return
    mixed = written & (writers != writers[..., :1]) & written[..., :1]
    if not mixed.any():
        return
    index = np.unravel_index(np.argmax(mixed), mixed.shape)
    earlier, later = sorted((int(writers[(*index[:-1], 0)]), int(writers[index])))
    if np.count_nonzero(writers == later) == np.count_nonzero(source.writer == later):
        return
    report.at_word(
        f"processor {{processor}} reads data of {_writer(earlier)} that {_writer(later)} has "
        "overwritten in part, at data memory {place}",
        report.config.processors[index[0]],
        (int(instance[index]), int(offset[index]) // 4),
        flow=True,
    )


def _flattened(
    report: LayerReport,
    source: DataMemory,
    writers: NDArray[np.int16],
    instance: Integers,
    offset: Integers,
    written: NDArray[np.bool_],
) -> None:
    """Report a flattened layer that reads only a part of an image, or more than the image.

    The passes count its pixels; several images side by side are read completely, series of spread
    kernels from their beginning.
    """
    unit, lane = np.divmod(np.array(report.config.processors), PROCESSORS_PER_INSTANCE)
    lanes = source.writer.reshape(len(source.writer), -1, PROCESSORS_PER_INSTANCE)
    owned = lanes[unit, :, lane]
    sources = np.unique(writers[written]).tolist()
    if writers.size == 1:
        return  # layers that reset average pooling read one value
    for layer in sources:
        own = written & (writers == layer)
        read, there = np.count_nonzero(own), np.count_nonzero(owned == layer)
        if layer in source.spread:  # behind the series there are words that nobody needs
            there = np.count_nonzero(owned[:, : offset[own].max() // 4 + 1] == layer)
        if layer != OUTSIDE and read < there:
            what = f"a part of the output of layer {layer} ({read} of {there} bytes)"
        elif layer == OUTSIDE and len(sources) > 1:
            names = ", ".join(f"layer {other}" for other in sources if other != OUTSIDE)
            what = f"data that no layer wrote as if it were output of {names}"
        else:
            continue
        index = np.unravel_index(np.argmax(own), own.shape)
        report.at_word(
            f"processor {{processor}} reads {what}, at data memory {{place}}",
            report.config.processors[index[0]],
            (int(instance[index]), int(offset[index]) // 4),
            flow=True,
        )


def _writer(layer: int) -> str:
    return "the input" if layer == OUTSIDE else f"layer {layer}"
