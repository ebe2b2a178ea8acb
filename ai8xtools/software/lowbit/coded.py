"""Layers whose weights are stored as Huffman codes instead of packed words.

Source: docs/low-bit.md, "Compressed weights".
"""

from __future__ import annotations

from collections.abc import Mapping

from ai8xtools.quantization.lowbit import Coded, compressed, unpack
from ai8xtools.software.lowbit.network import LowBitNetwork

CodedLayers = Mapping[int, Coded]
"""Compressed layers by their identifier."""
_UNCODED = ("Binary", "BinarySym", "Ternary", "8bit")
"""Encodings whose kernels do not add up activations by the code of their weight alone."""


def coded_layers(network: LowBitNetwork) -> dict[int, Coded]:
    """Return the fully connected layers, but those of windows, that become smaller."""
    by_layer = {}
    for layer in network.layers:
        if layer.encoding.name in _UNCODED:
            continue
        coded = compressed(unpack(layer.words, layer.inputs, layer.encoding))
        if coded.size < layer.words.nbytes:
            by_layer[layer.identifier] = coded
    return by_layer


def saved_bytes(network: LowBitNetwork) -> int:
    """Return how many bytes of flash compression saves."""
    coded = coded_layers(network)
    return sum(
        layer.words.nbytes - coded[layer.identifier].size
        for layer in network.layers
        if layer.identifier in coded
    )
