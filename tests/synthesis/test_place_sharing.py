"""Equal kernels and biases are stored once, but only where the layers would store them alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import PlaceOptions
from device import MAX78000, MAX78002, Chip
from tests.synthesis.decoder import read_bias
from tests.synthesis.emulated import emulated
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.stages import encode, place, place_what_fits, simulate

Keys = dict[str, Any]
CONV: Keys = {
    "processors": mask(4),
    "op": "Conv2d",
    "kernel_size": "3x3",
    "pad": 1,
    "activate": "none",
    "output_shift": -2,
}
DEPTHWISE: Keys = {**CONV, "groups": 4, "output_shift": 0}
BIAS = np.arange(1, 5)


def computes_its_known_answer(network: MappedNetwork) -> bool:
    """Whether the emulated chip computes the known answer of the placed network."""
    placement = place(network, PlaceOptions())
    program = encode(network, placement, simulate(network, average_rounding=False), EncodeOptions())
    return not emulated(program).wrong


def made(folder: Path, *layers: Keys, chip: Chip = MAX78002, **options: Any) -> MappedNetwork:
    """Return a network 4x4x4 -> 4x4x4 whose layers all have the same bias."""
    kernels = [
        weights(4, 1 if "groups" in layer else 4, 3, 3, seed=i) for i, layer in enumerate(layers)
    ]
    biases = [BIAS] * len(layers)
    text = describe(*layers)
    return build(folder, text, sample(4, 4, 4), kernels, biases, chip, **options)[0]


def test_bias_of_a_streaming_layer_is_not_shared_with_an_ordinary_one(tmp_path: Path) -> None:
    # MAX78000 skips a byte in front of the former
    stream = {**CONV, "streaming": True, "in_offset": 0, "out_offset": 0}
    network = made(
        tmp_path, stream, {**CONV, "out_offset": 0x800}, chip=MAX78000, input_port=InputPort.FIFO
    )
    assert computes_its_known_answer(network)


@pytest.mark.parametrize(
    "layers",
    [
        (CONV, DEPTHWISE),
        (DEPTHWISE, CONV),
        (DEPTHWISE, {**DEPTHWISE, "output_processors": 0xF0}),
        ({**DEPTHWISE, "output_processors": 0xF0}, {**DEPTHWISE, "processors": 0xF0}),
        ({**CONV, "output_processors": 0x1E}, {**CONV, "processors": 0x1E}),
    ],
)
def test_biases_are_shared_by_layers_of_the_same_layout_only(
    tmp_path: Path, layers: tuple[Keys, Keys]
) -> None:
    last = {"output_processors": mask(4)}
    assert computes_its_known_answer(made(tmp_path, layers[0], {**layers[1], **last}))


def test_biases_behind_one_word_for_all_groups_are_shared_by_layers_of_the_same_layout_only(
    tmp_path: Path,
) -> None:
    """The first layer's biases stand in turn in the groups, and are nobody else's."""
    upper, lower = {"processors": 0x1E}, {"processors": 0xF}
    layers = [lower, upper, lower, upper, lower]
    masks = [*layers[1:], lower]
    network = made(
        tmp_path,
        *(
            {**CONV, **layer, "output_processors": behind["processors"]}
            for layer, behind in zip(layers, masks, strict=True)
        ),
        chip=MAX78000,
        input_port=InputPort.FAST_FIFO_QUAD,
    )
    placement, _ = place_what_fits(network, PlaceOptions())
    for layer in network.layers[1:]:
        where = placement.biases[layer.index]
        assert where is not None
        assert read_bias(layer, where, placement.bias_memory).tolist() == BIAS.tolist()
    assert placement.biases[1] == placement.biases[3]


def test_kernels_of_pixels_are_not_shared_with_those_of_channels(tmp_path: Path) -> None:
    # 72 channels in two passes, and 36 channels of two pixels, have weights of one shape
    shared: Keys = {"processors": hex(mask(36)), "output_processors": hex(mask(36))}
    layers = [
        {**CONV, **shared, "kernel_size": "1x1", "pad": 0, "output_shift": -4},
        {**shared, "op": "Linear", "flatten": True, "activate": "none", "output_shift": -4},
    ]
    kernel = weights(36, 72, 1, 1)
    kernels = [kernel, kernel.reshape(36, 72)]
    network, _ = build(tmp_path, describe(*layers), sample(72, 2, 1), kernels)
    assert computes_its_known_answer(network)
