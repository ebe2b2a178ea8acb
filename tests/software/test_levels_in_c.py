"""The C of memory levels: plans that together take every way through its loops.

Copies happen when they are waited for and leave poison until then; all bytes of the outputs are
those of the simulation.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ai8xtools.software.cores import CORES
from ai8xtools.software.emit.project import Sample
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import Combine, Convolution, Pool, PoolKind
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.planner import Planner, Wish
from ai8xtools.software.plan.schemes import Channels, Planes, Rows, Scheme, Weights
from ai8xtools.software.profile import Profile
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.simulate import simulate
from tests.software.compiled import compiler
from tests.software.level_bundle import planned, run_bundle, told
from tests.software.level_graphs import wrong_run
from tests.software.networks import random_network

CASES = [
    (13, Scheme.CHAIN, 300, 65536, 1, False), (119, Scheme.ROW_CHAIN, 500, 0, 0, False),
    (223, Scheme.RESIDENT, 128, 0, 0, False), (263, Scheme.CHAIN, 200, 0, 0, False),
    (35, Scheme.ROWS, 64, 65536, 1, True), (231, Scheme.ROW_CHAIN, 64, 0, 1, False),
    (187, Scheme.ROW_CHAIN, 2500, 0, 0, False), (78, Scheme.CHAIN, 500, 0, 0, False),
    (302, Scheme.ROW_CHAIN, 400, 512, 1, False), (639, Scheme.ROW_TILES, 400, 512, 1, False),
    (757, Scheme.PLANE_TILES, 220, 512, 0, False), (841, Scheme.CHAIN, 600, 512, 1, False),
    (347, Scheme.ROW_TILES, 150, 512, 1, False), (385, Scheme.CHAIN, 600, 512, 1, False),
    (479, Scheme.CHAIN, 600, 512, 0, False), (782, Scheme.ROW_CHAIN, 64, 512, 1, False),
    (469, Scheme.PLANE_TILES, 150, 512, 1, False), (365, Scheme.PLANES, 64, 512, 0, False),
    (347, Scheme.PLANES, 100, 512, 1, False),
    (305, Scheme.CHAIN, 400, 65536, 1, False),
    (771, Scheme.ROWS, 2000, 512, 1, False), (1070, Scheme.ROW_CHAIN, 400, 65536, 1, False),
    (1141, Scheme.ROWS, 300, 0, 1, False), (1159, Scheme.ROW_CHAIN, 100, 65536, 1, True),
    (1209, Scheme.ROW_CHAIN, 150, 0, 0, False), (1213, Scheme.ROW_CHAIN, 220, 512, 1, False),
    (787, Scheme.ROWS, 2000, 512, 1, False),
]  # fmt: skip
"""Random networks, and how they are planned: way, bytes of L1 and L2, DMA, weights in place."""


def _made(
    seed: int, way: Scheme, l1: int, l2: int, dma: int, in_place: bool
) -> tuple[Network, Plan, Sample]:
    network, rounding = random_network(seed), seed % 3 == 0
    found = simulate(network, average_rounding=rounding).outputs
    outputs = tuple(found[layer.index] for layer in network.outputs())
    graph = fuse(lower(network, average_rounding=rounding))
    profile = Profile("c", CORES["cortex-m4"], 1 << 20, l1, l2, 1 << 20, l3_writable=True, dma=dma)
    wish = Wish(schemes=frozenset({way}), in_place=in_place)
    return network, Planner(graph, profile, l1, wish).plan(), Sample(network.sample, outputs)


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
def test_c_gives_the_bytes_of_the_simulation_and_copies_as_python_does(tmp_path: Path) -> None:
    """Bytes of each channel, copies and their order, none that nobody waits for; more at random."""
    plans = [*(_made(*case)[1:] for case in CASES), *planned(range(40))]
    assert run_bundle(plans, tmp_path) == [told(*one) for one in plans]
    assert len(plans) > len(CASES) + 50


@pytest.mark.parametrize("case", CASES, ids=[f"{case[1]}-{case[0]}" for case in CASES])
def test_python_does_so_too_and_counts_what_is_copied(
    case: tuple[int, Scheme, int, int, int, bool],
) -> None:
    network, plan, sample = _made(*case)
    assert [*wrong_run(network, plan, sample.outputs)] == []


def _traits(plan: Plan) -> set[str]:
    """Return what a plan meets in the C of memory levels."""
    found: set[str] = set()
    for task in plan.layers:
        step, layer, cut = task.step, task.layer, task.cut
        if layer is None:
            continue
        kind = type(cut).__name__.lower() + (" of a chain" if task.chained else "")
        some = {
            str(task.scheme),
            f"{kind}, ahead" if task.ahead else f"{kind}, one after the other",
        }
        rows, columns = layer.out_size
        if isinstance(cut, Rows):
            some |= {str(cut.weights)}
            some |= {"the last tile is narrower"} if columns % cut.columns else set()
            some |= {f"fewer filters, {cut.weights}"} if layer.filters % cut.filters else set()
            some |= {"made in its place"} if task.writes and not task.links else set()
        if isinstance(cut, Planes):
            some |= {"bands of planes"} if cut.rows < rows else set()
            some |= {"the last band of planes is lower"} if rows % cut.rows else set()
            some |= {"tiles of planes"} if cut.columns < columns else set()
            some |= {"fewer filters of planes"} if layer.filters % cut.filters else set()
            some |= {"channel by channel"} if task.planar else set()
        pool = step if isinstance(step, Pool) else getattr(step, "pool", None)
        if pool is not None:
            some |= {f"{kind}, {'largest' if pool.kind is PoolKind.MAX else 'mean'} of windows"}
        if isinstance(step, Convolution):
            some |= {"transposed"} if step.transposed else set()
            some |= {f"{kind} with dilation"} if step.dilation > 1 else set()
        some |= {"several operands"} if isinstance(step, Combine) else set()
        assert not isinstance(cut, Channels) or task.scheme is Scheme.CHAIN
        found |= some
    return found


def test_the_cases_meet_every_way_and_every_remainder() -> None:
    met = set().union(*(_traits(_made(*case)[1]) for case in CASES))
    kinds = ("rows", "planes", "rows of a chain", "channels")
    assert met >= {
        *map(str, Scheme), *map(str, Weights),
        *(f"{kind}, {what} of windows" for kind in kinds for what in ("largest", "mean")),
        *(f"{kind}, {when}" for kind in ("rows", "planes", "channels")
          for when in ("ahead", "one after the other")),
        *(f"{kind} with dilation" for kind in kinds), "transposed", "several operands",
        "the last tile is narrower", "made in its place",
        "fewer filters, rows_outer", "fewer filters, weights_outer", "bands of planes",
        "the last band of planes is lower", "tiles of planes", "fewer filters of planes",
        "channel by channel",
    }  # fmt: skip
