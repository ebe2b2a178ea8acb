"""The sample of a project and its expected output, read from the headers without a compiler.

Source: docs/generated-project.md, "Arrays".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ai8xtools.emulator.bits import WORD_LIMIT, word_address
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.locations import input_bytes
from ai8xtools.emulator.decode.own_input import first_layer
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.state.memory import Memory
from device.chip import FAST_FIFO_CONTROL, FAST_FIFO_DATA, PROCESSORS_PER_INSTANCE

# What is not closed extends to the end of the text
_INPUT = re.compile(r"#\s*+define\s++(?:SAMPLE_)?INPUT_(\d{1,9})\s*+\{([^}]*+)\}?")
_OUTPUT = re.compile(r"#\s*+define\s++SAMPLE_OUTPUT\s*+\{([^}]*+)\}?")
_NUMBER = re.compile(r"\b(?:0[xX][0-9a-fA-F]++|\d++)\b")

_SHOWN = 20


def sample_words(text: str) -> dict[int, list[int]]:
    """Return the words of each array of a sample, by the number in its name.

    Raises EmulatorError (E815) for a number that is no word.
    """
    return {int(number): _numbers(body) for number, body in _INPUT.findall(text)}


def expected_words(text: str) -> list[tuple[int, int, int]]:
    """Return address, mask and value of the words that are expected; empty if there are none.

    Raises EmulatorError (E815) if the records do not fit together, or a number is no word.
    """
    match = _OUTPUT.search(text)
    return list(_records(_numbers(match[1]))) if match else []


def sample_writes(memory: Memory, arrays: dict[int, list[int]]) -> Iterator[tuple[int, int]]:
    """Yield address and word of each store that loads a sample into a configured accelerator.

    Arrays are numbered by processor, or by FIFO.
    """
    config = first_layer(memory)
    control = memory.control_register("CTL")
    if control["fifo"]:
        # cnn_start() writes the bit, which comes after the sample
        fast = control["fast_fifo"] or memory.registers.get(FAST_FIFO_CONTROL)
        addresses = {number: address for address, number in memory.addresses.fifos.items()}
        for turn in range(max(map(len, arrays.values()), default=0)):
            for number, words in sorted(arrays.items()):
                if turn < len(words):
                    yield FAST_FIFO_DATA if fast else addresses[number], words[turn]
        return
    starts = _starts(memory, config)
    for processor, words in sorted(arrays.items()):
        start = starts.get(processor, starts.get(processor // PROCESSORS_PER_INSTANCE * 4))
        if start is None:
            raise EmulatorError(
                "E815",
                f"the sample is for processor {processor}, which layer {config.layer} does not use",
                "sampledata.h",
            )
        yield from ((start + 4 * index, word) for index, word in enumerate(words))


def _starts(memory: Memory, config: LayerConfig) -> dict[int, int]:
    """Return the address of the first word that each processor reads."""
    instances, offsets = input_bytes(config, memory.data_bytes.shape[1])
    chip, base = memory.chip, memory.addresses.apb_base
    starts: dict[int, int] = {}
    for index, processor in enumerate(config.processors):
        instance, offset = int(instances[index].flat[0]), int(offsets[index].min())
        address = base + chip.data_address(instance) + word_address(offset)
        starts[processor] = address
        if not config.input.chw:
            first = processor - processor % PROCESSORS_PER_INSTANCE
            starts[first] = min(address, starts.get(first, address))
    return starts


def _numbers(text: str) -> list[int]:
    return [_number(word) for word in _NUMBER.findall(text)]


def _number(word: str) -> int:
    """Return a number as C writes it, a word of 32 bits."""
    base = 16 if word[1:2] in ("x", "X") else 8 if word.startswith("0") else 10
    try:
        value = int(word, base)
    except ValueError:  # 089, or thousands of digits
        value = WORD_LIMIT
    if value >= WORD_LIMIT:
        shown = word if len(word) <= _SHOWN else f"{word[:_SHOWN]}..."
        raise EmulatorError("E815", f"{shown} in the sample is no word of 32 bits", "sampledata.h")
    return value


def _records(values: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield what records of address, mask, count and values hold, up to an address of 0."""
    position = 0
    while position < len(values) and values[position]:
        address, mask, count = (*values[position : position + 3], 0, 0)[:3]
        words = values[position + 3 : position + 3 + count]
        if not count or len(words) < count:
            raise EmulatorError("E815", "the expected words do not fit together", "sampleoutput.h")
        yield from ((address + 4 * index, mask, word) for index, word in enumerate(words))
        position += 3 + count
