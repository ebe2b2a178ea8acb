"""Checks for programs that silicon would execute wrongly without a word.

Source: spec/machine.md section 9.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from device import Chip
from device.chip import KERNEL_COLUMN_BYTES, PROCESSORS_PER_INSTANCE
from emulator.decode import LayerConfig, Operator
from emulator.errors import EmulatorError
from emulator.kernels import written_columns
from emulator.memory import Memory

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something suspicious about a layer, as a sentence."""

    layer: int
    message: str

    def __str__(self) -> str:
        return f"layer {self.layer}: {self.message}"


def refuse_impossible(config: LayerConfig, chip: Chip, from_fifo: bool) -> None:
    """Refuse registers that describe no layer at all.

    Raises EmulatorError (E832) if nobody takes part, an image is empty, windows reach beyond the
    input, or the input has more words than a frame can have.
    """
    inputs = config.input
    window = inputs.pool if inputs.pooling else (1, 1)
    needed = tuple(
        (count - 1) * inputs.stride + (width - 1) * dilation + 1
        for count, width, dilation in zip(inputs.pooled, window, inputs.pool_dilation, strict=True)
    )
    words = inputs.size[0] * inputs.size[1] * inputs.passes * inputs.operands
    problem = ""
    if not config.processors:
        problem = "no processor takes part"
    elif min(*inputs.size, *inputs.pooled, *config.output_size) < 1:
        problem = f"input {inputs.size}, pooled {inputs.pooled}, output {config.output_size}"
    elif needed[0] > inputs.size[0] or needed[1] > inputs.size[1]:
        problem = f"pooling needs {needed} rows and columns, the input has {inputs.size}"
    elif config.output.passes < 1 or config.output.gap < 0:
        problem = "the distance between output passes does not fit the one between pixels"
    elif (inputs.chw or from_fifo) and inputs.passes * inputs.operands > 1:
        problem = f"planar and FIFO input have one pass, not {inputs.passes * inputs.operands}"
    elif words > chip.max_frame_words:
        problem = f"the input has {words} words, the limit is {chip.max_frame_words}"
    if problem:
        raise EmulatorError("E832", f"layer {config.layer}: its registers make no sense: {problem}")


def check_configuration(config: LayerConfig, memory: Memory, findings: list[Finding]) -> None:
    """Check the processor maps and that every kernel and bias of the layer was loaded."""
    wanted = config.enabled
    if config.operator is Operator.PASSTHROUGH or config.kernels.bypass:
        wanted = (0,) * len(config.enabled)
    if config.with_kernels != wanted:
        findings.append(
            Finding(
                config.layer,
                f"ENA enables kernels of processors {_masks(config.with_kernels)}, "
                f"not of {_masks(wanted)}",
            )
        )
    if config.operator is not Operator.PASSTHROUGH and not config.kernels.bypass:
        _check_kernels(config, memory, findings)


def check_read(
    config: LayerConfig, written: NDArray[np.bool_], offset: Integers, findings: list[Finding]
) -> None:
    """Report the first byte that the layer reads and nobody wrote: arrays [processor, ...]."""
    if written.all():
        return
    index = np.unravel_index(np.argmin(written), written.shape)
    processor = config.processors[index[0]]
    word = int(offset[index]) // 4
    findings.append(
        Finding(
            config.layer,
            f"processor {processor} reads data memory word {word}, which was never written "
            f"({np.count_nonzero(~written)} such bytes)",
        )
    )


def check_write(
    config: LayerConfig,
    instance: Integers,
    offset: Integers,
    limit: int,
    read: tuple[Integers, Integers] | None,
    findings: list[Finding],
) -> None:
    """Report output behind the memory, or on top of input of the same layer."""
    beyond = offset >= limit
    if beyond.any():
        first = int(offset[beyond].min()) // 4
        findings.append(
            Finding(config.layer, f"output word {first} is beyond the {limit // 4} of an instance")
        )
    if read is None:
        return
    size = 1 << 24  # more than the bytes of an instance: combines both numbers to one
    words = np.unique(read[0] * size + read[1] // 4)
    overlap = np.intersect1d(words, np.unique(instance * size + offset // 4))
    if len(overlap):
        where = divmod(int(overlap[0]), size)
        findings.append(
            Finding(
                config.layer,
                f"output overwrites the layer's own input in data memory instance {where[0]} "
                f"word {where[1]} ({len(overlap)} words)",
            )
        )


def _check_kernels(config: LayerConfig, memory: Memory, findings: list[Finding]) -> None:
    if config.kernels.four_at_once or memory.control_register("CTL")["fifo_quad"]:
        return  # their columns are spread over other places
    written = written_columns(memory, config)
    if written.any():  # columns of lanes that the output leaves out are nowhere written
        written = written | ~written.any(axis=0)
        # those in front of the first output, in lane 1 to 3, may belong to another layer in part
        written[:, : _columns_in_front(config)] = True
    if written.all():
        return
    index, column = np.unravel_index(np.argmin(written), written.shape)
    findings.append(
        Finding(
            config.layer,
            f"processor {config.processors[index]} reads kernel column {column} of the layer, "
            f"which was never loaded ({np.count_nonzero(~written)} such columns)",
        )
    )


def _columns_in_front(config: LayerConfig) -> int:
    """Columns that only hold kernels of lanes in which no output may be."""
    kernels = config.kernels
    lanes = min(PROCESSORS_PER_INSTANCE, config.output.slots) - 1
    count = lanes * config.input.passes // (8 // kernels.bits)
    return count * kernels.shape[0] * kernels.shape[1] // KERNEL_COLUMN_BYTES


def _masks(masks: tuple[int, ...]) -> str:
    return " ".join(f"{mask:04x}" for mask in reversed(masks))
