"""ai8xize.py --rtl: write a test for RTL simulation and add it to the list of tests."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path

from commands.loader.messages import print_line, report, visible
from commands.loader.rtl_values import with_network
from diagnostics import Diagnostic, refuse_errors
from synthesis.emit import emit_arrays
from synthesis.emit.rtl import (
    RtlOptions,
    add_test,
    check_rtl_options,
    emit_rtl,
    empty_folders,
    executables,
    regression_line,
    test_name,
)
from synthesis.pipeline import Synthesis
from writing.files import distinct
from writing.folder import KEPT, check_folder, folder_name, write_project
from writing.manifest import MANIFEST


def create_test(
    options: RtlOptions,
    result: Synthesis,
    complaints: Iterable[Diagnostic],
    args: argparse.Namespace,
) -> list[Diagnostic]:
    """Write the test of a network; return the messages that were shown.

    Raises DiagnosticError where the options do not fit the network or the folder exists.
    """
    name = folder_name(test_name(args.prefix, result.summary), args.test_dir)
    folder = Path(args.test_dir, name)
    options = with_network(options, name, folder, result.mapped)
    found = dict.fromkeys((*complaints, *check_rtl_options(options, args.test_dir, result.program)))
    refuse_errors(found)
    check_folder(folder, overwrite=args.overwrite)
    shown = visible((*found, *result.warnings), args)
    messages = tuple(map(str, shown))
    options = replace(options, project=replace(options.project, messages=messages))
    arrays = emit_arrays(result.summary, options.project)
    files: dict[str, str | bytes] = distinct(
        chain(emit_rtl(result.program, result.summary, options).items(), arrays.items()),
        reserved={*empty_folders(options), *KEPT, MANIFEST},
    )
    write_project(
        files,
        folder,
        overwrite=args.overwrite,
        executables=executables(options),
        empty_folders=empty_folders(options),
    )
    report(shown, args)
    print_line(f"Wrote {len(files)} files to {folder}", args)
    if options.regression_folder is not None:
        test_list = Path(options.regression_folder, options.regression_list)
        line = regression_line(result.program, result.summary, options)
        added = add_test(test_list, line)
        print_line(f"{'Added' if added else 'Already there:'} {line} in {test_list}", args)
    return shown
