"""By what power of two software multiplies what a network delivers.

Layers of the second generation of QAT store their output divided by a power of two; their
checkpoints have its exponent, the final scale of the layers whose results leave the network.
Source: docs/generated-project.md, "Scaled outputs".
"""

from __future__ import annotations

from ai8xtools.synthesis.network import Network

_FRACTION = 7
"""Fractional bits of data of 8 bits, and of weights of 8 bits."""


def final_scales(layer: int, network: Network) -> dict[int, int]:
    """Return the final scales of the layers with weights that produce a layer's data, by index.

    A layer with weights has its own; others pass on, combine or pool what they read. Empty if all
    data are the input of the network.
    """
    scales: dict[int, int] = {}
    waiting, seen = [layer], set[int]()  # there may be very many ways through a network
    while waiting:
        index = waiting.pop()
        if index in seen:
            continue
        seen.add(index)
        producer = network.layer(index)
        if producer.has_weights:
            scales[index] = producer.final_scale
        else:
            waiting += [source for source in reversed(producer.sources or ()) if source >= 0]
    return scales


def output_exponent(layer: int, network: Network) -> int:
    """Return e where an integer of an output, as the network holds it, times 2^e is the number."""
    exponent, made = final_scale(layer, network) - _FRACTION, network.layer(layer)
    wide = made.output_width == 32
    return exponent + (made.sum_exponent - abs(made.weight_bits) + 1 if wide else 0)


def final_scale(layer: int, network: Network) -> int:
    """Return the exponent by which a layer's output is to be scaled; 0 if its parts disagree."""
    scales = set(final_scales(layer, network).values())
    return scales.pop() if len(scales) == 1 else 0
