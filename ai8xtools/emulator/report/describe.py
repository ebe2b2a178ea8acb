"""What a run did, in words: its layers, what was suspicious, and where a word came from."""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.emulator.decode.config import ActivationFunction, LayerConfig
from ai8xtools.emulator.machine.accelerator import NetworkRun
from ai8xtools.emulator.report.departure import Departure, outputs_at
from ai8xtools.emulator.report.trace import format_value
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.emulator.words.addresses import AddressMap


def describe_layer(config: LayerConfig) -> str:
    """Describe a layer in one line, as its registers say it."""
    inputs, kernels, output = config.input, config.kernels, config.output
    parts = [f"layer {config.layer}: {_size(inputs.size)}"]
    if inputs.passes > 1:
        parts.append(f"{inputs.passes} passes")
    if inputs.operands > 1:
        parts.append(f"{inputs.operation.name.lower()} of {inputs.operands}")
    if inputs.pooling:
        kind = "max" if inputs.max_pool else "average"
        parts.append(f"{kind} pool {_size(inputs.pool)} stride {inputs.stride}")
    elif inputs.stride > 1:
        parts.append(f"stride {inputs.stride}")
    name = f"transposed {config.kind.value}" if config.transposed else config.kind.value
    if not config.kind.has_kernels:
        parts.append(name)
    else:
        parts.append(f"{name} {_size(kernels.shape)} pad {inputs.pad[0]}, {kernels.bits} bit")
        parts.append(f"{output.passes * output.slots} outputs {_size(config.output_size)}")
        parts.append(f"shift {output.shift:+d}")
    parts += {
        ActivationFunction.NONE: [], ActivationFunction.RELU: ["ReLU"],
        ActivationFunction.ABS: ["Abs"],
    }[output.activation]  # fmt: skip
    if output.wide:
        parts.append("32 bit")
    start = config.start
    parts.append(f"to instance {start.instance} word 0x{start.word:x}")
    return ", ".join(parts)


def describe_registers(memory: Memory, layer: int, group: int = 0) -> Iterator[str]:
    """Yield a line for each register of a layer that is not zero, with its fields by name."""
    yield f"Registers of layer {layer} in group {group}:"
    for name, register in memory.chip.layer_registers.items():
        values = memory.register(layer, name, group)
        if any(values.values()):
            shown = [
                f"{field.name}={format_value(field, values[field.name])}"
                for field in register.fields
                if values[field.name]
            ]
            yield f"  {name:11} {', '.join(shown):40} {register.meaning}"


def describe_word(run: NetworkRun, addresses: AddressMap, address: int) -> str:
    """Describe which outputs the data word at an address holds; empty if no layer wrote it."""
    for done, numbers, pixel in outputs_at(run, addresses, address):
        row, column = divmod(pixel, done.output.shape[2])
        channels = f"channel {numbers[0]}" + (f" to {numbers[-1]}" if len(numbers) > 1 else "")
        return f"layer {done.config.layer} {channels}, row {row}, column {column}"
    return ""


def describe_departure(memory: Memory, departure: Departure) -> Iterator[str]:
    """Yield lines that tell where results depart, and the registers of that layer by field."""
    layer = departure.layer.config.layer
    yield f"First difference: {departure}"
    yield from describe_registers(memory, layer)


def describe_unwritten(run: NetworkRun, memory: Memory, address: int) -> Iterator[str]:
    """Yield lines on a word that should hold a result though no executed layer wrote it."""
    done = run.layers[-1]
    layer, words, addresses = done.config.layer, done.words, memory.addresses
    first, last = (
        addresses.apb_base
        + memory.chip.data_address(int(done.place.instance[i]), 4 * int(words[i, j]))
        for i, j in ((0, 0), (-1, -1))
    )
    yield f"No executed layer wrote 0x{address:08x} ({addresses.describe(address)})."
    yield (
        f"Layer {layer} ran last and wrote 0x{first:08x} ({addresses.describe(first)}) "
        f"to 0x{last:08x} ({addresses.describe(last)})."
    )
    yield from describe_registers(memory, layer)


def _size(pair: tuple[int, int]) -> str:
    return f"{pair[0]}x{pair[1]}"
