"""Registers of streaming and of input through FIFOs.

Source: docs/hardware/streaming.md, "Registers".
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.synthesis.encode.view import Fields, LayerView, Registers
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place.streams import frame_words, passes_before
from ai8xtools.synthesis.program import Write


def stream_registers(view: LayerView, options: EncodeOptions) -> Registers:
    """Yield the registers of streaming and of FIFO input."""
    layer, fifo = view.layer, view.network.input_port.is_fifo
    stream = view.stream
    starts = layer is view.network.first
    fields: Fields = {"start": stream.start}
    if starts and options.fifo_go:
        fields["fifo_go"] = 1
    yield "STREAM1", fields
    before = passes_before(layer, view.network)
    yield (
        "STREAM2",
        {"passes_before": before, "delta1": stream.delta1, "delta2": stream.delta2},
    )
    if fifo and layer.streaming:
        yield "FMAX", {"words": stream.rollover}


def frame_size(view: LayerView, group: int, base: int) -> Iterator[Write]:
    """Yield the write of the frame size for the layer that the FIFO feeds."""
    if view.network.input_port.is_fifo and view.layer is view.network.first:
        register = view.chip.control_registers["IFRM"]
        yield Write(
            base + view.chip.control_address(group, "IFRM"),
            register.pack(size=frame_words(view.layer)),
            register.meaning,
            f"G{group} R{register.number}",
        )
