"""Random networks: plans hold, and what they compute is what the simulation computes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ai8xtools.software.cores import CORES
from ai8xtools.software.fuse import fuse
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.plan import PlanError
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import Scheme
from tests.software.compiled import compiler
from tests.software.networks import random_network
from tests.software.properties import judge, wrong_places


@pytest.mark.parametrize("seed", range(25))
def test_plans_of_a_random_network_compute_what_the_simulation_does(seed: int) -> None:
    assert judge(seed, None) == []


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
@pytest.mark.parametrize("seed", [7, 19])
def test_c_of_a_random_network_with_sanitizers(seed: int, tmp_path: Path) -> None:
    assert judge(seed, tmp_path) == []


def test_blocks_that_are_moved_onto_each_other_are_noticed() -> None:
    """Both the plan's own check and the independent one."""
    noticed = 0
    for seed in range(20):
        made = plan(fuse(lower(random_network(seed))), CORES["cortex-m3"], Scheme.ROWS)
        together = [b for b in made.blocks if b.lives_with(made.blocks[0])]
        if len(made.tasks) > 1 or len(together) < 2:
            continue
        first = made.blocks[0].offset
        broken = replace(made, blocks=tuple(b.at(first) for b in made.blocks))
        steps = len(made.tasks[0].steps)
        if steps < 2:
            continue
        noticed += 1
        assert [*wrong_places(broken)]
        with pytest.raises(PlanError):
            broken.validate()
    assert noticed > 3
