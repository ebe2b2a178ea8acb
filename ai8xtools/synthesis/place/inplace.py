"""Results over inputs: how far below its input a layer's output has to begin.

A layer with `in_place` may overwrite what it has read. Whatever the window of a later output
reaches must still stand; how far ahead a chip writes beyond that nobody has measured.
Source: docs/placement.md, "Results over inputs".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ai8xtools.diagnostics import Diagnostic, Severity
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.mapping.hardware import hardware_for
from ai8xtools.synthesis.network import Layer
from device.channels import passes
from device.chip import WORD_BYTES
from device.masks import instances

MARGIN_WORDS = 64
"""Words that are kept beyond what has been read, for each word that the layer reads of a pixel."""


def distance(layer: Layer, read: int, written: int, slot: int = 0) -> int:
    """Return the words by which an output must begin below its input, at the least.

    `read` and `written` are the words from one pixel to the next, `slot` the word of the first
    pixel at which the output begins. Whatever the window of a later output reaches still stands.
    """
    hardware = hardware_for(layer, None)
    rows, columns = layer.out_dim
    (tall, wide), stride = hardware.in_dim, layer.pooling.stride
    unit = 2 if layer.operator.transposed else 1
    down, across = (1, 1) if unit == 2 else stride
    y, x = np.divmod(np.arange(rows * columns), columns)
    need = np.maximum(y // unit - hardware.pad[0], 0) * down * wide
    need = need + np.maximum(x // unit - hardware.pad[1], 0) * across
    later = np.minimum.accumulate(np.append(need, tall * wide)[::-1])[::-1][1:]
    size = layer.output_width // 8
    end = written - (written // (size * passes(layer.out_channels)) - 1) * size - 1
    last = np.arange(rows * columns) * written + end + slot
    return max(int((last - read * later).max()) + 1, 0)


def margin(layer: MappedLayer) -> int | None:
    """Return the words by which a layer's output begins lower than it must below its input.

    Negative: later outputs read what has been overwritten. None: the layer does not work in place,
    or in a way that must not.
    """
    hardware = layer.hardware
    whole = not (layer.flatten or layer.streaming or layer.channels_first)
    plain = not (hardware.surplus_words or hardware.leading_bytes or layer.calcx4)
    if not (layer.in_place and whole and plain):
        return None
    read = layer.in_passes * layer.operands * (layer.read_gap + 1)
    written = layer.out_passes * layer.output_words_per_value * (layer.write_gap + 1)
    below = (layer.in_offset - layer.out_offset) // WORD_BYTES
    return below - distance(layer, read, written)


def works_in_place(layer: MappedLayer) -> bool:
    """Whether a layer's output may overwrite its input where it stands."""
    room = margin(layer)
    return room is not None and room >= 0


def check_margins(network: MappedNetwork) -> Iterator[Diagnostic]:
    """Warn of outputs that follow their inputs more closely than places chosen here do."""
    for layer in network.executed():
        room = margin(layer)
        advised = MARGIN_WORDS * layer.in_passes * layer.operands * (layer.read_gap + 1)
        shared = set(instances(layer.processors)) & set(instances(layer.output_processors))
        if room is not None and 0 <= room < advised and shared and _overlaps(layer):
            yield layer.diagnostic(
                "W416",
                f"the output stays {WORD_BYTES * room} bytes behind the input that is still read, "
                f"{WORD_BYTES * advised} are recommended; no chip has been measured",
                ("out_offset", "in_place"),
                f"Lower out_offset by {WORD_BYTES * (advised - room)}.",
                Severity.WARNING,
            )


def _overlaps(layer: MappedLayer) -> bool:
    """Whether the output ends behind the begin of the input."""
    pixels = layer.out_dim[0] * layer.out_dim[1]
    words = pixels * layer.out_passes * layer.output_words_per_value * (layer.write_gap + 1)
    return layer.out_offset + WORD_BYTES * words > layer.in_offset
