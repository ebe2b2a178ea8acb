"""From a network to a project whose layers are cut for memory levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from diagnostics import Diagnostic
from software.build import CODE_BYTES, NoRoomError, sample_of
from software.emit.level_text import level_plan_file
from software.emit.levels import emit_levels
from software.emit.project import Sample
from software.fuse import fuse
from software.graph import Convolution, Graph
from software.kernels import IN_TILES, choose
from software.levels.plan import Level, LevelPlan
from software.levels.schemes import Way
from software.levels.select import Planner, Wish
from software.lower import lower
from software.plan.lines import in_lines
from software.profile import Profile
from synthesis.network import Network
from values import frozen

_STACK_BYTES = 768
"""Stack of a kernel with all below it: an estimate, which compilers keep from -Os on."""
_POINTER_BYTES = 64
WAYS: Mapping[str, frozenset[Way]] = {
    "auto": frozenset(),
    "first": frozenset(),
    "resident": frozenset({Way.RESIDENT}),
    "rows": frozenset({Way.ROWS, Way.ROW_TILES}),
    "pixels": frozenset({Way.PIXELS}),
    "planes": frozenset({Way.PLANES, Way.PLANES_L2, Way.PLANE_TILES}),
    "chain": frozenset({Way.ROW_CHAIN, Way.CHAIN}),
}
"""What the words of --scheme ask for."""
ALWAYS = frozenset({"first", "pixels", "planes", "chain"})
"""Words that only memory levels know."""


@frozen(slots=False)
class LevelBuilt:
    """A project: its plan, the bytes of L1 with stack, of weights, and its files by path.

    It has no files while it is only planned.
    """

    plan: LevelPlan
    ram: int
    weights: int
    files: dict[str, str] = field(default_factory=dict)

    @property
    def in_place(self) -> bool:
        """Whether weights are read from flash."""
        return not self.plan.stored

    @property
    def flash(self) -> int:
        """Bytes of flash; the code is an estimate."""
        return CODE_BYTES + (self.weights if self.in_place else 0)


def build_levels(
    network: Network,
    profile: Profile,
    scheme: str = "auto",
    *,
    kernels: frozenset[str] | None = None,
    average_rounding: bool = False,
    name: str = "network",
    command_line: str = "",
) -> LevelBuilt:
    """Return the project of a network in the memories of a profile.

    Raises DiagnosticError: no way to cut a step fits (E915), weights fit neither flash nor L3
    (E906), or a sum could overflow (E901).
    """
    graph = fuse(lower(network, average_rounding=average_rounding))
    made = planned(graph, profile, scheme, kernels)
    sample = sample_of(network, average_rounding=average_rounding)
    return emitted(made, sample, name, command_line)


def planned(
    graph: Graph, profile: Profile, scheme: str, kernels: frozenset[str] | None
) -> LevelBuilt:
    """Return the project of a fused graph without its files; raises as `build_levels` does."""
    plan = plan_levels(graph, profile, scheme, kernels)
    ram = plan.used[Level.L1] + _reserved(profile)
    return LevelBuilt(plan, ram, weight_bytes(graph, profile, kernels))


def emitted(made: LevelBuilt, sample: Sample, name: str, command_line: str) -> LevelBuilt:
    """Return a project that was planned with its files."""
    files = emit_levels(made.plan, sample, name, command_line)
    return replace(made, files=files | {"plan.json": level_plan_file(made.plan, name)})


def plan_levels(
    graph: Graph, profile: Profile, scheme: str, kernels: frozenset[str] | None
) -> LevelPlan:
    """Return the plan of a graph for a word of --scheme."""
    weights = weight_bytes(graph, profile, kernels)
    in_place = not profile.weights_in_l3 and weights + CODE_BYTES <= profile.flash
    if not in_place and weights > profile.l3:
        raise NoRoomError(
            Diagnostic(
                "E906",
                f"{profile.name} has {profile.flash:,} bytes of flash and {profile.l3:,} of l3; "
                f"{weights:,} of weights and about {CODE_BYTES:,} of code have to be there",
                profile.place("l3" if profile.l3 else "flash"),
                "Use fewer weights, or a microcontroller with more flash.",
            )
        )
    wish = Wish(ways=WAYS[scheme], first=scheme == "first", in_place=in_place, kernels=kernels)
    return best_plan(graph, profile, profile.l1 - _reserved(profile), wish)


def best_plan(graph: Graph, profile: Profile, l1: int, wish: Wish) -> LevelPlan:
    """Return the best plan of a graph, its one-dimensional data in columns or in lines.

    In lines kernels take fewer cycles; in columns layers can be cut into rows. Raises NoRoomError
    if neither fits.
    """
    lines = in_lines(graph)
    same = all(one is other for one, other in zip(graph.steps, lines.steps, strict=True))
    plans: list[LevelPlan] = []
    refusals: list[NoRoomError] = []
    for one in (graph,) if same else (graph, lines):
        try:
            plans.append(Planner(one, profile, l1, wish).plan())
        except NoRoomError as refusal:
            refusals.append(refusal)
    if not plans:
        raise refusals[0]
    return plans[0] if wish.first else min(plans, key=lambda plan: _rank(plan, wish))


def _rank(plan: LevelPlan, wish: Wish) -> tuple[int, float]:
    """Return how many layers are not cut as was asked, and the cycles."""
    missed = sum(bool(wish.ways) and task.way not in wish.ways for task in plan.layers)
    return missed, plan.cycles


def _reserved(profile: Profile) -> int:
    """Bytes of L1 for the stack and for pointers."""
    return max(profile.stack, _STACK_BYTES) + _POINTER_BYTES


def weight_bytes(graph: Graph, profile: Profile, kernels: frozenset[str] | None) -> int:
    """Return the bytes of all packed weights and of what sums begin with."""
    steps = (step for step in graph.steps if isinstance(step, Convolution))
    return sum(
        choose(step, profile.core, kernels, IN_TILES).pack(step).values.nbytes + 4 * step.filters
        for step in steps
    )
