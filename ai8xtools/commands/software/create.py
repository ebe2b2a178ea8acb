"""Reads a network, builds its project for a microcontroller and writes it."""

from __future__ import annotations

from ai8xtools.commands.deliver import deliver
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.loader.pages import check_report, write_pages
from ai8xtools.commands.loader.recorded import with_recorded_data
from ai8xtools.commands.software.log import complaints_of_names, with_log
from ai8xtools.commands.software.options import SoftwareOptions
from ai8xtools.commands.software.planning import planned, understood
from ai8xtools.diagnostics import Diagnostic, print_diagnostics, refuse_errors
from ai8xtools.software.build import emitted, sample_of
from ai8xtools.software.emit.built import Built
from ai8xtools.software.emit.text import log_text, plan_text, sentence
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.plan import NoRoomError
from ai8xtools.software.profile import Profile


def create_software(wanted: SoftwareOptions) -> int:
    """Write the project of --device MCU or CMSIS-NN; return the exit status."""
    options = wanted.source
    check_report(options)
    refuse_errors([*complaints_of_names(options.project)])
    wanted.folder(options).check_beside()
    if options.output.fits is not None:
        from ai8xtools.commands.software.fits import show_fits

        return show_fits(wanted, options.output.fits)
    if wanted.qformat:
        from ai8xtools.commands.software.qformat import create_qformat  # few ask for it

        return create_qformat(options, wanted)
    profile = wanted.profile()
    if options.model is not None:
        from ai8xtools.commands.loader.model_sources import with_description

        options = with_description(options, options.model)
    else:
        options = with_recorded_data(options)
    if not options.output.check_only:
        wanted.folder(options).check()
    network, found = understood(options, wanted.like)
    told = (*wanted.notices, *found)
    if wanted.container is not None:
        from ai8xtools.commands.software.container import create_container  # few ask for it

        print_diagnostics(options.visible(told))
        return create_container(network, profile, options, wanted)
    graph = lower(network, average_rounding=options.encode.average_rounding)
    try:
        plan = planned(graph, profile, wanted)
    except NoRoomError as refusal:
        if options.output.report is not None:
            from ai8xtools.commands.software.report import report_refusal  # few ask for it

            found = (*told, *refusal.diagnostics)
            write_pages(
                options.output.report, *report_refusal(network, profile, options, wanted, found)
            )
        raise
    sample = sample_of(network, average_rounding=options.encode.average_rounding)
    built = emitted(plan, sample, options.project.name, options.project.command_line)
    _finish(options, wanted, told, built, profile)
    if options.output.report is not None:
        from ai8xtools.commands.software.report import report_of

        write_pages(options.output.report, *report_of(built, profile, network, options, told))
    return 0


def _finish(
    options: LoaderOptions,
    wanted: SoftwareOptions,
    told: tuple[Diagnostic, ...],
    built: Built,
    profile: Profile,
) -> None:
    """Say what came about and write it."""
    print_diagnostics(options.visible(told))
    if wanted.plan_report or options.project.verbose:
        print(plan_text(built, profile))
    if options.output.check_only:
        print(f"No errors in {options.config_file}")
        return
    log = log_text(built, profile, options.project.command_line)
    files = with_log(built.files, options.project.log_filename, log)
    written = deliver(files, wanted.folder(options))
    print(sentence(built, profile))
    print(f"Wrote {written}")
