"""Results over inputs: how far below its input a layer's output may begin.

Source: docs/placement.md, "Results over inputs".
"""

from __future__ import annotations

from collections.abc import Mapping

from ai8xtools.synthesis.arrange.graph import reading, sources
from ai8xtools.synthesis.arrange.values import StoredTensor
from ai8xtools.synthesis.mapping.hardware import hardware_for
from ai8xtools.synthesis.network import Layer, Network
from ai8xtools.synthesis.place.inplace import MARGIN_WORDS, distance
from device.channels import passes


def overlaps_of(
    network: Network,
    tensors: tuple[StoredTensor, ...],
    number: Mapping[int, int],
    step: tuple[int, ...],
    slot: tuple[int, ...],
) -> dict[tuple[int, int], int]:
    """Return, for output and input of a layer, the distance at which the output may begin below."""
    overlaps = {}
    for position, layer in enumerate(network.executed()):
        if layer.index not in number or not _qualifies(network, layer, position, tensors, number):
            continue
        (owner,) = sources(network, layer)
        source, result = number[owner], number[layer.index]
        read = passes(layer.in_channels) * step[source]
        written = passes(layer.out_channels) * (layer.output_width // 8) * step[result]
        if written > read:
            continue
        least = distance(layer, read, written, slot[result]) + MARGIN_WORDS * read
        overlaps[result, source] = min(tensors[result].words * step[result], least)
    return overlaps


def _qualifies(
    network: Network,
    layer: Layer,
    position: int,
    tensors: tuple[StoredTensor, ...],
    number: Mapping[int, int],
) -> bool:
    """Whether a layer reads its whole input from one place, as the last one, pixel by pixel."""
    if not reading(network, layer).alone:
        return False
    (owner,) = sources(network, layer)
    tensor, result = tensors[number[owner]], tensors[number[layer.index]]
    hardware = hardware_for(layer, None)
    plain = not (layer.flatten or hardware.surplus_words or hardware.leading_bytes)
    plain = plain and not layer.operator.transposed and max(layer.pooling.stride) == 1
    plain = plain and layer.operands == 1
    whole = tensor.words >= tensor.pixels * tensor.passes  # neither CHW nor a ring
    return plain and whole and tensor.dies == position and result.born == position
