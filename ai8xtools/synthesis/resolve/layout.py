"""What a description and the options fix about memory and processors.

Source: docs/network-description.md, "Global keys", "Keys of a layer" and "What follows from other
keys".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.layout import BufferLayout, Delivery, InputPort, LayerLayout, Layout
from ai8xtools.synthesis.network import Layer, Tensor
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import Description, LayerDescription
from ai8xtools.synthesis.parse.rules import kernel
from ai8xtools.synthesis.resolve.sample import progression
from device.chip import GROUPS, PROCESSORS_PER_GROUP

_ALL_GROUPS = sum(1 << PROCESSORS_PER_GROUP * g for g in range(GROUPS))


def fixed_layout(
    description: Description,
    options: ResolveOptions,
    layers: Sequence[Layer],
    order: Sequence[int],
    sample: Tensor,
    *,
    file_has_bias: bool,
) -> Layout:
    """Return what is fixed about some of a description's layers, `order` being that of all."""
    present = {layer.index for layer in layers}
    return Layout(
        layers={x.index: _fixed(x, description, options, order, present) for x in layers},
        input_port=_port(description, options),
        input_parts=options.input_split,
        progression=progression(sample, options),
        allow_streaming=options.allow_streaming,
        buffer_place=_buffer(description),
        deliveries=_deliveries(description),
        has_output_map="output_map" in description,
        snoop=description.get("snoop"),
        file_has_bias=file_has_bias,
    )


def _port(description: Description, options: ResolveOptions) -> InputPort:
    """Return how the sample arrives: from an option, else from the description."""
    if options.input_port.is_fifo or not description.get("input_port", False):
        return options.input_port
    return InputPort.FIFO


def _fixed(
    layer: Layer,
    description: Description,
    options: ResolveOptions,
    order: Sequence[int],
    present: Collection[int],
) -> LayerLayout:
    """Return what the keys of a layer say, and options in their place."""
    keys = description.layers[layer.index]
    first = layer.index == order[0]
    moved = first and options.input_offset is not None
    widened = layer.bypass and layer.kernel != kernel(keys)
    return LayerLayout(
        processors=_processors(keys, options, first=first),
        output_processors=_output_processors(layer, description, options, present),
        in_offset=options.input_offset if moved else keys.get("in_offset"),
        out_offset=keys.get("out_offset"),
        write_gap=keys.get("write_gap"),
        read_gap=keys.get("read_gap"),
        channels_first=keys.get("data_format"),
        streaming=streaming(keys, options),
        calcx4=keys.get("calcx4", options.calcx4 or None),
        read_ahead=keys.get("readahead", options.read_ahead or None),
        tcalc=keys.get("tcalc"),
        bias_groups=keys.get("bias_group"),
        snoop_layer=keys.get("snoop_sequence"),
        kernel_offset=keys.get("kernel_offset"),
        in_place=keys.get("in_place"),
        widened=widened or None,
    )


def streaming(layer: LayerDescription, options: ResolveOptions) -> bool | None:
    """Return whether a layer streams, None if that is left open."""
    if options.ignore_streaming:
        return False
    if layer.index in options.streaming_layers:
        return True
    stated: bool | None = layer.get("streaming")
    return stated


def _processors(layer: LayerDescription, options: ResolveOptions, *, first: bool) -> int | None:
    """Own key; one FIFO word for all groups makes all of them work on the first layer."""
    own: int | None = layer.get("processors")
    quad = first and options.input_port.feeds_all_groups
    if own is None or not quad or own >> PROCESSORS_PER_GROUP:
        return own
    return own * _ALL_GROUPS


def beyond_group_0(layer: LayerDescription, options: ResolveOptions) -> Diagnostic | None:
    """Complain about a first layer for which there is no word of the FIFO."""
    own = layer.get("processors", 0)
    if not options.input_port.feeds_all_groups or not own >> PROCESSORS_PER_GROUP:
        return None
    return layer.error(
        "E227",
        f"'processors' names processor {own.bit_length() - 1}, one word for all groups "
        f"is for processors 0 to {PROCESSORS_PER_GROUP - 1} of each",
        "processors",
        remedy="Name processors of group 0, or use --fast-fifo.",
    )


def _output_processors(
    layer: Layer, description: Description, options: ResolveOptions, present: Collection[int]
) -> int | None:
    """Own key; else the processors of a layer behind that is described, but not among `present`."""
    following = layer.next_layer
    if following is None and "output_map" in description:
        return int(description.get("output_map"))
    keys = description.layers[layer.index]
    if "output_processors" in keys:
        return int(keys.get("output_processors"))
    if options.stop_after == layer.index:
        following = layer.index + 1
    left_open = following == layer.next_layer and following in present
    if following is None or left_open or following >= len(description.layers):
        return None
    behind: int | None = description.layers[following].get("processors")
    return behind


def _buffer(description: Description) -> BufferLayout | None:
    """Return where the first rolling buffer stands."""
    for section in description.get("data_buffer", ()):
        return BufferLayout(section.get("processors"), section.get("offset"))
    return None


def _deliveries(description: Description) -> tuple[Delivery, ...]:
    """Return what `unload` lists; nothing unless the description says where it stands."""
    return tuple(
        Delivery(
            section.get("processors"),
            section.get("channels"),
            section.get("dim"),
            section.get("offset"),
            section.get("width", 8),
            section.get("write_gap", 0),
        )
        for section in description.get("unload", ())
        if "processors" in section and "offset" in section
    )
