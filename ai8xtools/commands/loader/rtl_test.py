"""ai8xize.py --rtl: write a test for RTL simulation and add it to the list of tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path

from ai8xtools.commands.deliver import Folder, deliver
from ai8xtools.commands.loader.options import LoaderOptions, inputs
from ai8xtools.diagnostics import Diagnostic, print_diagnostics, refuse_errors
from ai8xtools.diagnostics.options import excludes
from ai8xtools.synthesis.emit import emit_arrays
from ai8xtools.synthesis.emit.rtl import (
    RtlOptions,
    add_test,
    check_rtl_options,
    emit_rtl,
    empty_folders,
    executables,
    list_problems,
    regression_line,
    test_name,
)
from ai8xtools.synthesis.mapping import MappedNetwork
from ai8xtools.synthesis.pipeline import Synthesis
from ai8xtools.writing.files import distinct
from ai8xtools.writing.folder import KEPT, folder_name
from ai8xtools.writing.manifest import MANIFEST


def check_test(options: RtlOptions, test_dir: str) -> list[Diagnostic]:
    """Return the complaints about a test for which its network need not be known."""
    return [*check_rtl_options(options, test_dir), *list_problems(options)]


def create_test(
    loader: LoaderOptions, rtl: RtlOptions, result: Synthesis, complaints: Iterable[Diagnostic]
) -> list[Diagnostic]:
    """Write the test of a network; return the messages that were shown.

    Raises DiagnosticError where the options do not fit the network or the folder exists.
    """
    name = folder_name(test_name(loader.project.name, result.summary), loader.test_dir)
    folder = Path(loader.test_dir, name)
    options = with_network(rtl, name, folder, result.mapped)
    checked = check_rtl_options(options, loader.test_dir, result.program)
    if result.program.exit is not None:
        checked = [*checked, excludes("--rtl", "exit_margin")]
    diagnostics = dict.fromkeys((*complaints, *checked))
    refuse_errors(diagnostics)
    written = Folder(folder, loader.overwrite, tuple(inputs(loader)), _test_list(options))
    written.check()
    shown = loader.visible((*diagnostics, *result.warnings))
    messages = tuple(map(str, shown))
    options = replace(options, project=replace(options.project, messages=messages))
    arrays = emit_arrays(result.summary, options.project)
    files: dict[str, str | bytes] = distinct(
        chain(emit_rtl(result.program, result.summary, options).items(), arrays.items()),
        reserved={*empty_folders(options), *KEPT, MANIFEST},
    )
    destination = deliver(files, written, executables(options), empty_folders(options))
    print_diagnostics(shown)
    print(f"Wrote {destination}")
    for test_list, _ in written.beside:
        line = regression_line(result.program, result.summary, options)
        added = add_test(Path(test_list), line)
        action = "Added" if added else "Already there:"
        print(f"{action} {line} in {test_list}")
    return shown


def _test_list(options: RtlOptions) -> tuple[tuple[str, str], ...]:
    """Return the list of tests, if the test is to be in one, as a file that is written."""
    if options.regression_folder is None:
        return ()
    path = str(Path(options.regression_folder, options.regression_list))
    return ((path, path),)


def with_network(
    options: RtlOptions, name: str, folder: Path, network: MappedNetwork
) -> RtlOptions:
    """Return the options of a test whose name and sample are known."""
    camera = options.camera
    if camera is not None:
        planar = network.first.channels_first
        camera = replace(camera, image=network.sample, planar=planar)
    project = replace(options.project, name=name, folder=str(folder))
    return replace(options, project=project, camera=camera)
