"""A network is mathematics: made, validated and simulated with no chip and no memory in sight."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.arrange import complete
from ai8xtools.synthesis.invariants import InvariantError
from ai8xtools.synthesis.layout import LayerLayout, Layout
from ai8xtools.synthesis.mapping import MappedLayer
from ai8xtools.synthesis.network import Activation, Combination, Layer, Network, Operator, Pooling
from ai8xtools.synthesis.options import ResolveOptions
from ai8xtools.synthesis.parse import parse
from ai8xtools.synthesis.parse.keys import GLOBAL_KEYS, LAYER_KEYS, LAYOUT_KEYS, NESTED_KEYS
from ai8xtools.synthesis.resolve import resolve
from ai8xtools.synthesis.simulate import simulate
from tests.synthesis.networks import describe, files, mask, sample, weights

CONV: dict[str, Any] = {"op": "Conv2d", "kernel_size": "3x3", "pad": 1, "activate": "ReLU"}
PLACED: dict[str, Any] = {"processors": mask(3), "out_offset": 0x2000, "data_format": "HWC"}


def by_hand() -> Network:
    """Return a convolution of ones, a sum of it with itself, and a classifier of two classes."""
    ones = Layer(
        index=0,
        operator=Operator.CONV2D,
        in_channels=1,
        out_channels=2,
        in_dim=(4, 4),
        pooled_dim=(4, 4),
        kernel=(3, 3),
        out_dim=(2, 2),
        activation=Activation.RELU,
        weight_bits=8,
        next_layer=1,
        weights=np.stack([np.ones((1, 3, 3), np.int8), -np.ones((1, 3, 3), np.int8)]),
        bias=np.array([2, 0]),
        shift=7,
    )
    total = Layer(
        index=1,
        operator=Operator.NONE,
        combination=Combination.ADD,
        operands=2,
        in_channels=2,
        out_channels=2,
        in_dim=(2, 2),
        pooling=Pooling((2, 2), (2, 2)),
        pooled_dim=(1, 1),
        out_dim=(1, 1),
        sources=(0, 0),
        next_layer=2,
    )
    classes = Layer(
        index=2,
        operator=Operator.LINEAR,
        in_channels=2,
        out_channels=2,
        in_dim=(1, 1),
        pooled_dim=(1, 1),
        out_dim=(1, 1),
        output_width=32,
        weight_bits=8,
        weights=np.array([[1, 2], [-3, 4]], np.int8).reshape(2, 2, 1, 1),
    )
    order = (0, 1, 2)
    image = np.arange(16).reshape(1, 4, 4)
    return Network(layers=(ones, total, classes), order=order, simulated=order, sample=image)


def test_network_made_by_hand_is_sound_and_computes() -> None:
    network = by_hand()
    network.validate()
    outputs = simulate(network, average_rounding=False).outputs
    sums = np.array([[45, 54], [81, 90]]) + 2 * 128  # windows of 3x3 pixels, and the bias
    assert outputs[0].tolist() == [sums.clip(0, 127).tolist(), [[0, 0], [0, 0]]]
    assert outputs[1].reshape(-1).tolist() == [127, 0]
    assert outputs[2].reshape(-1).tolist() == [127, -381]


def test_contradiction_in_a_network_made_by_hand_is_reported() -> None:
    network = by_hand()
    first, second, third = network.layers
    wrong = replace(network, layers=(replace(first, out_dim=(3, 3)), second, third))
    with pytest.raises(InvariantError, match="layer 0: the operator makes"):
        wrong.validate()


def test_layers_and_layouts_share_nothing() -> None:
    mathematics = {field.name for field in fields(Layer)}
    placement = {field.name for field in fields(LayerLayout)}
    assert not mathematics & placement
    together = {field.name for field in fields(MappedLayer)}
    assert together == mathematics | placement | {"hardware"}
    of_networks, of_layouts = ({field.name for field in fields(x)} for x in (Network, Layout))
    assert of_networks & of_layouts == {"layers"}


def test_keys_of_the_layout_are_keys() -> None:
    tables = (LAYER_KEYS, GLOBAL_KEYS, *NESTED_KEYS.values())
    known = {key.name for keys in tables for key in keys}
    assert known >= LAYOUT_KEYS


def resolved(folder: Path, *layers: dict[str, Any]) -> tuple[Network, Layout, list[Diagnostic]]:
    """Resolve convolutions of three channels for no chip."""
    data, kernels = sample(3, 6, 6), [weights(3, 3, 3, 3, seed=i) for i in range(len(layers))]
    description = parse(describe(*layers), placed=False)
    network, layout, warnings = resolve(description, None, files(folder, data, kernels))
    return network, layout, list(warnings)


def test_description_without_placement_is_a_network(tmp_path: Path) -> None:
    bare: dict[str, Any] = {**CONV, "out_offset": None}
    network, layout, warnings = resolved(tmp_path, bare, {**bare, "max_pool": 2, "pool_stride": 2})
    assert warnings == []
    network.validate()
    assert layout == Layout(layers={0: LayerLayout(), 1: LayerLayout()})
    placed, stated, _ = resolved(
        tmp_path, {**CONV, **PLACED}, {**CONV, **PLACED, "max_pool": 2, "pool_stride": 2}
    )
    assert stated.layers[0] == LayerLayout(
        processors=mask(3), out_offset=0x2000, channels_first=False
    )
    outputs = (simulate(net, average_rounding=False).outputs for net in (network, placed))
    for one, other in zip(*(found.values() for found in outputs), strict=True):
        np.testing.assert_array_equal(one, other)


def test_pointwise_are_single_taps_that_move_over_an_image() -> None:
    layer = by_hand().layers[0]
    moved = {Operator.CONV2D, Operator.CONVTRANSPOSE2D}
    for operator, *kernel in product(Operator, range(4), range(4)):
        made = replace(layer, operator=operator, kernel=tuple(kernel))
        assert made.pointwise == (operator in moved and kernel == [1, 1])


def test_completing_a_layout_needs_processors(tmp_path: Path) -> None:
    open_ = {**CONV, "out_offset": None}
    text = describe({**CONV, **PLACED}, open_)
    assert not parse(text).placed
    network, layout, _ = resolved(tmp_path, {**CONV, **PLACED}, open_)
    with pytest.raises(DiagnosticError) as said_late:
        complete(network.layers, network.order, layout)
    (late,) = said_late.value.diagnostics
    assert late.code == "E108"
    assert late.message == "layer 1: the key 'processors' is missing"
    assert late.place is not None and late.place.line == text.splitlines().index("- # layer 1") + 2


def test_rolling_buffer_needs_no_place(tmp_path: Path) -> None:
    ring = {"data_buffer": "[{name: ring, channels: 3, dim: 4}]"}
    shift = {"op": "none", "in_sequences": "ring", "in_dim": 4, "in_channels": 3, "buffer_shift": 1}
    description = parse(describe({**shift, "out_offset": None}, **ring), placed=False)
    options: ResolveOptions = files(tmp_path, sample(3, 4))
    network, layout, _ = resolve(description, None, options)
    assert network.buffer is not None and network.buffer.entries == 4
    assert layout.buffer_place is not None and layout.buffer_place.processors is None
    assert not simulate(network, average_rounding=False).outputs[0].any()


def test_chips_limit_only_networks_for_chips(tmp_path: Path) -> None:
    network, _, _ = resolved(tmp_path, *[{**CONV, "out_offset": None}] * 40)
    assert len(network.layers) == 40
