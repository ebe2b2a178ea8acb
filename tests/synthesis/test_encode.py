"""Words of small networks: the worked examples, fields by name, memory images, expected output."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.synthesis.encode.numbering import Numbering
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.options import EncodeOptions
from ai8xtools.synthesis.place import PlaceOptions
from ai8xtools.synthesis.program import Block, Clear, Program, Wait, Write
from ai8xtools.synthesis.summarize.statistics import statistics
from ai8xtools.synthesis.summary import Statistics
from ai8xtools.synthesis.words import phase_words
from device import MAX78000, MAX78002, Chip
from tests.synthesis.manual import RESET, RESET_AS_BEHIND
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.stages import encode, encoding, place, simulate

APB = 0x50000000
CONV: dict[str, Any] = {
    "processors": 7,
    "op": "Conv2d",
    "kernel_size": "3x3",
    "pad": 1,
    "activate": "none",
}
POINT: dict[str, Any] = {**CONV, "processors": 1, "kernel_size": "1x1", "pad": 0}
AVERAGE: dict[str, Any] = {"avg_pool": 2, "pool_stride": 2}


def program(
    folder: Path,
    layers: list[dict[str, Any]],
    data: Any,
    kernels: Any = (),
    biases: Any = (),
    chip: Chip = MAX78000,
    port: InputPort = InputPort.MEMORY,
    **options: Any,
) -> Program:
    """Run the stages on a description; collisions of data are not looked at."""
    text = describe(*layers)
    network, _ = build(folder, text, data, kernels, biases, chip, input_port=port)
    placement = place(network, PlaceOptions(overlap_data=True))
    activations = simulate(network, average_rounding=False)
    return encode(network, placement, activations, encoding(**options))


def cost(folder: Path, layers: list[dict[str, Any]], data: Any, kernels: Any) -> Statistics:
    """Return what a network costs."""
    network, _ = build(folder, describe(*layers), data, kernels)
    return statistics(network, place(network, PlaceOptions(overlap_data=True)), EncodeOptions())


def registers(made: Program, layer: int, group: int = 0) -> dict[str, int]:
    """Return the words of a layer's registers in a group by name, zeros included."""
    chip, base = made.chip, made.apb_base
    written = phase_words(made)["cnn_configure"].words
    return {
        name: written.get(base + chip.layer_address(group, layer, name), 0)
        for name in chip.layer_registers
    }


def fields(made: Program, layer: int, name: str, group: int = 0) -> dict[str, int]:
    """Return the fields of a layer's register."""
    return made.chip.layer_registers[name].unpack(registers(made, layer, group)[name])


def writes(blocks: tuple[Block, ...]) -> list[Write]:
    """Return all writes of some blocks."""
    return [step for block in blocks for step in block.steps if isinstance(step, Write)]


# docs/hardware/execution.md, "A complete program"; docs/hardware/streaming.md, "Example"


def test_worked_example_of_one_pixel(tmp_path: Path) -> None:
    layer = {**CONV, "processors": 1, "out_offset": "0x2000"}
    made = program(tmp_path, [layer], sample(1, 1, 1), [weights(1, 1, 3, 3)])
    words = phase_words(made)
    assert words["cnn_configure"].words == {
        0x50100010: 0x00010002,
        0x50100090: 0x00010002,
        0x50100310: 0x800,
        0x50100410: 0x2000,
        0x50100590: 0x920,
        0x50100710: 0x00010001,
    }
    assert words["cnn_start"].control == ((0x50100000, 0x00100808), (0x50100000, 0x00100009))
    assert words["cnn_init"].control == ((0x50001000, 0), (0x50100000, 0x00100008))
    assert words["cnn_init"].words == {0x50100004: 0x40E}
    # section 7: this layer takes 28 cycles, with the start-up 29
    found = cost(tmp_path, [layer], sample(1, 1, 1), [weights(1, 1, 3, 3)])
    assert ([layer.cycles for layer in found.layers], found.startup_cycles) == ([28], 1)


