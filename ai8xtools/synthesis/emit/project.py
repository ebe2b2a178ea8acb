"""All files of a project.

Source: docs/generated-project.md, "Files".
"""

from __future__ import annotations

import io

import numpy as np

from ai8xtools.root import ROOT
from ai8xtools.synthesis.emit import code, headers
from ai8xtools.synthesis.emit.buildfiles import build_files
from ai8xtools.synthesis.emit.library import Export
from ai8xtools.synthesis.emit.log import log_text
from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.summary import Summary

_SOURCES = ROOT / "device" / "c"


def emit_project(
    program: Program, summary: Summary, options: ProjectOptions, export: Export | None = None
) -> dict[str, str]:
    """Return the text of every file by its path in the project's folder; `export`: of a library.

    Raises DiagnosticError where an option does not fit the network.
    """
    files = {
        "cnn.h": code.header_file(program, summary, options),
        options.program_filename: code.main_file(program, summary, options),
        options.weight_filename: headers.weights_header(program, options),
        options.sample_filename: headers.sample_header(program, summary, options),
        "softmax.c": (_SOURCES / "softmax.c").read_text(encoding="ascii"),
    }
    if options.riscv:
        files[options.main_filename] = code.wrapper_file(program, options)
    if not options.single_file:
        files[options.api_filename] = code.api_file(program, summary, options)
    if options.kat and not options.inline_check:
        files[options.sample_output_filename] = headers.expected_header(program, options)
    if not options.studio:
        files |= build_files(program.chip, options)
    if export is not None:
        files = export.files(files, program, options)
    if options.log_filename is not None:
        files[options.log_filename] = log_text(program, summary, options)
    return files


def emit_arrays(summary: Summary, options: ProjectOptions) -> dict[str, bytes]:
    """Return the files about the simulation that were asked for by their path in the folder."""
    files: dict[str, bytes] = {}
    if options.sample_numpy_filename is not None:
        content = io.BytesIO()
        np.save(content, summary.result, allow_pickle=False)
        files[options.sample_numpy_filename] = content.getvalue()
    if options.log_intermediate or options.log_pooling or options.debug_computation:
        from ai8xtools.synthesis.emit.intermediate import intermediate_files  # only for debugging

        files |= intermediate_files(summary, options)
    return files
