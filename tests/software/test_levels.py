"""Memory levels: what fits in small fast memory, and in which order it is copied."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.emulator.cpu.compiler import PREFERENCE
from ai8xtools.software.cores import CORES
from ai8xtools.software.fuse import fuse
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.channels import distance
from ai8xtools.software.plan.geometry import Geometry
from ai8xtools.software.plan.planner import Planner, Wish, best_plan
from ai8xtools.software.plan.schemes import (
    Planes,
    Room,
    Rows,
    Scheme,
    Weights,
    first,
    planes,
    resident_memory,
    rows,
    smallest,
)
from ai8xtools.software.plan.task import Level, Spot, Task
from ai8xtools.software.profile import Profile
from ai8xtools.synthesis.network import Layer, Network, Operator
from ai8xtools.synthesis.simulate import simulate
from tests.networks.deployed import BY_FILE
from tests.software.compiled import compiler
from tests.software.cost_model import apart, compared
from tests.software.forced_schemes import network_of, results
from tests.software.level_graphs import judge, wrong_run
from tests.software.networks import random_network
from tests.software.oracle.machine import POISON, Copy, Machine
from tests.software.oracle.order import pixel_events, row_events
from tests.software.planner_answers import level_cases


def _image(rows: int, columns: int, channels: int, filters: int) -> Geometry:
    bits = 9 * channels * 8
    return Geometry(
        in_size=(rows, columns), channels=channels, out_size=(rows, columns), filters=filters,
        reach=(3, 3), kernel=(3, 3), pad=(1, 1), filter_bits=bits, weight_bytes=filters * bits // 8,
    )  # fmt: skip


def _room(l1: int) -> Room:
    return Room(l1=l1, l2=0, dma=True, in_place=False, scratch=0, reads=False, writes=False)


def test_known_answers(shared: Path) -> None:
    cases = list(level_cases(shared / "kat-software" / "planner"))
    assert len(cases) == 31
    assert [case for case in cases if case[1]] == []


def test_large_image_of_three_channels_takes_rows() -> None:
    layer = _image(480, 640, 3, 8)
    assert 3 * layer.row_bytes == 5760
    found = rows(layer, _room(20480))
    assert found == Rows(weights=Weights.RESIDENT, band=1, filters=8, columns=640, tiles=1,
                         memory=7680 + 216 + 10240, traffic=921600 + 216)  # fmt: skip
    assert first(layer, _room(20480)) is Scheme.ROWS


@pytest.mark.parametrize(
    ("channels", "l1", "way"),
    [(512, 16384, Scheme.PLANES), (1024, 16384, Scheme.PLANES),
     (512, 65536, Scheme.ROWS), (1024, 65536, Scheme.PLANES)],
)  # fmt: skip
def test_small_images_of_many_channels_take_planes(channels: int, l1: int, way: Scheme) -> None:
    layer = _image(15, 20, channels, channels)
    assert 3 * layer.row_bytes == 60 * channels
    assert first(layer, _room(l1)) is way
    if l1 == 16384:
        assert planes(layer, _room(l1)) == Planes(filters=12, rows=15, columns=20, memory=15216)


def test_whole_layer_is_first_where_it_fits() -> None:
    layer = _image(8, 8, 4, 8)
    need = resident_memory(layer, _room(0))
    assert first(layer, _room(need)) is Scheme.RESIDENT
    assert first(layer, _room(need - 1)) is not Scheme.RESIDENT


def test_smallest_memory_is_enough_and_one_byte_less_is_not() -> None:
    layer = _image(15, 20, 64, 64)
    least = smallest(layer, _room(0), by_planes=True)
    assert first(layer, _room(least)) is not None
    assert first(layer, _room(least - 1)) is None


def test_rows_behind_the_end_are_not_waited_for() -> None:
    layer = _image(3, 5, 1, 1)
    told = [(str(e.act), *e.numbers) for e in row_events(layer, 1, 3)]
    starts = [one for one in told if one[:2] == ("start", 0)]
    waits = [one for one in told if one == ("wait", 0)]
    assert starts == [("start", 0, 0, 2, 0), ("start", 0, 2, 1, 2)]
    assert len(waits) == len(starts)


def test_last_unit_of_pixels_is_shorter() -> None:
    told = [e.numbers for e in pixel_events(30, 8) if str(e.act) == "start" and e.numbers[0] == 0]
    assert told == [(0, 0, 8, 0), (0, 8, 8, 1), (0, 16, 8, 0), (0, 24, 6, 1)]


@pytest.mark.parametrize("seed", [*range(22), 1036, 1251, 4099])
def test_plans_of_a_random_network_hold_what_they_say(seed: int) -> None:
    wrong, _ = judge(seed)
    assert wrong == []


@pytest.mark.parametrize("dma", [0, 1])
@pytest.mark.parametrize("seed", [0, 12, 20])
def test_layers_hand_each_other_rows_through_rings(seed: int, dma: int) -> None:
    network = random_network(seed)
    graph = fuse(lower(network))
    profile = Profile("chains", CORES["cortex-m4"], 1 << 20, 8192, 65536, dma=dma)
    wish = Wish(schemes=frozenset({Scheme.ROW_CHAIN}))
    plan = Planner(graph, profile, profile.l1, wish).plan()
    links = [task.links for task in plan.tasks if task.links]
    assert links and plan.passing
    for some in links:
        assert [link.index for link in some] == [some[0].index + n for n in range(len(some))]
    names = [task.name for task in plan.tasks if task.links]
    assert names == [f"{some[0].step.name} to {some[-1].step.name}" for some in links]
    assert not plan.passing & plan.places.keys()
    made = simulate(network, average_rounding=False).outputs
    outputs = tuple(made[layer.index] for layer in network.outputs())
    assert [*wrong_run(network, plan, outputs)] == []


def test_chains_of_rows_have_at_most_12_layers() -> None:
    count = 15
    weights = np.ones((2, 2, 1, 1), np.int8)
    layers = tuple(
        Layer(
            index=n, operator=Operator.CONV2D, in_channels=2, out_channels=2, in_dim=(4, 4),
            pooled_dim=(4, 4), kernel=(1, 1), pad=(0, 0), out_dim=(4, 4), weight_bits=8,
            weights=weights,
        )
        for n in range(count)
    )  # fmt: skip
    everything = tuple(range(count))
    network = Network(
        layers=layers, order=everything, simulated=everything, sample=np.zeros((2, 4, 4), np.int64)
    )
    graph = fuse(lower(network))
    planner = Planner(graph, Profile("any", CORES["cortex-m4"], 1 << 20, 1 << 20), 1 << 20, Wish())
    assert planner.chains.most == [min(12, count - n) for n in range(count)]


def test_valid_windows_need_no_distance_and_padded_ones_a_row() -> None:
    layer = _image(10, 12, 1, 1)
    assert distance(replace(layer, pad=(0, 0), out_size=(8, 10))) == 0
    assert distance(layer) == 12 + 1
    assert distance(replace(layer, stride=(2, 2), out_size=(5, 6))) == 0


@pytest.mark.parametrize("dma", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_layers_that_do_not_mix_channels_work_in_place(seed: int, dma: int) -> None:
    network = apart(seed)
    graph = fuse(lower(network))
    profile = Profile("stacks", CORES["cortex-m4"], 1 << 20, 2048, 65536, 1 << 20, dma=dma)
    wish = Wish(schemes=frozenset({Scheme.CHAIN}), in_place=seed % 2 == 0)
    plan = Planner(graph, profile, profile.l1, wish).plan()
    assert {task.scheme for task in plan.tasks} == {Scheme.CHAIN}
    made = simulate(network, average_rounding=False).outputs
    outputs = tuple(made[layer.index] for layer in network.outputs())
    assert [*wrong_run(network, plan, outputs)] == []


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_c_of_layers_that_do_not_mix_channels(tmp_path: Path) -> None:
    network = apart(7)
    found = [*results(network, ("chain",), tmp_path, [])]
    assert [(text[:6], good) for text, good in found] == [("2 of 2", True)]


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_c_of_layers_that_hand_each_other_rows(tmp_path: Path) -> None:
    network = network_of(BY_FILE["mnist-extrasmall-chw-ai85"], tmp_path)
    found = [*results(network, ("chain",), tmp_path, [])]
    assert [(text[:6], good) for text, good in found] == [("3 of 4", True)]


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
@pytest.mark.parametrize("seed", [13])
def test_c_of_a_random_network_with_copies_at_once_and_delayed(seed: int, tmp_path: Path) -> None:
    wrong, taken = judge(seed, tmp_path)
    assert wrong == [] and taken


def test_one_dimensional_data_stand_in_lines_where_that_costs_less(tmp_path: Path) -> None:
    network = network_of(BY_FILE["kws20-v3-ai85"], tmp_path)
    graph = fuse(lower(network))
    profile = Profile("lines", CORES["cortex-m4"], 1 << 20, 1 << 17, 1 << 18, dma=3)
    plan = best_plan(graph, profile, profile.l1, Wish())
    columns = Planner(graph, profile, profile.l1, Wish()).plan()
    assert plan.cycles < 0.7 * columns.cycles
    made = simulate(network, average_rounding=False).outputs
    outputs = tuple(made[layer.index] for layer in network.outputs())
    assert [*wrong_run(network, plan, outputs)] == []


def test_copies_that_are_not_waited_for_leave_poison() -> None:
    sizes = {Level.L1: 8, Level.L3: 8}
    machine = Machine(sizes, delayed=True)
    machine.memories[Level.L3][:] = 1
    machine.start(0, Copy(Spot(Level.L1, 2), 2, Spot(Level.L3, 0), 2, 1, 3))
    assert machine.memories[Level.L1].tolist() == [POISON] * 8
    machine.memories[Level.L3][0] = 7
    machine.wait(0)
    assert machine.memories[Level.L1][2:7:2].tolist() == [7, 1, 1]
    assert machine.traffic.inputs == 3
    assert machine.idle()


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_forced_schemes_of_a_network_give_the_same_bytes(tmp_path: Path) -> None:
    network = network_of(BY_FILE["digits-chw-ai85"], tmp_path)
    refused: list[tuple[str, Task]] = []
    found = [*results(network, ("planes", "rows", "pixels"), tmp_path, refused)]
    assert [(text[:6], good) for text, good in found] == [("4 of 4", True)] * 2 + [("1 of 4", True)]
    expected = ("pixels", "not pixels: a result needs more than the pixel in its place")
    assert [(scheme, task.reason.split(";")[0]) for scheme, task in refused] == [expected] * 3


def test_predicted_instructions_are_near_those_of_the_emulator(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PREFERENCE, "zig")
    assert compared("cortex-m4", ["digits-chw-ai85"])
    assert "| digits-chw-ai85 | cortex-m4 |" in capsys.readouterr().out