STREAMING = {
    "MAX78000": {
        "RCNT": (0x00010009, 0x00010009, 0x00010005),
        "CCNT": (0x00010021, 0x00010021, 0x00010011),
        "STRIDE": (0, 1, 1),
        "WPTR_BASE": (0x800, 0x1000, 0x1800),
        "LCTL": (0xB20, 0xEBA0, 0x29A0),
        "LCTL2": (0x0001F810, 0x0000F801, 0x00003800),
        "MCNT": (0x020005F8, 0x000001F8, 0x06000638),
        "TPTR": (0x1F, 0x0020002F, 0x00400047),
        "STREAM1": (1, 0x6C, 0x3C),
        "STREAM2": (0, 0x00240021, 0x00140023),
        "FMAX": (2, 0x8E, 0x4E),
    },
    "MAX78002": {
        "RCNT": (0x00018007, 0x00448006, 0x00128002),
        "CCNT": (0x0001801F, 0x0002801E, 0x0002800E),
        "STRIDE": (0x10, 0x41, 0x21),
        "WPTR_BASE": (0x800, 0x1000, 0x1800),
        "LCTL": (0x00880B20, 0x0088EBA0, 0x008829A0),
        "LCTL2": (0x001F8010, 0x000F8001, 0x00038000),
        "MCNT1": (0x5F8, 0x1F8, 0x638),
        "MCNT2": (0x200, 0, 0x600),
        "OCHAN": (0x7F, 0x3F, 7),
        "TPTR": (0x1F, 0x0020002F, 0x00400047),
        "STREAM1": (1, 0x6B, 0x3F),
        "STREAM2": (0, 0x00220021, 0x00120023),
        "FMAX": (2, 0xB0, 0x41),
    },
}


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda c: c.name)
def test_worked_example_of_three_streaming_layers(tmp_path: Path, chip: Chip) -> None:
    pooled = {**CONV, "streaming": True, "max_pool": 2, "pool_stride": 2}
    layers = [
        {**CONV, "streaming": True, "activate": "ReLU", "out_offset": "0x2000"},
        {**pooled, "processors": mask(64), "activate": "ReLU", "out_offset": "0x4000"},
        {**pooled, "processors": mask(32), "out_offset": "0x6000"},
    ]
    kernels = [weights(128, 3, 3, 3), weights(32, 128, 3, 3), weights(8, 32, 3, 3)]
    made = program(tmp_path, layers, sample(3, 8, 32), kernels, chip=chip, port=InputPort.FIFO)
    found = [registers(made, layer) for layer in range(3)]
    for name, values in STREAMING[chip.name].items():
        assert tuple(words[name] for words in found) == values, name
    frame = APB + chip.control_address(0, "IFRM")
    assert phase_words(made)["cnn_configure"].words[frame] == 0x100
    control = dict(phase_words(made)["cnn_configure"].control)
    assert control[APB] == (0x1908 if chip is MAX78000 else 0x1108)


# Fields of layer registers


def test_counts_of_rows_columns_and_pooling(tmp_path: Path) -> None:
    layer = {**CONV, "avg_pool": (2, 3), "pool_stride": 2, "activate": "Abs"}
    made = program(tmp_path, [layer], sample(3, 6, 9), [weights(2, 3, 3, 3)])
    assert fields(made, 0, "RCNT") == {"last": 7, "pad": 1}
    assert fields(made, 0, "CCNT") == {"last": 10, "pad": 1}
    assert (fields(made, 0, "PRCNT"), fields(made, 0, "PCCNT")) == ({"last": 1}, {"last": 2})
    assert fields(made, 0, "STRIDE") == {"stride": 1}
    control = fields(made, 0, "LCTL")
    assert (control["pool"], control["max_pool"], control["relu"]) == (1, 0, 0)
    assert fields(made, 0, "POST")["absolute"] == 1
    # Line buffer: pooled columns 4, padded by 1 on both sides, without the kernel's reach
    assert fields(made, 0, "TPTR")["last"] == 4 + 2 - 3


