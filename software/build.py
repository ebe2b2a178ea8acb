"""From a network to a project: lower, prove, plan, choose what fits, emit.

`build(network, profile)` is all that a program needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from diagnostics import Diagnostic, DiagnosticError
from software.emit.code import Code
from software.emit.interface import PLAIN, Interface
from software.emit.project import Sample, emit, flash_bytes
from software.fuse import fuse
from software.graph import Convolution, Graph, Pool, Step, sources_of
from software.kernels.call import Call
from software.lower import lower
from software.memory import Block
from software.plan.plan import Plan, Scheme
from software.plan.planner import plan
from software.profile import Profile
from synthesis.network import Network
from synthesis.simulate import simulate
from values import frozen

CODE_BYTES = 6144
"""Flash for the code of the network besides its weights: an estimate."""
_COUNTER_BYTES = 2
_STACK_BYTES, _CALL_BYTES, _POINTER_BYTES = 384, 8, 4
"""Stack of a kernel with all below it, of the call of a step, and of a row that it asks for."""
_NO_SCRATCH: frozenset[str] = frozenset()
"""Sets of kernels: only the one that needs no memory of its own."""


class NoRoomError(DiagnosticError):
    """A network does not fit the memory of a microcontroller."""


@frozen
class Need:
    """What a plan takes of a microcontroller, in bytes; `code` and `stack` are estimates."""

    arena: int
    counters: int
    stack: int
    weights: int
    code: int = CODE_BYTES

    @property
    def ram(self) -> int:
        """Bytes of RAM."""
        return self.arena + self.counters + self.stack

    @property
    def flash(self) -> int:
        """Bytes of flash."""
        return self.weights + self.code


@frozen(slots=False)
class Built:
    """A project: its plan, what it takes, how it is called, and its files by path.

    It has no files while it is only planned.
    """

    plan: Plan
    need: Need
    files: dict[str, str] = field(default_factory=dict)
    interface: Interface = PLAIN


def build(
    network: Network,
    profile: Profile,
    *,
    schemes: Sequence[Scheme] = tuple(Scheme),
    kernels: frozenset[str] | None = None,
    average_rounding: bool = False,
    name: str = "network",
    command_line: str = "",
) -> Built:
    """Return the project of a network for a microcontroller.

    The first of the `schemes` that fits is taken. Raises DiagnosticError if none fits (E905, E906)
    or a sum could overflow (E901).
    """
    graph = fuse(lower(network, average_rounding=average_rounding))
    made = planned(graph, profile, schemes, kernels)
    sample = sample_of(network, average_rounding=average_rounding)
    return emitted(made, sample, name, command_line)


def planned(
    graph: Graph,
    profile: Profile,
    schemes: Sequence[Scheme] = tuple(Scheme),
    kernels: frozenset[str] | None = None,
) -> Built:
    """Return the project of a fused graph without its files; raises as `build` does."""
    chosen, need = choose(graph, profile, schemes, kernels)
    chosen.validate()
    return Built(chosen, need)


def emitted(made: Built, sample: Sample, name: str, command_line: str) -> Built:
    """Return a project that was planned with its files."""
    files = emit(made.plan, sample, name, command_line, made.interface)
    return replace(made, files=files)


def sample_of(network: Network, *, average_rounding: bool = False) -> Sample:
    """Return the sample of a network and what it gives for it."""
    made = simulate(network, average_rounding=average_rounding).outputs
    return Sample(network.sample, tuple(made[layer.index] for layer in network.outputs()))


def choose(
    graph: Graph,
    profile: Profile,
    schemes: Sequence[Scheme],
    kernels: frozenset[str] | None,
    calls: Mapping[int, Call] | None = None,
) -> tuple[Plan, Need]:
    """Return the first plan that fits a microcontroller; `calls` as in `plan`.

    Raises NoRoomError with all that the smallest plan lacks.
    """
    made, need = closest(graph, profile, schemes, kernels, calls)
    problems = [*_too_large(made, need, profile), *_too_small(made, need, profile)]
    if problems:
        raise NoRoomError(problems)
    return made, need


def closest(
    graph: Graph,
    profile: Profile,
    schemes: Sequence[Scheme],
    kernels: frozenset[str] | None,
    calls: Mapping[int, Call] | None = None,
) -> tuple[Plan, Need]:
    """Return the first plan whose data fit the RAM, else the smallest; `calls` as in `plan`.

    Where fast kernels need too much memory beside the data, the one that needs none is tried.
    """
    tried: list[tuple[Plan, Need]] = []
    for wanted in (kernels, _NO_SCRATCH):
        for scheme in schemes:
            made = plan(graph, profile.core, scheme, wanted, calls)
            tried.append((made, need_of(made, profile)))
            if tried[-1][1].ram <= profile.l1:
                return tried[-1]
    return min(tried, key=lambda one: one[1].ram)


def need_of(made: Plan, profile: Profile) -> Need:
    """Return what a plan takes."""
    code = Code(made)
    counters = max(len(code.counters), 1) * _COUNTER_BYTES
    stack = max(profile.stack, stack_bytes(made))
    return Need(made.arena_bytes, counters, stack, flash_bytes(code))


def stack_bytes(made: Plan) -> int:
    """Return what a plan takes of the stack: an estimate, which compilers keep from -Os on.

    Steps that ask each other for rows are called from each other.
    """
    calls = [[_call_bytes(step) for step in made.steps_of(one)] for one in made.segments]
    return _STACK_BYTES + max(map(sum, calls), default=0)


def _call_bytes(step: Step) -> int:
    """Return the bytes of the stack while a step asks for its rows."""
    match step:
        case Convolution():
            rows = step.kernel[0]
        case Pool():
            rows = step.window[0]
        case _:
            rows = len(sources_of(step))
    return _CALL_BYTES + _POINTER_BYTES * rows


def _too_large(made: Plan, need: Need, profile: Profile) -> list[Diagnostic]:
    """Complain if weights and code do not fit the flash."""
    if need.flash <= profile.flash:
        return []
    code = Code(made)
    sizes = {code.graph.steps[n].name: packed.values.nbytes for n, packed in code.packed.items()}
    return flash_problems(need, profile, sizes)


def flash_problems(need: Need, profile: Profile, sizes: Mapping[str, int]) -> list[Diagnostic]:
    """Return what is wrong if weights, of these `sizes` by layer, and code exceed the flash."""
    if need.flash <= profile.flash:
        return []
    worst = max(sizes, key=lambda name: sizes[name], default=None)
    deciding = f"; those of {worst} alone take {sizes[worst]:,}" if worst else ""
    return [
        Diagnostic(
            "E906",
            f"{profile.name} has {profile.flash:,} bytes of flash, {need.flash:,} are needed: "
            f"{need.weights:,} of weights, about {need.code:,} of code{deciding}",
            profile.place("flash"),
            "Use fewer weights, or a microcontroller with more flash.",
        )
    ]


def _too_small(made: Plan, need: Need, profile: Profile) -> list[Diagnostic]:
    """Complain if the data do not fit the RAM."""
    return memory_problems(need, profile, made.scheme, made.blocks)


def memory_problems(
    need: Need, profile: Profile, scheme: Scheme, blocks: Sequence[Block]
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
