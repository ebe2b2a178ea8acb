"""Where kernels, biases and data stand: what was placed can be read back, and nothing collides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ai8xtools.diagnostics import Diagnostic, DiagnosticError
from ai8xtools.synthesis.mapping import MappedLayer, MappedNetwork
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import Placement, PlaceOptions
from ai8xtools.synthesis.place.allocation import ColumnSearch, NoRoomError
from device import MAX78000, MAX78002, Chip
from device.channels import channels_per_pass
from tests.synthesis.decoder import columns_of, processors, read_bias, read_input, read_kernels
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.stages import check, encode, place, place_what_fits, simulate

EVERYWHERE = (1 << 64) - 1


@dataclass(frozen=True)
class Drawn:
    """A random legal network: its text, sample, weights and biases."""

    text: str
    data: Any
    kernels: list[Any]
    biases: list[Any]

    def network(self, folder: Path, chip: Chip) -> MappedNetwork:
        """Return the resolved network, which has passed all checks."""
        network, _ = build(folder, self.text, self.data, self.kernels, self.biases, chip)
        assert not [d for d in check(network) if d.severity == "error"]
        return network


@st.composite
def networks(draw: st.DrawFn, most: int = 200) -> Drawn:
    """Draw one to three layers: convolutions, the last one perhaps linear."""
    count = draw(st.integers(1, 3))
    channels = [
        draw(st.sampled_from([1, 2, 3, 5, 16, 63, 64, 65, 100, most])) for _ in range(count)
    ]
    channels.append(draw(st.integers(1, 72)))
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    size = (rows, columns)
    planar = draw(st.booleans()) and channels[0] <= 16
    masks = [_spread(channels[0]) if planar else draw(_masks(channels[0], first=True))]
    masks += [draw(_masks(n)) for n in channels[1:]]
    layers, kernels, biases = [], [], []
    for i in range(count):
        bits = draw(st.sampled_from([1, 2, 4, 8]))
        linear = i == count - 1 and draw(st.booleans()) and channels[i] <= 64
        # The reference tool misplaces these; see the tests of single facts below.
        if (masks[i + 1] & -masks[i + 1]).bit_length() % 4 != 1 and (
            bits < 8 or channels[i + 1] > 64 or linear
        ):
            masks[i + 1] = mask(channels_per_pass(channels[i + 1]))
        if channels[i] % channels_per_pass(channels[i]):
            bits = 8
        side = draw(st.sampled_from([1, 3]))
        layer: dict[str, Any] = {
            "processors": hex(masks[i]),
            "output_processors": hex(masks[i + 1]),
            "activate": "none",
            "quantization": bits,
            "op": "Linear" if linear else "Conv2d",
        }
        ins = channels[i] * rows * columns if linear else channels[i]
        layer |= {"flatten": True} if linear else {"kernel_size": f"{side}x{side}"}
        layer |= {} if linear else {"pad": side // 2}
        if i == 0 and planar:
            layer["data_format"] = "CHW"
        side = 1 if linear else side
        layers.append(layer)
        seed = draw(st.integers(0, 1 << 30))
        kernels.append(weights(channels[i + 1], ins, side, side, bits=bits, seed=seed))
        biases.append(weights(channels[i + 1], seed=seed))
    return Drawn(describe(*layers), sample(channels[0], *size), kernels, biases)


def _spread(channels: int) -> int:
    return sum(1 << 4 * i for i in range(channels))


@st.composite
def _masks(draw: st.DrawFn, channels: int, first: bool = False) -> int:
    """Draw neighbouring processors for a number of channels; group 0 must be used by the first."""
    share = channels_per_pass(channels)
    return mask(share, draw(st.integers(0, min(64 - share, 15 if first else 64))))


def placed(network: MappedNetwork, **options: Any) -> Placement:
    """Place without the checks of data memory; networks that are too large are drawn again."""
    try:
        return place(network, PlaceOptions(overlap_data=True, **options))
    except DiagnosticError as exc:
        assume({d.code for d in exc.diagnostics} != {"E401"})
        raise


FEW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda c: c.name)
@FEW
@given(drawn=networks(), deduplicate=st.booleans())
def test_weights_biases_and_sample_can_be_read_back(
    tmp_path: Path, chip: Chip, drawn: Drawn, deduplicate: bool
) -> None:
    network = drawn.network(tmp_path, chip)
    placement = placed(network, deduplicate=deduplicate)
    for layer, bias in zip(network.layers, drawn.biases, strict=True):
        kernels = placement.kernels[layer.index]
        found = read_kernels(layer, kernels, placement.kernel_memory)
        np.testing.assert_array_equal(found, layer.weights)
        where = placement.biases[layer.index]
        assert where is not None
        np.testing.assert_array_equal(read_bias(layer, where, placement.bias_memory), bias)
    program = encode(network, placement, simulate(network, average_rounding=False), EncodeOptions())
    np.testing.assert_array_equal(read_input(network.first, program.inputs), drawn.data)


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda c: c.name)
@FEW
@given(drawn=networks())
def test_columns_of_a_layer_belong_to_it_alone_and_are_within_the_memory(
    tmp_path: Path, chip: Chip, drawn: Drawn
) -> None:
    network = drawn.network(tmp_path, chip)
    placement = placed(network, deduplicate=False)
    owner = placement.kernel_memory.owner
    for layer in network.layers:
        kernels = placement.kernels[layer.index]
        assert kernels.first % 4 == 0
        first, end = columns_of(layer, kernels)
        for processor in processors(layer.processors):
            assert end <= chip.kernel_capacity(processor)
            assert set(owner[processor, first:end]) == {layer.index}
    unused = [p for p in range(64) if not any(x.processors >> p & 1 for x in network.layers)]
    assert (owner[unused] == -1).all()


@FEW
@given(drawn=networks(), start=st.integers(0, 40))
def test_kernels_take_the_first_columns_that_are_free(
    tmp_path: Path, drawn: Drawn, start: int
) -> None:
    network = drawn.network(tmp_path, MAX78000)
    placement = placed(network, deduplicate=False, weight_start=start)
    ordered = sorted(network.layers, key=lambda x: (x.processors != EVERYWHERE, x.index))
    owner = placement.kernel_memory.owner
    earlier: list[int] = []
    for layer in ordered:
        kernels = placement.kernels[layer.index]
        used = np.isin(owner[processors(layer.processors)], earlier)
        taken = np.flatnonzero(used.any(axis=0)).tolist()
        lowest = next(
            column
            for column in range((start + 3) // 4 * 4, owner.shape[1], 4)
            if not any(column <= c < column + counted_length(layer) for c in taken)
        )
        begin, end = columns_of(layer, replace(kernels, first=lowest))
        if any(begin <= c < end for c in taken):  # empty lanes in front are not counted
            assert kernels.first > lowest
        else:
            assert kernels.first == lowest
        earlier.append(layer.index)


def counted_length(layer: MappedLayer) -> int:
    """Columns that are reserved for a layer before packing.

    Source: docs/hardware/memory.md, "Kernel counts".
    """
    outputs = processors(layer.output_processors)
    lane, out_passes = outputs[0] % 4, layer.out_passes
    span = outputs[-1] + 1 - (outputs[0] - (lane if out_passes > 1 else 0))
    if layer.flatten:
        row = layer.in_dim[0] * layer.in_dim[1] * layer.in_passes
        count = (span * out_passes - (out_passes * len(outputs) - layer.out_channels)) * row
    else:
        count = span * out_passes * layer.in_passes
    taps, bits = layer.kernel[0] * layer.kernel[1], layer.weight_bits
    per_byte = 8 // bits
    rest = count % per_byte * taps * (per_byte - 1)
    return -(-(count * taps * bits + rest) // 72)


# Single facts

CONV: dict[str, Any] = {
    "processors": 7,
    "op": "Conv2d",
    "kernel_size": "3x3",
    "pad": 1,
    "activate": "none",
}


def two_layers(
    folder: Path, *keys: dict[str, Any], seeds: tuple[int, int] = (1, 1)
) -> MappedNetwork:
    """Return two convolutions of 3 channels with biases 1, 2, 3."""
    layers = [{**CONV, **k} for k in (keys or ({}, {}))]
    bits = [layer.get("quantization", 8) for layer in layers]
    kernels = [weights(3, 3, 3, 3, bits=b, seed=s) for b, s in zip(bits, seeds, strict=True)]
    text = describe(*layers)
    return build(folder, text, sample(3, 4, 4), kernels, [np.arange(1, 4)] * 2)[0]


def test_equal_kernels_and_biases_are_stored_once(tmp_path: Path) -> None:
    placement = place(two_layers(tmp_path), PlaceOptions())
    assert placement.kernels[0] == placement.kernels[1]
    assert placement.biases[0] == placement.biases[1]
    assert set(placement.kernel_memory.owner.flat) == {-1, 0}
    assert [m.size for m in placement.bias_memory] == [3, 0, 0, 0]


def test_equal_kernels_are_stored_twice_on_request(tmp_path: Path) -> None:
    placement = place(two_layers(tmp_path), PlaceOptions(deduplicate=False))
    assert [k.first for _, k in sorted(placement.kernels.items())] == [0, 4]
    assert [m.size for m in placement.bias_memory] == [6, 0, 0, 0]


def test_kernels_of_different_width_or_processors_are_not_shared(tmp_path: Path) -> None:
    narrow = weights(3, 3, 3, 3, bits=4)
    layers = [CONV, {**CONV, "quantization": 4}, {**CONV, "processors": 0x70}]
    network, _ = build(tmp_path, describe(*layers), sample(3, 4, 4), [narrow] * 3)
    placement = place(network, PlaceOptions())
    assert len({(k.first, k.count) for _, k in sorted(placement.kernels.items())[:2]}) == 2
    assert {0, 1, 2} <= set(placement.kernel_memory.owner.flat)


def test_shared_kernels_and_biases_are_right_for_outputs_in_other_lanes(tmp_path: Path) -> None:
    network = two_layers(tmp_path, {"output_processors": 7}, {"output_processors": 0xE})
    placement = place(network, PlaceOptions())
    for layer in network.layers:
        found = read_kernels(layer, placement.kernels[layer.index], placement.kernel_memory)
        np.testing.assert_array_equal(found, layer.weights)


def test_narrow_weights_of_an_unfilled_pass_are_out_of_step_and_reported(tmp_path: Path) -> None:
    layer = {**CONV, "processors": mask(36), "quantization": 4}
    network, _ = build(tmp_path, describe(layer), sample(66, 2, 2), [weights(4, 66, 3, 3, bits=4)])
    placement = place(network, PlaceOptions())
    found = read_kernels(network.first, placement.kernels[0], placement.kernel_memory)
    assert (found != network.first.weights).any()
    assert "W318" in [complaint.code for complaint in check(network)]


def test_flattened_layer_whose_last_pass_is_not_full_is_placed_or_refused(tmp_path: Path) -> None:
    layer = {"processors": mask(36), "op": "Linear", "flatten": True, "activate": "none"}
    network, _ = build(tmp_path, describe(layer), sample(66, 1, 1), [weights(5, 66)])
    if not check(network):
        placement = place(network, PlaceOptions())
        found = read_kernels(network.first, placement.kernels[0], placement.kernel_memory)
        np.testing.assert_array_equal(found, network.first.weights)


def test_flattened_weights_for_upper_lanes_are_out_of_step_and_reported(tmp_path: Path) -> None:
    layer = {"processors": 1, "op": "Linear", "flatten": True, "activate": "none"}
    text = describe({**layer, "output_processors": 2})
    network, _ = build(tmp_path, text, sample(1, 1, 2), [weights(1, 2)])
    placement = place(network, PlaceOptions())
    found = read_kernels(network.first, placement.kernels[0], placement.kernel_memory)
    assert (found != network.first.weights).any()
    assert "W319" in [complaint.code for complaint in check(network)]


def test_small_layers_of_the_larger_memory_stack_downward(tmp_path: Path) -> None:
    layer = {**CONV, "processors": 1, "kernel_size": "1x1", "pad": 0}
    kernels = [weights(1, 1, 1, 1)] * 2
    network, _ = build(tmp_path, describe(layer, layer), sample(1, 2, 2), kernels, chip=MAX78002)
    placement = place(network, PlaceOptions(deduplicate=False))
    for resolved in network.layers:
        where = placement.kernels[resolved.index]
        found = read_kernels(resolved, where, placement.kernel_memory)
        np.testing.assert_array_equal(found, resolved.weights)


def test_unaligned_outputs_fit_beside_others(tmp_path: Path) -> None:
    layers = [
        {**CONV, "kernel_size": "1x1", "pad": 0, "processors": 1, "output_processors": 2},
        {**CONV, "processors": 2, "output_processors": hex(EVERYWHERE)},
        {**CONV, "processors": hex(EVERYWHERE), "output_processors": 2},
    ]
    kernels = [weights(1, 1, 1, 1), weights(64, 1, 3, 3), weights(1, 64, 3, 3)]
    network, _ = build(tmp_path, describe(*layers), sample(1, 2, 2), kernels)
    place(network, PlaceOptions())


def test_layers_on_all_processors_are_placed_first(tmp_path: Path) -> None:
    # docs/placement.md, "Kernels: finding columns", example: L0 at 64, L1 at 0, L2 at 192
    layers = [
        {**CONV, "processors": 7},
        {**CONV, "processors": mask(64)},
        {**CONV, "processors": mask(32)},
    ]
    kernels = [weights(128, 3, 3, 3), weights(32, 128, 3, 3), weights(8, 32, 3, 3)]
    network, _ = build(tmp_path, describe(*layers), sample(3, 4, 4), kernels)
    placement = placed(network)
    assert [(k.first, k.length) for _, k in sorted(placement.kernels.items())] == [
        (64, 128),
        (0, 64),
        (192, 8),
    ]


@pytest.mark.parametrize(
    ("layer", "kernel", "columns"),
    [
        (
            {"op": "Conv1d", "kernel_size": 3},
            np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12]).reshape(4, 1, 3),
            ["070809040506010203", "0000000000000a0bf4"],
        ),
        (
            {"quantization": 4},
            np.array(
                [
                    [-8, 2, 3, 4, 5, 6, 7, 0, 1],
                    [2, 3, 4, 5, 6, 7, 0, 1, 2],
                    [3, 4, 5, 6, 7, 0, 1, 2, 3],
                ]
            ).reshape(3, 1, 3, 3),
            ["283243546576071021", "030405060700010203"],
        ),
        (
            {"op": "Linear", "kernel_size": None, "flatten": True, "quantization": 4, "pad": None},
            np.array([[1, 2, 3], [4, 5, 6], [7, -8, -7]]),
            ["000000000987654321"],
        ),
    ],
    ids=["conv1d", "4 bit", "flattened"],
)
def test_bytes_of_the_worked_examples(
    tmp_path: Path, layer: dict[str, Any], kernel: Any, columns: list[str]
) -> None:
    # docs/hardware/memory.md, "Order of the bytes"
    data = sample(1, 3) if layer.get("op") else sample(1, 3, 3)
    text = describe({**CONV, "processors": 1, **layer})
    network, _ = build(tmp_path, text, data, [kernel])
    memory = place(network, PlaceOptions()).kernel_memory
    written = memory.data[0][memory.owner[0] == 0]
    assert [bytes(column).hex() for column in written] == columns


def test_passes_of_one_output_follow_each_other(tmp_path: Path) -> None:
    # docs/hardware/memory.md, "Order of the bytes": 66 channels in passes of 36, processor 0
    kernel = np.ones((3, 66, 1, 1), np.int64)
    kernel[:, [0, 36], 0, 0] = [[-100, 37], [67, 3], [33, 69]]
    layer = {**CONV, "processors": mask(36), "kernel_size": "1x1", "pad": 0}
    network, _ = build(tmp_path, describe(layer), sample(66, 2, 2), [kernel])
    memory = place(network, PlaceOptions()).kernel_memory
    assert bytes(memory.data[0, 0]).hex() == "00000045210343259c"


def test_long_biases_go_first_to_the_group_with_the_least_in_it(tmp_path: Path) -> None:
    sizes = [5, 40, 30, 20]
    layers, kernels, channels = [], [], 3
    for size in sizes:
        layers.append({**CONV, "processors": hex(mask(channels)), "kernel_size": "1x1", "pad": 0})
        kernels.append(weights(size, channels, 1, 1))
        channels = size
    biases = [np.arange(1, size + 1) for size in sizes]
    network, _ = build(tmp_path, describe(*layers), sample(3, 4, 4), kernels, biases)
    assert network.groups_used == (0, 1, 2)
    placement = place(network, PlaceOptions())
    assert [b.group for _, b in sorted(placement.biases.items())] == [2, 0, 1, 2]
    assert [m.size for m in placement.bias_memory] == [40, 30, 25, 0]


def test_layer_bound_to_a_group_is_placed_before_longer_ones(tmp_path: Path) -> None:
    network = two_layers(tmp_path, {"bias_group": 1}, {"processors": mask(3, 16)}, seeds=(1, 2))
    placement = place(network, PlaceOptions(deduplicate=False))
    assert [b.group for _, b in sorted(placement.biases.items())] == [1, 0]


# What does not fit


def refused(network: MappedNetwork, **options: Any) -> Diagnostic:
    """Return the one complaint of placing."""
    with pytest.raises(DiagnosticError) as caught:
        place(network, PlaceOptions(**options))
    (found,) = caught.value.diagnostics
    return found


def test_kernels_that_do_not_fit_say_what_they_need_and_what_is_free(tmp_path: Path) -> None:
    layers = [{**CONV, "processors": mask(64)}, {**CONV, "processors": mask(60)}]
    kernels = [weights(180, 64, 3, 3), weights(600, 180, 3, 3)]
    network, _ = build(tmp_path, describe(*layers), sample(64, 2, 2), kernels)
    found = refused(network, overlap_data=True)
    assert found.code == "E401"
    assert found.message == (
        "layer 1: the kernels need 1800 columns in a row in 60 processors, 588 of 768 are free"
    )
    assert found.remedy == (
        "Use fewer channels, narrower weights ('quantization') or processors that other layers "
        "do not use."
    )


def test_kernels_of_outputs_with_gaps_that_run_into_others_are_refused(tmp_path: Path) -> None:
    # Each unused processor steps over a whole column, however small the kernel is.
    layer = {**CONV, "kernel_size": "1x1", "pad": 0, "output_processors": hex(1 | 1 << 63)}
    network, _ = build(tmp_path, describe(layer), sample(3, 2, 2), [weights(2, 3, 1, 1)])
    assert refused(network, weight_start=760).code == "E402"


def test_calcx4_layers_behind_others_overwrite_their_kernels(tmp_path: Path) -> None:
    # The vendor's tool places them so (docs/emulator.md, "How exact it is")
    layer = {**CONV, "processors": hex(mask(60, 1)), "output_processors": hex(mask(60, 1))}
    text = describe(layer, {**layer, "calcx4": True}, {**layer, "calcx4": True})
    kernels = [weights(60, 60, 3, 3, seed=seed) for seed in range(3)]
    network, _ = build(tmp_path, text, sample(60, 4, 4), kernels, chip=MAX78002)
    _, (found,) = place_what_fits(network, PlaceOptions())
    assert (found.code, found.severity, found.message) == (
        "W410",
        "warning",
        "layer 2: the kernels overwrite those of layer 0; the chip is not expected to "
        "compute the known answer",
    )


def test_calcx4_layers_stay_out_of_the_larger_memory(tmp_path: Path) -> None:
    layer = {**CONV, "processors": 1, "calcx4": True}
    kernels = [weights(8, 1, 3, 3)]
    network, _ = build(tmp_path, describe(layer), sample(1, 4, 4), kernels, chip=MAX78002)
    placement = place(network, PlaceOptions())
    assert placement.kernels[0].first == 0
    owned = np.flatnonzero(placement.kernel_memory.owner[0] == 0)
    assert owned.tolist() == [part * 1024 + i for part in range(4) for i in range(2)]


def test_calcx4_layers_with_distant_outputs_are_refused(tmp_path: Path) -> None:
    spread = {"processors": hex(1 | 1 << 16 | 1 << 32 | 1 << 48), "calcx4": True}
    layers = {**CONV, **spread}, {**CONV, **spread, "in_offset": 0x4000, "out_offset": 0}
    kernels = [weights(4, 4, 3, 3), weights(8, 4, 3, 3)]
    network, _ = build(tmp_path, describe(*layers), sample(4, 4, 4), kernels, chip=MAX78002)
    assert refused(network).code == "E402"


def test_biases_that_do_not_fit_name_group_and_rest(tmp_path: Path) -> None:
    layer = {**CONV, "kernel_size": "1x1", "pad": 0, "bias_group": 0}
    network, _ = build(
        tmp_path, describe(layer), sample(3, 1, 1), [weights(513, 3, 1, 1)], [np.ones(513, int)]
    )
    found = refused(network)
    assert (found.code, found.message) == (
        "E403",
        "layer 0: the bias needs 513 bytes, group 0 has 512 of 512 left",
    )


def test_bias_of_four_outputs_at_a_time_begins_at_the_next_multiple_of_four(
    tmp_path: Path,
) -> None:
    for outputs in range(1, 6):
        layers = (
            {**CONV, "bias_group": 0, "output_processors": hex((1 << outputs) - 1)},
            {**CONV, "processors": hex((1 << outputs) - 1), "bias_group": 0, "calcx4": True,
             "output_processors": "0xf"},
        )  # fmt: skip
        kernels = [weights(outputs, 3, 3, 3), weights(4, outputs, 3, 3)]
        biases = [np.arange(1, outputs + 1), np.arange(1, 5)]
        network, _ = build(
            tmp_path, describe(*layers), sample(3, 4, 4), kernels, biases, chip=MAX78002
        )
        offset = place(network, PlaceOptions()).biases[1].offsets[0]
        assert offset == (outputs + 3) // 4 * 4


def of_layers(folder: Path, *layers: dict[str, Any], **options: Any) -> list[Diagnostic]:
    """Return what is said about the places of layers that take and give 3x4x4 values."""
    kernels = [weights(3, 3, 3, 3, seed=i) for i in range(len(layers))]
    text = describe(*({**CONV, **layer} for layer in layers))
    network, _ = build(folder, text, sample(3, 4, 4), kernels, chip=MAX78002)
    return list(place_what_fits(network, PlaceOptions(**options))[1])


READ_LATE: tuple[dict[str, Any], ...] = (
    {"out_offset": 0x2000},
    {"out_offset": 0x4000},
    {"out_offset": 0x2000},
    {"out_offset": 0x6000, "in_sequences": 0, "in_offset": 0x2000},
)


def test_data_that_is_overwritten_before_its_last_reader_names_all_three(tmp_path: Path) -> None:
    (found,) = of_layers(tmp_path, *READ_LATE)
    assert (found.code, found.severity, str(found.place)) == ("W412", "warning", "net.yaml:19:15")
    assert found.message == (
        "layer 2: the output overwrites 0x2000 to 0x203f of the output of layer 0, which layer 3 "
        "reads later; the chip is not expected to compute the known answer"
    )


def test_data_that_is_lost_already_hides_no_other_that_the_same_layer_overwrites(
    tmp_path: Path,
) -> None:
    found = of_layers(
        tmp_path,
        {"out_offset": 0x2000},
        {"out_offset": 0x4000},
        {"out_offset": 0x2020},
        {"out_offset": 0x6000},
        {"out_offset": 0x2000},
        {"out_offset": 0x4100, "in_sequences": 0, "in_offset": 0x2000},
        {"out_offset": 0x6100, "in_sequences": 2, "in_offset": 0x2020},
    )
    assert [d.message.split(";")[0] for d in found if d.code == "W412"] == [
        "layer 2: the output overwrites 0x2020 to 0x203f of the output of layer 0, which layer 5 "
        "reads later",
        "layer 4: the output overwrites 0x2020 to 0x203f of the output of layer 2, which layer 6 "
        "reads later",
    ]


def test_data_that_may_overlap_is_not_warned_of(tmp_path: Path) -> None:
    assert of_layers(tmp_path, *READ_LATE, overlap_data=True) == []


@pytest.mark.parametrize(("kernel", "codes"), [("3x3", ["W412"]), ("none", [])])
def test_layer_that_reads_the_input_again_must_not_run_over_it(
    tmp_path: Path, kernel: str, codes: list[str]
) -> None:
    again: dict[str, Any] = {"in_sequences": "input", "in_offset": 0, "out_offset": 0}
    if kernel == "none":  # each word is read before it is written
        again |= {"op": "none", "kernel_size": None, "pad": None, "activate": None}
    found = of_layers(tmp_path, {"out_offset": 0x2000}, again)
    assert [d.code for d in found] == codes
    assert all("overwrites 0x0 to 0x3f of the input data, which it" in d.message for d in found)


def test_output_over_the_own_input_is_refused(tmp_path: Path) -> None:
    network = two_layers(tmp_path, {"out_offset": 0x20}, {"out_offset": 0x100})
    found = refused(network)
    assert (found.code, str(found.place)) == ("E404", "net.yaml:5:15")
    assert found.message == (
        "layer 0: the output at 0x20 to 0x5f overwrites the input data, which is still needed"
    )


def test_output_over_the_output_of_the_layer_before_is_refused(tmp_path: Path) -> None:
    network = two_layers(tmp_path, {"out_offset": 0x100}, {"out_offset": 0x100})
    assert "overwrites the output of layer 0, which is still needed" in refused(network).message


SPREAD: dict[str, Any] = {
    "op": "Conv1d",
    "kernel_size": 3,
    "dilation": 5,
    "pad": 0,
    "processors": 1,
    "activate": "none",
}


@pytest.mark.parametrize(("offset", "fits"), [(0x64, True), (0x60, False)])
def test_invalid_words_in_front_of_an_output_overwrite_nothing(
    tmp_path: Path, offset: int, fits: bool
) -> None:
    # 20 samples at 0x0 to 0x4f; five words in front of the output
    layer = {**SPREAD, "out_offset": offset}
    network, _ = build(tmp_path, describe(layer), sample(1, 20), [weights(1, 1, 3)])
    if fits:
        place(network, PlaceOptions())
    else:
        assert "overwrites the input data" in refused(network).message


def test_invalid_words_behind_an_output_overwrite_nothing(tmp_path: Path) -> None:
    layer = {**SPREAD, "kernel_size": 2, "dilation": 10, "in_offset": 0x80, "out_offset": 0x50}
    network, _ = build(tmp_path, describe(layer), sample(1, 20), [weights(1, 1, 2)])
    assert refused(network).message == (
        "layer 0: the output at 0x50 to 0x9f overwrites the input data, which is still needed"
    )


def test_delivered_output_must_survive_to_the_end(tmp_path: Path) -> None:
    layers = [
        {**CONV, "out_offset": 0x100, "output": True},
        {**CONV, "out_offset": 0},
        {**CONV, "out_offset": 0x100, "output": True},
    ]
    kernels = [weights(3, 3, 3, 3)] * 3
    network, _ = build(tmp_path, describe(*layers), sample(3, 4, 4), kernels)
    assert "overwrites the output of layer 0" in refused(network).message
    layers[0].pop("output")
    network, _ = build(tmp_path, describe(*layers), sample(3, 4, 4), kernels)
    place(network, PlaceOptions())


def test_layers_behind_those_that_stream_overwrite_nothing(tmp_path: Path) -> None:
    first = {**CONV, "out_offset": 0x1000, "streaming": True}
    layers = [first, {**first, "out_offset": 0x2000}, {**CONV, "out_offset": 0x400},
              {**CONV, "out_offset": 0x404}]  # fmt: skip
    network, _ = build(tmp_path, describe(*layers), sample(3, 16, 16), [weights(3, 3, 3, 3)] * 4)
    assert "overwrites the output of layer 2" in refused(network).message


def test_overlap_can_be_allowed(tmp_path: Path) -> None:
    place(two_layers(tmp_path, {"out_offset": 0x20}, {}), PlaceOptions(overlap_data=True))


def test_all_layers_that_do_not_fit_are_reported(tmp_path: Path) -> None:
    kernels = [weights(800, 3, 3, 3), weights(800, 800, 1, 1)]
    layers = [CONV, {**CONV, "processors": mask(64), "kernel_size": "1x1", "pad": 0}]
    network, _ = build(tmp_path, describe(*layers), sample(3, 1, 1), kernels)
    with pytest.raises(DiagnosticError) as caught:
        place(network, PlaceOptions(overlap_data=True))
    assert [d.code for d in caught.value.diagnostics] == ["E401", "E401"]


@pytest.mark.parametrize("bits", [8, 4, 2, 1])
@pytest.mark.parametrize(("taps", "size"), [("1x1", 1), ("3x3", 9)])
def test_layers_of_narrow_weights_take_columns_for_kernels_that_fill_no_byte(
    taps: str, size: int, bits: int, tmp_path: Path
) -> None:
    """docs/placement.md, "Kernels: finding columns": the layer behind begins after them."""
    for outputs in (*range(1, 18), 24, 25, 63):
        side, whole = int(taps[0]), 8 // bits
        layer = {"op": "Conv2d", "kernel_size": taps, "pad": side // 2, "activate": "none"}
        text = describe(
            {**layer, "processors": 1, "output_processors": mask(outputs), "quantization": bits},
            {**layer, "processors": mask(outputs), "output_processors": 1},
        )
        kernels = [weights(outputs, 1, side, side, bits=bits), weights(1, outputs, side, side) // 2]
        network, _ = build(tmp_path, text, sample(1, 3, 3), kernels)
        placement = place(network, PlaceOptions())
        in_bits = sum(size * bits for _ in range(outputs))
        in_bits += sum(size * (whole - 1) for _ in range(outputs // whole * whole, outputs))
        columns = next(n for n in range(99) if 72 * n >= in_bits)
        first, second = placement.kernels[0], placement.kernels[1]
        assert (first.first, first.length) == (0, columns)
        assert second.first == next(n for n in range(0, 999, 4) if n >= columns)
        written = placement.kernel_memory.owner[0, :columns] == 0
        assert written.all()


@pytest.mark.parametrize("processors", [1, 2])
def test_kernels_stand_at_the_lowest_multiple_of_four_that_is_free(processors: int) -> None:
    """All patterns of taken columns; nothing is found where none is free."""
    columns = 11 // processors
    for pattern in range(1 << columns * processors):
        taken = [pattern >> n & 1 == 1 for n in range(columns * processors)]
        used = np.array(taken).reshape(processors, columns)
        for length in (1, 2, 3, 4, 5, 7):
            free = [
                first
                for first in range(0, columns - length + 1, 4)
                if not used[:, first : first + length].any()
            ]
            search = ColumnSearch(MAX78000, used, [columns] * processors, length, False)
            if free:
                assert search.upward(0) == free[0], (used, length)
            else:
                with pytest.raises(NoRoomError):
                    search.upward(0)
