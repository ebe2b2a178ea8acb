"""From a network to a project that calls Arm's functions.

`build_calls(network, profile)` is all that a program needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ai8xtools.software.build import choose, emitted, need_of, sample_of, schemes_of
from ai8xtools.software.cmsis.choice import choose_calls
from ai8xtools.software.cmsis.functions import FUNCTIONS, prototypes_of, text_of
from ai8xtools.software.cmsis.tree import read_library
from ai8xtools.software.emit.built import Built
from ai8xtools.software.emit.interface import Interface
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import StepGraph
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.lines import in_lines
from ai8xtools.software.plan.plan import Plan
from ai8xtools.software.plan.planner import plan
from ai8xtools.software.plan.schemes import Scheme
from ai8xtools.software.profile import Profile
from ai8xtools.synthesis.network import Network
from ai8xtools.writing.templates import render


def build_calls(
    network: Network,
    profile: Profile,
    *,
    scheme: str = "auto",
    kernels: frozenset[str] | None = None,
    average_rounding: bool = False,
    library: str | None = None,
    interleaving: bool = False,
    name: str = "network",
    command_line: str = "",
) -> Built:
    """Return the project of a network for a microcontroller, with calls of Arm's functions.

    `library` is a folder with a copy of CMSIS 5; without one the functions are ours. With
    `interleaving` fully connected layers of 8 bits take the weights of `_opt`. Where calls
    on whole images do not fit, all kernels are ours, as in --device MCU. Raises DiagnosticError
    as `software.build.build` does, or if the copy is of no use (E940 to E943).
    """
    graph = lower(network, average_rounding=average_rounding)
    built = planned(graph, profile, scheme, kernels, library=library, interleaving=interleaving)
    sample = sample_of(network, average_rounding=average_rounding)
    return emitted(built, sample, name, command_line)


def planned(
    graph: StepGraph,
    profile: Profile,
    scheme: str = "auto",
    kernels: frozenset[str] | None = None,
    *,
    library: str | None = None,
    interleaving: bool = False,
) -> Built:
    """Return the project of a graph without its files; raises as `build_calls` does.

    It has calls if it fits with them.
    """
    reason = "calls need whole images (--scheme resident)"
    if Scheme.RESIDENT in schemes_of(scheme):
        candidate = planned_calls(graph, profile, kernels, interleaving=interleaving)
        need = need_of(candidate, profile)
        if need.ram <= profile.l1 and need.flash <= profile.flash:
            candidate.validate()
            return Built(candidate, need, interface=_interface(candidate, library))
        reason = f"calls on whole images would need {need.ram:,} bytes of RAM"
    own = choose(fuse(graph), profile, scheme, kernels, {})
    reasons = {step.target: reason for step in own.plan.graph.steps}
    return replace(own, plan=replace(own.plan, reasons=reasons),
                   interface=_interface(own.plan, library))  # fmt: skip


def planned_calls(
    graph: StepGraph,
    profile: Profile,
    kernels: frozenset[str] | None = None,
    *,
    interleaving: bool = False,
) -> Plan:
    """Return the plan of a graph with calls wherever the library can compute a step."""
    whole = in_lines(graph)
    choice = choose_calls(whole, interleaving=interleaving)
    result = plan(whole, profile.core, Scheme.RESIDENT, kernels, choice.calls)
    return replace(result, reasons=choice.reasons)


def _interface(plan: Plan, folder: str | None) -> Interface:
    """Return how the project is called, and its functions."""
    called = [one for step in plan.graph.steps if step.target in plan.calls
              for one in plan.calls[step.target].functions]  # fmt: skip
    functions = [*dict.fromkeys(called)]
    files = [file for name in functions for file in FUNCTIONS[name].library]
    library = None if folder is None else read_library(folder, files)
    ours = [name for name in functions if library is None or not FUNCTIONS[name].library]
    tensors = (plan.graph.tensors[output.tensor] for output in plan.outputs)
    wide = all(tensor.bytes_per_value == 4 for tensor in tensors)
    return Interface(
        "software/cmsis",
        {"output_type": "q31_t" if wide else "q7_t"},
        dict(_files(ours, with_library=library is not None)),
        tuple(dict.fromkeys(helper for name in ours for helper in FUNCTIONS[name].helpers)),
        library,
    )


def _files(ours: Sequence[str], *, with_library: bool) -> Iterable[tuple[str, str]]:
    """Yield the C of functions that the project contains, and the files that a library needs."""
    prototypes = prototypes_of(ours)
    yield (
        "arm_nn.h",
        render("software/cmsis/arm_nn.h.j2", library=with_library, prototypes=prototypes),
    )
    if ours:
        yield "arm_nn.c", text_of(ours)
    if with_library:
        yield "host_arm.h", render("software/cmsis/host_arm.h.j2")
