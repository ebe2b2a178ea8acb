"""Output through the transposing ports: which layers, which words, the same bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ai8xtools.diagnostics import Diagnostic
from ai8xtools.synthesis.emit import check_outputs
from ai8xtools.synthesis.emit.unload import unload_code
from ai8xtools.synthesis.encode.mlator import TransposerWords
from ai8xtools.synthesis.program import Program, UnloadLayer
from device import MAX78000, MAX78002
from tests.synthesis.programs import (
    DATA,
    OFFSET,
    WIDE,
    emit,
    options,
    planar,
    program,
    store,
    summary,
)

BASE = 0x50000000


TWO_GROUPS = planar(((2, 3), (0, 1), (), (), (1,)), 24)
ONE_CHANNEL = planar(((3,),), 11)


def outputs(made: Program, **changes: Any) -> list[Diagnostic]:
    return [*check_outputs(options(**changes), made, summary())]


def test_words_name_instance_offset_and_lane() -> None:
    channel = TransposerWords(MAX78000, BASE, 1).channel(instance=6, lane=3, offset=0x1000)
    assert channel.port.group == 1
    assert (channel.port.control_address, channel.port.data_address) == (0x50500000, 0x50501000)
    assert (channel.port.pointer_address, channel.port.step_address) == (0x50500310, 0x50500A10)
    assert channel.pointer == 2 << 13 | 0x400
    assert (channel.selected, channel.port.released, channel.step) == (0x7000A, 0xA, 0)


def test_port_of_max78002() -> None:
    channel = TransposerWords(MAX78002, BASE, 0).channel(instance=1, lane=0, offset=0)
    assert channel.port.data_address == 0x51110000 and channel.pointer == 1 << 15
    assert (channel.port.pointer_address, channel.port.step_address) == (0x5110001C, 0x51100034)


@pytest.mark.parametrize(
    ("layers", "unroll", "wanted"),
    [
        ((TWO_GROUPS,), 8, [(1, 6)]),
        ((TWO_GROUPS,), 4, [(1, 4), (1, 2)]),
        ((TWO_GROUPS,), 1, [(6, 1)]),
        ((TWO_GROUPS,), 0, [(1, 6)]),
        ((replace(TWO_GROUPS, pixels=64),), 8, [(2, 8)]),
    ],
)
def test_reads_are_unrolled(
    layers: tuple[UnloadLayer, ...], unroll: int, wanted: list[tuple[int, int]]
) -> None:
    (output,) = unload_code(layers, 8, 1, unroll).outputs
    assert output.transposed and not output.runs
    assert [(chunk.loops, chunk.bodies) for chunk in output.transposed.chunks] == wanted


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (WIDE, "its output has 32 bits"),
        (replace(ONE_CHANNEL, pixels=3), "it has 3 values per channel, fewer than 4"),
        (replace(TWO_GROUPS, pixels=6), "6 values per channel are not a multiple of 4"),
        (replace(TWO_GROUPS, transposed=()), "its values do not stand in successive words"),
    ],
)
def test_other_layers_are_read_as_always_and_named(layer: UnloadLayer, reason: str) -> None:
    assert unload_code([layer], 8, 1, 8) == unload_code([layer], 8, 1)
    made = program(unload=(layer,))
    (found,) = outputs(made, mlator=True)
    assert (found.code, found.message) == ("W021", f"layer 1 is read without it: {reason}")
    assert outputs(made, mlator=True, ignore_mlator_warning=True) == []
    assert outputs(made) == []


def test_layer_behind_an_odd_number_of_bytes_is_read_as_always() -> None:
    both = unload_code([ONE_CHANNEL, TWO_GROUPS], 8, 1, 8)
    assert both.outputs[0].transposed and both.outputs[1].runs
    found = outputs(program(unload=(ONE_CHANNEL, TWO_GROUPS)), mlator=True)
    assert [d.message for d in found] == [
        "layer 1 is read without it: it starts at byte 11 of the result, not at a whole word"
    ]


def test_users_are_told_what_the_ports_could_do() -> None:
    (found,) = outputs(program(unload=(TWO_GROUPS,)))
    assert found.code == "N022"
    assert outputs(program(unload=(TWO_GROUPS,)), unload=False) == []


@pytest.mark.parametrize(
    "layers", [(TWO_GROUPS,), (ONE_CHANNEL,), (TWO_GROUPS, WIDE), (ONE_CHANNEL, TWO_GROUPS)]
)
@pytest.mark.parametrize("unroll", [4, 0])
def test_same_bytes_as_from_memory_and_registers_are_put_back(
    layers: tuple[UnloadLayer, ...], unroll: int, tmp_path: Path
) -> None:
    pytest.importorskip("unicorn", reason="needs the emulator (extra `emulator`)")
    from ai8xtools.emulator.cpu.core import MEMORY_BYTES, RAM, Core
    from ai8xtools.emulator.firmware.bus import Bus
    from ai8xtools.emulator.firmware.compiling import compile_project

    made = program(unload=layers)
    results = []
    for mlator in (False, True):
        folder = store(emit(made, mlator=mlator, unroll_mlator=unroll), tmp_path / str(mlator))
        bus = Bus(MAX78000)
        core = Core(compile_project(folder), bus)
        rng = np.random.default_rng(1)
        for instance in range(5):
            start = BASE + MAX78000.data_address(instance, 0)
            for address in [
                *range(start, start + 64, 4),
                *range(start + OFFSET, start + 0x1300, 4),
            ]:
                bus.words[address] = int(rng.integers(2**32))
        kept = {0x50100310: 0x1234, 0x50100A10: 0x567, 0x50500310: 0x89}
        bus.words.update(kept)
        buffer = RAM + MEMORY_BYTES // 2
        core.write_memory(buffer, b"\xa5" * 256)
        assert core.call("cnn_unload", buffer) == 1
        results.append(core.read_memory(buffer, 256))
        assert {address: bus.words[address] for address in kept} == kept
    assert results[0] == results[1]
    assert results[0][: layers[0].size_bytes] != b"\xa5" * layers[0].size_bytes


def test_only_ports_need_no_pointer_to_memory() -> None:
    text = emit(program(unload=(TWO_GROUPS,)), mlator=True)["cnn.c"]
    assert "*addr" not in text and "*out8" not in text
    assert hex(DATA) not in text
