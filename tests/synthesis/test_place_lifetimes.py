"""The data memory over time: who reads, who writes, what must survive, and what is lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ai8xtools.synthesis.emit import log_text
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.memory import DataRange, MemoryStep, numbers_text
from ai8xtools.synthesis.options import PlaceOptions
from ai8xtools.synthesis.place.lifetimes import memory_steps
from ai8xtools.synthesis.summarize.memory_log import memory_log
from tests.synthesis.networks import build, describe, mask, sample, weights
from tests.synthesis.programs import options, program, summary
from tests.synthesis.stages import place_what_fits

Keys = Mapping[str, Any]
CONV = {"op": "conv2d", "kernel_size": "3x3", "pad": 1, "processors": mask(4)}


def network(folder: Path, *layers: Keys, **options: Any) -> MappedNetwork:
    """Return convolutions 4x4x4 -> 4x4x4 in instance 0; other layers carry no weights."""
    count = sum(layer["op"] == "conv2d" for layer in layers)
    kernels = [weights(4, 4, 3, 3, seed=i) for i in range(count)]
    return build(folder, describe(*layers), sample(4, 4, 4), kernels, **options)[0]


def steps(made: MappedNetwork) -> list[MemoryStep]:
    """Return the steps of a network that does not stream."""
    return list(memory_steps(made, {}))


def test_a_chain_keeps_only_what_the_layer_reads(tmp_path: Path) -> None:
    first, second = steps(network(tmp_path, CONV, CONV))
    assert first.inputs == (DataRange(-1, (0,), 0, 16),)
    assert first.output == DataRange(0, (0,), 0x4000, 16)
    assert second.inputs == (first.output,)
    assert (first.alive, second.alive, second.losses) == ((), (), ())


def test_a_residual_is_alive_until_it_is_added(tmp_path: Path) -> None:
    add = {
        "op": "add",
        "processors": mask(4),
        "in_sequences": [0, 2],
        "in_offset": 0x1000,
        "out_offset": 0x5000,
    }
    made = network(
        tmp_path,
        {**CONV, "out_offset": 0x1000, "write_gap": 1},
        {**CONV, "in_sequences": "input", "in_offset": 0, "out_offset": 0x4000},
        {**CONV, "out_offset": 0x1004, "write_gap": 1},
        add,
    )
    found = steps(made)
    assert [data.owner for data in found[1].alive] == [0]
    assert [data.owner for data in found[2].alive] == [0]
    assert [data.owner for data in found[3].inputs] == [0, 2]
    assert found[3].alive == ()
    assert not any(step.losses for step in found), "gaps keep interleaved operands apart"
    assert (found[0].output.end, found[0].output.size_bytes) == (0x107C, 64)


def test_overwriting_what_a_later_layer_reads_is_a_loss(tmp_path: Path) -> None:
    made = network(
        tmp_path,
        {**CONV, "out_offset": 0x1000},
        {**CONV, "out_offset": 0x2000},
        {**CONV, "out_offset": 0x1020},
        {**CONV, "in_sequences": 0, "in_offset": 0x1000, "out_offset": 0x3000},
    )
    (loss,) = steps(made)[2].losses
    assert (loss.owner, loss.begin, loss.end) == (0, 0x1020, 0x1040)
    assert not loss.own_input


def test_overwriting_its_own_input_is_told_apart(tmp_path: Path) -> None:
    made = network(tmp_path, CONV, {**CONV, "out_offset": 0x3FF0})
    (loss,) = steps(made)[1].losses
    assert (loss.owner, loss.begin, loss.end) == (0, 0x4000, 0x4030)
    assert loss.own_input


def test_an_output_layer_stays_alive_to_the_end(tmp_path: Path) -> None:
    made = network(
        tmp_path,
        {**CONV, "out_offset": 0x1000, "output": True},
        {**CONV, "out_offset": 0x2000},
        {**CONV, "out_offset": 0x3000},
    )
    assert [data.owner for data in steps(made)[2].alive] == [0]


def test_words_of_wide_outputs_with_gaps() -> None:
    data = DataRange(0, (0,), 0x10, 2, piece_bytes=16, step_bytes=32)
    wanted = [0x10, 0x14, 0x18, 0x1C, 0x30, 0x34, 0x38, 0x3C]
    assert np.array_equal(data.words(), wanted)
    assert (data.end, data.size_bytes) == (0x40, 32)


def test_streams_take_ring_buffers_only(tmp_path: Path) -> None:
    text = describe(
        {**CONV, "processors": mask(1), "streaming": True},
        {**CONV, "processors": mask(4), "streaming": True, "out_offset": 0},
    )
    kernels = [weights(4, 1, 3, 3), weights(4, 4, 3, 3)]
    made, _ = build(tmp_path, text, sample(1, 16, 16), kernels, input_port=InputPort.FIFO)
    rings = place_what_fits(made, PlaceOptions())[0].rings
    first, second = memory_steps(made, rings)
    assert first.inputs == ()
    assert first.output == DataRange(0, (0,), 0x4000, rings[1])
    assert rings[1] < 16 * 16
    assert second.output.count == 16 * 16


def test_log_has_a_line_and_a_picture_per_layer(tmp_path: Path) -> None:
    made = network(tmp_path, CONV, {**CONV, "name": "last", "out_offset": 0x3FF0})
    key = list(memory_log(made, {}))
    assert key[0].startswith("One cell is 512 bytes") and key[1].startswith("*: several")
    first, picture, second, overwritten, most = key[2:]
    assert first == (
        "layer 0: reads input at 0x0000-0x003f in 0; writes layer 0 at 0x4000-0x403f in 0"
    )
    assert picture == f"{'0':>14} i{31 * '.'}0{31 * '.'}"
    assert second.startswith("layer 1 (last): reads layer 0 at 0x4000-0x403f in 0; writes layer 1")
    assert second.endswith("; OVERWRITES layer 0 at 0x4000-0x402f, which it reads itself")
    assert overwritten == f"{'0':>14} {31 * '.'}1*{31 * '.'}"
    assert most == "Data memory:   128 bytes out of 524,288 bytes total (0.0%), most at layer 0"


def test_instances_with_the_same_content_share_a_line(tmp_path: Path) -> None:
    keys = {**CONV, "processors": 0xFF, "out_offset": 0x200}
    made, _ = build(tmp_path, describe(keys), sample(8, 4, 4), [weights(8, 8, 3, 3)])
    assert list(memory_log(made, {}))[3] == f"{'0-1':>14} i0{62 * '.'}"


def test_runs_of_numbers_are_shortened() -> None:
    assert numbers_text((0, 1, 2, 5, 7, 8)) == "0-2, 5, 7-8"
    assert numbers_text(()) == ""


def test_verbose_log_prints_the_lines_in_a_section() -> None:
    told = summary(memory_log=("layer 0: a", "layer 1: b"))
    text = log_text(program(), told, options(verbose=True))
    assert "Data memory (byte offsets in memory instances):\nlayer 0: a\nlayer 1: b\n\n" in text
