"""Reads a network, builds its project for a microcontroller and writes it."""

from __future__ import annotations

from ai8xtools.commands.loader.create import proven
from ai8xtools.commands.loader.pages import check_report, write_pages
from ai8xtools.commands.loader.recorded import with_recorded_data
from ai8xtools.commands.software.finishing import finish
from ai8xtools.commands.software.graphs import source_of
from ai8xtools.commands.software.log import complaints_of_names
from ai8xtools.commands.software.options import SoftwareOptions
from ai8xtools.commands.software.planning import completed, planned, understood
from ai8xtools.diagnostics import note, print_diagnostics, refuse_errors
from ai8xtools.software.build import sample_of
from ai8xtools.software.emit.text import log_text, plan_text
from ai8xtools.software.lower import lower
from ai8xtools.software.plan.plan import NoRoomError
from ai8xtools.synthesis.final_scales import output_exponent


def create_software(software: SoftwareOptions) -> int:
    """Write the project of --device MCU or CMSIS-NN; return the exit status."""
    options = software.source
    check_report(options)
    refuse_errors([*complaints_of_names(options.project, software.library)])
    software.folder(options).check_beside()
    if options.output.fits is not None:
        from ai8xtools.commands.software.fits import show_fits

        return show_fits(software, options.output.fits)
    if (source := source_of(options, software)) is not None:
        from ai8xtools.commands.software.operators import create_from_operators

        return create_from_operators(options, software, source)
    if software.stateful:
        from ai8xtools.software.operators.stateful import no_recurrence  # few ask for it

        raise no_recurrence()
    if software.qformat:
        from ai8xtools.commands.software.qformat import create_qformat  # few ask for it

        return create_qformat(options, software)
    profile = software.profile()
    if options.model is not None:
        from ai8xtools.commands.loader.model_sources import with_description

        options = with_description(options, options.model)
    else:
        options = with_recorded_data(options)
    if not options.output.check_only:
        software.folder(options).check()
    network, warnings = understood(options, software.like)
    messages = (*software.notices, *warnings, *proven(options, network))
    if software.container is not None:
        from ai8xtools.commands.software.container import create_container  # few ask for it

        print_diagnostics(options.visible(messages))
        return create_container(network, profile, options, software)
    graph = lower(network, average_rounding=options.encode.average_rounding)
    try:
        plan = planned(graph, profile, software)
    except NoRoomError as refusal:
        if options.output.report is not None:
            from ai8xtools.commands.software.report import report_refusal  # few ask for it

            complaints = (*messages, *refusal.diagnostics)
            write_pages(
                options.output.report,
                *report_refusal(network, profile, options, software, complaints),
            )
        raise
    note(subject=options.project.name)
    sample = sample_of(network, average_rounding=options.encode.average_rounding)
    exponents = (output_exponent(layer.index, network) for layer in network.outputs())
    names = (layer.name or "" for layer in network.outputs())
    built = completed(plan, sample, profile, options, exponents, names=names)
    print_diagnostics(options.visible(messages))
    log = log_text(built, profile, options.project.command_line)
    finish(options, software, built, profile, plan_text(built, profile), log)
    if options.output.report is not None:
        from ai8xtools.commands.software.report import report_of

        write_pages(options.output.report, *report_of(built, profile, network, options, messages))
    if options.doubt is not None:
        print(options.doubt)
    return 0
