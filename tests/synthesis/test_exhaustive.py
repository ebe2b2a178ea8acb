"""An operator, combination, activation or port that is only added to its enumeration is refused."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ai8xtools.synthesis.configuration import keys
from ai8xtools.synthesis.encode import control, data, encode, layers
from ai8xtools.synthesis.encode.view import LayerView
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.mapping import MappedNetwork, hardware
from ai8xtools.synthesis.network import Activation, Combination, Operator
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.parse import rules
from ai8xtools.synthesis.place import Placement, PlaceOptions, place
from ai8xtools.synthesis.resolve import shapes, tensors
from ai8xtools.synthesis.simulate import Activations, operators, simulate
from ai8xtools.synthesis.summarize import describe, statistics, summarize
from device import MAX78000
from tests.exhaustive import Place, assert_refused, check_places, stand_in
from tests.synthesis import networks

SIZES: dict[str, Any] = {
    "in_dim": (4, 4), "pooled_dim": (4, 4), "out_dim": (4, 4), "kernel": (3, 3), "pad": (1, 1)
}  # fmt: skip
"""Of a layer for the functions that look at little else."""


def layer_with(**changes: Any) -> Any:
    """Return what stands for a layer."""
    common = {"stride": 1, "dilation": 1, "output_pad": 0, "groups": 1, "flatten": False,
              "weights": np.ones((2, 2, 3, 3), np.int8), "in_channels": 2, "out_channels": 2,
              "operands": 2, "pooling": SimpleNamespace(active=False)}  # fmt: skip
    return SimpleNamespace(**{**SIZES, **common, **changes})


def network_with(port: InputPort) -> Any:
    """Return what stands for a network whose sample comes through a port."""
    return SimpleNamespace(input_port=port)


def view_with(operator: Operator) -> Any:
    """Return what stands for a layer's view whose hardware runs an operator."""
    layer = layer_with(hardware=SimpleNamespace(operator=operator, **SIZES))
    return SimpleNamespace(
        layer=layer, time_slots=0, passthrough=True, passes_as_rows=False, small_kernel=False
    )


PLACES: Mapping[type[enum.Enum], Mapping[str, Place]] = {
    Operator: {
        "network.py:Operator.weighted": lambda x: x.weighted,
        "network.py:Operator.dimensions": lambda x: x.dimensions,
        "network.py:Operator.transposed": lambda x: x.transposed,
        "configuration/keys.py:_operation": lambda x: keys._operation(layer_with(operator=x)),
        "parse/rules.py:_default_kernel": rules._default_kernel,
        "parse/rules.py:_kernels": rules._kernels,
        "parse/rules.py:_kernel_remedy": lambda x: rules._kernel_remedy(x, 3, 3),
        "resolve/shapes.py:output_size":
            lambda x: shapes.output_size((4, 4), x, (3, 3), (1, 1), 1, 1, 0),
        "resolve/tensors.py:_ranks": tensors._ranks,
        "mapping/hardware.py:hardware_for":
            lambda x: hardware.hardware_for(layer_with(operator=x), None),
        "simulate/operators.py:accumulate":
            lambda x: operators.accumulate(np.zeros((2, 4, 4), np.int64), layer_with(operator=x)),
        "encode/view.py:LayerView.small_kernel":
            lambda x: LayerView.small_kernel.fget(view_with(x)),
        "encode/view.py:LayerView.image": lambda x: LayerView.image.func(view_with(x)),
        "encode/layers.py:_one_dimensional": lambda x: layers._one_dimensional(view_with(x)),
        "encode/layers.py:line_buffer_words":
            lambda x: layers.line_buffer_words(view_with(x).layer),
    },
    Combination: {
        "network.py:Combination.commutative": lambda x: x.commutative,
        "simulate/operators.py:_pairwise": operators._pairwise,
        "encode/layers.py:_operation": layers._operation,
        "summarize/statistics.py:layer_operations":
            lambda x: statistics.layer_operations(layer_with(combination=x)),
    },
    Activation: {
        "simulate/operators.py:activate":
            lambda x: operators.activate(np.zeros(3, np.int64), layer_with(activation=x)),
        "encode/layers.py:_activation": layers._activation,
        "summarize/describe.py:_activation_text": describe._activation_text,
    },
    InputPort: {
        "layout.py:InputPort.is_fifo": lambda x: x.is_fifo,
        "layout.py:InputPort.is_fast": lambda x: x.is_fast,
        "layout.py:InputPort.feeds_all_groups": lambda x: x.feeds_all_groups,
        "encode/control.py:fifo_blocks":
            lambda x: control.fifo_blocks(network_with(x), None, None),
        "encode/data.py:_fifo_registers": lambda x: data._fifo_registers(x, 0, 0),
    },
}  # fmt: skip
"""By enumeration the places that decide by its members, and how to reach them."""


def test_all_places_are_known() -> None:
    check_places("synthesis", PLACES)


@pytest.mark.parametrize(
    ("enumeration", "name"), [(kind, name) for kind, places in PLACES.items() for name in places]
)
def test_place_refuses_a_new_member(enumeration: type[enum.Enum], name: str) -> None:
    assert_refused(PLACES[enumeration][name], stand_in(enumeration))


@pytest.fixture
def placed(tmp_path: Path) -> tuple[MappedNetwork, Placement, Activations]:
    """Two operands that are added, convolved and rectified."""
    layer = {"op": "conv2d", "kernel_size": "3x3", "pad": 1, "processors": 3, "eltwise": "add",
             "operands": 2, "activate": "ReLU"}  # fmt: skip
    text = networks.describe({**layer, "in_sequences": -1, "in_channels": 2})
    kernels = [networks.weights(2, 2, 3, 3)]
    mapped, _ = networks.build(tmp_path, text, networks.sample(4, 4, 4), kernels)
    network = mapped.network
    placement = place(network, mapped.layout, mapped.chip, PlaceOptions(overlap_data=True))
    return mapped, placement, simulate(network, average_rounding=False)


NEW = {"operator": Operator, "combination": Combination, "activation": Activation}


@pytest.mark.parametrize("name", NEW)
def test_no_stage_takes_a_layer_with_a_new_member(name: str, placed: Any) -> None:
    mapped, placement, activations = placed
    (layer,) = mapped.network.layers
    changed = replace(layer, **{name: stand_in(NEW[name])})
    network = replace(mapped.network, layers=(changed,))
    for stage in (
        lambda _: simulate(network, average_rounding=False),
        lambda _: encode(network, placement, activations, MAX78000, EncodeOptions()),
        lambda _: summarize(network, placement, activations, MAX78000, EncodeOptions()),
    ):
        assert_refused(stage, stand_in(NEW[name]))


def test_encode_takes_no_new_port(placed: Any) -> None:
    mapped, placement, activations = placed
    port = stand_in(InputPort)
    moved = replace(placement, layout=replace(placement.layout, input_port=port))
    assert_refused(
        lambda _: encode(mapped.network, moved, activations, MAX78000, EncodeOptions()), port
    )
