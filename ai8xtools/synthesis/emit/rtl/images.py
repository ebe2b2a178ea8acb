"""Memory images: what a test bench reads into data and kernel memories, and what it should dump.

Source: docs/rtl.md, "Images".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.emit.kernels import block_columns, column_address
from ai8xtools.synthesis.program import Block, Clear, ExpectedOutput, Program, Write
from device import Chip
from device.chip import (
    KERNEL_COLUMN_STRIDE_BYTES,
    PROCESSORS_PER_GROUP,
    PROCESSORS_PER_INSTANCE,
)

INPUT, WEIGHTS, EXPECTED, OUTPUT = "data", "masks", "data-expected", "data-output"
"""Folders of the images, and of what the test bench dumps."""

Words = Mapping[int, str]
"""Words of an image as digits, by address in the memory part."""


def input_images(program: Program) -> dict[str, str]:
    """Return the sample as images of the data memories, by path."""
    words = {
        block.address + 4 * i: f"{word:08x}"
        for block in program.inputs
        for i, word in enumerate(block.words.tolist())
    }
    return _data_images(INPUT, words, program)


def expected_images(program: Program, expected: ExpectedOutput) -> dict[str, str]:
    """Return the known answer as images; digits that do not matter are X."""
    columns = (expected.addresses, expected.masks, expected.values)
    words: dict[int, str] = {}
    for address, mask, value in zip(*(c.tolist() for c in columns), strict=True):
        words[address] = masked_digits(value, mask)
    return _data_images(EXPECTED, words, program)


def masked_digits(value: int, mask: int) -> str:
    """Return eight digits, those without any bit in the mask as X."""
    digits = zip(f"{value:08x}", f"{mask:08x}", strict=True)
    return "".join("X" if m == "0" else v for v, m in digits)


def kernel_images(program: Program) -> dict[str, str]:
    """Return the weights as images of the kernel memories, by path."""
    chip = program.chip
    images: dict[str, dict[int, str]] = defaultdict(dict)
    for block in program.kernels:
        first = column_address(block.address, program) - program.apb_base
        for i, column in enumerate(block_columns(block, express=program.express)):
            processor, index = _kernel_place(chip, first + i * KERNEL_COLUMN_STRIDE_BYTES)
            part, word = chip.kernel_part(index)
            group, unit = divmod(processor, PROCESSORS_PER_GROUP)
            digits = column.tobytes().hex()
            path = f"{WEIGHTS}/MRAM_x16_{group}_proc_{unit}_ram_{part}.dat"
            images[path][word] = f"{digits[:2]}_{digits[2:10]}_{digits[10:]}"
    return {path: _text(words) for path, words in sorted(images.items())}


def _kernel_place(chip: Chip, offset: int) -> tuple[int, int]:
    """Return processor and column of a byte offset from the APB base."""
    group, rest = divmod(offset - chip.cnn_offset - chip.kernel_offset, chip.group_stride)
    unit, rest = divmod(rest, chip.kernel_stride)
    return group * PROCESSORS_PER_GROUP + unit, rest // KERNEL_COLUMN_STRIDE_BYTES


def kernel_parts(chip: Chip) -> int:
    """Return the number of parts of the largest kernel memory of a processor."""
    return chip.kernel_part(chip.kernel_columns_first - 1)[0] + 1


def _data_images(folder: str, words: Mapping[int, str], program: Program) -> dict[str, str]:
    images: dict[str, dict[int, str]] = defaultdict(dict)
    chip = program.chip
    for address, digits in words.items():
        offset = address - program.apb_base - chip.cnn_offset - chip.data_offset
        group, rest = divmod(offset, chip.group_stride)
        quad, rest = divmod(rest, chip.instance_stride)
        part, rest = divmod(rest, chip.data_part_bytes)
        path = f"{folder}/DRAM_x16_{group}_proc_{quad * PROCESSORS_PER_INSTANCE}_ram_{part}.dat"
        images[path][rest // 4] = digits
    return {path: _text(image) for path, image in sorted(images.items())}


def _text(words: Words) -> str:
    return "".join(f"@{word:04x} {digits}\n" for word, digits in sorted(words.items()))


def block_writes(program: Program) -> Iterator[tuple[int, int]]:
    """Yield all writes of a program as (address, value), in order; nothing waits for FIFOs."""
    yield from _register_writes(program.init)
    for kernels in program.kernels:
        yield from _run(kernels.address, kernels.words)
    for bias in program.biases:
        yield from _run(bias.address, bias.values)
    yield from _register_writes(program.configure)
    for data in program.inputs:
        yield from _run(data.address, data.words)
    yield from _register_writes(program.start)
    for words in zip(*(stream.words.tolist() for stream in program.fifo), strict=True):
        for stream, word in zip(program.fifo, words, strict=True):
            yield stream.data_address, word


def _register_writes(blocks: Iterable[Block]) -> Iterator[tuple[int, int]]:
    for step in (step for block in blocks for step in block.steps):
        if isinstance(step, Write) and not step.skipped:
            yield step.address, step.value
        elif isinstance(step, Clear):
            for offset in range(0, step.size_bytes, 4):
                yield step.address + offset, 0


def _run(address: int, words: NDArray[np.unsignedinteger]) -> Iterator[tuple[int, int]]:
    yield from ((address + 4 * i, word) for i, word in enumerate(words.tolist()))


def block_image(writes: Iterable[tuple[int, str]]) -> str:
    """Return words as a bench of the accelerator alone reads them: address and digits in turn."""
    lines = []
    for number, (address, digits) in enumerate(writes):
        lines.append(f"@{2 * number:04x} {address:08x}\n@{2 * number + 1:04x} {digits}\n")
    return "".join(lines)
