"""A complete description as text, with the reasons of what was chosen as comments."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from ai8xtools.synthesis.configuration.keys import (
    computed,
    mask_text,
    offset_text,
    placed,
    rows_columns,
    scalar,
)
from ai8xtools.synthesis.layout import Layout
from ai8xtools.synthesis.network import Layer, Network

_LINE = 100
_WIDTH = 36
"""Columns up to which keys and values stand in front of their comments."""
WHOLE = ""
"""The key, among the reasons of a layer, for why the layer exists at all."""


def configuration(network: Network, layout: Layout, title: str) -> str:
    """Return the description of a network and its complete layout; `title` is a comment."""
    lines = ["---", *_comment(title, ""), f"arch: {scalar(network.arch)}"]
    lines += [f"{key}: {scalar(value)}" for key, value in network.named_files.items()]
    if layout.input_port.is_fifo:
        reason = layout.reasons.get(network.first.index, {}).get("input_port")
        lines += _entry("", "input_port", "fifo", reason)
    if layout.snoop is not None:
        lines.append(f"snoop: [{', '.join(map(hex, layout.snoop))}]")
    lines += [*_buffer(network, layout), *_deliveries(layout), "", "layers:"]
    for layer in network.layers:
        lines += [*_layer(network, layout, layer), ""]
    return "\n".join(lines[:-1]) + "\n"


def _comment(text: str, indent: str) -> list[str]:
    begin = f"{indent}# "
    return textwrap.wrap(
        text, _LINE - 2, initial_indent=begin, subsequent_indent=begin, break_on_hyphens=False
    )


def _entry(indent: str, key: str, value: str, reason: str | None) -> Iterator[str]:
    """Yield the lines of a key: the reason behind it, or above where it is long."""
    line = f"{indent}{key}: {value}"
    if reason is None:
        yield line
        return
    behind = f"{line:{_WIDTH}}  # {reason}"
    if len(behind) <= _LINE:
        yield behind
        return
    yield from _comment(reason, " " * len(indent))
    yield line


def _buffer(network: Network, layout: Layout) -> Iterator[str]:
    place, buffer = layout.buffer_place, network.buffer
    if buffer is None or place is None:
        return
    yield "data_buffer:"
    yield f"  - name: {scalar(buffer.name)}"
    yield f"    processors: {mask_text(place.processors or 0)}"
    yield f"    channels: {buffer.channels}"
    yield f"    dim: [{buffer.entries}, {buffer.width}]"
    yield f"    offset: {offset_text(place.offset or 0)}"


def _deliveries(layout: Layout) -> Iterator[str]:
    if layout.deliveries:
        yield "unload:"
    for item in layout.deliveries:
        yield f"  - processors: {mask_text(item.processors)}"
        yield f"    channels: {item.channels}"
        yield f"    dim: [{rows_columns(item.dim)}]"
        yield f"    offset: {offset_text(item.offset)}"
        yield f"    width: {item.width}"
        yield f"    write_gap: {item.write_gap}"


def _layer(network: Network, layout: Layout, layer: Layer) -> Iterator[str]:
    """Yield the lines of a layer."""
    reasons: Mapping[str, str] = layout.reasons.get(layer.index, {})
    input_shape = "x".join(map(str, (layer.in_channels, *layer.in_dim)))
    output_shape = "x".join(map(str, (layer.out_channels, *layer.out_dim)))
    yield from _comment(f"{input_shape} -> {output_shape}", "  ")
    if WHOLE in reasons:
        yield from _comment(reasons[WHOLE], "  ")
    keys = [
        *computed(network, layer),
        *placed(layout.layers[layer.index], first=layer is network.first),
        *_order(network, layer),
    ]
    dash = True
    for key, value in keys:
        for line in _entry("    ", key, value, reasons.get(key)):
            if dash and not line.lstrip().startswith("#"):
                yield line.replace("    ", "  - ", 1)
                dash = False
            else:
                yield line


def _order(network: Network, layer: Layer) -> Iterator[tuple[str, str]]:
    """Yield what is executed behind a layer, unless it is the next one."""
    following = layer.index + 1 if layer.index < network.layers[-1].index else None
    if layer.next_layer != following and layer.index in network.order:
        yield "next_sequence", "stop" if layer.next_layer is None else str(layer.next_layer)
