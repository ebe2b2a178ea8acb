"""Rolling buffers: data that stays from one inference to the next.

Source: docs/network-description.md, "Keys of an element of `data_buffer`".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ai8xtools.commands.decompile.flow import UNKNOWN
from ai8xtools.commands.decompile.layers import Rebuilt
from ai8xtools.emulator import EmulatorError
from ai8xtools.synthesis.layout import BufferLayout
from ai8xtools.synthesis.network import DATA_BUFFER, DataBuffer
from ai8xtools.values import frozen
from device.chip import WORD_BYTES

_NAME = "buffer"


@frozen
class Rolling:
    """A buffer and its place."""

    buffer: DataBuffer
    place: BufferLayout


def with_buffer(built: Sequence[Rebuilt]) -> tuple[list[Rebuilt], Rolling | None]:
    """Return the layers with the rolling buffer that one of them shifts, if there is any.

    That layer passes on what nobody writes to places in front of it. Raises EmulatorError (E890)
    if several do, or if the places do not fit.
    """
    shifting = [one for one in built if one.layer.sources == (UNKNOWN,)]
    if not shifting:
        return [*built], None
    one = shifting[0]
    layout, rows = one.layout, one.layer.in_dim[0]
    step = WORD_BYTES * one.decoded.config.input.passes
    start, read = layout.out_offset or 0, layout.in_offset or 0
    shift, rest = divmod(read - start, step)
    if len(shifting) > 1 or shift < 1 or rest or one.layer.in_dim[1] != 1:
        raise EmulatorError(
            "E890", f"no description expresses what layer {one.decoded.config.layer} does: it "
            "reads what nobody writes",
        )  # fmt: skip
    entries = rows + shift
    end = start + entries * step
    changed = []
    for other in built:
        layer, place = other.layer, other.layout
        into, count = place.out_offset or 0, layer.out_dim[0]
        if other is one:
            layer = replace(layer, sources=(DATA_BUFFER,), buffer_shift=shift)
        elif start < into < end and place.output_processors == layout.processors:
            if into != end - count * step:
                raise EmulatorError("E890", "a rolling buffer is filled in its middle")
            layer = replace(layer, buffer_insert=count)
        elif place.in_offset == start and layer.in_dim == (entries, 1):
            layer = replace(layer, sources=(DATA_BUFFER,))
        changed.append(replace(other, layer=layer))
    buffer = DataBuffer(_NAME, one.layer.in_channels, entries, 1)
    return changed, Rolling(buffer, BufferLayout(layout.processors, start))