@pytest.mark.parametrize(("bits", "code"), [(8, 0), (1, 1), (2, 2), (4, 3)])
def test_width_of_weights_scales_kernel_counters(tmp_path: Path, bits: int, code: int) -> None:
    layer = {**CONV, "quantization": bits}
    made = program(tmp_path, [layer], sample(3, 4, 4), [weights(6, 3, 3, 3, bits=bits)])
    post = fields(made, 0, "POST")
    assert (post["weight_size"], post["shift"], post["shift_right"]) == (code, 8 - bits, 0)
    assert fields(made, 0, "MCNT") == {"last": 5 * bits, "first": 0}
    assert fields(made, 0, "LCTL2")["last_output"] == 5 * bits
    assert made.softmax_shift == 8 - bits


def test_right_shift_and_bias_are_in_the_group_that_adds_it(tmp_path: Path) -> None:
    layers = [
        {**CONV, "output_shift": -3, "bias_group": 1},
        {**CONV, "processors": hex(mask(6, 12))},
    ]
    kernels = [weights(6, 3, 3, 3), weights(2, 6, 3, 3)]
    made = program(tmp_path, layers, sample(3, 4, 4), kernels, [np.arange(6) + 1])
    mine, other = fields(made, 0, "POST", group=1), fields(made, 0, "POST", group=0)
    assert (mine["bias"], mine["bias_offset"], other["bias"]) == (1, 0, 0)
    assert (mine["shift"], mine["shift_right"]) == (3, 1)
    assert fields(made, 0, "LCTL")["sources"] == 0b0010
    (bias,) = made.biases
    assert (bias.group, bias.address) == (1, APB + MAX78000.bias_address(1))
    assert bias.values.tolist() == [1, 2, 3, 4, 5, 6]


def test_enables_and_write_pointer_follow_the_processor_masks(tmp_path: Path) -> None:
    layers = [
        {**CONV, "processors": 7},
        {**CONV, "processors": hex(mask(20, 12)), "out_offset": "0x100"},
    ]
    kernels = [weights(20, 3, 3, 3), weights(2, 20, 3, 3)]
    made = program(tmp_path, layers, sample(3, 4, 4), kernels)
    # Output begins in instance 3; 20 channels reach from processor 12 to 31.
    assert fields(made, 0, "WPTR_BASE")["pointer"] == 3 << 13 | 0x4000 // 4
    assert fields(made, 0, "LCTL2")["last_output"] == 19 * 8
    assert fields(made, 1, "ENA", 0) == {"processors": 0xF000, "kernels": 0xF000}
    assert fields(made, 1, "ENA", 1) == {"processors": 0xFFFF, "kernels": 0xFFFF}
    assert fields(made, 1, "RPTR_BASE")["word"] == 0x4000 // 4
    assert fields(made, 1, "LCTL", 0)["sources"] == 0b0010
    assert fields(made, 1, "LCTL", 1)["sources"] == 0


def test_passes_and_gaps_make_the_write_step(tmp_path: Path) -> None:
    layer = {**POINT, "processors": hex(mask(36)), "write_gap": 1}
    made = program(tmp_path, [layer], sample(72, 2, 2), [weights(130, 72, 1, 1)])
    control = fields(made, 0, "LCTL2")
    assert (control["passes"], control["write_step"]) == (1, 3 * 2 - 1)
    assert fields(made, 0, "WPTR_CHOFFS")["words"] == 2
    assert fields(made, 0, "ONED")["kernel_length"] == 1


def test_passthrough_reads_no_kernels(tmp_path: Path) -> None:
    made = program(tmp_path, [{"processors": 7, "op": "none"}], sample(3, 4, 4))
    assert fields(made, 0, "ENA") == {"processors": 7, "kernels": 0}
    assert fields(made, 0, "POST")["time_slots"] == 1
    assert registers(made, 0)["WPTR_MOFFS"] == 0
    assert made.kernels == () and made.softmax_shift == 0


