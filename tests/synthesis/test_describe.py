"""The lists of the verbose log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ai8xtools.synthesis.place import PlaceOptions
from ai8xtools.synthesis.summarize.describe import configuration
from device import MAX78000, MAX78002, Chip
from tests.synthesis.networks import build, describe, sample, weights
from tests.synthesis.stages import place

CONV: dict[str, Any] = {
    "op": "conv2d",
    "kernel_size": "3x3",
    "pad": 1,
    "processors": 15,
    "activate": "ReLU",
}
ORDINARY = [
    "quadrant map", "input offset", "streaming", "input channels", "input dimensions", "flatten",
    "input expansion", "expansion threshold", "pooling", "pooling stride", "pooled dimensions",
    "processor map", "element-wise op", "operand expansion", "output channels",
    "output dimensions", "output expansion", "output expansion threshold", "output shift",
    "output processors", "output data bits", "quadrant with bias", "bias offset", "output offset",
    "operator", "activation", "kernel offset", "kernel length", "kernel count",
    "kernel dimensions", "kernel size", "convolution groups", "padding", "stride",
]  # fmt: skip


def rows(
    folder: Path, *layers: dict[str, Any], chip: Chip = MAX78000, **options: Any
) -> list[dict[str, str]]:
    """Return the rows under the three headings."""
    kernels = [weights(4, 4, 3, 3, seed=i) for i in range(len(layers))]
    network, _ = build(folder, describe(*layers), sample(4, 4, 4), kernels, chip=chip, **options)
    placement = place(network, PlaceOptions(overlap_data=True))
    headings, lists = zip(*configuration(network, placement), strict=True)
    assert headings == (
        "Global configuration", "Per-quadrant configuration", "Per-layer configuration",
    )  # fmt: skip
    return [dict(pairs) for pairs in lists]


def test_rows_of_ordinary_layers(tmp_path: Path) -> None:
    shared, quadrants, layers = rows(tmp_path, CONV, {**CONV, "max_pool": 2, "pool_stride": 2})
    assert shared == {"used processors": "0x000000000000000f", "used quadrants": "[0]"}
    assert quadrants == {"used bias memory": "[0, 0, 0, 0]"}
    assert list(layers) == ORDINARY
    assert layers["quadrant map"] == "[[0], [0]]"
    assert layers["streaming"] == "[False, False]"
    assert layers["pooling"] == "[(1, 1), (2, 2)]"


def test_rare_values_have_rows_where_a_layer_has_them(tmp_path: Path) -> None:
    gap = {**CONV, "write_gap": 1}
    pooled = {**CONV, "read_gap": 1, "max_pool": 2, "pool_dilation": 2}
    layers = rows(tmp_path, gap, pooled, chip=MAX78002)[2]
    assert layers["write gap"] == "[1, 0]"
    assert layers["input read gap"] == "[0, 1]"
    assert layers["pooling dilation"] == "[(1, 1), (2, 2)]"
    names = list(layers)
    assert names.index("pooling") + 1 == names.index("pooling dilation")


def test_channels_that_are_skipped_are_listed(tmp_path: Path) -> None:
    kernels = [weights(8, 4, 3, 3), weights(4, 4, 3, 3)]
    text = describe(CONV, {**CONV, "in_channels": 4, "in_channel_skip": 4})
    made, _ = build(tmp_path, text, sample(4, 4, 4), kernels, reshape_inputs=True)
    layers = dict(configuration(made, place(made, PlaceOptions(overlap_data=True)))[2][1])
    assert layers["channel skip"] == "[0, 4]"


def test_order_is_listed_where_it_is_not_that_of_the_layers(tmp_path: Path) -> None:
    jumping = ({**CONV, "next_sequence": 2}, CONV, CONV)
    shared = rows(tmp_path, *jumping, chip=MAX78002)[0]
    assert shared["next layer sequence"] == "[0, 2]"
    assert "starting layer" not in shared
    started = rows(tmp_path, CONV, CONV, chip=MAX78002, start_layer=1)[0]
    assert started["starting layer"] == "1"
