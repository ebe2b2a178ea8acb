"""The network that a loaded accelerator computes, with its layout and its sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ai8xtools.commands.decompile.layers import Rebuilt, rebuilt_layers, with_streams
from ai8xtools.commands.decompile.modes import input_port, options
from ai8xtools.emulator import Accelerator, EmulatorError
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.fifo import fifo_image
from ai8xtools.emulator.decode.locations import input_bytes
from ai8xtools.emulator.decode.own_input import loaded_input
from ai8xtools.emulator.machine import snoop
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.network import Network, Tensor
from ai8xtools.values import frozen


@frozen(slots=False)
class Found:
    """A network as it was found, where it works, and the options of ai8xize.py beside files."""

    network: Network
    layout: Layout
    words: tuple[str, ...]
    layers: tuple[Rebuilt, ...]


def found_network(memory: Memory, name: str) -> Found:
    """Return the network of an accelerator that is loaded and about to start.

    Raises EmulatorError: conditional execution and what else no description expresses (E890), and
    as the emulator does.
    """
    if snoop.is_configured(memory):
        raise EmulatorError("E890", "conditional execution: data decides what is executed")
    accelerator = Accelerator(memory.chip, memory.addresses.apb_base)
    accelerator.memory = memory
    configs = _without_resets(memory, accelerator.planned_layers())
    if not configs:
        raise EmulatorError("E831", "no layer has a processor: there is nothing to execute")
    sample = loaded_input(memory).astype(np.int64)
    sample = _with_lost_rows(memory, configs[0], sample)
    built = rebuilt_layers(memory, configs, (sample.shape[1], sample.shape[2]))
    group = configs[0].groups[0]
    control = memory.control_register("CTL", group)
    second = configs[1].stream_start if len(configs) > 1 else 0
    first = bool(control["streaming"]) and bool(second or configs[0].ring_words)
    built = with_streams(built, first=first)
    streams = any(one.layout.streaming for one in built)
    layers = tuple(one.layer for one in built)
    layers = tuple(replace(layer, is_output=flag)
                   for layer, flag in zip(layers, _outputs(built), strict=True))  # fmt: skip
    following = [*range(1, len(layers)), None]
    layers = tuple(replace(layer, next_layer=n)
                   for layer, n in zip(layers, following, strict=True))  # fmt: skip
    head = layers[0]
    count = head.in_channels * (head.operands if head.combination else 1)
    count *= built[0].decoded.flattened or 1
    order = tuple(range(len(layers)))
    network = Network(
        arch=name, layers=layers, order=order, simulated=order,
        sample=_unflattened(sample[:count], built[0]), named_files={"dataset": name},
    )  # fmt: skip
    layouts = {one.layer.index: one.layout for one in built}
    layout = Layout(layers=layouts, input_port=input_port(memory, group),
                    allow_streaming=streams)  # fmt: skip
    return Found(network, layout, tuple(options(memory, configs[0], streams=streams)), tuple(built))


def _unflattened(sample: Tensor, first: Rebuilt) -> Tensor:
    """Return the sample as the first layer takes it."""
    if not first.layer.flatten:
        return sample
    rows, columns = first.layer.in_dim
    processors = len(first.decoded.config.processors)
    by_pixel = sample.reshape(rows * columns, -1, processors)
    return by_pixel.transpose(1, 2, 0).reshape(-1, rows, columns)


def _with_lost_rows(memory: Memory, first: LayerConfig, sample: Tensor) -> Tensor:
    """Return the sample with the rows below the last pooling window, which are not read.

    Where the registers do not tell them (MAX78002), they are found behind the others.
    """
    inputs = first.input
    if not memory.chip.counts_by_step or inputs.stride == 1:
        return sample
    taller = inputs.size[0] + inputs.stride - 1
    for rows in range(taller, inputs.size[0], -1):
        config = replace(first, input=replace(inputs, size=(rows, inputs.size[1])))
        found = _all_written(memory, config)
        if found is not None:
            return found
    return sample


def _all_written(memory: Memory, config: LayerConfig) -> Tensor | None:
    """Return the input as a layer reads it, [channel, row, column], if all was written."""
    if memory.pushes:
        try:
            return np.asarray(fifo_image(memory, config)[0], np.int64)
        except EmulatorError:
            return None
    instance, offset = input_bytes(config, memory.data_bytes.shape[1])
    if not memory.data_written[instance, offset].all():
        return None
    values = memory.data_bytes[instance, offset].view(np.int8).transpose(1, 2, 0, 3)
    found: Tensor = values.reshape(-1, *config.input.size).astype(np.int64)
    return found


def _without_resets(memory: Memory, layers: list[LayerConfig]) -> list[LayerConfig]:
    """Return the layers without those that only reset the sums of average pooling.

    Source: docs/hardware/execution.md, "Average pooling after an element-wise layer".
    """
    if not memory.chip.needs_average_reset:
        return layers
    kept = []
    for number, config in enumerate(layers):
        before = layers[number - 1] if number else None
        behind = layers[number + 1] if number + 1 < len(layers) else None
        resets = (
            before is not None and behind is not None
            and before.input.operands > 1 and not behind.input.max_pool
            and not config.kind.has_kernels
            and len(config.processors) == 1 and config.input.size == (1, 1)
        )  # fmt: skip
        if not resets:
            kept.append(config)
    return kept


def _outputs(built: list[Rebuilt]) -> list[bool]:
    """Tell of each layer whether it is an output, as nothing reads it, if there are several."""
    read = {
        source
        for number, one in enumerate(built)
        for source in (one.layer.sources if one.layer.sources is not None else (number - 1,))
    }
    unread = [number not in read for number in range(len(built))]
    return unread if sum(unread) > 1 else [False] * len(built)
