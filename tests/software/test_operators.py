"""Every operator and key without the accelerator: plans compute what the simulation computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from software.build import build
from software.cores import CORES
from software.emit.page import plan_page
from software.emit.text import log_text
from software.execute import Executor
from software.fuse import fuse
from software.lower import lower
from software.plan.plan import Scheme
from software.plan.planner import plan
from software.profile import read_profile
from synthesis.simulate import simulate
from tests.software.against_simulation import inputs_of, judge
from tests.software.compiled import compiler
from tests.software.operators import NETWORKS, network_of
from tests.software.same_on_cores import ran, small


@pytest.mark.parametrize("name", NETWORKS)
def test_plans_of_a_network_compute_what_the_simulation_does(name: str) -> None:
    network = network_of(NETWORKS[name], seed=1)
    network.validate()
    graph = fuse(lower(network, average_rounding=True))
    made = simulate(network, average_rounding=True).outputs
    for scheme, core in zip(Scheme, ("cortex-m4", "rv32ec"), strict=True):
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
    """`make software-operators` has all networks, plans and sets of kernels."""
    assert [*judge(name, ["rv32imc"], 6, schemes=[scheme])] == []


@pytest.mark.parametrize("name", ["only passed on", "a pixel"])
def test_plans_of_the_smallest_networks_are_shown(name: str) -> None:
    """One of them has no steps at all."""
    profile = read_profile("ch32v003")
    built = build(network_of(NETWORKS[name]), profile)
    assert "RAM: " in log_text(built, profile, "") and "<svg" in plan_page(built, profile, name)


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
    """`make software-cores` has all of them on all cores, and whole networks."""
    assert ran(small(name, core, scheme, tmp_path), core) is not None
