"""Reads a network, builds its project for a microcontroller and writes it."""

from __future__ import annotations

from pathlib import Path

from commands.loader.messages import print_line, print_messages, visible
from commands.loader.options import LoaderOptions
from commands.loader.recorded import with_recorded_data
from commands.software.options import SoftwareOptions
from commands.software.planning import planned, understood, with_files
from diagnostics import Diagnostic, refuse_errors
from software.build import Built
from software.emit.level_text import level_log, level_page, level_text
from software.emit.text import amount, log_text, plan_text
from software.levels.build import LevelBuilt
from software.lower import lower
from software.profile import Profile
from synthesis.network import Network
from values import frozen
from writing.folder import check_folder, write_project


def create_software(options: LoaderOptions, wanted: SoftwareOptions) -> int:
    """Write the project of --device MCU or CMSIS-NN; return the exit status."""
    if wanted.qformat:
        from commands.software.qformat import create_qformat  # few ask for it

        return create_qformat(options, wanted)
    refuse_errors(wanted.notices)
    profile = wanted.profile()
    if options.model is not None:
        from commands.loader.model_sources import with_description

        options = with_description(options, options.model)
    else:
        options = with_recorded_data(options)
    if not options.output.check_only:
        check_folder(options.folder, overwrite=options.overwrite)
    network, found = understood(options, wanted.like)
    told = (*wanted.notices, *found)
    if wanted.container is not None:
        from commands.software.container import create_container  # few ask for it

        print_messages(visible(told, options.messages), options.messages)
        return create_container(network, profile, options, wanted.container)
    graph = lower(network, average_rounding=options.encode.average_rounding)
    built = with_files(planned(graph, profile, wanted), network, options)
    if isinstance(built, LevelBuilt):
        return _finish(options, wanted, told, _of_levels(built, profile, options))
    return _finish(options, wanted, told, _of_plan(built, profile, options, network))


@frozen
class _Result:
    """A project: its files, the plan as text and for the log, a sentence, and a page if asked."""

    files: dict[str, str]
    plan: str
    log: str
    sentence: str
    page: str | None = None
    twin: str | None = None


def _finish(
    options: LoaderOptions, wanted: SoftwareOptions, told: tuple[Diagnostic, ...], result: _Result
) -> int:
    """Say what came about and write it; return the exit status."""
    print_messages(visible(told, options.messages), options.messages)
    if wanted.report or options.project.verbose:
        print_line(result.plan, options.messages)
    if options.output.check_only:
        print_line(f"No errors in {options.config_file}", options.messages)
        return 0
    files = result.files
    if (log := options.project.log_filename) is not None:
        files = files | {log: result.log}
    write_project(files, options.folder, overwrite=options.overwrite)
    if options.output.report is not None and result.page is not None:
        _write_report(options.output.report, result.page, result.twin)
    print_line(result.sentence, options.messages)
    print_line(f"Wrote {len(files)} files to {options.folder}", options.messages)
    return 0


def _write_report(report: str, page: str, twin: str | None) -> None:
    """Write the page and its twin as JSON, or that alone if it is named."""
    from checkpoint import atomic
    from checkpoint.pairs import write_pair

    path = Path(report)
    beside = path.with_suffix(".json")
    if twin is None:
        atomic.write_bytes(path, page.encode())
    elif path == beside:
        atomic.write_bytes(path, twin.encode())
    else:
        write_pair(path, page.encode(), beside, twin.encode())


def _of_plan(built: Built, profile: Profile, options: LoaderOptions, network: Network) -> _Result:
    need, page, twin = built.need, None, None
    if options.output.report is not None:
        from commands.software.report import report_of  # few ask for it

        page, twin = report_of(built, profile, network, options)
    return _Result(
        built.files,
        plan_text(built, profile),
        log_text(built, profile, options.project.command_line),
        f"{profile.name}: {amount(need.ram, profile.l1)} bytes of RAM ({need.arena:,} of data, "
        f"plan: {built.plan.scheme}), {amount(need.flash, profile.flash)} bytes of flash "
        f"({need.weights:,} of weights)",
        page,
        twin,
    )


def _of_levels(built: LevelBuilt, profile: Profile, options: LoaderOptions) -> _Result:
    text, page = level_text(built, profile), None
    if options.output.report is not None:
        page = level_page(built, profile, options.project.name)
    where = "in place" if built.in_place else "in l3"
    return _Result(
        built.files,
        text,
        level_log(built, profile, options.project.command_line),
        f"{profile.name}: {built.ram:,} of {profile.l1:,} bytes of l1 (plan: memory levels), "
        f"{built.plan.traffic.total:,} bytes copied, {built.weights:,} of weights {where}",
        page,
    )
