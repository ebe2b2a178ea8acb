"""What is warned of is so: the words do not lead to the known answer, those of the remedy do."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.emulator import EmulatorError
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import PlaceOptions
from ai8xtools.synthesis.words import phase_words
from device import MAX78000, MAX78002, Chip
from tests.synthesis.emulated import emulated
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.stages import check, encode, place, simulate

Keys = dict[str, Any]
CONV: Keys = {
    "processors": 7,
    "op": "Conv2d",
    "kernel_size": "3x3",
    "pad": 1,
    "activate": "none",
    "out_offset": 0x1000,
}
SMALL = {**CONV, "kernel_size": "1x1", "pad": 0}
SERIES = {**CONV, "op": "Conv1d", "kernel_size": 3, "pad": 0, "dilation": 5}
LINEAR: Keys = {"processors": 7, "op": "Linear", "flatten": True, "activate": "none"}
SPREAD = {**LINEAR, "processors": 0x111}
FIFO = {"input_port": InputPort.FIFO}
CASES: list[tuple[str, Keys, Keys, tuple[int, ...], tuple[int, ...], Keys]] = [
    ("W318", {**CONV, "processors": hex(mask(36)), "quantization": 4}, {"quantization": 8},
     (3, 66, 3, 3), (66, 4, 4), {}),
    ("W319", {**LINEAR, "output_processors": 6}, {"output_processors": 3}, (2, 48), (3, 4, 4), {}),
    ("W334", {**CONV, "quantization": 2, "output_processors": 6}, {"output_processors": 0x30},
     (2, 3, 3, 3), (3, 4, 4), {}),
    ("W370", {**CONV, "output_processors": hex(mask(36, 1))}, {"output_processors": hex(mask(36))},
     (66, 3, 3, 3), (3, 4, 4), {}),
    ("W371", {**SMALL, "output_processors": 0x15}, {"output_processors": 7}, (3, 3, 1, 1),
     (3, 4, 4), {}),
    ("W373", {**CONV, "op": "ConvTranspose2d", "max_pool": 2, "pool_stride": 2},
     {"pool_stride": 1}, (3, 3, 3, 3), (3, 6, 6), {}),
    ("W374", {**SERIES, "output_width": 32}, {"output_width": 8}, (3, 3, 3), (3, 20), {}),
    ("W374", {**SERIES, "write_gap": 1}, {"write_gap": 0}, (3, 3, 3), (3, 20), {}),
    ("W375", {**SPREAD, "data_format": "CHW"}, {"data_format": "HWC"}, (2, 48), (3, 4, 4), {}),
    ("W375", LINEAR, {"flatten": False}, (2, 48), (3, 4, 4), FIFO),
]  # fmt: skip


def known_answer(
    folder: Path, chip: Chip, layer: Keys, kernel: Any, shape: tuple[int, ...], options: Keys
) -> tuple[set[str], bool]:
    """Return the codes of the complaints, and whether the emulated chip gives the known answer."""
    text = describe({"quantization": 8, **layer})
    network, _ = build(folder, text, sample(*shape), [kernel], chip=chip, **options)
    placement = place(network, PlaceOptions())
    activations = simulate(network, average_rounding=False)
    program = encode(network, placement, activations, EncodeOptions())
    codes = {d.code for d in check(network)}
    try:
        return codes, not emulated(program).wrong
    except EmulatorError:
        return codes, False


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda c: c.name)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_warned_layer_computes_something_else_and_its_remedy_does_not(
    tmp_path: Path, chip: Chip, case: Any
) -> None:
    code, layer, remedy, shape, data, options = case
    kernel = weights(*shape, bits=layer.get("quantization", 8))
    codes, same = known_answer(tmp_path, chip, layer, kernel, data, options)
    assert code in codes
    assert not same
    if "flatten" in remedy:  # pixel by pixel instead
        kernel = weights(2, 3)
    codes, same = known_answer(tmp_path, chip, {**layer, **remedy}, kernel, data, options)
    assert code not in codes
    assert same


def test_depthwise_channels_keep_their_distances(tmp_path: Path) -> None:
    layer = {**CONV, "groups": 3, "processors": 0x15, "output_processors": 7}
    kernel = weights(3, 1, 3, 3)
    codes, same = known_answer(tmp_path, MAX78002, layer, kernel, (3, 4, 4), {})
    assert "W377" in codes and not same
    layer["output_processors"] = 0x150
    codes, same = known_answer(tmp_path, MAX78002, layer, kernel, (3, 4, 4), {})
    assert "W377" not in codes and same


@pytest.mark.parametrize(
    "lanes", [*combinations(range(5), 3), (0, 15, 16), (0, 2, 18), (9, 16, 20)]
)
@pytest.mark.parametrize("depthwise", [False, True])
def test_depthwise_outputs_at_uneven_distances_in_a_group_are_doubtful(
    tmp_path: Path, lanes: tuple[int, ...], depthwise: bool
) -> None:
    """docs/hardware/registers.md says of the word that they need that it is not known to work."""
    outputs = sum(1 << lane for lane in lanes)
    layer = {**CONV, "output_processors": outputs}
    if depthwise:
        layer |= {"groups": 3, "processors": outputs}
    kernel = weights(3, 1 if depthwise else 3, 3, 3)
    network, _ = build(tmp_path, describe(layer), sample(3, 4, 4), [kernel], chip=MAX78002)
    distances = {b - a for a, b in pairwise(lanes) if a // 16 == b // 16}
    said = [d.effects.unsound for d in check(network) if d.code == "W384"]
    uneven = len(distances) > 1
    assert said == [True] * (uneven and depthwise)
    activations = simulate(network, average_rounding=False)
    made = encode(network, place(network, PlaceOptions()), activations, EncodeOptions())
    control = made.apb_base + MAX78002.layer_address(0, 0, "LCTL")
    word = phase_words(made)["cnn_configure"].words[control]
    assert MAX78002.layer_registers["LCTL"].unpack(word)["shared_output"] == int(not uneven)


def test_binary_kernels_that_are_filled_up_compute_something_else(tmp_path: Path) -> None:
    layer = {**SERIES, "quantization": "bin", "dilation": 2}
    kernel = weights(2, 3, 3, bits=1) * 2 + 1
    codes, same = known_answer(tmp_path, MAX78002, layer, kernel, (3, 20), {})
    assert "W372" in codes and not same
    codes, same = known_answer(
        tmp_path, MAX78002, {**layer, "quantization": 2}, kernel, (3, 20), {}
    )
    assert "W372" not in codes and same


@pytest.mark.parametrize("lane", range(4))
@pytest.mark.parametrize("bits", [2, 8])
@pytest.mark.parametrize("pixels", [1, 2, 4])
def test_flattened_outputs_in_upper_lanes_are_wrong_exactly_where_it_is_said(
    tmp_path: Path, lane: int, bits: int, pixels: int
) -> None:
    layer = {**LINEAR, "quantization": bits, "output_processors": hex(mask(5, lane))}
    kernel = weights(5, 3 * pixels, bits=bits)
    codes, same = known_answer(tmp_path, MAX78000, layer, kernel, (3, 1, pixels), {})
    assert ("W319" in codes) != same


@pytest.mark.parametrize("outputs", [1, 2, 3, 4, 5, 6, 9])
@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("channels", [70, 150])
def test_narrow_weights_of_unfilled_passes_are_wrong_exactly_where_it_is_said(
    tmp_path: Path, outputs: int, bits: int, channels: int
) -> None:
    share = {70: 36, 150: 52}[channels]
    layer = {**CONV, "processors": hex(mask(share)), "quantization": bits, "output_width": 32}
    kernel = weights(outputs, channels, 3, 3, bits=bits)
    codes, same = known_answer(tmp_path, MAX78000, layer, kernel, (channels, 3, 3), {})
    assert ("W318" in codes) != same


@pytest.mark.parametrize("lane", range(4))
@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("side", [1, 3])
@pytest.mark.parametrize("channels", [3, 72, 160])
def test_narrow_outputs_in_upper_lanes_are_wrong_exactly_where_it_is_said(
    tmp_path: Path, lane: int, bits: int, side: int, channels: int
) -> None:
    share = {3: 3, 72: 36, 160: 56}[channels]
    layer = {
        **CONV,
        "kernel_size": f"{side}x{side}",
        "pad": side // 2,
        "quantization": bits,
        "processors": hex(mask(share)),
        "output_processors": hex(mask(8, lane)),
    }
    channels = -(-channels // share) * share
    kernel = weights(8, channels, side, side, bits=bits)
    text = describe(layer)
    network, _ = build(tmp_path, text, sample(channels, 3, 3), [kernel])
    said = any(d.effects.unsound for d in check(network) if d.code == "W334")
    _, same = known_answer(tmp_path, MAX78000, layer, kernel, (channels, 3, 3), {})
    assert same != said
