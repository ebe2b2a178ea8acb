"""cnn.c, cnn.h and the main program.

Source: docs/generated-project.md, "Files", "Order of calls" and "The output".
"""

from __future__ import annotations

from typing import Any

from ai8xtools.diagnostics import refused
from ai8xtools.synthesis.emit.expected import cut
from ai8xtools.synthesis.emit.kernels import processor_arrays
from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.synthesis.emit.statistics import format_statistics
from ai8xtools.synthesis.emit.unload import delivered, layer_offsets, unload_code
from ai8xtools.synthesis.program import Block, Clear, Program, UnloadLayer, Write
from ai8xtools.synthesis.summary import Summary
from ai8xtools.writing.library import worth
from ai8xtools.writing.templates import render
from device.chip import GROUPS, KERNEL_COLUMN_STRIDE_BYTES


def header_file(program: Program, summary: Summary, options: ProjectOptions) -> str:
    """Return cnn.h."""
    return render("c/cnn.h.j2", **program_values(program, summary, options))


def api_file(program: Program, summary: Summary, options: ProjectOptions) -> str:
    """Return the file with the functions that drive the accelerator."""
    return render("c/cnn.c.j2", **program_values(program, summary, options))


def wrapper_file(program: Program, options: ProjectOptions) -> str:
    """Return the Arm core's program that starts the RISC-V core and waits for it."""
    return render("c/wrapper.c.j2", program=program, options=options)


def main_file(program: Program, summary: Summary, options: ProjectOptions) -> str:
    """Return the program that runs the network; without an API file it holds all functions."""
    values = program_values(program, summary, options)
    if options.softmax:
        final, offset = _classified(program, summary, options)
        values["softmax_offset"] = offset // final.value_bytes
        values["softmax_halfwords"] = final.in_halfwords
    return render("c/main.c.j2", **values)


def program_values(program: Program, summary: Summary, options: ProjectOptions) -> dict[str, Any]:
    """Return what the templates of C programs need."""
    unroll_mlator = options.unroll_mlator if options.mlator else None
    layers = delivered(program, options)
    code = unload_code(layers, options.unroll_wide, options.unroll_8bit, unroll_mlator)
    return {
        "program": program,
        "summary": summary,
        "options": options,
        "init": _written(program.init),
        "configure": _written(program.configure),
        "start": _written(program.start),
        "select": _written(_selecting(program)),
        "clears_memory": any(isinstance(s, Clear) for b in program.init for s in b.steps),
        "unload": code,
        "worth": worth(layer.exponent - layer.scale for layer in layers),
        "early": _early(program, options),
        "final_scales": [layer.scale for layer in program.unload],
        "kernel_arrays": processor_arrays(program) if options.old_kernel_loader else [],
        "kernel_stride": program.chip.kernel_stride,
        "column_bytes": KERNEL_COLUMN_STRIDE_BYTES,
        "expected": cut(program.expected, options.max_checklines),
        "last_layer": summary.last_layer.index,
        "statistics": format_statistics(summary.statistics),
        "trigger_pins": options.energy and program.chip.has_trigger_pins,
    }


def _early(program: Program, options: ProjectOptions) -> dict[str, Any] | None:
    """Return what the code of an early exit needs: its scores and the start of the other layers."""
    if program.exit is None:
        return None
    scores = unload_code((program.exit.scores,), options.unroll_wide, options.unroll_8bit)
    return {
        "margin": program.exit.margin, "scores": scores, "resume": _written(program.exit.resume),
    }  # fmt: skip


def _selecting(program: Program) -> tuple[Block, ...]:
    """Return the registers that the network needs where another one is loaded as well: what
    brings the accelerator to a known state, but does not clear memories."""
    chip = program.chip
    tests = {program.apb_base + chip.control_address(g, "SRAM_TEST") for g in range(GROUPS)}
    return tuple(
        Block(
            block.title,
            tuple(s for s in block.steps if isinstance(s, Write) and s.address not in tests),
        )
        for block in program.init
    )


def _written(blocks: tuple[Block, ...]) -> list[Block]:
    """Return the blocks without the writes that only the log lists."""
    kept = []
    for block in blocks:
        steps = tuple(s for s in block.steps if not (isinstance(s, Write) and s.skipped))
        if steps:
            kept.append(Block(block.title, steps))
    return kept


def _classified(
    program: Program, summary: Summary, options: ProjectOptions
) -> tuple[UnloadLayer, int]:
    """Return the layer with the values to classify, and where it starts in the result, in bytes.

    The layer is the one executed last; it must be among the delivered ones.
    """
    last = summary.last_layer
    final = last.index
    layers = delivered(program, options)
    candidates = [
        (layer, offset)
        for layer, offset in zip(layers, layer_offsets(layers), strict=False)
        if layer.layer in (final, -1)
        and layer.width == program.output_width
        and layer.channels * layer.pixels == program.output_count
    ]
    if not candidates:
        raise refused(
            "E075",
            f"the last layer, {final}, is not among the output layers",
            last.place.with_option("--softmax"),
            f"Mark layer {final} with 'output: true' as well, or leave out --softmax.",
        )
    return candidates[-1]
