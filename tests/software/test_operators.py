"""Every operator and key without the accelerator: plans compute what the simulation computes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ai8xtools.commands.software.arguments import parse
from ai8xtools.commands.software.planning import as_program
from ai8xtools.commands.software.report import report_of
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.plain import compile_plain, run_plain
from ai8xtools.software.build import build
from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.text import log_text
from ai8xtools.software.fuse import fuse
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.cost import stack_bytes
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import SINGLE, Scheme
from ai8xtools.software.profile import read_profile
from ai8xtools.synthesis.simulate import simulate
from tests.software.against_simulation import files_of, inputs_of, judge
from tests.software.compiled import compiler
from tests.software.operators import NETWORKS, Small, network_of
from tests.software.oracle.whole import Executor
from tests.software.same_on_cores import ran, small


@pytest.mark.parametrize("name", NETWORKS)
def test_plans_of_a_network_compute_what_the_simulation_does(name: str) -> None:
    network = network_of(NETWORKS[name], seed=1)
    network.validate()
    graph = fuse(lower(network, average_rounding=True))
    made = simulate(network, average_rounding=True).outputs
    for scheme, core in zip(SINGLE, ("cortex-m4", "rv32ec"), strict=True):
        planned = plan(graph, CORES[core], scheme)
        planned.validate()
        found = Executor(planned).run(network.sample)
        for layer, values in zip(network.outputs(), found, strict=True):
            assert np.array_equal(values, made[layer.index])


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
@pytest.mark.parametrize(
    ("name", "scheme"), [("rolling buffer", Scheme.RESIDENT), ("narrow weights", Scheme.ROWS)]
)
def test_c_gives_the_outputs_of_the_simulation_at_the_ends_of_inputs(
    name: str, scheme: Scheme
) -> None:
    """`make measure WHAT=software-operators` has all networks, plans and sets of kernels."""
    assert [*judge(name, ["rv32imc"], 6, schemes=[scheme])] == []


@pytest.mark.parametrize("name", ["only passed on", "a pixel"])
def test_plans_of_the_smallest_networks_are_shown(name: str) -> None:
    """One of them has no steps at all."""
    profile = read_profile("ch32v003")
    network = network_of(NETWORKS[name])
    built = build(network, profile)
    assert "RAM: " in log_text(built, profile, "")
    options = parse([
        "--device", "MCU", "--mcu", "ch32v003", "--test-dir", "unused", "--prefix", "small",
        "--config-file", "unused.yaml", "--checkpoint-file", "unused.pth.tar",
    ]).source  # fmt: skip
    results = as_program(network, average_rounding=False).results()
    page, facts = report_of(built, profile, results, options, [])
    steps = len(built.plan.graph.steps)
    assert len(json.loads(facts)["steps"]) == steps and "It fits." in page
    assert ("<svg" in page) is ("where the time goes" in page.lower()) is (steps > 0)


@pytest.mark.parametrize("scheme", Scheme)
def test_stack_of_a_long_chain_is_estimated(scheme: Scheme, tmp_path: Path) -> None:
    """Steps that ask each other for rows are called from each other."""
    layer = "- {op: conv2d, activate: ReLU}\n"
    small = Small(f"\n{15 * layer}", (4, 6, 5), 15 * (((4, 4, 3, 3), 8, 4),))
    network = network_of(small)
    for name, text in files_of(network, "cortex-m0plus", scheme).items():
        (tmp_path / name).write_text(text)
    run = run_plain(compile_plain(tmp_path, ARCHITECTURES["cortex-m0plus"]))
    said = stack_bytes(plan(fuse(lower(network)), CORES["cortex-m0plus"], scheme))
    assert run.passed and run.stack_bytes <= said < run.stack_bytes + 200


def test_inputs_reach_both_ends() -> None:
    samples = inputs_of(network_of(NETWORKS["a pixel"]), 5)
    assert {int(sample.min()) for sample in samples} >= {-128, 127}


@pytest.mark.parametrize(
    ("core", "name", "scheme"),
    [
        ("cortex-m0plus", "weights of 1, 2, 4 bits", Scheme.RESIDENT),
        ("cortex-m4", "passthrough, pooling", Scheme.ROWS),
        ("rv32imc", "convtranspose2d", Scheme.ROWS),
        ("rv32ec", "rolling buffer", Scheme.RESIDENT),
        ("cortex-m0plus", "add, sub", Scheme.ROWS),
        ("rv32ec", "or, xor", Scheme.RESIDENT),
    ],
)
def test_operators_on_emulated_cores(core: str, name: str, scheme: Scheme, tmp_path: Path) -> None:
    """`make measure WHAT=software-cores` has all of them on all cores, and whole networks."""
    assert ran(small(name, core, scheme, tmp_path), core) is not None
