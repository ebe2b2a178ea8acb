"""Reads a network, builds its project for a microcontroller and writes it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from commands.loader.messages import print_line, print_messages, visible
from commands.loader.options import LoaderOptions
from commands.loader.recorded import with_recorded_data
from commands.software.options import SoftwareOptions
from device import Chip
from diagnostics import Diagnostic, refuse_errors
from software.build import Built, build
from software.emit.text import amount, log_text, plan_text
from software.profile import Profile
from synthesis.network import Network
from synthesis.understand import understand
from writing.folder import check_folder, write_project


def create_software(options: LoaderOptions, wanted: SoftwareOptions) -> int:
    """Write the project of --device MCU or CMSIS-NN; return the exit status."""
    refuse_errors(wanted.notices)
    profile = wanted.profile()
    if options.model is not None:
        from commands.loader.model_sources import with_description

        options = with_description(options, options.model)
    else:
        options = with_recorded_data(options)
    if not options.output.check_only:
        check_folder(options.folder, overwrite=options.overwrite)
    network, found = _understood(options, wanted.like)
    built = _built(network, profile, options, wanted)
    print_messages(visible((*wanted.notices, *found), options.messages), options.messages)
    if wanted.report or options.project.verbose:
        print_line(plan_text(built, profile), options.messages)
    if options.output.check_only:
        print_line(f"No errors in {options.config_file}", options.messages)
        return 0
    files = built.files
    if (log := options.project.log_filename) is not None:
        files = files | {log: log_text(built, profile, options.project.command_line)}
    write_project(files, options.folder, overwrite=options.overwrite)
    if options.output.report is not None:
        from checkpoint import atomic
        from software.emit.page import plan_page

        page = plan_page(built, profile, options.project.name)
        atomic.write_bytes(Path(options.output.report), page.encode())
    need = built.need
    print_line(
        f"{profile.name}: {amount(need.ram, profile.l1)} bytes of RAM ({need.arena:,} of data, "
        f"plan: {built.plan.scheme}), {amount(need.flash, profile.flash)} bytes of flash "
        f"({need.weights:,} of weights)",
        options.messages,
    )
    print_line(f"Wrote {len(files)} files to {options.folder}", options.messages)
    return 0


def _built(
    network: Network, profile: Profile, options: LoaderOptions, wanted: SoftwareOptions
) -> Built:
    """Return the project, with calls of Arm's functions if these are wanted."""
    make = build
    if wanted.calls:
        from software.cmsis.build import build_calls

        make = partial(build_calls, library=wanted.library)
    return make(
        network,
        profile,
        schemes=wanted.schemes,
        kernels=wanted.kernels,
        average_rounding=options.encode.average_rounding,
        name=options.project.name,
        command_line=options.project.command_line,
    )


def _understood(
    options: LoaderOptions, like: Chip | None
) -> tuple[Network, tuple[Diagnostic, ...]]:
    """Return the network and what was found; refuse it where it is wrong or too much for a chip."""
    chips: tuple[Diagnostic, ...] = ()
    if like is not None:
        from synthesis.pipeline import examine  # the stages of the accelerator: few ask for them

        *_, chips = examine(options.config_file, like, options.resolve, options.encode)
    network, _, found = understand(options.config_file, None, options.resolve)
    refuse_errors(found)
    return network, tuple(dict.fromkeys((*chips, *found)))