def test_combination_of_operands(tmp_path: Path) -> None:
    layer = {"processors": 7, "op": "sub", "operands": 3, "max_pool": 2, "pool_stride": 2}
    made = program(tmp_path, [layer], sample(9, 4, 4))
    found = fields(made, 0, "ONED")
    assert (found["elementwise"], found["operation"], found["operands"]) == (1, 0, 2)
    assert (found["pool_first"], found["elementwise_convolution"]) == (1, 0)


@pytest.mark.parametrize(("pixels", "high", "low"), [(4, 0, 3), (16, 0, 15), (25, 1, 8)])
def test_flattened_layer_counts_pixels_as_passes(
    tmp_path: Path, pixels: int, high: int, low: int
) -> None:
    side = int(pixels**0.5)
    layer = {"processors": 1, "op": "Linear", "flatten": True, "activate": "none"}
    made = program(tmp_path, [layer], sample(1, side, side), [weights(3, pixels)])
    post = fields(made, 0, "POST")
    assert (post["flatten"], post["flatten_high"]) == (int(pixels > 16), high)
    assert fields(made, 0, "LCTL2")["passes"] == low
    assert fields(made, 0, "RCNT")["last"] == 0


def test_value_that_does_not_fit_its_field_becomes_a_diagnostic(tmp_path: Path) -> None:
    layer = {**CONV, "name": "far", "in_offset": "0x80000"}
    with pytest.raises(DiagnosticError) as caught:
        program(tmp_path, [layer], sample(3, 4, 4), [weights(2, 3, 3, 3)])
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == (
        "E405",
        "layer 0 (far): RPTR_BASE.word is 131072, the register field holds 0 to 131071",
    )
    assert found.place is not None and found.place.line is not None


# Which words are written


def test_zeros_are_listed_but_not_written_unless_asked_for(tmp_path: Path) -> None:
    made = program(tmp_path, [CONV], sample(3, 4, 4), [weights(2, 3, 3, 3)])
    listed = writes(made.configure)
    assert {w.value == 0 for w in listed if w.skipped} == {True}
    assert {w.value == 0 for w in listed if not w.skipped} == {False}
    full = program(
        tmp_path, [CONV], sample(3, 4, 4), [weights(2, 3, 3, 3)], write_zero_registers=True
    )
    assert not any(w.skipped for w in writes(full.configure))
    assert [w.address for w in writes(full.configure)] == [w.address for w in listed]


def test_registers_are_written_layer_by_layer_and_group_by_group(tmp_path: Path) -> None:
    layers = [{**CONV, "processors": 7}, {**CONV, "processors": hex(mask(2, 16))}]
    kernels = [weights(2, 3, 3, 3), weights(2, 2, 3, 3)]
    made = program(tmp_path, layers, sample(3, 4, 4), kernels)
    assert [block.title for block in made.configure if block.steps] == [
        "Layer 0 quadrant 0",
        "Layer 0 quadrant 1",
        "Layer 1 quadrant 0",
        "Layer 1 quadrant 1",
    ]
    assert made.groups == (0, 1) and made.power.groups_mask == 0b11


@pytest.mark.parametrize(("pipeline", "waiting"), [(None, 0x84D0), (False, 0x2134)])
def test_snoop_loop_starts_again_when_the_result_is_written(
    tmp_path: Path, pipeline: bool | None, waiting: int
) -> None:
    layer = {**CONV, "out_offset": "0x2000"}
    made = program(tmp_path, [layer], sample(3, 2, 2), [weights(2, 3, 3, 3)], chip=MAX78002,
                   snoop_loop=True, pipeline=pipeline)  # fmt: skip
    assert [(w.comment, w.value) for w in writes(made.start) if "Enable" not in w.comment][:7] == [
        ("Next Layer", 0x80),
        ("Snoop SNP1_HIT", 0),
        ("Snoop SNP1_A1", 0x200800),
        ("Snoop SNP1_X1", waiting),
        ("Snoop SNP1_C2", 0x4000),
        ("Snoop SNP1_C1", 0x8A412014),
        ("Snoop SNP1_C1", 0x8A412015),
    ]


