"""test.c and run_test.sv.

Source: docs/rtl.md, "The program" and "Your own test bench".
"""

from __future__ import annotations

from dataclasses import replace

from ai8xtools.synthesis.emit.code import program_values
from ai8xtools.synthesis.emit.rtl.options import RtlOptions
from ai8xtools.synthesis.emit.rtl.timeout import timeout_ms
from ai8xtools.synthesis.program import Block, Program, TimerStart
from ai8xtools.synthesis.summary import Summary
from ai8xtools.writing.templates import render


def test_file(program: Program, summary: Summary, options: RtlOptions) -> str:
    """Return the program that runs the network."""
    project = options.project
    if options.result_output or not options.expected_header:
        project = replace(project, sample_output_filename="none")
    values = program_values(replace(program, start=_untimed(program.start)), summary, project)
    needs_copies = options.sample_header and not program.fifo and options.camera is None
    return render(
        "rtl/test.c.j2",
        **values,
        rtl=options,
        headers=_headers(program, options),
        copies=needs_copies or not options.preload_weights,
        verifies_weights=project.checks_weights and not options.preload_weights,
        in_flash=_in_flash(options),
    )


def wrapper_file(program: Program, options: RtlOptions) -> str:
    """Return the Arm core's program that starts the RISC-V core."""
    project = options.project
    return render("rtl/wrapper.c.j2", program=program, options=project, cache=project.riscv_cache)


def bench_file(program: Program, summary: Summary, options: RtlOptions) -> str:
    """Return the part of the test bench that belongs to this test."""
    template = "rtl/run_block.sv.j2" if options.block_level else "rtl/run_test.sv.j2"
    return render(
        template,
        program=program,
        options=options.project,
        rtl=options,
        timeout_ms=timeout_ms(program, summary, options),
        flash_last=program.chip.flash_lines - 1,
    )


def _untimed(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Leave out the start of the stopwatch."""
    return tuple(
        Block(block.title, tuple(s for s in block.steps if not isinstance(s, TimerStart)))
        for block in blocks
    )


def _headers(program: Program, options: RtlOptions) -> list[str]:
    project = options.project
    prints = project.checks_weights or program.snoop_results or options.expected_header
    headers = ["<string.h>", "<stdio.h>"] if prints else []
    if options.camera is not None:
        headers += ["cameraif_regs.h"] if program.chip.has_renamed_registers else []
        headers.append("pcif_defines_af2.h")
    if not options.preload_weights:
        headers.append(project.weight_filename)
    if options.sample_header:
        headers.append(project.sample_filename)
    if options.expected_header:
        headers.append(project.sample_output_filename)
    return headers


def _in_flash(options: RtlOptions) -> bool:
    """Whether the RISC-V core runs from flash without its cache."""
    return options.project.riscv and options.flash and not options.project.riscv_cache
