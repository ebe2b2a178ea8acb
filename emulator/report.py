"""What a run did, in words: its layers, what was suspicious, and where a word came from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from emulator.addresses import DATA, INSTANCES_PER_GROUP, AddressMap
from emulator.decode import LayerConfig, Operator
from emulator.execution import LayerRun
from emulator.machine import Run
from emulator.memory import Memory


def describe_layer(config: LayerConfig) -> str:
    """Describe a layer in one line, as its registers say it."""
    inputs, kernels, output = config.input, config.kernels, config.output
    parts = [f"layer {config.layer}: {_size(inputs.size)}"]
    if inputs.passes > 1:
        parts.append(f"{inputs.passes} passes")
    if inputs.operands > 1:
        parts.append(f"{inputs.combination.name.lower()} of {inputs.operands}")
    if inputs.pooling:
        kind = "max" if inputs.max_pool else "average"
        parts.append(f"{kind} pool {_size(inputs.pool)} stride {inputs.stride}")
    elif inputs.stride > 1:
        parts.append(f"stride {inputs.stride}")
    name = f"transposed {config.operator.value}" if config.transposed else config.operator.value
    if config.operator is Operator.PASSTHROUGH:
        parts.append(name)
    else:
        parts.append(f"{name} {_size(kernels.shape)} pad {inputs.pad[0]}, {kernels.bits} bit")
        parts.append(f"{output.passes * output.slots} outputs {_size(config.output_size)}")
        parts.append(f"shift {output.shift:+d}")
    if output.relu or output.absolute:
        parts.append("ReLU" if output.relu else "Abs")
    if output.wide:
        parts.append("32 bit")
    start = output.pointers[0]
    parts.append(f"to instance {start.instance} word 0x{start.word:x}")
    return ", ".join(parts)


def describe_registers(memory: Memory, layer: int, group: int = 0) -> Iterator[str]:
    """Yield a line for each register of a layer that is not zero, with its fields by name."""
    for name, register in memory.chip.layer_registers.items():
        fields = memory.register(layer, name, group)
        if any(fields.values()):
            values = ", ".join(f"{key}={value}" for key, value in fields.items() if value)
            yield f"{name:11} {values:40} {register.meaning}"


def producers(run: Run, addresses: AddressMap, address: int) -> list[tuple[LayerRun, str]]:
    """Return which layers wrote the data word at an address, the last first, and what it holds."""
    group, area, offset = (int(part[0]) for part in addresses.split(np.array([address])))
    if area != DATA:
        return []
    unit, rest = divmod(offset, addresses.chip.instance_stride)
    instance, word = group * INSTANCES_PER_GROUP + unit, rest // 4
    found = []
    for layer in reversed(run.layers):
        content = _content(layer, instance, word)
        if content:
            found.append((layer, content))
    return found


def _content(layer: LayerRun, instance: int, word: int) -> str:
    """Describe which outputs of a layer a data word holds; empty if none."""
    place, output = layer.place, layer.config.output
    pixels, step = layer.output[0].size, output.step * output.passes
    distance = word - place.word - (place.lane if output.wide else 0)
    held = (place.instance == instance) & (distance % step == 0)
    held &= (distance >= 0) & (distance < pixels * step)
    numbers = np.flatnonzero(held).tolist()
    if not numbers:
        return ""
    row, column = divmod(int(distance[numbers[0]]) // step, layer.output.shape[2])
    outputs = f"output {numbers[0]}" + (f" to {numbers[-1]}" if len(numbers) > 1 else "")
    return f"layer {layer.config.layer} {outputs}, row {row}, column {column}"


def _size(pair: tuple[int, int]) -> str:
    return f"{pair[0]}x{pair[1]}"