@pytest.mark.parametrize("delay", [None, 0, 1, 1000])
@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda chip: chip.name)
def test_switches_wait_as_long_as_the_option_says_or_the_chip_needs(
    tmp_path: Path, chip: Chip, delay: int | None
) -> None:
    made = program(
        tmp_path, [POINT], sample(1, 1, 1), [weights(1, 1, 1, 1)], chip=chip, switch_delay_ms=delay
    )
    wanted = chip.default_switch_delay_ms if delay is None else delay
    assert made.power.switch_delay_ms == wanted


@pytest.mark.parametrize("count", [1, 2, 4])
def test_linked_layers_name_the_next_one_and_the_last_one_stops(tmp_path: Path, count: int) -> None:
    kernels = [weights(1, 1, 1, 1)] * count
    for link in (False, True):
        made = program(
            tmp_path, [POINT] * count, sample(1, 1, 1), kernels, chip=MAX78002, link_layer=link
        )
        for layer in range(count):
            word = fields(made, layer, "NXTLYR")
            last = layer == count - 1
            wanted = {"jump": 1, "layer": layer + 1} if link and not last else {}
            assert {name: value for name, value in word.items() if value} == wanted | (
                {"stop": 1} if link and last else {}
            )


def test_outputs_stay_in_their_group_if_their_gaps_differ() -> None:
    """All masks of ten processors; data that passes through has no gaps to be put into words."""
    for used, passes, first in product(range(1, 1 << 10), (False, True), (0, 22)):
        layer: Any = SimpleNamespace(output_processors=used << first, has_weights=not passes)
        network: Any = SimpleNamespace(groups_used=(0, 1))
        bits = [n for n in range(10) if used >> n & 1]
        spaced = any(bits == [*range(bits[0], bits[-1] + 1, step)] for step in range(1, 11))
        closed = len(bits) == bits[-1] - bits[0] + 1
        found = MappedNetwork.keeps_outputs_local(network, layer)
        assert found == (not closed if passes else not spaced)


def test_average_pooling_behind_a_combination_gets_a_layer_in_front(tmp_path: Path) -> None:
    """MAX78002 needs it; the layers behind, and those of later rounds, move by it."""
    both = {**POINT, "operands": 2, "eltwise": "add", "in_sequences": "[0, 1]"}
    plans = {
        "no combination": ([POINT, POINT, {**POINT, **AVERAGE}], []),
        "no average": ([POINT, POINT, both, POINT], []),
        "both": ([POINT, POINT, both, {**POINT, **AVERAGE}, POINT], [3]),
        "at once": ([POINT, POINT, {**both, **AVERAGE}, {**POINT, **AVERAGE}], [3]),
    }
    for chip, repeat in product((MAX78000, MAX78002), (1, 3)):
        for plan, (layers, resets) in plans.items():
            places = [{**x, "out_offset": 0x1000 * (i + 1)} for i, x in enumerate(layers)]
            kernels = [weights(1, 1, 1, 1)] * len(layers)
            network, _ = build(tmp_path, describe(*places), sample(1, 8, 8), kernels, chip=chip)
            found = Numbering.of(network.network, chip, repeat)
            wanted = resets if chip is MAX78002 else []
            assert sorted(found.resets) == wanted, plan
            inserted = [n for i in range(len(layers)) for n in ([-1, i] if i in wanted else [i])]
            numbers = [
                [n for n, i in enumerate(inserted * repeat) if i == index][round_]
                for round_ in range(repeat)
                for index in range(len(layers))
            ]
            assert numbers == [
                found.number(layer, round_)
                for round_ in range(repeat)
                for layer in network.network.layers
            ]
            assert found.count == len(inserted) * repeat


def test_layer_in_front_of_an_average_has_the_registers_of_the_manual(tmp_path: Path) -> None:
    both = {**POINT, "operands": 2, "eltwise": "add", "in_sequences": "[0, 1]"}
    layers = [POINT, POINT, both, {**POINT, **AVERAGE}]
    places = [{**x, "out_offset": 0x1000 * (i + 1)} for i, x in enumerate(layers)]
    made = program(tmp_path, places, sample(1, 8, 8), [weights(1, 1, 1, 1)] * 4, chip=MAX78002)
    found = {
        name: {k: v for k, v in fields(made, 3, name).items() if v} for name in registers(made, 3)
    }
    behind = {name: fields(made, 4, name) for name in RESET_AS_BEHIND}
    own = RESET | {name: {k: v for k, v in some.items() if v} for name, some in behind.items()}
    assert {name: some for name, some in found.items() if some} == {
        name: some for name, some in own.items() if some
    }


