"""Which plan a network gets for a microcontroller: what generation and --fits have in common."""

from __future__ import annotations

from collections.abc import Callable

from commands.loader.options import LoaderOptions
from commands.software.options import SoftwareOptions
from device import Chip
from diagnostics import Diagnostic, refuse_errors
from software import build as whole
from software.build import Built, NoRoomError
from software.fuse import fuse
from software.graph import Graph
from software.levels import build as cut
from software.levels.build import ALWAYS, LevelBuilt
from software.profile import Profile
from synthesis.network import Network
from synthesis.understand import understand

_Way = Callable[[Graph, Profile, SoftwareOptions], Built | LevelBuilt]


def understood(options: LoaderOptions, like: Chip | None) -> tuple[Network, tuple[Diagnostic, ...]]:
    """Return the network and what was found; refuse it where it is wrong or too much for a chip."""
    chips: tuple[Diagnostic, ...] = ()
    if like is not None:
        from synthesis.pipeline import examine  # the stages of the accelerator: few ask for them

        *_, chips = examine(options.config_file, like, options.resolve, options.encode)
    network, _, found = understand(options.config_file, None, options.resolve)
    refuse_errors(found)
    return network, tuple(dict.fromkeys((*chips, *found)))


def planned(graph: Graph, profile: Profile, wanted: SoftwareOptions) -> Built | LevelBuilt:
    """Return the project of a lowered graph without its files.

    It is planned for the levels of memory where there are any, or if these are asked for. Raises
    DiagnosticError as `build`, `build_calls` and `build_levels` do.
    """
    if wanted.calls:
        return _with_calls(graph, profile, wanted)
    graph = fuse(graph)
    if not profile.leveled and wanted.scheme not in ALWAYS:
        return _whole(graph, profile, wanted)
    ways: list[_Way] = [_leveled, _whole] if wanted.scheme == "auto" else [_whole, _leveled]
    if profile.weights_in_l3 or wanted.scheme in ALWAYS:
        ways = [_leveled]
    refusals = []
    for way in ways:
        try:
            return way(graph, profile, wanted)
        except NoRoomError as refusal:
            refusals.append(refusal)
    raise refusals[ways.index(_leveled)]


def with_files(
    made: Built | LevelBuilt, network: Network, options: LoaderOptions
) -> Built | LevelBuilt:
    """Return a project that was planned with its files."""
    sample = whole.sample_of(network, average_rounding=options.encode.average_rounding)
    name, line = options.project.name, options.project.command_line
    if isinstance(made, LevelBuilt):
        return cut.emitted(made, sample, name, line)
    return whole.emitted(made, sample, name, line)


def _leveled(graph: Graph, profile: Profile, wanted: SoftwareOptions) -> LevelBuilt:
    return cut.planned(graph, profile, wanted.scheme, wanted.kernels)


def _whole(graph: Graph, profile: Profile, wanted: SoftwareOptions) -> Built:
    return whole.planned(graph, profile, wanted.schemes, wanted.kernels)


def _with_calls(graph: Graph, profile: Profile, wanted: SoftwareOptions) -> Built:
    from software.cmsis.build import planned as planned_calls  # few ask for it

    return planned_calls(
        graph,
        profile,
        wanted.schemes,
        wanted.kernels,
        library=wanted.library,
        interleaving=wanted.interleaving,
    )
