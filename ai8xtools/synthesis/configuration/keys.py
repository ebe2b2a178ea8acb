"""The keys of a layer: what it computes, and where.

Source: docs/network-description.md, "Keys of a layer".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import assert_never

from ai8xtools.synthesis.layout import LayerLayout
from ai8xtools.synthesis.network import DATA_BUFFER, NETWORK_INPUT, Layer, Network, Operator, Size
from device.chip import PROCESSORS

_PLAIN = re.compile(r"[A-Za-z_][\w.-]*")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "none", "y", "n"})
"""YAML takes these for something else than text."""
_DEFAULT_BITS = 8

Keys = Iterator[tuple[str, str]]


def scalar(text: str) -> str:
    """Return a text as YAML has it, in quotes where that is needed."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)


def mask_text(mask: int) -> str:
    """Return a processor mask: four groups of four hex digits."""
    digits = f"{mask:0{PROCESSORS // 4}x}"
    return "0x" + ".".join(digits[i : i + 4] for i in range(0, len(digits), 4))


def offset_text(offset: int) -> str:
    """Return an offset in bytes."""
    return f"0x{offset:04x}"


def pair(size: Size) -> str:
    """Return rows and columns, as one number if they are equal."""
    return str(size[0]) if size[0] == size[1] else f"[{size[0]}, {size[1]}]"


def computed(network: Network, layer: Layer) -> Keys:
    """Yield the keys that say what a layer computes."""
    if layer.name:
        yield "name", scalar(layer.name)
    yield "op", _operation(layer)
    yield from _sources(network, layer)
    if layer.tensor_name is not None:
        yield "weights", scalar(layer.tensor_name)
    if layer.weight_source is not None:
        yield "weight_source", str(layer.weight_source)
    if layer.copied is not None:
        yield "copy_channels", f"[{layer.copied[0]}, {layer.copied[1]}]"
    if layer.zero_outputs:
        yield "zero_outputs", str(layer.zero_outputs)
    yield from _combination(layer)
    yield from _pooling(layer)
    yield from _kernel(layer)
    if layer.has_weights and layer.output_width == _DEFAULT_BITS:
        yield "activate", str(layer.activation) if layer.activation else "None"
    yield from _numbers(layer)
    for key, is_set in (
        ("flatten", layer.flatten),
        ("bypass", layer.bypass),
        ("output", layer.is_output),
    ):
        if is_set:
            yield key, "true"
    if layer.exit_margin is not None:
        yield "exit_margin", str(layer.exit_margin)
    if layer.buffer_shift:
        yield "buffer_shift", str(layer.buffer_shift)
    if layer.buffer_insert:
        yield "buffer_insert", str(layer.buffer_insert)


def _operation(layer: Layer) -> str:
    match layer.operator:
        case Operator.NONE:
            return layer.combination.capitalize() if layer.combination else "Passthrough"
        case Operator.CONV1D:
            return "Conv1d"
        case Operator.CONV2D:
            return "Conv2d"
        case Operator.CONVTRANSPOSE2D:
            return "ConvTranspose2d"
        case Operator.LINEAR:
            return "Linear"
        case _:
            assert_never(layer.operator)


def _shape(network: Network, owner: int) -> tuple[int, Size]:
    if owner == NETWORK_INPUT:
        return network.sample.shape[0], (network.sample.shape[1], network.sample.shape[2])
    if owner == DATA_BUFFER:
        assert network.buffer is not None
        return network.buffer.channels, (network.buffer.entries, network.buffer.width)
    return network.layer(owner).out_channels, network.layer(owner).out_dim


def _source_name(network: Network, owner: int) -> str:
    if owner == NETWORK_INPUT:
        return "input"
    if owner == DATA_BUFFER:
        assert network.buffer is not None
        return scalar(network.buffer.name)
    name = network.layer(owner).name
    return scalar(name) if name else str(owner)