def test_start_enables_all_groups_and_then_the_master(tmp_path: Path) -> None:
    layers = [CONV, {**CONV, "processors": hex(mask(64))}]
    kernels = [weights(64, 3, 3, 3), weights(2, 64, 3, 3)]
    made = program(tmp_path, layers, sample(3, 2, 2), kernels)
    controls = [APB + MAX78000.control_address(g, "CTL") for g in range(4)]
    assert phase_words(made)["cnn_start"].control == (
        (controls[0], 0x00100808),
        *((address, 0x00100809) for address in controls[1:]),
        (controls[0], 0x00100009),
    )
    assert made.control_addresses == tuple(controls) and made.master_control == controls[0]


@pytest.mark.parametrize(
    ("options", "bits"),
    [
        ({"average_rounding": True}, 1 << 13),
        ({"simple_1bit": True}, 1 << 21),
        ({"external_ready": True}, 1 << 4),
        ({"ready_select": 2}, 2 << 1),
        ({"express": False}, -(1 << 20)),
    ],
)
def test_options_that_set_bits_of_the_control_word(
    tmp_path: Path, options: dict[str, Any], bits: int
) -> None:
    made = program(tmp_path, [POINT], sample(1, 1, 1), [weights(1, 1, 1, 1)], **options)
    assert phase_words(made)["cnn_start"].control[-1][1] == 0x00100009 + bits


def test_optional_steps_of_the_start_up(tmp_path: Path) -> None:
    data, kernels = sample(1, 1, 1), [weights(1, 1, 1, 1)]
    made = program(tmp_path, [POINT], data, kernels, init_tram=True, zero_sram=True)
    steps = [step for block in made.init for step in block.steps]
    cleared = [s for s in steps if isinstance(s, Clear)]
    assert [s.address for s in cleared][:2] == [0x50110000, 0x50114000] and len(cleared) == 16
    waits = [(s.address, s.mask) for s in steps if isinstance(s, Wait)]
    assert waits[:2] == [(0x5010000C, 0x8040000), (0x5050000C, 0x8040000)] and len(waits) == 16
    down = program(tmp_path, [POINT], data, kernels, powerdown=True)
    assert (0x50001000, 0xE000) in phase_words(down)["cnn_start"].control


def test_base_address_moves_every_word(tmp_path: Path) -> None:
    made = program(tmp_path, [CONV], sample(3, 4, 4), [weights(2, 3, 3, 3)], apb_base=0x60000000)
    for name, phase in phase_words(made).items():
        addresses = {*phase.words, *(a for a, _ in phase.control)}
        assert name == "cnn_enable" or all(a >> 28 == 6 for a in addresses)
    assert (made.expected.addresses >> 28 == 6).all()


# Memory images


def test_packed_and_plain_transfer_leave_the_same_kernels(tmp_path: Path) -> None:
    layers = [CONV, {**CONV, "processors": 3}]
    kernels = [weights(2, 3, 3, 3), weights(5, 2, 3, 3)]
    packed, plain = (
        program(tmp_path, layers, sample(3, 4, 4), kernels, express=express)
        for express in (True, False)
    )
    columns = {
        a: v for a, v in phase_words(plain)["cnn_load_weights"].words.items() if a % 16 != 12
    }
    assert phase_words(packed)["cnn_load_weights"].words == columns
    assert len(packed.kernels[0].words) < len(plain.kernels[0].words)


