"""What the hardware runs in place of a layer computes the same, and how layers count."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from ai8xtools.synthesis.arrange.defaults import complete
from ai8xtools.synthesis.layout import InputPort, LayerLayout, Layout
from ai8xtools.synthesis.mapping import MappedNetwork, map_network
from ai8xtools.synthesis.mapping.hardware import calcx4_order, hardware_for, quad_order, widened
from ai8xtools.synthesis.network import Layer, Network, Operator, Pooling
from ai8xtools.synthesis.simulate import simulate
from device import MAX78000, MAX78002
from tests.arranging.loads import network_of

PLACES = {"in_offset": 0, "out_offset": 0, "write_gap": 0, "read_gap": 0}


def mapped(network: Network, places: dict[int, dict[str, Any]], **keys: Any) -> MappedNetwork:
    """Return a network on a chip with processors from 0 on, and other places as they are given."""
    chip = keys.pop("chip", MAX78000)
    layers = {}
    for i in network.order:
        given: dict[str, Any] = {"processors": 15, "output_processors": 15, **PLACES}
        layers[i] = LayerLayout(**{**given, **places.get(i, {})})
    layout = complete(network.layers, network.order, Layout(layers=layers, **keys))
    return map_network(network, layout, chip)


def computed(layer: Layer, sample: Any) -> Any:
    """Return what a layer computes."""
    network = Network(layers=(layer,), order=(0,), simulated=(0,), sample=sample)
    return simulate(network, average_rounding=False).outputs[0]


def test_kernels_of_one_tap_compute_the_same_with_zeros_around() -> None:
    rng = np.random.default_rng(1)
    for rows, columns, pad in product((1, 2, 5), (1, 3), ((0, 0), (1, 0), (0, 2), (1, 1))):
        out = rows + 2 * pad[0], columns + 2 * pad[1]
        layer = Layer(
            index=0, operator=Operator.CONV2D, in_channels=3, out_channels=2,
            in_dim=(rows, columns), pooled_dim=(rows, columns), out_dim=out, pad=pad,
            weight_bits=8, weights=rng.integers(-128, 128, (2, 3, 1, 1)).astype(np.int8),
        )  # fmt: skip
        sample = rng.integers(-128, 128, (3, rows, columns))
        wide = widened(layer)
        assert wide.kernel == (3, 3) and wide.pad == (pad[0] + 1, pad[1] + 1)
        assert np.array_equal(computed(wide, sample), computed(layer, sample))
        assert widened(replace(layer, weights=None)).weights is None


@pytest.mark.parametrize("taps", range(1, 10))
@pytest.mark.parametrize("dilation", range(1, 7))
@pytest.mark.parametrize("pad", range(3))
def test_spread_kernels_of_one_dimension_compute_the_same(
    taps: int, dilation: int, pad: int
) -> None:
    rng = np.random.default_rng(taps)
    reach = (taps - 1) * dilation
    length = 26
    out = length + 2 * pad - reach
    if out < 1:
        return
    for count in (4, 70):
        weights = rng.integers(-128, 128, (count, 2, taps, 1)).astype(np.int8)
        layer = Layer(
            index=0, operator=Operator.CONV1D, in_channels=2, out_channels=count,
            in_dim=(length, 1), pooled_dim=(length, 1), out_dim=(out, 1), kernel=(taps, 1),
            pad=(pad, 0), dilation=dilation, weight_bits=8, weights=weights,
        )  # fmt: skip
        hardware = hardware_for(layer, weights)
        assert hardware_for(layer, None).weights is None
        sample = rng.integers(-128, 128, (2, length, 1))
        wanted = computed(layer, sample)[:, :, 0]
        folded = dilation > 1 and reach >= 9 and 1 < taps <= 3
        assert (hardware.operator is Operator.CONV2D) == folded
        if not folded:
            spread = dilation > 1 and 0 < reach < 9
            assert hardware.kernel == ((reach + 1, 1) if spread else (taps, 1))
            same = replace(
                layer, kernel=hardware.kernel, dilation=1 if spread else dilation,
                weights=hardware.weights,
            )  # fmt: skip
            assert np.array_equal(computed(same, sample)[:, :, 0], wanted)
            assert hardware.surplus_words == hardware.leading_bytes == 0
            continue
        rows, columns = hardware.in_dim
        assert (columns, rows) == (dilation, -(-length // dilation))
        assert hardware.kernel == (3, 3) and hardware.pad == (1, 1)
        image = np.zeros((2, rows * columns), np.int64)
        image[:, :length] = sample[:, :, 0]
        flat = replace(
            layer, operator=Operator.CONV2D, kernel=(3, 3), pad=(1, 1), dilation=1,
            in_dim=(rows, columns), pooled_dim=(rows, columns), out_dim=(rows, columns),
            weights=hardware.weights,
        )  # fmt: skip
        found = computed(flat, image.reshape(2, rows, columns)).reshape(count, -1)
        leading = hardware.leading_bytes // 4 // (1 if count <= 64 else 2)
        valid = length - reach
        if pad == 0:
            assert np.array_equal(found[:, leading:][:, :valid], wanted)
            assert hardware.surplus_words == rows * columns - valid


def test_orders_of_outputs_are_those_in_which_they_are_calculated() -> None:
    for count in range(1, 40):
        numbered = np.arange(count).astype(np.int8).reshape(-1, 1, 1, 1)
        found = [int(x) for x in calcx4_order(numbered).flat]
        assert found == sorted(range(count), key=lambda n: (n % 4, n))
        for width in (1, 2, 4, 8):
            per_byte = 8 // width
            stored = [int(x) for x in quad_order(numbered, width).flat]
            if count % (4 * per_byte):
                assert stored == [*range(count)]
                continue
            # a byte holds every fourth output: byte after byte goes to the next group
            bytes_ = [stored[i : i + per_byte] for i in range(0, count, per_byte)]
            for number, byte in enumerate(bytes_):
                first = number // 4 * 4 * per_byte + number % 4
                assert byte == [first + 4 * k for k in range(per_byte)]


def test_transposed_convolutions_pad_what_the_kernel_reaches_beyond() -> None:
    layer = network_of([4, 4], [True]).layers[0]
    for kernel, pad, dilation in product(((3, 3), (2, 3)), ((0, 1), (1, 1), (2, 0)), (1, 2)):
        made = replace(
            layer, operator=Operator.CONVTRANSPOSE2D, kernel=kernel, pad=pad, dilation=dilation
        )
        wanted = tuple(dilation * (k - 1) - p for k, p in zip(kernel, pad, strict=True))
        assert hardware_for(made, layer.weights).pad == wanted


def test_passes_hold_64_channels_at_most_in_shares_of_whole_instances() -> None:
    for channels in range(1, 260):
        network = network_of([channels, channels], [True])
        layer = mapped(network, {}).first
        count = -(-channels // 64)
        assert layer.in_passes == layer.out_passes == count
        shares = [s for s in range(1, 65) if s * count >= channels and (s % 4 == 0 or count == 1)]
        assert layer.in_share == layer.out_share == shares[0]
        assert layer.flat_passes == 0
        for dim in ((1, 1), (2, 3)):
            flat = replace(network.layers[0], flatten=True, pooled_dim=dim)
            once = mapped(replace(network, layers=(flat,)), {}).first
            assert once.flat_passes == count * dim[0] * dim[1] - 1


def test_groups_are_used_by_processors_of_layers_and_of_the_last_result() -> None:
    random = Random(3)
    plain = network_of([4, 4, 4], [False, True])
    for _ in range(100):
        masks = [sum(1 << p for p in random.sample(range(64), 4)) for _ in range(4)]
        places = {i: {"processors": masks[i], "output_processors": masks[i + 2]} for i in (0, 1)}
        network = mapped(plain, places)
        used = masks[0] | masks[1] | masks[3]
        wanted = {p // 16 for p in range(64) if used >> p & 1}
        assert network.groups_used == tuple(sorted(wanted))
        assert network.first.broadcast is False
        for port in InputPort:
            fed = mapped(plain, places, input_port=port)
            share = masks[0] & 0xFFFF if port.feeds_all_groups else masks[0]
            assert fed.input_processors == share


def test_parts_of_an_input_stand_apart_by_their_rows_and_the_padding() -> None:
    plain = network_of([4, 4], [True])
    for chip, rows, columns, parts, pad in product(
        (MAX78000, MAX78002), (8, 16), (3, 8), (1, 2, 4), (0, 1)
    ):
        layer = replace(plain.layers[0], in_dim=(rows, columns), pad=(pad, 0))
        network = mapped(replace(plain, layers=(layer,)), {}, input_parts=parts, chip=chip)
        words = (rows // parts + 2 * pad) * columns
        distance = network.input_part_distance
        assert words <= distance < words + chip.processor_words
        assert not distance % chip.processor_words


def test_only_kernels_of_one_tap_are_widened_and_outputs_stored_in_turn() -> None:
    plain = network_of([4, 8, 8], [False, True])
    rng = np.random.default_rng(4)
    layers = tuple(
        replace(x, weights=rng.integers(-128, 128, (8, x.in_channels, k, k)).astype(np.int8),
                kernel=(k, k), pad=(k // 2,) * 2)
        for x, k in zip(plain.layers, (1, 3), strict=True)
    )  # fmt: skip
    plain = replace(plain, layers=layers)
    both = {i: {"widened": True} for i in (0, 1)}
    network = mapped(plain, both)
    assert [x.hardware.kernel for x in network.layers] == [(3, 3), (3, 3)]
    assert network.layers[1].hardware.pad == (1, 1)
    quad = next(port for port in InputPort if port.feeds_all_groups)
    for index, given in product((0, 1), ({}, {"calcx4": True})):
        for port in (InputPort.MEMORY, quad):
            found = mapped(plain, {index: given}, input_port=port).layers[index].hardware.weights
            source = layers[index].weights
            assert source is not None and found is not None
            order = calcx4_order(source) if given else source
            if not given and port is quad and index == 0:
                order = quad_order(source, 8)
            assert np.array_equal(found, order)
    narrow = replace(layers[0], weight_bits=-1)
    turned = mapped(replace(plain, layers=(narrow, layers[1])), {}, input_port=quad).layers[0]
    assert turned.hardware.weights is not None and layers[0].weights is not None
    assert np.array_equal(turned.hardware.weights, quad_order(layers[0].weights, 1))
    assert layers[0].pooling == Pooling()
