"""From a network to a project: lower, prove, plan, choose what fits, emit.

`build(network, profile)` is all that a program needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ai8xtools.diagnostics import Diagnostic, Place
from ai8xtools.software.emit.built import CODE_BYTES, Built, Need
from ai8xtools.software.emit.interface import Naming
from ai8xtools.software.emit.library import library_bytes
from ai8xtools.software.emit.project import Sample, code_of, emit
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import Convolution, Copy, Elements, StepGraph, Windows
from ai8xtools.software.kernels import IN_TILES
from ai8xtools.software.kernels import choose as kernel_of
from ai8xtools.software.kernels.call import KernelCall
from ai8xtools.software.lower import lower
from ai8xtools.software.memory import Block
from ai8xtools.software.plan.cost import UNITS_STACK, stack_bytes
from ai8xtools.software.plan.plan import NoRoomError, Plan
from ai8xtools.software.plan.planner import Wish, best_plan, plan
from ai8xtools.software.plan.schemes import SINGLE, Scheme
from ai8xtools.software.plan.sliding import sliding_plan
from ai8xtools.software.profile import Profile
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.simulate import simulate

_Built = TypeVar("_Built", bound=Built)
_CODE_BYTES: Mapping[type, int] = {Elements: 180, Windows: 980}
"""Code of steps that is not shared: a fit to 40 random graphs each on Cortex-M4 and M0+ (-O3)."""
_COUNTER_BYTES = 2
_POINTERS_BYTES = 64
"""Pointers to the rows of a window of units."""
_NO_SCRATCH: frozenset[str] = frozenset()
"""Sets of kernels: only the one that needs no scratch memory."""
SCHEMES: Mapping[str, frozenset[Scheme]] = {
    "auto": frozenset(),
    "first": frozenset(),
    "resident": frozenset({Scheme.RESIDENT}),
    "rows": frozenset({Scheme.ROWS, Scheme.ROW_TILES}),
    "pixels": frozenset({Scheme.PIXELS}),
    "planes": frozenset({Scheme.PLANES, Scheme.PLANES_L2, Scheme.PLANE_TILES}),
    "chain": frozenset({Scheme.ROW_CHAIN, Scheme.CHAIN}),
}
"""The meaning of the words of --scheme with levels of memory."""
ALWAYS = frozenset({"first", "pixels", "planes", "chain"})
"""Words of --scheme that need levels of memory."""


def build(
    network: Network,
    profile: Profile,
    scheme: str = "auto",
    *,
    kernels: frozenset[str] | None = None,
    average_rounding: bool = False,
    name: str = "network",
    command_line: str = "",
) -> Built:
    """Return the project of a network for a microcontroller; `scheme` is a word of --scheme.

    Raises DiagnosticError if no plan fits (E905) or a sum could overflow (E901).
    """
    graph = fuse(lower(network, average_rounding=average_rounding))
    sample = sample_of(network, average_rounding=average_rounding)
    return emitted(planned(graph, profile, scheme, kernels), sample, name, command_line)


def planned(
    graph: StepGraph, profile: Profile, scheme: str = "auto", kernels: frozenset[str] | None = None
) -> Built:
    """Return the project of a fused graph without its files; raises as `build` does.

    It is planned for the levels of memory where there are any, or if these are asked for.
    """
    ways: list[Callable[[StepGraph, Profile, str, frozenset[str] | None], Built]]
    uncut = [step.name for step in graph.steps if isinstance(step, Elements | Windows)]
    uncut += [step.name for step in graph.steps if isinstance(step, Copy) and step.fill is not None]
    if uncut and scheme in ALWAYS:
        raise NoRoomError(
            Diagnostic("E908", f"{uncut[0]} cannot be cut for levels of memory",
                       Place(option="--scheme"), "Leave --scheme out.")
        )  # fmt: skip
    if uncut or (not profile.leveled and scheme not in ALWAYS):
        return choose(graph, profile, scheme, kernels)
    ways = [_in_levels, choose] if scheme == "auto" else [choose, _in_levels]
    if profile.weights_in_l3 or scheme in ALWAYS:
        ways = [_in_levels]
    refusals = []
    for way in ways:
        try:
            return way(graph, profile, scheme, kernels)
        except NoRoomError as refusal:
            refusals.append(refusal)
    raise refusals[ways.index(_in_levels)]


def streamed(graph: StepGraph, profile: Profile, hop: int, kernels: frozenset[str] | None) -> Built:
    """Return the project, without its files, of a graph that is not fused for a stream.

    Its window slides by `hop` rows of the input. Raises DiagnosticError as `sliding_plan` does, and
    if there is too little memory.
    """
    chosen = sliding_plan(graph, profile.core, hop, kernels)
    need = need_of(chosen, profile)
    _check_room(chosen, need, profile)
    return Built(chosen, need)


def as_library(built: Built, profile: Profile, naming: Naming) -> Built:
    """Return a project that was planned as a library, which holds its input, too.

    Raises NoRoomError if the memory is too small for both.
    """
    need = replace(built.need, arena=library_bytes(built.plan))
    if problems := memory_problems(need, profile, built.plan.name, built.plan.blocks):
        raise NoRoomError(problems)
    return replace(built, need=need, interface=replace(built.interface, naming=naming))


def emitted(built: Built, sample: Sample, name: str, command_line: str) -> Built:
    """Return a project that was planned with its files."""
    return replace(built, files=emit(built.plan, sample, name, command_line, built.interface))


def sample_of(network: Network, *, average_rounding: bool = False) -> Sample:
    """Return the sample of a network and its output for it."""
    outputs = simulate(network, average_rounding=average_rounding).outputs
    return Sample(network.sample, tuple(outputs[layer.index] for layer in network.outputs()))


def schemes_of(scheme: str) -> tuple[Scheme, ...]:
    """Return the plans of a single memory that a word of --scheme allows."""
    return (Scheme(scheme),) if scheme in SINGLE else SINGLE


def choose(
    graph: StepGraph,
    profile: Profile,
    scheme: str,
    kernels: frozenset[str] | None,
    calls: Mapping[int, KernelCall] | None = None,
) -> Built:
    """Return the first plan in one memory that fits a microcontroller; `calls` as in `plan`.

    Raises NoRoomError with all that the smallest plan lacks.
    """
    built = closest(graph, profile, scheme, kernels, calls)
    _check_room(built.plan, built.need, profile)
    return built


def _check_room(plan: Plan, need: Need, profile: Profile) -> None:
    """Raise NoRoomError with all that a plan in one memory lacks."""
    plan.validate()
    code = code_of(plan)
    sizes = {code.graph.steps[n].name: weights.nbytes for n, weights in code.weights.items()}
    problems = [
        *flash_problems(need, profile, sizes),
        *memory_problems(need, profile, plan.name, plan.blocks),
    ]
    if problems:
        raise NoRoomError(problems)


def closest(
    graph: StepGraph,
    profile: Profile,
    scheme: str,
    kernels: frozenset[str] | None,
    calls: Mapping[int, KernelCall] | None = None,
) -> Built:
    """Return the first plan whose data fit the RAM, else the smallest; `calls` as in `plan`.

    Where fast kernels need too much memory beside the data, the one that needs none is tried.
    """
    plans = (
        plan(graph, profile.core, one, allowed, calls)
        for allowed in (kernels, _NO_SCRATCH)
        for one in schemes_of(scheme)
    )
    return first_fitting((Built(one, need_of(one, profile)) for one in plans), profile)


def first_fitting(projects: Iterable[_Built], profile: Profile) -> _Built:
    """Return the first project whose data fit the RAM, else the smallest."""
    too_large: list[_Built] = []
    for one in projects:
        if one.need.ram <= profile.l1:
            return one
        too_large.append(one)
    return min(too_large, key=lambda one: one.need.ram)


def need_of(plan: Plan, profile: Profile) -> Need:
    """Return the resources that a plan in one memory needs."""
    code = code_of(plan)
    counters = max(len(code.counters), 1) * _COUNTER_BYTES
    if plan.sliding is not None:
        counters += _COUNTER_BYTES * (3 * len(plan.sliding.slides) + 3)
    stack = max(profile.stack, stack_bytes(plan))
    more = sum(_CODE_BYTES.get(type(step), 0) for step in plan.graph.steps)
    return Need(plan.arena_bytes, counters, stack, code.flash_bytes, CODE_BYTES + more)


def flash_problems(need: Need, profile: Profile, sizes: Mapping[str, int]) -> list[Diagnostic]:
    """Return what is wrong if weights, of these `sizes` by layer, and code exceed the flash."""
    if need.flash <= profile.flash:
        return []
    worst = max(sizes, key=lambda name: sizes[name], default=None)
    deciding = f"; those of {worst} alone take {sizes[worst]:,}" if worst else ""
    return [
        Diagnostic(
            "E905",
            f"{profile.name} has {profile.flash:,} bytes of flash, {need.flash:,} are needed: "
            f"{need.weights:,} of weights, about {need.code:,} of code{deciding}",
            profile.place("flash"),
            "Use fewer weights, or a microcontroller with more flash.",
        )
    ]


def memory_problems(
    need: Need, profile: Profile, scheme: str, blocks: Sequence[Block]
) -> list[Diagnostic]:
    """Return what is wrong if data that stand in `blocks` do not fit the RAM."""
    if need.ram <= profile.l1:
        return []
    worst = max(blocks, key=lambda block: block.size, default=None)
    deciding = f"; {worst.name} alone takes {worst.size:,}" if worst else ""
    return [
        Diagnostic(
            "E905",
            f"{profile.name} has {profile.l1:,} bytes of RAM, the smallest plan ({scheme}) "
            f"needs {need.ram:,}: {need.arena:,} of data, {need.stack:,} of stack, "
            f"{need.counters:,} of counters{deciding}",
            profile.place("l1"),
            "Make the images of that layer smaller (earlier pooling, fewer channels), or use a "
            f"microcontroller with {need.ram:,} bytes or more.",
        )
    ]


def _in_levels(
    graph: StepGraph, profile: Profile, scheme: str, kernels: frozenset[str] | None
) -> Built:
    """Return a plan for levels of memory."""
    weights = weight_bytes(graph, profile, kernels)
    in_place = not profile.weights_in_l3 and weights + CODE_BYTES <= profile.flash
    if not in_place and weights > profile.l3:
        raise NoRoomError(
            Diagnostic(
                "E905",
                f"{profile.name} has {profile.flash:,} bytes of flash and {profile.l3:,} of l3; "
                f"{weights:,} of weights and about {CODE_BYTES:,} of code are needed there",
                profile.place("l3" if profile.l3 else "flash"),
                "Use fewer weights, or a microcontroller with more flash.",
            )
        )
    wish = Wish(
        schemes=SCHEMES[scheme], first=scheme == "first", in_place=in_place, kernels=kernels
    )
    stack = max(profile.stack, UNITS_STACK)
    chosen = best_plan(graph, profile, profile.l1 - stack - _POINTERS_BYTES, wish)
    chosen.validate()
    need = Need(chosen.arena_bytes, _POINTERS_BYTES, stack, weights, in_place=not chosen.stored)
    return Built(chosen, need)


def weight_bytes(graph: StepGraph, profile: Profile, kernels: frozenset[str] | None) -> int:
    """Return the bytes of all packed weights and of the initial sums."""
    steps = (step for step in graph.steps if isinstance(step, Convolution))
    return sum(
        kernel_of(step, profile.core, kernels, IN_TILES).pack(step).values.nbytes + 4 * step.filters
        for step in steps
    )