def test_packed_block_of_the_worked_example(tmp_path: Path) -> None:
    # docs/hardware/memory.md, "Order of the bytes": Conv1d, 1 -> 4 channels
    kernel = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12]).reshape(4, 1, 3)
    layer = {**CONV, "processors": 1, "op": "Conv1d", "kernel_size": 3}
    made = program(tmp_path, [layer], sample(1, 4), [kernel])
    (block,) = made.kernels
    assert (block.processor, block.address) == (0, 0x50180000)
    assert block.words.tolist() == [0x07080904, 0x05060102, 0x03000000, 0x0000000A, 0x0BF40000]


def test_zero_columns_are_left_out_of_cleared_memory(tmp_path: Path) -> None:
    kernel = weights(3, 1, 3, 3)
    kernel[1] = 0
    layer = {**CONV, "processors": 1}
    whole = program(tmp_path, [layer], sample(1, 4, 4), [kernel])
    partly = program(tmp_path, [layer], sample(1, 4, 4), [kernel], zero_sram=True)
    assert (len(whole.kernels), len(partly.kernels)) == (1, 2)


def test_interleaved_sample_holds_four_channels_a_word(tmp_path: Path) -> None:
    data = np.arange(1, 7).reshape(3, 1, 2)
    layer = {**POINT, "processors": hex(mask(3, 2)), "in_offset": "0x10"}
    made = program(tmp_path, [layer], data, [weights(1, 3, 1, 1)])
    first, second = made.inputs
    assert (first.number, first.address) == (0, APB + MAX78000.data_address(0, 0x10))
    assert first.words.tolist() == [0x03010000, 0x04020000]
    assert (second.number, second.words.tolist()) == (4, [0x05, 0x06])


def test_planar_sample_holds_four_pixels_a_word(tmp_path: Path) -> None:
    data = np.array([1, -1, 3, 4, 5, 6]).reshape(1, 2, 3)
    layer = {**POINT, "data_format": "CHW"}
    made = program(tmp_path, [layer], data, [weights(1, 1, 1, 1)])
    (block,) = made.inputs
    assert block.words.tolist() == [0x0403FF01, 0x0605]


def test_fixed_input_is_a_pattern_of_the_same_size(tmp_path: Path) -> None:
    made = program(tmp_path, [POINT], sample(1, 1, 3), [weights(1, 1, 1, 1)], fixed_input=True)
    assert made.inputs[0].words.tolist() == [0x55555555, 0xAAAAAAAA, 0x55555555]


# Expected output and its delivery


def identity(channels: int) -> Any:
    """Return 1x1 kernels that multiply by 64: with a shift of 1 outputs equal inputs."""
    return (64 * np.eye(channels, dtype=np.int64)).reshape(channels, channels, 1, 1)


def test_expected_words_hold_each_channel_in_its_lane(tmp_path: Path) -> None:
    data = np.array([[1, 2], [3, 4], [5, -6]]).reshape(3, 1, 2)
    layer = {**POINT, "processors": 7, "output_shift": 1, "output_processors": hex(mask(3, 2))}
    made = program(tmp_path, [layer], data, [identity(3)])
    base = APB + MAX78000.data_address(0, 0x4000)
    expected = made.expected
    assert list(zip(expected.addresses, expected.masks, expected.values, strict=True)) == [
        (base + 0x8000, 0xFF, 5),
        (base + 0x8004, 0xFF, 0xFA),
        (base, 0xFFFF0000, 0x03010000),
        (base + 4, 0xFFFF0000, 0x04020000),
    ]
    (unload,) = made.unload
    assert (unload.width, unload.channels, unload.pixels, unload.size_bytes) == (8, 3, 2, 6)
    assert [(p.address, p.lanes, p.channel, p.stride_bytes) for p in unload.pieces] == [
        (base, (2, 3), 0, 4),
        (base + 0x8000, (0,), 2, 4),
    ]


