"""What microcontrollers, their plans and containers cannot take is refused by its code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands.cmsis.arguments import parse as parse_cmsis
from ai8xtools.commands.container.arguments import parse as parse_container
from ai8xtools.commands.container.container import handle
from ai8xtools.commands.software.arguments import parse as parse_software
from ai8xtools.diagnostics import DiagnosticError
from ai8xtools.diagnostics.errors import ToolError
from ai8xtools.emulator.plain.engine import BASE, CopyEngine
from ai8xtools.quantization.q15.formats import Guard
from ai8xtools.quantization.q15.graph import GraphBuilder
from ai8xtools.quantization.q15.network import check_finite, quantize_network
from ai8xtools.software.bounds import LARGEST, Sums, overflow
from ai8xtools.software.container.from_graph import container_of
from ai8xtools.software.cores import CORES
from ai8xtools.software.fuse import fuse
from ai8xtools.software.lowbit.header import read_header
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.profile import read_profile
from ai8xtools.software.q15.calls import program
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.simulate import simulate
from tests.software.containers import made
from tests.software.networks import random_network
from tools.software_demo import captured

SEEDS = range(100, 150)


def codes(what: Callable[[], object]) -> list[str]:
    """Return the codes of what is refused; none if nothing is."""
    try:
        what()
    except DiagnosticError as refusal:
        return [one.code for one in refusal.diagnostics]
    except ToolError as refusal:
        return [refusal.code]
    return []


@pytest.mark.parametrize("beyond", [0, 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_may_fill_the_accumulator_and_no_more(beyond: int, sign: int) -> None:
    layer, some = random_network(100).layers[0], np.zeros(3, np.int64)
    bound = np.array([1, (LARGEST + beyond) * sign, 5])
    least, most = (some, bound) if sign > 0 else (bound, some)
    complaint = overflow(layer, Sums(some, some, least, most))
    assert (complaint.code if complaint else None) == ("E901" if beyond else None)


def test_a_layer_reads_no_results_of_32_bits() -> None:
    def wide(network: Network) -> Network:
        first = replace(network.layers[0], output_width=32)
        return replace(network, layers=(first, *network.layers[1:]))

    several = [
        n for n in map(random_network, SEEDS) if len(n.layers) > 1 and n.layers[0].has_weights
    ]
    reading = [n for n in several if n.layers[1].sources in (None, (), (0,))]
    assert len(reading) > 3
    assert all("E902" in codes(lambda n=n: lower(wide(n))) for n in reading)


def test_a_microcontroller_that_is_unknown_is_named() -> None:
    assert codes(lambda: read_profile("stm32z9")) == ["E903"]


def test_commands_of_the_demo_have_to_say_what_is_looked_for() -> None:
    assert captured(r"(\d+) bytes", "12 bytes") == "12"
    assert codes(lambda: captured(r"(\d+) bytes", "none")) == ["E010"]


def test_a_plan_with_a_block_out_of_place_is_not_used() -> None:
    right = plan(fuse(lower(random_network(100))), CORES["cortex-m4"], Scheme.RESIDENT)
    right.validate()
    for offset in (-4, right.arena_bytes):
        block = replace(right.blocks[0], offset=offset)
        wrong = replace(right, blocks=(block, *right.blocks[1:]))
        assert codes(wrong.validate) == ["E909"]


@pytest.mark.parametrize(("rows", "counted"), [(65_534, True), (65_536, False)])
def test_maps_have_as_many_rows_as_are_counted(rows: int, counted: bool) -> None:
    builder = GraphBuilder((1, rows, 1))
    graph = builder.finished(builder.pool("p", 0, False, (2, 1), (2, 1)))
    network = quantize_network(graph, [1.0] * 2, [1.0] * 2, 8, Guard.NONE)
    assert codes(lambda: program(network)) == ([] if counted else ["E910"])


def test_a_header_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.h").write_bytes(b"\xff\xfe\x00")
    assert codes(lambda: read_header(str(tmp_path / "model.h"))) == ["E726"]


def test_a_container_that_computes_something_else_is_not_written() -> None:
    written = 0
    for network in map(random_network, SEEDS):
        if len(network.layers) > 1 or codes(lambda n=network: lower(n)):
            continue
        graph, sample = lower(network), network.sample
        outputs = simulate(network, average_rounding=False).outputs
        right = outputs[network.final.index]
        if codes(lambda g=graph, s=sample, r=right: container_of(g, s, r, None)):
            continue  # a layer that containers do not have
        written += 1
        wrong = right ^ 1
        assert codes(lambda g=graph, s=sample, w=wrong: container_of(g, s, w, None)) == ["E668"]
    assert written > 1


def test_a_key_is_for_containers_that_are_encrypted(tmp_path: Path) -> None:
    file, key = tmp_path / "net.nnb", tmp_path / "key"
    file.write_bytes(made("convolutions"))
    key.write_bytes(bytes(range(32)))
    words = ["decrypt", str(file), str(tmp_path / "clear.nnb"), "--key", str(key)]
    assert codes(lambda: handle(parse_container(words))) == ["E928"]


@pytest.mark.parametrize("waited", [1, 2])
def test_a_copy_is_waited_for_once(waited: int) -> None:
    memory = bytearray(16)
    engine = CopyEngine()
    engine.attach(
        lambda address, count: bytes(memory[address : address + count]),
        lambda address, data: memory.__setitem__(slice(address, address + len(data)), data),
    )
    (area,) = engine.areas
    for register in (7, *[8] * waited):
        if register == 8 and waited == 2 and engine.idle:
            assert codes(lambda: area.write(BASE + 4 * 8, 4, 0)) == ["E829"]
        else:
            area.write(BASE + 4 * register, 4, 0)
    assert engine.idle


def test_weights_of_a_network_are_finite() -> None:
    for value, wanted in ((1.0, []), (np.nan, ["E507"]), (np.inf, ["E507"])):
        builder = GraphBuilder((1, 2, 2))
        kernel = np.full((1, 1, 1, 1), value)
        graph = builder.finished(builder.convolution("c", 0, kernel, None))
        assert codes(lambda g=graph: check_finite(g, None)) == wanted


def test_options_that_change_nothing_are_named() -> None:
    net = ["--config-file", "x.yaml", "--prefix", "p", "--test-dir", "t", "--mcu", "rp2040"]
    placing = parse_software(["--device", "MCU", *net, "--overlap-data"])
    former = parse_cmsis(["--device", "CMSIS-NN", *net, "--fc-layer"])
    assert [one.code for one in placing.notices] == ["N957"]
    assert "N957" in [one.code for one in former.notices]
