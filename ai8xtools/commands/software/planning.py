"""Which plan a network gets for a microcontroller: what generation and --fits have in common."""

from __future__ import annotations

from collections.abc import Iterable
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
from ai8xtools.software.graph import StepGraph
from ai8xtools.software.profile import Profile
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.understand import understand
from ai8xtools.writing.library import INPUT_FRACTION, worth
from device import Chip


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


def completed(
    built: Built,
    sample: Sample,
    profile: Profile,
    options: LoaderOptions,
    exponents: Iterable[int],
    fraction: int = INPUT_FRACTION,
    names: Iterable[str] = (),
) -> Built:
    """Return a planned project with its files: a library if that is asked for.

    `exponents` and `fraction` tell what its integers mean, `names` of which layers they are, as
    `Naming` does. Raises NoRoomError as
    `as_library` does.
    """
    project, exponents = options.project, tuple(exponents)
    values = {**built.interface.values, "worth": worth(exponents)}
    built = replace(built, interface=replace(built.interface, values=values))
    prefix = project.symbol_prefix
    if prefix is not None:
        naming = Naming(
            prefix, project.labels, exponents, fraction,
            application_of(options, sdk=False), tuple(names), profile.power,
        )  # fmt: skip
        built = build.as_library(built, profile, naming)
    return build.emitted(built, sample, project.name, project.command_line)


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
