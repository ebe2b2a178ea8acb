"""What ai8xize.py does: run the stages, write the project and the report, verify the firmware."""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from commands.loader.messages import print_line, report, visible
from commands.loader.rtl_test import create_test
from commands.loader.rtl_values import is_rtl, rtl_options, rtl_usage
from commands.loader.values import (
    command_line,
    encode_options,
    project_folder,
    project_options,
    resolve_options,
)
from diagnostics import (
    Diagnostic,
    DiagnosticError,
    Place,
    Severity,
    has_errors,
    refuse_errors,
)
from synthesis import __version__
from synthesis.emit import (
    ProjectOptions,
    check_options,
    check_outputs,
    emit_arrays,
    emit_project,
    format_resources,
    log_text,
)
from synthesis.emit.rtl import check_rtl_options, list_problems
from synthesis.facts import Fact
from synthesis.network import Network
from synthesis.pipeline import Synthesis, examine, synthesize, what_fits
from synthesis.place import Placement
from writing.folder import check_folder, write_project


def create_project(args: argparse.Namespace) -> int:
    """Run the stages that the arguments ask for; return the exit status."""
    check_report(args)
    if args.display_checkpoint:
        from synthesis.resolve.table import checkpoint_table

        print_line(checkpoint_table(args.config_file, args.device, resolve_options(args)), args)
    options, folder = project_options(args), project_folder(args)
    test = rtl_options(args, options) if is_rtl(args) else None
    complaints = [*rtl_usage(args), *check_options(test.project if test else options)]
    if test is not None:
        complaints += [*check_rtl_options(test, args.test_dir), *list_problems(test)]
    elif not args.check_only:
        complaints += complaints_of_folder(folder, args)
    if args.check_only or has_errors(complaints):
        warnings = examined(args, complaints)
        report(visible((*complaints, *warnings), args), args)
        print_line(f"No errors in {args.config_file}", args)
        return 0
    result = synthesized(args)
    if test is not None:
        shown = create_test(test, result, complaints, args)
        if args.report is not None:
            write_report(args, result.network, result.placement, shown, result)
        return 0
    complaints = check_options(options)
    complaints += check_outputs(options, result.program, result.summary)
    refuse_errors(complaints)
    shown = visible((*complaints, *result.warnings), args)
    options = replace(options, messages=tuple(map(str, shown)))
    texts = emit_project(result.program, result.summary, options)
    files = texts | emit_arrays(result.summary, options)
    write_project(files, folder, overwrite=args.overwrite)
    if args.report is not None:
        write_report(args, result.network, result.placement, shown, result)
    report(shown, args)
    print_line(f"Wrote {len(files)} files to {folder}", args)
    if args.verify:
        from commands.loader.verify import verify  # needs unicorn, which other runs do without

        check_output = args.kat and not args.fixed_input
        for line in verify(
            result, folder, apb_base=args.apb_base, check_output=check_output, cycles=args.verbose
        ):
            print_line(line, args)
    if args.verbose:
        print_line(details(result, options, folder), args)
    return 0


def complaints_of_folder(folder: Path, args: argparse.Namespace) -> list[Diagnostic]:
    """Return why the project cannot be written there, if so."""
    try:
        check_folder(folder, overwrite=args.overwrite)
    except DiagnosticError as refusal:
        return [*refusal.diagnostics]
    return []


def examined(args: argparse.Namespace, complaints: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the warnings about the network; raise DiagnosticError with all errors there are."""
    try:
        *_, warnings = examine(
            args.config_file, args.device, resolve_options(args), encode_options(args)
        )
    except DiagnosticError as refusal:
        raise DiagnosticError((*complaints, *refusal.diagnostics)) from None
    refuse_errors((*complaints, *warnings))
    return warnings


def details(result: Synthesis, options: ProjectOptions, folder: Path) -> str:
    """Return the memory use and where the verbose log is, or the log itself if there is no file."""
    if options.log_filename is None:
        return log_text(result.program, result.summary, options).rstrip("\n")
    return "\n".join(
        (
            *format_resources(result.summary.statistics),
            *result.summary.memory_log[-1:],
            f"Kernel map, data memory map, registers and data: {folder / options.log_filename}",
        )
    )


def synthesized(args: argparse.Namespace) -> Synthesis:
    """Run the stages up to the program; of a network that does not fit, write the report only."""
    try:
        return synthesize(
            args.config_file, args.device, resolve_options(args), encode_options(args)
        )
    except DiagnosticError as refusal:
        if args.report is not None:
            report_refusal(args, refusal)
        raise


def check_report(args: argparse.Namespace) -> None:
    """Refuse a report that could not be made or written."""
    if args.report is None:
        return
    if args.check_only:
        raise DiagnosticError(
            Diagnostic(
                "E090",
                "--check-only writes nothing, no report either",
                Place(option="--report"),
                "Leave out --report or --check-only.",
            )
        )
    if Path(args.report).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), args.report)


def write_report(
    args: argparse.Namespace,
    network: Network,
    placement: Placement,
    diagnostics: Iterable[Diagnostic],
    made: Synthesis | None = None,
) -> None:
    """Write the page of --report; without what was made of it the network was refused."""
    from checkpoint import atomic
    from synthesis.emit.report import report_page
    from synthesis.report import build_report

    gathered = build_report(
        network,
        placement,
        args.device,
        encode_options(args),
        name=args.prefix,
        command_line=command_line(),
        tool=f"ai8xize.py {__version__}",
        program=None if made is None else made.program,
        summary=None if made is None else made.summary,
        diagnostics=diagnostics,
    )
    atomic.write_bytes(args.report, report_page(gathered).encode("utf-8", "backslashreplace"))


def report_refusal(args: argparse.Namespace, refusal: DiagnosticError) -> None:
    """Show what fits of a network that is refused only because something else does not."""
    errors = (d for d in refusal.diagnostics if d.severity is Severity.ERROR)
    if not all(Fact.ROOM in d.effects.blocks for d in errors):
        return
    network, placement, problems = what_fits(
        args.config_file, args.device, resolve_options(args), encode_options(args)
    )
    found = dict.fromkeys((*refusal.diagnostics, *problems))
    write_report(args, network, placement, found)