def test_expected_words_of_wide_output_are_one_for_each_channel(tmp_path: Path) -> None:
    data = np.array([[1, 2], [3, -4]]).reshape(2, 1, 2)
    layer = {**POINT, "processors": 3, "output_width": 32}
    made = program(tmp_path, [layer], data, [identity(2)])
    base = APB + MAX78000.data_address(0, 0x4000)
    assert made.expected.addresses.tolist() == [base, base + 4, base + 16, base + 20]
    assert made.expected.values.view(np.int32).tolist() == [64, 192, 128, -256]
    assert set(made.expected.masks.tolist()) == {0xFFFFFFFF}
    assert (made.output_width, made.output_count) == (32, 4)
    (piece,) = made.unload[0].pieces
    assert (piece.lanes, piece.stride_bytes) == ((0, 1), 16)


def test_outputs_of_several_passes_follow_each_other(tmp_path: Path) -> None:
    kernel = weights(66, 1, 1, 1)
    made = program(tmp_path, [{**POINT, "write_gap": 1}], sample(1, 1, 2), [kernel])
    base = APB + MAX78000.data_address(0, 0x4000)
    (unload,) = made.unload
    firsts = {p.channel: p for p in unload.pieces}
    # 36 channels in the first pass, 30 in the second; a gap of one word behind each word
    assert firsts[0].address == base and firsts[36].address == base + 8
    assert firsts[0].stride_bytes == 16
    assert max(firsts) == 64 and firsts[64].lanes == (0, 1)
    assert sum(len(p.lanes) for p in unload.pieces) == 66


def test_marked_layers_are_delivered_instead_of_the_last(tmp_path: Path) -> None:
    layers = [{**CONV, "output": True}, {**CONV, "processors": 3, "output": True}]
    kernels = [weights(2, 3, 3, 3), weights(4, 2, 3, 3)]
    made = program(tmp_path, layers, sample(3, 4, 4), kernels)
    assert [layer.channels for layer in made.unload] == [2, 4]
    assert len(made.expected) == 2 * 16
    order = np.lexsort((made.expected.addresses, made.expected.masks))
    assert order.tolist() == list(range(32))


# Statistics


def test_operations_and_memory_of_the_worked_example(tmp_path: Path) -> None:
    # docs/hardware/arithmetic.md, "Operation counts"
    layers = [
        {**CONV, "processors": 1, "activate": "ReLU"},
        {
            **CONV,
            "processors": hex(mask(12)),
            "activate": "ReLU",
            "max_pool": 2,
            "pool_stride": 2,
        },
        {
            **POINT,
            "processors": hex(mask(16)),
            "activate": "ReLU",
            "avg_pool": 2,
            "pool_stride": 2,
        },
        {"processors": hex(mask(8)), "op": "Linear", "flatten": True, "activate": "none"},
    ]
    kernels = [
        weights(12, 1, 3, 3),
        weights(16, 12, 3, 3),
        weights(8, 16, 1, 1),
        weights(10, 8 * 49),
    ]
    found = cost(tmp_path, layers, sample(1, 28, 28), kernels)
    operations = [layer.operations for layer in found.layers]
    assert [o.total for o in operations] == [94_080, 351_232, 9_800, 3_920]
    assert sum(o.macc for o in operations) == 433_552
    assert sum(o.comp for o in operations) == 22_344
    assert sum(o.add for o in operations) == 3_136
    assert found.weight_bytes == 108 + 1728 + 128 + 3920
    assert (found.weight_bytes_total, found.bias_bytes_total) == (442_368, 2_048)


@pytest.mark.parametrize("tcalc", [False, True])
def test_layers_that_read_ahead_count_their_passes(tcalc: bool, tmp_path: Path) -> None:
    """docs/hardware/execution.md, "Modes of MAX78002": one less, with tcalc by fours."""
    for passes in range(1, 10):
        layer = {**CONV, "processors": mask(64), "readahead": True, "tcalc": tcalc}
        shapes = sample(64 * passes, 2, 2), [weights(2, 64 * passes, 3, 3)]
        made = program(tmp_path, [layer], *shapes, chip=MAX78002)
        control = fields(made, 0, "LCTL")
        count = len(range(1, passes)) if not tcalc else [*range(passes)][-1] // 4
        assert (control["read_ahead"], control["shift_count"]) == (1, count)
        assert fields(made, 0, "POST")["tcalc"] == tcalc
