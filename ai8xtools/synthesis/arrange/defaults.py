"""What the description language assumes for the keys of a layout that are not given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.layout import LAYERS_WIDENED, LayerLayout, Layout
from ai8xtools.synthesis.network import Layer
from device.channels import channels_per_pass, passes


def complete(layers: Sequence[Layer], order: Sequence[int], layout: Layout) -> Layout:
    """Return a layout in which nothing is left open for these layers.

    `order` are the indices of the executed layers. Processors are never assumed: raises
    DiagnosticError naming each layer without them.
    """
    missing = [x for x in layers if layout.layers[x.index].processors is None]
    if missing:
        raise DiagnosticError([_missing_processors(layer) for layer in missing])
    done = {x.index: _completed(x, _before(x, order), layout) for x in layers}
    return replace(layout, layers=done)


def is_left_open(layers: Sequence[Layer], layout: Layout) -> bool:
    """Whether places are to be chosen: some processors are not fixed, or no offset is."""
    buffer = layout.buffer_place
    no_buffer = buffer is not None and None in (buffer.processors, buffer.offset)
    layouts = [layout.layers[x.index] for x in layers]
    offsets = any(x.in_offset is not None or x.out_offset is not None for x in layouts)
    without_offsets = len(layouts) > 1 and not offsets
    return no_buffer or without_offsets or any(x.processors is None for x in layouts)


def _missing_processors(layer: Layer) -> Diagnostic:
    """Each channel belongs to a processor, which has its kernels and its data."""
    return Diagnostic(
        "E108",
        f"layer {layer.index}: the key 'processors' is missing",
        layer.place,
        "Add it: Processors that hold the input channels.",
    )


def _before(layer: Layer, order: Sequence[int]) -> int | None:
    """Return what a layer reads unless it says otherwise: the layer executed before it."""
    executed = layer.index in order
    earlier = order[: order.index(layer.index)] if executed else range(layer.index)
    return earlier[-1] if earlier else None


def _completed(layer: Layer, before: int | None, layout: Layout) -> LayerLayout:
    """Data is read where the layer before wrote it, and written for the layer behind."""
    own = layout.layers[layer.index]
    in_offset, outputs, tcalc = own.in_offset, own.output_processors, own.tcalc
    if in_offset is None:
        in_offset = (layout.layers[before].out_offset or 0) if before is not None else 0
    behind = layer.next_layer
    if outputs is None and behind is not None and behind in layout.layers:
        outputs = layout.layers[behind].processors
    if outputs is None:
        outputs = (1 << channels_per_pass(layer.out_channels)) - 1
    if tcalc is None:
        tcalc = bool(own.read_ahead) and passes(layer.in_channels) > 1
    return replace(
        own,
        output_processors=outputs,
        in_offset=in_offset,
        out_offset=own.out_offset or 0,
        write_gap=own.write_gap or 0,
        read_gap=own.read_gap or 0,
        channels_first=bool(own.channels_first),
        streaming=bool(own.streaming),
        calcx4=bool(own.calcx4),
        read_ahead=bool(own.read_ahead),
        tcalc=tcalc,
        widened=_widened(layer, before, layout) if own.widened is None else own.widened,
    )


def _widened(layer: Layer, before: int | None, layout: Layout) -> bool:
    """Line buffers work on rows of 3x3 kernels; what is bypassed would add nine pixels."""
    near = [layer.index] if before is None else [before, layer.index]
    streams = any(layout.layers[index].streaming for index in near)
    return streams and layer.pointwise and layer.index < LAYERS_WIDENED and not layer.bypass
