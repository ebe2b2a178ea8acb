"""Reads a network, builds its project for a microcontroller and writes it."""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.checkpoint import Checkpoint
from ai8xtools.commands.loader.create import proven
from ai8xtools.commands.loader.options import LoaderOptions, ModelSource
from ai8xtools.commands.loader.pages import check_report, write_pages
from ai8xtools.commands.loader.recorded import with_recorded_data
from ai8xtools.commands.software.finishing import finish
from ai8xtools.commands.software.graphs import source_of
from ai8xtools.commands.software.log import complaints_of_names
from ai8xtools.commands.software.options import SoftwareOptions
from ai8xtools.commands.software.planning import (
    Program,
    as_program,
    completed,
    planned,
    understood,
)
from ai8xtools.diagnostics import Diagnostic, note, print_diagnostics, refuse_errors
from ai8xtools.software.emit.text import log_text, plan_text
from ai8xtools.software.plan.plan import NoRoomError


def create_software(software: SoftwareOptions) -> int:
    """Write the project of --device MCU or CMSIS-NN; return the exit status."""
    options = software.source
    check_report(options)
    refuse_errors([*complaints_of_names(options.project, software.library)])
    software.folder(options).check_beside()
    if options.output.fits is not None:
        from ai8xtools.commands.software.fits import show_fits

        return show_fits(software, options.output.fits)
    source = source_of(options, software)
    if source is None and software.stateful:
        from ai8xtools.software.operators.stateful import no_recurrence  # few ask for it

        raise no_recurrence()
    if source is None and software.qformat:
        from ai8xtools.commands.software.qformat import create_qformat  # few ask for it

        return create_qformat(options, software)
    return _create(options, software, source)


def _create(
    options: LoaderOptions, software: SoftwareOptions, source: Checkpoint | ModelSource | None
) -> int:
    """Write the project of steps, or their container; return the exit status."""
    profile = software.profile()
    if source is None:
        options = _recorded(options)
    if not options.output.check_only:
        software.folder(options).check()
    if source is None:
        network, warnings = understood(options, software.like)
        messages = (*warnings, *proven(options, network))
        program = as_program(network, messages, average_rounding=options.encode.average_rounding)
    else:
        from ai8xtools.commands.software.operators import program_of  # few ask for it

        options, program = program_of(options, software, source)
    messages = (*software.notices, *program.messages)
    if software.container is not None:
        from ai8xtools.commands.software.container import create_container  # few ask for it

        _tell(options, messages, program)
        return create_container(program, profile, options, software)
    try:
        plan = planned(program.graph, profile, software)
    except NoRoomError as refusal:
        if options.output.report is not None:
            from ai8xtools.commands.software.report import report_refusal  # few ask for it

            complaints = (*messages, *refusal.diagnostics)
            write_pages(
                options.output.report,
                *report_refusal(program, profile, options, software, complaints),
            )
        raise
    note(subject=options.project.name)
    built = completed(plan, program, profile, options)
    _tell(options, messages, program)
    log = log_text(built, profile, options.project.command_line)
    finish(options, software, built, profile, plan_text(built, profile), log)
    if options.output.report is not None:
        from ai8xtools.commands.software.report import report_of

        results = program.results()
        write_pages(options.output.report, *report_of(built, profile, results, options, messages))
    if options.doubt is not None:
        print(options.doubt)
    return 0


def _tell(options: LoaderOptions, messages: Sequence[Diagnostic], program: Program) -> None:
    print_diagnostics(options.visible(messages))
    for line in program.lines:
        print(line)


def _recorded(options: LoaderOptions) -> LoaderOptions:
    """Return options with the description of a model, or with what a checkpoint records."""
    if options.model is None:
        return with_recorded_data(options)
    from ai8xtools.commands.loader.model_sources import with_description

    return with_description(options, options.model)
