"""Whether a project fits the flash and the SRAM of its chip, and what makes it fit.

A project with a known answer is meant to run as it is, so it has to fit. Without one (`--no-kat`)
it is the frame of a program that brings input of its own: if only the sample is too much, that is a
warning.
Source: docs/does-not-fit.md, "The program does not fit".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace

from device import CHIPS
from device.chip import KERNEL_COLUMN_BYTES, KERNEL_COLUMN_STRIDE_BYTES, WORD_BYTES
from diagnostics import Diagnostic, Place, Severity
from synthesis.emit.footprint import Footprint, Memory, Part, footprint, format_parts
from synthesis.emit.options import ProjectOptions
from synthesis.facts import NO_ROOM, UNSOUND
from synthesis.program import Program


def check_footprint(
    program: Program, options: ProjectOptions, wide_share: float = 0
) -> Iterator[Diagnostic]:
    """Complain if a project needs more flash or SRAM than its chip has.

    `wide_share` is the part of the weights' bytes that have 8 bits.
    """
    found = footprint(program, options)
    if not found.flash.fits:
        yield _flash(found, program, options, wide_share)
    if not found.sram.fits:
        yield _sram(found.sram, program, options)


def _flash(
    found: Footprint, program: Program, options: ProjectOptions, wide_share: float
) -> Diagnostic:
    frame = not options.kat and found.flash.without("sample").fits
    ways = [*_ways(program, options), *_other_weights(found.flash, program, wide_share)]
    fitting = [name for name, flash in ways if flash.fits]
    short = [f"{name} ({flash.used:,} bytes)" for name, flash in ways if not flash.fits]
    remedies = []
    if fitting:
        remedies.append(f"It fits with one of these: {'; '.join(fitting)}.")
    if short:
        remedies.append(f"Not enough alone: {'; '.join(short)}.")
    if not fitting:
        remedies.append("Use fewer or narrower weights.")
    message = _message(found.flash, program)
    if not frame:
        return Diagnostic("E414", message, _PLACE, " ".join(remedies), effects=NO_ROOM)
    message += "; a program that gets its input elsewhere, without this sample, fits"
    return Diagnostic("W414", message, _PLACE, " ".join(remedies), Severity.WARNING, UNSOUND)


_PLACE = Place(option="--device")


def _message(memory: Memory, program: Program) -> str:
    return (
        f"the program needs {memory.used:,} bytes of {memory.name}, "
        f"the {program.chip.name} has {memory.size:,}: {format_parts(memory)}"
    )


def _ways(program: Program, options: ProjectOptions) -> Iterator[tuple[str, Memory]]:
    """Yield options that reduce the flash, with what the project needs then."""

    def needed(changed: ProjectOptions) -> Memory:
        return footprint(program, changed).flash

    if options.old_kernel_loader:
        yield "--new-kernel-loader", needed(replace(options, old_kernel_loader=False))
    if not program.express:
        plain = replace(options, old_kernel_loader=False)
        name = "--mexpress --new-kernel-loader" if options.old_kernel_loader else "--mexpress"
        yield name, _packed(needed(plain), program)
    if options.kat and not options.inline_check:
        count = _most_words(program, options)
        if count is not None:
            yield f"--max-checklines {count}", needed(replace(options, max_checklines=count))
        yield "--no-kat", needed(replace(options, kat=False))
    if program.inputs and not options.fixed_input:
        rest = replace(options, kat=False, fixed_input=True)
        name = "--no-kat --fixed-input" if options.kat else "--fixed-input"
        yield f"{name} (a bit pattern in place of the sample)", needed(rest)


def _packed(flash: Memory, program: Program) -> Memory:
    """Return the flash with packed weights: nine bytes for each kernel instead of four words."""
    saved = 0
    for block in program.kernels:
        columns = block.words.nbytes // KERNEL_COLUMN_STRIDE_BYTES
        words = -(-columns * KERNEL_COLUMN_BYTES // WORD_BYTES)
        saved += block.words.nbytes - words * WORD_BYTES
    parts = (
        Part(part.role, part.size - saved) if part.role == "weights" else part
        for part in flash.parts
    )
    return replace(flash, parts=tuple(parts))


def _scaled(flash: Memory, factor: float) -> Memory:
    parts = (
        Part(part.role, round(part.size * factor)) if part.role == "weights" else part
        for part in flash.parts
    )
    return replace(flash, parts=tuple(parts))


def _most_words(program: Program, options: ProjectOptions) -> int | None:
    """Return how many words of the known answer fit, of full hundreds; None if not even 100."""

    def too_many(hundreds: int) -> bool:
        cut = replace(options, max_checklines=100 * hundreds)
        return not footprint(program, cut).flash.fits

    hundreds = bisect_right(range(1, len(program.expected) // 100 + 1), False, key=too_many)
    return 100 * hundreds or None


def _other_weights(
    flash: Memory, program: Program, wide_share: float
) -> Iterable[tuple[str, Memory]]:
    """Yield what needs other weights or another chip."""
    if wide_share:
        yield (
            "weights of 4 bits in place of 8 (quantization: 4)",
            _scaled(flash, 1 - wide_share / 2),
        )
    for chip in CHIPS:
        if chip.flash_bytes > program.chip.flash_bytes:
            yield f"a {chip.name}", replace(flash, size=chip.flash_bytes)


def _sram(memory: Memory, program: Program, options: ProjectOptions) -> Diagnostic:
    smaller = footprint(program, replace(options, unload=False)).sram
    remedy = "Deliver fewer values: pool more, or use output_width: 8."
    if not options.softmax and smaller.fits:
        remedy = "It fits with --no-unload; your program reads the result from data memory itself."
    elif options.softmax:
        remedy = "Leave out --softmax; with --no-unload, too, there is no buffer for the result."
    return Diagnostic("E415", _message(memory, program), _PLACE, remedy, effects=NO_ROOM)
