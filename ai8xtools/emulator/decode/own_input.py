"""Other inputs for a loaded network: their shape, and where their values go.

Source: docs/hardware/memory.md, "Data memory"; docs/hardware/streaming.md, "FIFOs".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.fifo import fifo_image, push_image
from ai8xtools.emulator.decode.layer import decode_layer
from ai8xtools.emulator.decode.locations import input_bytes
from ai8xtools.emulator.state.memory import Memory


def first_layer(memory: Memory) -> LayerConfig:
    """Return the configuration of the layer that reads the input."""
    return decode_layer(memory, memory.control_register("LCNT_MAX")["first"])


def input_shape(memory: Memory) -> tuple[int, int, int]:
    """Return channels, rows and columns of the input; operands count as channels."""
    config = first_layer(memory)
    inputs = config.input
    channels = inputs.operands * inputs.passes * len(config.processors)
    return channels, *inputs.size


def input_values(memory: Memory) -> bytes:
    """Return the input that a network is about to read, in some order."""
    config = first_layer(memory)
    pushed = [word for _, words in sorted(memory.pushes.items()) for word in words]
    instance, offset = input_bytes(config, memory.data_bytes.shape[1])
    return np.array(pushed, np.uint32).tobytes() + memory.data_bytes[instance, offset].tobytes()


def loaded_input(memory: Memory) -> NDArray[np.int8]:
    """Return the input that a network is about to read, [channel, row, column] as `input_shape`."""
    config = first_layer(memory)
    if memory.pushes:
        return np.asarray(fifo_image(memory, config)[0], np.int8)
    instance, offset = input_bytes(config, memory.data_bytes.shape[1])
    values = memory.data_bytes[instance, offset].view(np.int8)
    return values.transpose(1, 2, 0, 3).reshape(input_shape(memory))


def set_input(memory: Memory, image: NDArray[np.integer]) -> None:
    """Give the network another input, in data memory or in the FIFOs.

    `image`: integers from -128 to 127, [channel, row, column] as in `input_shape`. Raises
    ValueError for another shape or range.
    """
    shape = input_shape(memory)
    if image.shape != shape or not np.issubdtype(image.dtype, np.integer):
        raise ValueError(
            f"the input must be integers of shape {shape}, not {image.dtype} {image.shape}"
        )
    if image.size and (image.min() < -128 or image.max() > 127):
        raise ValueError("the input must have values from -128 to 127")
    config = first_layer(memory)
    if memory.pushes or memory.control_register("CTL")["fifo"]:
        push_image(memory, config, image)
        return
    inputs = config.input
    instance, offset = input_bytes(config, memory.data_bytes.shape[1])
    # Channels: operands outside, then passes, processors inside
    values = image.astype(np.int8).view(np.uint8)
    values = values.reshape(inputs.operands, inputs.passes, len(config.processors), -1)
    memory.data_bytes[instance, offset] = values.transpose(2, 0, 1, 3)
    memory.data_written[instance, offset] = True
