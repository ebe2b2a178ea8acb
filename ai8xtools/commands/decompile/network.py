"""The network that a loaded accelerator computes, with its layout and its sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ai8xtools.commands.decompile.buffers import with_buffer
from ai8xtools.commands.decompile.layers import (
    Rebuilt,
    rebuilt_layers,
    spread_taps,
    with_streams,
)
from ai8xtools.commands.decompile.modes import input_port, options
from ai8xtools.emulator import Accelerator, EmulatorError
from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.fifo import fifo_image
from ai8xtools.emulator.decode.layer import decode_layer
from ai8xtools.emulator.decode.locations import input_bytes
from ai8xtools.emulator.decode.own_input import loaded_input
from ai8xtools.emulator.machine import snoop
from ai8xtools.emulator.state.memory import Memory
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.network import Network, Tensor
from ai8xtools.values import frozen
from device import SNOOP_REGISTERS, SNOOP_RESULTS


@frozen(slots=False)
class Reconstruction:
    """A network as it was found, where it works, and the options of ai8xize.py beside files."""

    network: Network
    layout: Layout
    words: tuple[str, ...]
    layers: tuple[Rebuilt, ...]


@frozen
class Guess:
    """What registers do not say: how often the layers are configured, and whether lanes without
    kernels are outputs where nothing reads them (`sparse`: they are not).
    """

    repeat: int = 1
    sparse: bool = False


def guesses(memory: Memory) -> list[Guess]:
    """Return what may be, the most likely first."""
    configs = _configured(memory)
    return [
        Guess(),
        Guess(sparse=True),
        *(Guess(-(-len(configs) // n)) for n in range(2, len(configs)) if _repeats(configs, n)),
    ]


def _repeats(configs: list[LayerConfig], count: int) -> bool:
    """Tell whether the first layers, so many as are counted, are configured again and again."""
    numbered = [replace(config, layer=0, next_layer=None) for config in configs]
    return all(config == numbered[n % count] for n, config in enumerate(numbered))


def _configured(memory: Memory) -> list[LayerConfig]:
    """Return the layers in their order, without those that a condition may leave out."""
    if not _snoops(memory):
        accelerator = Accelerator(memory.chip, memory.addresses.apb_base)
        accelerator.memory = memory
        return _without_resets(memory, accelerator.planned_layers())
    counts = memory.control_register("LCNT_MAX")
    layers = range(counts["first"], min(counts["last"] + 1, memory.chip.max_layers))
    configs = [decode_layer(memory, number) for number in layers]
    return [config for config in configs if config.groups]


def candidate_network(memory: Memory, name: str, guess: Guess = Guess()) -> Reconstruction:  # noqa: B008
    """Return the network of an accelerator that is loaded and about to start.

    Raises EmulatorError: what no description expresses (E890), and as the emulator does.
    """
    configs = _configured(memory)
    configs = configs[: -(-len(configs) // guess.repeat)]
    if not configs:
        raise EmulatorError("E831", "no layer has a processor: there is nothing to execute")
    for config in configs:
        sizes = *config.input.size, *config.output_size
        if min(sizes) < 1 or max(sizes) > memory.chip.max_dimension:
            raise EmulatorError("E890", f"layer {config.layer} has an image of {config.input.size}")
    sample = _loaded_sample(memory, configs[0])
    built = rebuilt_layers(memory, configs, sample, sparse=guess.sparse)
    loops = _snoops(memory) and built[-1].layout.snoop_layer == 0
    if loops:
        built[-1] = replace(built[-1], layout=replace(built[-1].layout, snoop_layer=None))
    built, rolling = with_buffer(built)
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
        buffer=None if rolling is None else rolling.buffer,
    )  # fmt: skip
    layouts = {one.layer.index: one.layout for one in built}
    layout = Layout(
        layers=layouts, input_port=input_port(memory, group), allow_streaming=streams,
        buffer_place=None if rolling is None else rolling.place,
        snoop=_snoop_values(memory, group) if _snoops(memory) and not loops else None,
    )  # fmt: skip
    words = options(memory, configs[0], streams=streams)
    words += ["--snoop-loop"] if loops else []
    words += ["--link-layer"] if _links(memory, configs) else []
    if guess.repeat > 1:
        words += ["--repeat-layers", str(guess.repeat)]
    return Reconstruction(network, layout, tuple(words), tuple(built))


def _snoops(memory: Memory) -> bool:
    """Tell whether registers of conditional execution are in use."""
    return snoop.is_configured(memory) or bool(memory.control_register("CTL")["snoop"])


def _snoop_values(memory: Memory, group: int) -> tuple[int, ...]:
    """Return the registers of conditional execution, with zeros for the results of both units."""
    values = [memory.control_register_word(name, group) for name in SNOOP_REGISTERS]
    return (*values, *(0 for _ in SNOOP_RESULTS))


def _links(memory: Memory, configs: list[LayerConfig]) -> bool:
    """Tell whether each layer names the next one, though it would follow anyway."""
    if not memory.chip.has_next_layer or _snoops(memory) or len(configs) == 1:
        return False
    following = memory.register(configs[0].layer, "NXTLYR", configs[0].base_group)
    return bool(following["jump"]) and following["layer"] == configs[0].layer + 1


def _loaded_sample(memory: Memory, first: LayerConfig) -> Tensor:
    """Return the input, [channel, row, column]; a series that is read as an image in one column."""
    quad = memory.control_register("CTL", first.groups[0])["fifo_quad"]
    if quad:
        first = replace(first, enabled=(first.enabled[0], 0, 0, 0))
        return np.asarray(fifo_image(memory, first)[0], np.int64)
    sample = _with_lost_rows(memory, first, loaded_input(memory).astype(np.int64))
    taps = spread_taps(memory, first)
    if not taps or memory.pushes:
        return sample
    instance, offset = input_bytes(first, memory.data_bytes.shape[1])
    written = np.asarray(np.all(memory.data_written[instance, offset], axis=(0, 1, 2)))
    count = int(np.flatnonzero(written)[-1]) + 1 if written.any() else len(written)
    return sample.reshape(len(sample), -1, 1)[:, :count]


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

    Where the registers do not give them (MAX78002), they are found behind the others.
    """
    inputs = first.input
    if not memory.chip.counts_by_step or inputs.stride == 1:
        return sample
    taller = inputs.size[0] + inputs.stride - 1
    for rows in range(taller, inputs.size[0], -1):
        config = replace(first, input=replace(inputs, size=(rows, inputs.size[1])))
        image = _all_written(memory, config)
        if image is not None:
            return image
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
    image: Tensor = values.reshape(-1, *config.input.size).astype(np.int64)
    return image


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
    unread = [
        number not in read and not (one.layer.buffer_insert or one.layer.buffer_shift)
        for number, one in enumerate(built)
    ]
    return unread if sum(unread) > 1 else [False] * len(built)
