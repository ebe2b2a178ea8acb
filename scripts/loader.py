"""What ai8xize.py does: run the stages, write the project and the report, verify the firmware."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from diagnostics import Diagnostic, DiagnosticError, Place, Severity, as_json, print_diagnostics
from scripts.loader_values import (
    command_line,
    encode_options,
    project_folder,
    project_options,
    resolve_options,
)
from synthesis import __version__
from synthesis.emit import (
    ProjectOptions,
    check_folder,
    check_options,
    emit_arrays,
    emit_project,
    format_resources,
    log_text,
    write_project,
)
from synthesis.network import Network
from synthesis.pipeline import MEMORY_CODES, Synthesis, examine, has_errors, synthesize, what_fits
from synthesis.place import Placement
from synthesis.program import Program


def report(diagnostics: Iterable[Diagnostic], args: argparse.Namespace) -> None:
    """Print diagnostics in the form that was asked for."""
    if args.diagnostics == "json":
        print(as_json(diagnostics))
    else:
        print_diagnostics(diagnostics)


def tell(text: str, args: argparse.Namespace) -> None:
    """Print a line for people; it must not stand between the messages for an editor."""
    print(text, file=sys.stderr if args.diagnostics == "json" else sys.stdout)


def refuse_errors(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise if there is an error among them."""
    found = tuple(diagnostics)
    if has_errors(found):
        raise DiagnosticError(found)


def create_project(args: argparse.Namespace) -> int:
    """Run the stages that the arguments ask for; return the exit status."""
    check_report(args)
    if args.display_checkpoint:
        from synthesis.resolve.table import checkpoint_table

        tell(checkpoint_table(args.config_file, args.device, resolve_options(args)), args)
    options, folder = project_options(args), project_folder(args)
    complaints = check_options(options)
    if not args.check_only:
        complaints += complaints_of_folder(folder, args)
    if args.check_only or has_errors(complaints):
        warnings = examined(args, complaints)
        report(audible((*complaints, *warnings), args), args)
        tell(f"No errors in {args.config_file}", args)
        return 0
    result = synthesized(args)
    complaints = check_options(options, result.program)
    refuse_errors(complaints)
    shown = audible((*complaints, *result.warnings), args)
    options = replace(options, messages=tuple(map(str, shown)))
    files = emit_project(result.program, options) | emit_arrays(result.program, options)
    write_project(files, folder, overwrite=args.overwrite)
    if args.report is not None:
        write_report(args, result.network, result.placement, shown, result.program)
    report(shown, args)
    tell(f"Wrote {len(files)} files to {folder}", args)
    if args.verify:
        from scripts.loader_verify import verify  # needs unicorn, which other runs do without

        check_output = args.kat and not args.fixed_input
        for line in verify(
            result, folder, apb_base=args.apb_base, check_output=check_output, cycles=args.verbose
        ):
            tell(line, args)
    if args.verbose:
        tell(details(result.program, options, folder), args)
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


def audible(diagnostics: Iterable[Diagnostic], args: argparse.Namespace) -> list[Diagnostic]:
    """Leave out what the user does not want to hear."""
    silenced = {"W390"} if args.no_warn_zero else set()
    silenced |= {"N332", "N333"} if args.ignore_energy_warning else set()
    return [d for d in diagnostics if d.code not in silenced]


def details(program: Program, options: ProjectOptions, folder: Path) -> str:
    """Return the memory use and where the verbose log is, or the log itself if there is no file."""
    if options.log_filename is None:
        return log_text(program, options).rstrip("\n")
    return "\n".join(
        (
            *format_resources(program.statistics),
            *program.memory_log[-1:],
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
    program: Program | None = None,
) -> None:
    """Write the page of --report; without a program the network was refused."""
    from checkpoint import atomic
    from synthesis.emit.report import report_page
    from synthesis.report import build_report

    gathered = build_report(
        network,
        placement,
        encode_options(args),
        name=args.prefix,
        command_line=command_line(),
        tool=f"ai8xize.py {__version__}",
        program=program,
        diagnostics=diagnostics,
    )
    atomic.write_bytes(args.report, report_page(gathered).encode("utf-8", "backslashreplace"))


def report_refusal(args: argparse.Namespace, refusal: DiagnosticError) -> None:
    """Show what fits of a network that is refused only because something else does not."""
    errors = {d.code for d in refusal.diagnostics if d.severity is Severity.ERROR}
    if not errors <= MEMORY_CODES:
        return
    network, placement, problems = what_fits(
        args.config_file, args.device, resolve_options(args), encode_options(args)
    )
    found = dict.fromkeys((*refusal.diagnostics, *problems))
    write_report(args, network, placement, found)
