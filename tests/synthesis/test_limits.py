"""Clocks and ring buffers of streams: what fits, and what is said about what does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.options import EncodeOptions, PlaceOptions
from device import MAX78000, MAX78002, Chip
from tests.synthesis.networks import build, describe, line_of, mask, sample, weights
from tests.synthesis.stages import check_limits, encoding

FIRST: dict[str, Any] = {
    "processors": 7,
    "op": "Conv2d",
    "activate": "ReLU",
    "streaming": True,
    "in_offset": 0,
    "out_offset": 0,
    "output_processors": 0xF0,
}
SECOND: dict[str, Any] = {
    **FIRST,
    "processors": 0xF0,
    "in_offset": 0,
    "out_offset": 0x2000,
    "output_processors": 0xF00,
}
KERNELS = [weights(4, 3, 3, 3), weights(4, 4, 3, 3)]


def found(
    folder: Path,
    layers: list[dict[str, Any]],
    chip: Chip = MAX78000,
    fifo: bool = True,
    size: int = 8,
    **options: Any,
) -> list[Diagnostic]:
    """Return the complaints about layers behind a FIFO."""
    text = describe(*layers)
    kernels = KERNELS[: sum(layer["op"] != "none" for layer in layers)]
    port = InputPort.FIFO if fifo else InputPort.MEMORY
    network, _ = build(folder, text, sample(3, size, size), kernels, chip=chip, input_port=port)
    return list(check_limits(network, encoding(**options)))


def said(complaints: list[Diagnostic]) -> list[tuple[str, str, str | None]]:
    """Return code, message and remedy of each."""
    return [(d.code, d.message, d.remedy) for d in complaints]


@pytest.mark.parametrize("chip", [MAX78000, MAX78002], ids=lambda c: c.name)
def test_streams_side_by_side_are_legal(tmp_path: Path, chip: Chip) -> None:
    assert found(tmp_path, [FIRST, SECOND], chip) == []


def test_ring_buffer_must_not_reach_the_output(tmp_path: Path) -> None:
    layers = [FIRST, {**SECOND, "out_offset": 0x40, "output_processors": 0xF0}]
    complaint, *_ = found(tmp_path, layers)
    assert said([complaint]) == [
        (
            "E408",
            "layer 1: the ring buffer at 0x0 to 0x68 reaches the output at 0x40",
            "Use an out_offset of 0x6c or more, or other output_processors.",
        )
    ]
    assert complaint.place is not None
    assert (complaint.place.line, complaint.place.column) == line_of(
        describe(*layers), "out_offset", 1
    )


def test_output_must_not_reach_the_ring_buffer(tmp_path: Path) -> None:
    layers = [
        FIRST,
        {**SECOND, "in_offset": 0x80, "out_offset": 0x40, "output_processors": 0xF0},
    ]
    complaint, *_ = found(tmp_path, layers)
    assert said([complaint]) == [
        (
            "E408",
            "layer 1: the output at 0x40 to 0x140 reaches the ring buffer at 0x80 to 0xe8",
            "Use an in_offset of 0x144 or more, or other output_processors.",
        )
    ]


def test_remedies_are_remedies(tmp_path: Path) -> None:
    shared = {**SECOND, "output_processors": 0xF0}
    assert found(tmp_path, [FIRST, {**shared, "out_offset": 0x6C}]) == []
    assert found(tmp_path, [FIRST, {**shared, "in_offset": 0x144, "out_offset": 0x40}]) == []


def test_ring_buffer_stays_inside_its_memory(tmp_path: Path) -> None:
    layers = [FIRST, {**SECOND, "in_offset": 0x7FC0}]
    assert said(found(tmp_path, layers)) == [
        (
            "E407",
            "layer 1: the ring buffer at 0x7fc0 to 0x8028 ends beyond the 32768 bytes of a memory "
            "instance",
            "The highest in_offset that fits is 0x7f94.",
        )
    ]
    assert found(tmp_path, [FIRST, {**SECOND, "in_offset": 0x7F94}]) == []


def test_streams_do_not_share_memory(tmp_path: Path) -> None:
    layers = [
        {**FIRST, "processors": 0xF, "output_processors": 0x70000},
        {**SECOND, "processors": 0x70000, "output_processors": 0xF, "out_offset": 0},
    ]
    text = describe(*layers)
    kernels = [weights(3, 4, 3, 3), weights(4, 3, 3, 3)]
    network, _ = build(tmp_path, text, sample(4, 8, 8), kernels, input_port=InputPort.FIFO)
    complaints = list(check_limits(network, EncodeOptions()))
    assert said(complaints) == [
        (
            "E409",
            "layer 0: the ring buffer at 0x0 to 0x8 and the output of layer 1 at 0x0 to 0x100 "
            "share memory",
            "Move one of them with in_offset and out_offset, or to other processors.",
        )
    ]
    (tolerated,) = check_limits(network, EncodeOptions(PlaceOptions(overlap_data=True)))
    assert str(tolerated.severity) == "warning"


def test_overlaps_can_be_warnings(tmp_path: Path) -> None:
    layers = [FIRST, {**SECOND, "in_offset": 0x7FC0}]
    (complaint,) = found(tmp_path, layers, stops_at_overlaps=False)
    assert (complaint.code, str(complaint.severity)) == ("E407", "warning")


def test_quantities_of_a_stream_fit_their_registers(tmp_path: Path) -> None:
    wide = {**FIRST, "max_pool": 16, "pool_stride": 16}
    assert said(found(tmp_path, [wide, SECOND], size=300, increase_delta1=31)) == [
        (
            "E406",
            "layer 0: the stream starts after 72256 words, the limit is 16383",
            "Pool less, or use a smaller image.",
        ),
        (
            "E406",
            "layer 0: the stream advances by 4500 words after a row, the limit is 4095",
            "Pool less, or use a smaller image.",
        ),
        (
            "E406",
            "layer 1: the stream advances by 32 words, the limit is 31",
            "Pool less, or use a smaller image.",
        ),
        (
            "E407",
            "layer 0: the ring buffer at 0x0 to 0x4af90 ends beyond the 32768 bytes of a memory "
            "instance",
            "Pool less, or use a smaller image.",
        ),
    ]


AHEAD: dict[str, Any] = {**FIRST, "readahead": True, "out_offset": 0x4000}


def test_parts_of_streams_that_read_ahead(tmp_path: Path) -> None:
    layers = [{**AHEAD, "out_offset": 0x8000}, {**SECOND, "readahead": True, "out_offset": 0x4000}]
    assert said(found(tmp_path, layers, MAX78002)) == [
        (
            "E440",
            "layer 1: reads ahead, but its input begins in the same part of the memory as that of "
            "layer 0 (0x0 to 0x3fff)",
            "Move it to another part, or remove 'readahead'.",
        )
    ]


def test_parts_of_a_layer_that_reads_ahead(tmp_path: Path) -> None:
    layer = {**AHEAD, "streaming": False}
    assert found(tmp_path, [layer], MAX78002, fifo=False) == []
    for offset, what in ((0x3000, "begin and end"), (0x3F80, "begin")):
        complaints = found(tmp_path, [{**layer, "out_offset": offset}], MAX78002, fifo=False)
        assert said(complaints) == [
            (
                "E411",
                f"layer 0: reads ahead, but input and output {what} in the same part of the "
                "memory (0x0 to 0x3fff)",
                "Move one of them to another part, or remove 'readahead'.",
            )
        ]


def test_clock_above_the_limit_without_a_pipeline(tmp_path: Path) -> None:
    (complaint,) = found(tmp_path, [FIRST], MAX78002, pipeline=False, clock_divider=2)
    assert str(complaint) == (
        "option --no-pipeline: warning: the accelerator runs at 100 MHz, without a pipeline the "
        "limit is 50 [W038]\n  Use a larger --clock-divider."
    )


def test_slow_clock_needs_no_pipeline(tmp_path: Path) -> None:
    (complaint,) = found(tmp_path, [FIRST], MAX78002, clock_divider=4)
    assert str(complaint) == (
        "option --pipeline: notice: the accelerator runs at 50 MHz, up to 50 it needs no pipeline "
        "[N039]\n  Add --no-pipeline to save energy."
    )
    assert found(tmp_path, [FIRST], MAX78002, pipeline=False) == []


def test_many_processors_are_no_hindrance(tmp_path: Path) -> None:
    wide = {**SECOND, "output_processors": mask(4, 60)}
    assert found(tmp_path, [FIRST, wide]) == []


def test_conditional_execution_needs_the_newer_chip(tmp_path: Path) -> None:
    text = describe(FIRST, snoop=(0,) * 32)
    port = InputPort.FIFO
    network, _ = build(tmp_path, text, sample(3, 8, 8), KERNELS[:1], input_port=port)
    (complaint,) = check_limits(network, EncodeOptions())
    line, column = line_of(text, "snoop", None)
    assert str(complaint) == (
        f"net.yaml:{line}:{column}: error: 'snoop' is not supported by MAX78000 [E315]\n"
        "  Remove the key, or use --device MAX78002."
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("ready_select_fifo", 1),
        ("fifo_go", True),
        ("override_start", 1),
        ("override_rollover", 1),
        ("override_delta1", 1),
        ("override_delta2", 1),
        ("increase_start", 3),
        ("increase_delta1", 1),
        ("increase_delta2", 1),
    ],
)
def test_option_of_streams_without_any_is_named(tmp_path: Path, option: str, value: int) -> None:
    plain = {**FIRST, "streaming": False, "out_offset": 0x2000}
    (complaint,) = found(tmp_path, [plain], fifo=False, **{option: value})
    assert complaint.code == "W041" and complaint.place is not None
    name = "--" + option.replace("_", "-").replace("ready-select", "ready-sel")
    assert complaint.place.option == name
    assert complaint.message.startswith("it has no effect without ")
    assert not [d for d in found(tmp_path, [FIRST, SECOND], **{option: value}) if d.code == "W041"]


def test_accumulators_are_compared_with_what_the_description_says(tmp_path: Path) -> None:
    (complaint,) = found(tmp_path, [FIRST], MAX78002, check_snoop=True)
    assert str(complaint).endswith(
        ":1:1: option --debug-snoop: error: the description does not say what to expect [E089]\n"
        "  Add the global key snoop, or leave the option out."
    )


PLAIN: dict[str, Any] = {"processors": 7, "op": "none", "output_processors": 7}


def rounds(folder: Path, *offsets: int, **options: Any) -> list[tuple[str, str]]:
    """Return what is said of layers with these out_offsets that run twice."""
    text = describe(*({**PLAIN, "out_offset": offset} for offset in offsets))
    network, _ = build(folder, text, sample(3, 4, 4))
    found = check_limits(network, encoding(repeat_layers=2, **options))
    return [(d.code, d.message) for d in found]


def test_rounds_leave_the_sample_and_the_result_alone(tmp_path: Path) -> None:
    assert rounds(tmp_path, 0x1000, 0x2000) == []
    end = "which other rounds need; the chip may compute something else than the known answer"
    assert rounds(tmp_path, 0x1000, 0x20) == [
        ("W413", f"layer 1: the output overwrites 0x20 to 0x3f of the input data, {end}")
    ]
    assert rounds(tmp_path, 0x2000, 0x1000, 0x2020) == [
        ("W413", f"layer 0: the output overwrites 0x2020 to 0x203f of the output of layer 2, {end}")
    ]
    assert rounds(tmp_path, 0x1000, 0x20, overlap_data=True) == []
