"""All files of a test.

The files of the vendor's own simulation environment (memory definitions, linker scripts) are not
among them.
Source: docs/rtl.md, "Files".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ai8xtools.synthesis.emit import headers
from ai8xtools.synthesis.emit.expected import cut
from ai8xtools.synthesis.emit.log import log_text
from ai8xtools.synthesis.emit.rtl import images
from ai8xtools.synthesis.emit.rtl.camera import camera_lines
from ai8xtools.synthesis.emit.rtl.options import SIMULATED, RtlOptions
from ai8xtools.synthesis.emit.rtl.program import bench_file, test_file, wrapper_file
from ai8xtools.synthesis.emit.rtl.timeout import latency_lines
from ai8xtools.synthesis.program import ExpectedOutput, Program
from ai8xtools.synthesis.summary import Summary
from ai8xtools.writing.files import distinct
from ai8xtools.writing.templates import render

_VERIFIER = "verify-output.py"
_DEBUG = "debug"


def emit_rtl(program: Program, summary: Summary, options: RtlOptions) -> dict[str, str]:
    """Return the text of every file by its path in the test's folder.

    Raises DiagnosticError (E072) if two files have the same path.
    """
    return distinct(
        _files(program, summary, options), reserved=SIMULATED | {*empty_folders(options)}
    )


def _files(program: Program, summary: Summary, options: RtlOptions) -> Iterator[tuple[str, str]]:
    """Yield every file: path and text."""
    project = options.project
    yield options.runtest_filename, bench_file(program, summary, options)
    if options.block_level:
        yield from _block_files(program, options)
    else:
        yield from _program_files(program, summary, options)
    if options.preload_data:
        yield from images.input_images(program).items()
    if options.preload_weights:
        yield from images.kernel_images(program).items()
    if options.result_output:
        expected = cut(program.expected, project.max_checklines)
        yield from images.expected_images(program, expected).items()
        yield _VERIFIER, render("rtl/verify-output.py.j2")
    if options.camera is not None:
        yield options.camera.filename, camera_lines(options.camera)
    latency = latency_lines(summary.statistics)
    if latency is not None:
        yield "latency.txt", latency
    if project.log_filename is not None:
        yield project.log_filename, log_text(program, summary, project)


def empty_folders(options: RtlOptions) -> tuple[str, ...]:
    """Return the folders that the simulation fills."""
    output = (images.OUTPUT,) if options.result_output else ()
    return output + ((_DEBUG,) if options.project.log_intermediate else ())


def executables(options: RtlOptions) -> tuple[str, ...]:
    """Return the files that are programs."""
    return (_VERIFIER,) if options.result_output else ()


def _program_files(
    program: Program, summary: Summary, options: RtlOptions
) -> Iterator[tuple[str, str]]:
    project = options.project
    yield project.program_filename, test_file(program, summary, options)
    if project.riscv:
        yield project.main_filename, wrapper_file(program, options)
    if not options.preload_weights:
        weights = replace(program, biases=())  # they are stored one by one
        yield project.weight_filename, headers.weights_header(weights, project)
    if options.sample_header:
        shown = program if options.camera is None else replace(program, inputs=(), fifo=())
        yield project.sample_filename, headers.sample_header(shown, summary, project)
    if options.expected_header:
        yield project.sample_output_filename, headers.expected_header(program, project)


def _block_files(program: Program, options: RtlOptions) -> Iterator[tuple[str, str]]:
    project = options.project
    writes = ((address, f"{value:08x}") for address, value in images.block_writes(program))
    yield options.input_image, images.block_image(writes)
    if not project.kat:
        return
    expected = cut(program.expected, project.max_checklines)
    yield options.output_image, _answer(expected, np.ones(len(expected), bool))
    for layer in sorted(set(expected.layers.tolist())):
        name = f"{project.output_filename}-{layer}.mem"
        yield name, _answer(expected, expected.layers == layer)


def _answer(expected: ExpectedOutput, chosen: NDArray[np.bool_]) -> str:
    columns = (expected.addresses, expected.values, expected.masks)
    rows = zip(*(column[chosen].tolist() for column in columns), strict=True)
    return images.block_image((a, images.masked_digits(value, mask)) for a, value, mask in rows)
