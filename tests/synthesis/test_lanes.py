"""Lanes and streams that the registers cannot describe: warned of exactly if the chip departs."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from ai8xtools.diagnostics import Severity
from ai8xtools.emulator import EmulatorError
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import PlaceOptions
from device import MAX78000, MAX78002, Chip
from tests.synthesis.emulated import emulated
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.stages import check, encode, place, simulate

Keys = dict[str, Any]
CONV: Keys = {
    "op": "Conv2d",
    "kernel_size": "3x3",
    "pad": 1,
    "activate": "none",
    "quantization": 8,
}
CHIPS = pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda c: c.name)


def judged(
    folder: Path, layers: list[Keys], channels: list[int], chip: Chip, **options: Any
) -> tuple[set[str], bool]:
    """Return the codes of unsound warnings, and whether the chip computes the known answer.

    `channels` are the inputs of the network and the outputs of the layers.
    """
    shapes = [
        (outputs, inputs, 3, 3)
        for layer, inputs, outputs in zip(layers, channels, channels[1:], strict=False)
        if layer["op"] == "Conv2d"
    ]
    kernels = [weights(*shape, seed=number) for number, shape in enumerate(shapes)]
    data = sample(channels[0], 6, 6)
    network, _ = build(folder, describe(*layers), data, kernels, chip=chip, **options)
    found = check(network)
    assert not [d for d in found if d.severity is Severity.ERROR]
    activations = simulate(network, average_rounding=False)
    program = encode(network, place(network, PlaceOptions()), activations, EncodeOptions())
    try:
        same = not emulated(program).wrong
    except EmulatorError:  # a FIFO that gets nothing
        same = False
    return {d.code for d in found if d.effects.unsound}, same


@CHIPS
@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("moved", range(9))
@pytest.mark.parametrize("holes", [False, True])
def test_passing_data_moves_by_whole_instances_only(
    tmp_path: Path, chip: Chip, first: int, moved: int, holes: bool
) -> None:
    inputs = mask(3, first) if not holes else 0b10011 << first
    outputs = mask(3, moved)
    layers: list[Keys] = [
        {**CONV, "processors": 7, "output_processors": hex(inputs)},
        {"op": "Passthrough", "processors": hex(inputs), "output_processors": hex(outputs)},
        {**CONV, "processors": hex(outputs), "output_processors": 15},
    ]
    codes, same = judged(tmp_path, layers, [3, 3, 3, 4], chip)
    assert codes == (set() if same else {"W379"})
    assert same == ((moved - first) % 4 == 0)


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (0x0003_0007, 0x0030_0007),
        (0x0003_0007, 0x0006_0007),
        (0x0006_0007, 0x0006_0070),
        (0x0003_000E, 0x0003_0007),
    ],
)
def test_every_group_counts(tmp_path: Path, inputs: int, outputs: int) -> None:
    layers: list[Keys] = [
        {**CONV, "processors": 7, "output_processors": hex(inputs)},
        {"op": "Passthrough", "processors": hex(inputs), "output_processors": hex(outputs)},
        {**CONV, "processors": hex(outputs), "output_processors": 15},
    ]
    codes, same = judged(tmp_path, layers, [3, 5, 5, 4], MAX78000)
    assert same == (not codes)


@CHIPS
@pytest.mark.parametrize(
    ("processors", "right"),
    [
        (0x7, True),
        (0x1_000F, True),
        (0x7 << 32, True),
        (0x3_0000_000F, True),
        (0xE << 32, False),
        (0x5, False),
        (0x1_0007, False),
        (0xF_0001, False),
    ],
)
def test_a_fifo_feeds_the_lanes_of_a_group_from_the_first_on(
    tmp_path: Path, chip: Chip, processors: int, right: bool
) -> None:
    count = processors.bit_count()
    layers: list[Keys] = [
        {**CONV, "processors": hex(processors), "output_processors": 15},
        {**CONV, "processors": 15, "output_processors": 15},
    ]
    codes, same = judged(tmp_path, layers, [count, 4, 4], chip, input_port=InputPort.FIFO)
    assert (same, codes) == (right, set() if right else {"W381"})


STREAM: list[Keys] = [
    {**CONV, "processors": 7, "output_processors": 0xF0, "out_offset": 0x2000, "streaming": True},
    {
        **CONV,
        "processors": 0xF0,
        "output_processors": 0xF00,
        "out_offset": 0x4000,
        "streaming": True,
    },
    {**CONV, "processors": 0xF00, "output_processors": 15, "out_offset": 0x1000},
]
LATER: dict[str, Keys] = {
    "its last result": {"in_sequences": (1,), "in_offset": 0x4000},
    "a result within": {"processors": 0xF0, "in_sequences": (0,), "in_offset": 0x2000},
    "the input": {"processors": 7, "in_sequences": (-1,), "in_offset": 0},
}


@CHIPS
@pytest.mark.parametrize("what", LATER)
def test_behind_a_stream_only_its_last_result_can_be_read(
    tmp_path: Path, chip: Chip, what: str
) -> None:
    *streaming, last = STREAM
    layers = [*streaming, {**last, **LATER[what]}]
    inputs = [3, 4, 3 if what == "the input" else 4, 4]
    kernels = [weights(4, n, 3, 3, seed=n) for n in (inputs[0], inputs[1], inputs[2])]
    text, data = describe(*layers), sample(3, 6, 6)
    network, _ = build(tmp_path, text, data, kernels, chip=chip, input_port=InputPort.FIFO)
    activations = simulate(network, average_rounding=False)
    program = encode(network, place(network, PlaceOptions()), activations, EncodeOptions())
    same = not emulated(program).wrong
    codes = {d.code for d in check(network) if d.effects.unsound}
    assert (same, codes) == ((True, set()) if what == "its last result" else (False, {"W382"}))


def test_a_result_within_a_stream_cannot_be_delivered(tmp_path: Path) -> None:
    first, *others = STREAM
    layers = [{**first, "output": True}, *others]
    options = {"input_port": InputPort.FIFO}
    codes, same = judged(tmp_path, layers, [3, 4, 4, 4], MAX78000, **options)
    assert (codes, same) == ({"W382"}, False)


@CHIPS
def test_a_fifo_fills_the_rows_of_a_spread_kernel_or_is_refused(tmp_path: Path, chip: Chip) -> None:
    """Such a layer works on rows of `dilation` samples, and waits until the last one is full."""
    for length, dilation in product(range(26, 32), (9, 10)):
        spread = {
            **CONV,
            "op": "Conv1d",
            "processors": 1,
            "kernel_size": 3,
            "dilation": dilation,
            "pad": 0,
        }
        network, _ = build(
            tmp_path, describe(spread), sample(1, length), [weights(2, 1, 3)], chip=chip,
            input_port=InputPort.FIFO,
        )  # fmt: skip
        whole = length % dilation == 0
        assert [d.code for d in check(network)] == ([] if whole else ["E385"])
        made = encode(
            network, place(network, PlaceOptions()), simulate(network, average_rounding=False),
            EncodeOptions(),
        )  # fmt: skip
        if whole:
            assert not emulated(made).wrong
        else:
            with pytest.raises(EmulatorError, match="FIFO"):
                emulated(made)


@CHIPS
@pytest.mark.parametrize("width", [8, 32])
def test_results_of_32_bits_are_warned_of_exactly_if_a_layer_reads_them(
    width: int, chip: Chip, tmp_path: Path
) -> None:
    """A middle layer that the last one reads or not, delivered or not."""
    for reads, marked in product((True, False), ((), (2,), (1, 2))):
        layers: list[Keys] = [
            {**CONV, "processors": 15, "out_offset": 0x1000},
            {**CONV, "processors": 15, "in_offset": 0x1000, "output_width": width,
             "out_offset": 0x2000},
            {**CONV, "processors": 15, "in_sequences": int(reads), "out_offset": 0x4000,
             "in_offset": 0x2000 if reads else 0x1000},
        ]  # fmt: skip
        for number in marked:
            layers[number]["output"] = True
        codes, same = judged(tmp_path, layers, [4] * 4, chip)
        assert codes == (set() if same else {"W307"}), (reads, marked)
        assert same == (width == 8 or not reads)
