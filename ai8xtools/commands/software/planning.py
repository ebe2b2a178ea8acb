"""Which plan a network gets for a microcontroller: what generation and --fits have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ai8xtools.commands.loader.application import application_of
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.software.options import SoftwareOptions
from ai8xtools.diagnostics import Diagnostic, refuse_errors
from ai8xtools.software import build
from ai8xtools.software.emit.built import Built
from ai8xtools.software.emit.interface import Naming
from ai8xtools.software.emit.project import Sample
from ai8xtools.software.fuse import fuse
from ai8xtools.software.graph import Int64, StepGraph
from ai8xtools.software.lower import lower
from ai8xtools.software.profile import Profile
from ai8xtools.synthesis.final_scales import output_exponent
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.simulate import simulate
from ai8xtools.synthesis.understand import understand
from ai8xtools.values import frozen
from ai8xtools.writing.library import INPUT_FRACTION, worth
from device import Chip

Results = Mapping[int, Int64]
"""Results for the sample [channel, row, column] behind the last step of each layer."""


@frozen
class Program:
    """The steps of a network, not fused, and what is told of them.

    `exponents` and `fraction` tell what its integers mean, `names` of which layers they are, as
    `Naming` does; `units` are those of containers.
    `sample` computes what is proven, `results` what reports show; `lines` are printed behind the
    messages.
    """

    graph: StepGraph
    sample: Callable[[], Sample]
    results: Callable[[], Results]
    exponents: tuple[int, ...]
    fraction: int = INPUT_FRACTION
    names: tuple[str, ...] = ()
    units: Mapping[int, int] | None = None
    messages: tuple[Diagnostic, ...] = ()
    lines: tuple[str, ...] = ()


def understood(options: LoaderOptions, like: Chip | None) -> tuple[Network, tuple[Diagnostic, ...]]:
    """Return the network and its warnings; refuse it where it is wrong or too much for a chip."""
    chips: tuple[Diagnostic, ...] = ()
    if like is not None:
        from ai8xtools.synthesis.pipeline import (
            examine,  # the stages of the accelerator: few ask for them
        )

        *_, chips = examine(options.config_file, like, options.resolve, options.encode)
    network, _, diagnostics = understand(options.config_file, None, options.resolve)
    refuse_errors(diagnostics)
    return network, tuple(dict.fromkeys((*chips, *diagnostics)))


def as_program(
    network: Network, messages: tuple[Diagnostic, ...] = (), *, average_rounding: bool
) -> Program:
    """Return the program of a description."""
    graph = lower(network, average_rounding=average_rounding)
    outputs = network.outputs()

    return Program(
        graph,
        lambda: build.sample_of(network, average_rounding=average_rounding),
        lambda: simulate(network, average_rounding=average_rounding).outputs,
        tuple(output_exponent(layer.index, network) for layer in outputs),
        names=tuple(layer.name or "" for layer in outputs),
        messages=messages,
    )


def completed(built: Built, program: Program, profile: Profile, options: LoaderOptions) -> Built:
    """Return a planned project with its files: a library if that is asked for.

    Raises NoRoomError as `as_library` does.
    """
    project = options.project
    values = {**built.interface.values, "worth": worth(program.exponents)}
    built = replace(built, interface=replace(built.interface, values=values))
    prefix = project.symbol_prefix
    if prefix is not None:
        naming = Naming(
            prefix, project.labels, program.exponents, program.fraction,
            application_of(options, sdk=False), program.names, profile.power,
        )  # fmt: skip
        built = build.as_library(built, profile, naming)
    return build.emitted(built, program.sample(), project.name, project.command_line)


def planned(graph: StepGraph, profile: Profile, software: SoftwareOptions) -> Built:
    """Return the project of a lowered graph without its files.

    Raises DiagnosticError as `build` and `build_calls` do.
    """
    if software.stream is not None:
        return build.streamed(graph, profile, software.stream, software.kernels)
    if not software.calls:
        return build.planned(fuse(graph), profile, software.scheme, software.kernels)
    from ai8xtools.software.cmsis.build import planned as planned_calls  # few ask for it

    return planned_calls(
        graph,
        profile,
        software.scheme,
        software.kernels,
        library=software.library,
        interleaving=software.interleaving,
    )
