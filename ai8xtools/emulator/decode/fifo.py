"""Input through the FIFOs.

Source: docs/hardware/memory.md, "Data memory"; docs/hardware/streaming.md, "FIFOs".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.errors import EmulatorError
from ai8xtools.emulator.state.memory import Memory
from device.chip import FAST_FIFO_DATA, PROCESSORS_PER_GROUP, PROCESSORS_PER_INSTANCE


def fifo_image(memory: Memory, config: LayerConfig) -> NDArray[np.int32]:
    """Return the image that was pushed: int32 [1, channel, row, column].

    HWC: a word of a group's FIFO holds one pixel of its first four processors. CHW: four pixels of
    one processor. Raises EmulatorError (E833) if words are missing.
    """
    inputs = config.input
    pixels = inputs.size[0] * inputs.size[1]
    needed = _needed(config)
    streams = _streams(memory, config)
    channels = []
    for processor in config.processors:
        group, unit = divmod(processor, PROCESSORS_PER_GROUP)
        words = streams.get(group, np.zeros(0, np.uint32))
        if len(words) < needed:
            raise EmulatorError(
                "E833",
                f"the FIFO of group {group} got {len(words)} words, layer {config.layer} "
                f"needs {needed}",
            )
        data = words[:needed].view(np.uint8)
        lane = data if inputs.chw else data[unit % PROCESSORS_PER_INSTANCE :: 4]
        channels.append(lane[:pixels].view(np.int8))
    return np.array(channels, np.int32).reshape(1, -1, *inputs.size)


def surplus_words(memory: Memory, config: LayerConfig) -> tuple[dict[int, int], int]:
    """Return how many words too many each FIFO got, by group, and how many are needed.

    Where the registers do not give the rows below the last window, these may be there.
    """
    needed, rest = _needed(config), config.input.stride - 1
    limit = _needed(config, rest) if memory.chip.counts_by_step else needed
    got = {group: len(words) for group, words in sorted(_streams(memory, config).items())}
    return {group: count - needed for group, count in got.items() if count > limit}, needed


def _needed(config: LayerConfig, more_rows: int = 0) -> int:
    """Words that each FIFO delivers for the input."""
    pixels = (config.input.size[0] + more_rows) * config.input.size[1]
    return -(-pixels // 4) if config.input.chw else pixels


def push_image(memory: Memory, config: LayerConfig, image: NDArray[np.integer]) -> None:
    """Replace what was pushed by another image, [channel, row, column], for the same FIFOs.

    If nothing was pushed yet, the control register tells whether the fast FIFO is used.
    """
    pixels = image[0].size
    count = -(-pixels // 4) if config.input.chw else pixels
    streams = {group: np.zeros((count, 4), np.uint8) for group in config.groups}
    for processor, channel in zip(config.processors, image, strict=True):
        group, unit = divmod(processor, PROCESSORS_PER_GROUP)
        data = channel.astype(np.int8).view(np.uint8).reshape(-1)
        if config.input.chw:
            streams[group].reshape(-1)[:pixels] = data
        else:
            streams[group][:, unit % PROCESSORS_PER_INSTANCE] = data
    words = {group: data.view("<u4").reshape(-1) for group, data in streams.items()}
    fast = memory.control_register("CTL")["fast_fifo"]
    if FAST_FIFO_DATA in memory.pushes or (fast and not memory.pushes):
        turns = np.stack([words[group] for group in config.groups], axis=1)
        memory.pushes = {FAST_FIFO_DATA: turns.reshape(-1).tolist()}
        return
    numbers = memory.addresses.fifos
    memory.pushes = {
        address: words[number].tolist() for address, number in numbers.items() if number in words
    }


def _streams(memory: Memory, config: LayerConfig) -> dict[int, NDArray[np.uint32]]:
    """Return the words that each group gets; the fast FIFO serves the groups in turn."""
    numbers = memory.addresses.fifos
    fast = memory.pushes.get(FAST_FIFO_DATA)
    if fast is None:
        return {
            numbers[address]: np.array(words, np.uint32) for address, words in memory.pushes.items()
        }
    words = np.array(fast, np.uint32)
    groups = config.groups
    turns = {group: words[index :: len(groups)] for index, group in enumerate(groups)}
    return {group: np.ascontiguousarray(part) for group, part in turns.items()}
