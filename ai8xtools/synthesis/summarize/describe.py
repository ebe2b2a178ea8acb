"""The network in words: one line per layer, and the lists of the verbose log.

Source: docs/generated-project.md, "Files" and "The log".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import assert_never

from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.network import Activation, Size
from ai8xtools.synthesis.place import Placement
from device.chip import GROUPS
from device.masks import group_slice


def description(network: MappedNetwork, repeat: int) -> Iterator[str]:
    """Yield the description of the network, as it stands at the head of cnn.c."""
    count = repeat * len(network.layers)
    yield f"Configuring {count} layer{'s' if count != 1 else ''}"
    yield f"Input data: {'CHW' if network.first.channels_first else 'HWC'}"
    for repetition in range(repeat):
        for layer in network.layers:
            index = repetition * len(network.layers) + layer.index
            yield f"Layer {index}: {_layer_text(layer)}"


def _pair(size: Size, one_dimensional: bool, separator: str) -> str:
    return str(size[0]) if one_dimensional else f"{size[0]}{separator}{size[1]}"


def _layer_text(layer: MappedLayer) -> str:
    flat = layer.operator.one_dimensional or (not layer.has_weights and layer.in_dim[1] == 1)
    rows, columns = layer.pooled_dim
    operands = f"{layer.operands}x" if layer.operands > 1 else ""
    text = f"{operands}{layer.in_channels}x{_pair(layer.in_dim, flat, 'x')}"
    if layer.flatten:
        text += f" flattened to {layer.in_channels * rows * columns}x1x1"
    combined = f"{layer.operands}-element {layer.combination}" if layer.combination else ""
    parts = [text]
    if combined and not layer.pool_first:
        parts.append(combined)
    parts.append(_pooling_text(layer, flat))
    if combined and layer.pool_first:
        parts.append(combined)
    parts += _operator_text(layer, flat)
    parts.append(f"{layer.out_channels}x{_pair(layer.out_dim, flat, 'x')} output")
    return ", ".join(parts)


def _pooling_text(layer: MappedLayer, flat: bool) -> str:
    pooling = layer.pooling
    if not pooling.active and pooling.stride == (1, 1):
        return "no pooling"
    kind = "avg" if pooling.average else "max"
    text = f"{kind} pool {_pair(pooling.window, flat, 'x')}"
    text += f" with stride {_pair(pooling.stride, flat, '/')}"
    if pooling.dilation != (1, 1):
        text += f" and dilation {_pair(pooling.dilation, flat, '/')}"
    return text


def _operator_text(layer: MappedLayer, flat: bool) -> list[str]:
    if not layer.has_weights:
        return ["no convolution"]
    if layer.operator.fully_connected:
        return ["linear", _activation_text(layer.activation)]
    words = [
        f"{layer.operator} with kernel size {_pair(layer.kernel, flat, 'x')}",
        f"stride {_pair(layer.stride, flat, '/')}",
        f"pad {_pair(layer.pad, flat, '/')}",
        _activation_text(layer.activation),
    ]
    if layer.dilation > 1:
        words.append(f"dilation {_pair((layer.dilation, layer.dilation), flat, '/')}")
    return words


def _activation_text(activation: Activation | None) -> str:
    match activation:
        case None:
            return "no activation"
        case Activation.RELU:
            return "ReLU"
        case Activation.ABS:
            return "abs"
        case _:
            assert_never(activation)


Rows = tuple[tuple[str, str], ...]


def configuration(network: MappedNetwork, placement: Placement) -> tuple[tuple[str, Rows], ...]:
    """Return headings with rows of (name, value) for the verbose log."""
    sizes = [memory.size for memory in placement.bias_memory]
    return (
        ("Global configuration", tuple(_global_rows(network))),
        ("Per-quadrant configuration", (("used bias memory", str(sizes[:GROUPS])),)),
        ("Per-layer configuration", tuple(_layer_rows(network, placement))),
    )


def _global_rows(network: MappedNetwork) -> Iterator[tuple[str, str]]:
    processors = 0
    for layer in network.layers:
        processors |= layer.processors
    yield "used processors", f"0x{processors:016x}"
    yield "used quadrants", str(list(network.groups_used))
    if network.order[0]:
        yield "starting layer", str(network.order[0])
    if any(after != before + 1 for before, after in pairwise(network.order)):
        yield "next layer sequence", str(list(network.order))


_ORDINARY: dict[str, object] = {
    "input read gap": 0,
    "channel skip": 0,
    "pooling dilation": (1, 1),
    "write gap": 0,
    "dilation": 1,
    "kernel bypass": False,
}
"""Rows that are left out where all layers have these values."""


def _layer_rows(network: MappedNetwork, placement: Placement) -> Iterator[tuple[str, str]]:
    for name, value in _layer_values(placement).items():
        values = [value(layer) for layer in network.layers]
        if name not in _ORDINARY or any(v != _ORDINARY[name] for v in values):
            yield name, "[" + ", ".join(map(str, values)) + "]"


def _layer_values(placement: Placement) -> dict[str, Callable[[MappedLayer], object]]:
    """Return what is listed of every layer."""
    return {
        "quadrant map": _groups,
        "input offset": lambda x: f"0x{x.in_offset:04x}",
        "streaming": lambda x: x.streaming,
        "input channels": lambda x: x.in_channels,
        "input dimensions": lambda x: x.in_dim,
        "flatten": lambda x: x.flatten,
        "input read gap": lambda x: x.read_gap,
        "channel skip": lambda x: x.channel_skip,
        "input expansion": lambda x: x.in_passes,
        "expansion threshold": lambda x: x.in_share,
        "pooling": lambda x: x.pooling.window,
        "pooling dilation": lambda x: x.pooling.dilation,
        "pooling stride": lambda x: x.pooling.stride,
        "pooled dimensions": lambda x: x.pooled_dim,
        "processor map": lambda x: f"0x{x.processors:016x}",
        "element-wise op": lambda x: x.combination.value if x.combination else "none",
        "operand expansion": lambda x: x.operands,
        "output channels": lambda x: x.out_channels,
        "output dimensions": lambda x: x.out_dim,
        "write gap": lambda x: x.write_gap,
        "output expansion": lambda x: x.out_passes,
        "output expansion threshold": lambda x: x.out_share,
        "output shift": lambda x: x.shift,
        "output processors": lambda x: f"0x{x.output_processors:016x}",
        "output data bits": lambda x: x.output_width,
        "quadrant with bias": lambda x: _bias(placement, x, "group"),
        "bias offset": lambda x: _bias(placement, x, "offset"),
        "output offset": lambda x: f"0x{x.out_offset:04x}",
        "operator": lambda x: x.operator.value,
        "activation": lambda x: x.activation.value if x.activation else "none",
        "kernel offset": lambda x: placement.kernels[x.index].first,
        "kernel length": lambda x: placement.kernels[x.index].length,
        "kernel count": lambda x: placement.kernels[x.index].count,
        "kernel dimensions": lambda x: x.hardware.kernel,
        "dilation": lambda x: x.dilation,
        "kernel size": lambda x: "b" if x.weight_bits < 0 else x.weight_bits,
        "kernel bypass": lambda x: x.bypass,
        "convolution groups": lambda x: x.groups,
        "padding": lambda x: x.pad,
        "stride": lambda x: x.stride[0],
    }


def _groups(layer: MappedLayer) -> list[int]:
    return [group for group in range(GROUPS) if group_slice(layer.processors, group)]


def _bias(placement: Placement, layer: MappedLayer, field: str) -> object:
    bias = placement.biases.get(layer.index)
    if bias is None:
        return "none"
    return bias.group if field == "group" else [x for x in bias.offsets if x is not None]