def _sources(network: Network, layer: Layer) -> Keys:
    """Yield where the input comes from, and its size where that does not follow."""
    previous = network.predecessor(layer)
    default = NETWORK_INPUT if previous is None else previous.index
    read = layer.sources if layer.sources is not None else (default,)
    if layer.sources is not None:
        names = [_source_name(network, s) for s in read]
        yield "in_sequences", names[0] if len(names) == 1 else f"[{', '.join(names)}]"
    shapes = [_shape(network, s) for s in read]
    rows, columns = shapes[0][1]
    expected = rows - sum(layer.in_crop), columns
    buffered = DATA_BUFFER in read
    folded = layer.flatten and (network.folded or "in_dim" in layer.places)
    stated = buffered or (folded and NETWORK_INPUT in read)
    if any(layer.in_crop):
        yield "in_crop", f"[{layer.in_crop[0]}, {layer.in_crop[1]}]"
    if layer.in_dim != expected or stated:
        series = layer.in_dim[1] == 1
        yield "in_dim", str(layer.in_dim[0]) if series else f"[{rows_columns(layer.in_dim)}]"
    channels = shapes[0][0] if layer.combination else sum(count for count, _ in shapes)
    if read == (NETWORK_INPUT,):
        channels //= layer.operands
    if layer.in_channels != channels or stated:
        pixels = layer.pooled_dim[0] * layer.pooled_dim[1] if layer.flatten else 1
        yield "in_channels", str(layer.in_channels * pixels)
    if layer.channel_skip:
        yield "in_channel_skip", str(layer.channel_skip)


def rows_columns(size: Size) -> str:
    """Return rows and columns in the order of the language."""
    return f"{size[0]}, {size[1]}"


def _combination(layer: Layer) -> Keys:
    if layer.combination and layer.has_weights:
        yield "eltwise", str(layer.combination)
    if layer.operands > 2:
        yield "operands", str(layer.operands)


def _pooling(layer: Layer) -> Keys:
    pooling = layer.pooling
    stated = pooling.active or pooling.average  # of single pixels too: it is a bit of a word
    if stated:
        yield "avg_pool" if pooling.average else "max_pool", _square(pooling.window)
    if stated or pooling.reduces:
        yield "pool_stride", _square(pooling.stride)
    if pooling.dilation != (1, 1):
        yield "pool_dilation", _square(pooling.dilation)
    if not layer.pool_first:
        yield "pool_first", "false"


def _square(size: Size) -> str:
    """Return a pair; a single number where there is one column, which takes the first only."""
    return str(size[0]) if size[0] == size[1] else f"[{rows_columns(size)}]"


def _kernel(layer: Layer) -> Keys:
    if layer.operator.one_dimensional:
        yield "kernel_size", str(layer.kernel[0])
        yield "pad", str(layer.pad[0])
        if layer.dilation > 1:
            yield "dilation", str(layer.dilation)
    elif layer.operator.convolves:
        yield "kernel_size", f"{layer.kernel[0]}x{layer.kernel[1]}"
        yield "pad", pair(layer.pad)
    if layer.depthwise:
        yield "groups", str(layer.groups)


def _numbers(layer: Layer) -> Keys:
    """Yield widths and the shift; what the checkpoint says is left to it."""
    weights = None if layer.bypass else layer.weights
    if weights is not None and (
        layer.weight_bits != _DEFAULT_BITS
        or "quantization" in layer.places
        or abs(weights).max() <= 1  # which says nothing of their width
    ):
        yield "quantization", "bin" if layer.weight_bits < 0 else str(layer.weight_bits)
    if "output_shift" in layer.places and layer.has_weights and layer.weight_source is None:
        implicit = 0 if layer.bypass else _DEFAULT_BITS - abs(layer.weight_bits)
        yield "output_shift", str(layer.shift - implicit)
    if layer.output_width != _DEFAULT_BITS:
        yield "output_width", str(layer.output_width)


def placed(layout: LayerLayout, *, first: bool) -> Keys:
    """Yield the keys that say where a layer works, reads and writes."""
    if first:
        yield "data_format", "CHW" if layout.channels_first else "HWC"
    if layout.streaming:
        yield "streaming", "true"
    yield "processors", mask_text(layout.processors or 0)
    yield "output_processors", mask_text(layout.output_processors or 0)
    yield "in_offset", offset_text(layout.in_offset or 0)
    yield "out_offset", offset_text(layout.out_offset or 0)
    if layout.write_gap:
        yield "write_gap", str(layout.write_gap)
    if layout.read_gap:
        yield "read_gap", str(layout.read_gap)
    if layout.kernel_offset is not None:
        yield "kernel_offset", str(layout.kernel_offset)
    if layout.bias_groups is not None:
        yield "bias_group", str(list(layout.bias_groups))
    for key, is_set in (
        ("in_place", layout.in_place),
        ("calcx4", layout.calcx4),
        ("readahead", layout.read_ahead),
        ("tcalc", layout.tcalc),
    ):
        if is_set:
            yield key, "true"
    if layout.read_ahead and not layout.tcalc:
        yield "tcalc", "false"  # several passes have it otherwise
    if layout.snoop_layer is not None:
        yield "snoop_sequence", str(layout.snoop_layer)
