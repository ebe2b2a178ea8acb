"""What of a project fits the flash and the SRAM of its chip, and what makes the rest fit.

The network itself (code, weights, biases) has to fit. What only its self-test needs is left out
where there is no room for it, in this order: words of the known answer, all of it, the sample; in
SRAM the buffer for the result. With `--no-kat` the project is the frame of a program that brings
input of its own: it keeps its sample, with a warning if that is too much.
Source: docs/does-not-fit.md, "The program does not fit".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ai8xtools.diagnostics import Diagnostic, Place, Severity
from ai8xtools.synthesis.emit.footprint import CoreMemory, MemoryPart, footprint, format_parts
from ai8xtools.synthesis.emit.options import ProjectOptions
from ai8xtools.synthesis.facts import NO_ROOM, UNSOUND
from ai8xtools.synthesis.program import Program, with_pattern
from ai8xtools.values import frozen
from device import CHIPS
from device.chip import KERNEL_COLUMN_BYTES, KERNEL_COLUMN_STRIDE_BYTES, WORD_BYTES

_RESERVE = 4096
"""Bytes of flash that stay free where words of the known answer are left out: code is estimated."""


@frozen
class Fitting:
    """A project as it is written: without what its chip has no room for.

    `complaints` are a warning of all that was left out, and errors if it does not fit even so.
    """

    program: Program
    options: ProjectOptions
    complaints: tuple[Diagnostic, ...] = ()


def fitted(program: Program, options: ProjectOptions, wide_share: float = 0) -> Fitting:
    """Leave out of a project what only its self-test needs, as far as that is too much.

    `wide_share` is the part of the weights' bytes that have 8 bits.
    """
    fitting = _with_result_that_fits(Fitting(program, options))
    return _with_flash_that_fits(fitting, wide_share)


def _with_flash_that_fits(whole: Fitting, wide_share: float) -> Fitting:
    program, options = whole.program, whole.options
    flash = footprint(program, options).flash
    if flash.fits:
        return whole
    ways = [*_ways(program, options), *_other_weights(flash, program, wide_share)]
    for way in _reduced(program, options) if options.kat else ():
        left = footprint(way.program, way.options).flash
        if left.fits:
            complaint = _left_out(flash, program, way, left.used, ways)
            return replace(way, complaints=(*whole.complaints, complaint))
    return replace(whole, complaints=(*whole.complaints, _too_large(flash, whole, ways)))


@frozen
class _Way(Fitting):
    """A smaller project: what is left out, and the options that ask for it."""

    left_out: str = ""
    asked_with: str = ""


def _reduced(program: Program, options: ProjectOptions) -> Iterator[_Way]:
    """Yield smaller and smaller projects for the same network."""
    if options.kat:
        count = _most_words(program, options)
        if count is not None:
            yield _Way(
                program,
                replace(options, max_checklines=count),
                left_out=f"the known answer behind its first {count:,} words",
                asked_with=f"--max-checklines {count}",
            )
        what, option = "the known answer", "--no-kat"
        yield _Way(program, replace(options, kat=False), left_out=what, asked_with=option)
        what, option = f"{what} and ", f"{option} "
    else:
        what = option = ""
    if program.fifo:
        how, asked = "the sample (its first words are pushed again and again)", ""
    else:
        how, asked = "the sample (a bit pattern takes its place)", "--fixed-input"
    yield _Way(
        with_pattern(program),
        replace(options, kat=False, fixed_input=True),
        left_out=what + how,
        asked_with=option + asked if asked else "",
    )


def _left_out(
    flash: CoreMemory,
    program: Program,
    way: _Way,
    used: int,
    ways: Iterable[tuple[str, CoreMemory]],
) -> Diagnostic:
    """Warn that the project is not complete, and say how to get that, or the whole."""
    asked = f"{way.asked_with} asks for that. " if way.asked_with else ""
    return Diagnostic(
        "W414",
        f"{_message(flash, program)}; the project ({used:,} bytes) is written without "
        f"{way.left_out}; the network is complete",
        _PLACE,
        f"{asked}All of it fits with {_fitting(ways) or 'fewer or narrower weights'}.",
        Severity.WARNING,
    )


def _fitting(ways: Iterable[tuple[str, CoreMemory]]) -> str:
    return "; ".join(name for name, flash in ways if flash.fits)


def _too_large(flash: CoreMemory, whole: Fitting, ways: list[tuple[str, CoreMemory]]) -> Diagnostic:
    """Return the complaint about a network that cannot run, or a frame that holds its sample."""
    program, options = whole.program, whole.options
    frame = not options.kat and flash.without("sample").fits
    for way in _reduced(program, options):
        left = footprint(way.program, way.options).flash
        name = way.asked_with or "no sample"
        ways.append((f"{name} (a bit pattern)" if way.options.fixed_input else name, left))
    fitting = _fitting(ways)
    short = [f"{name} ({flash.used:,} bytes)" for name, flash in ways if not flash.fits]
    remedies = []
    if fitting:
        remedies.append(f"It fits with one of these: {fitting}.")
    if short:
        remedies.append(f"Not enough alone: {'; '.join(short)}.")
    if not fitting:
        remedies.append("Use fewer or narrower weights.")
    message = _message(flash, program)
    if not frame:
        return Diagnostic("E444", message, _PLACE, " ".join(remedies), effects=NO_ROOM)
    message += "; a program that gets its input elsewhere, without this sample, fits"
    return Diagnostic("W414", message, _PLACE, " ".join(remedies), Severity.WARNING, UNSOUND)


_PLACE = Place(option="--device")


def _message(memory: CoreMemory, program: Program) -> str:
    return (
        f"the program needs {memory.used:,} bytes of {memory.name}, "
        f"the {program.chip.name} has {memory.size:,}: {format_parts(memory)}"
    )


def _ways(program: Program, options: ProjectOptions) -> Iterator[tuple[str, CoreMemory]]:
    """Yield options that reduce the flash and leave nothing out, with what is needed then."""

    def needed(changed: ProjectOptions) -> CoreMemory:
        return footprint(program, changed).flash

    if options.old_kernel_loader:
        yield "--new-kernel-loader", needed(replace(options, old_kernel_loader=False))
    if not program.express:
        plain = replace(options, old_kernel_loader=False)
        name = "--mexpress --new-kernel-loader" if options.old_kernel_loader else "--mexpress"
        yield name, _packed(needed(plain), program)


def _packed(flash: CoreMemory, program: Program) -> CoreMemory:
    """Return the flash with packed weights: nine bytes for each kernel instead of four words."""
    saved = 0
    for block in program.kernels:
        columns = block.words.nbytes // KERNEL_COLUMN_STRIDE_BYTES
        words = -(-columns * KERNEL_COLUMN_BYTES // WORD_BYTES)
        saved += block.words.nbytes - words * WORD_BYTES
    parts = (
        MemoryPart(part.role, part.size - saved) if part.role == "weights" else part
        for part in flash.parts
    )
    return replace(flash, parts=tuple(parts))


def _scaled(flash: CoreMemory, factor: float) -> CoreMemory:
    parts = (
        MemoryPart(part.role, round(part.size * factor)) if part.role == "weights" else part
        for part in flash.parts
    )
    return replace(flash, parts=tuple(parts))


def _most_words(program: Program, options: ProjectOptions) -> int | None:
    """Return how many words of the known answer fit, of full hundreds; None if not even 100."""

    def too_many(hundreds: int) -> bool:
        cut = replace(options, max_checklines=100 * hundreds)
        flash = footprint(program, cut).flash
        return flash.used > flash.size - _RESERVE

    hundreds = bisect_right(range(1, len(program.expected) // 100 + 1), False, key=too_many)
    return 100 * hundreds or None


def _other_weights(
    flash: CoreMemory, program: Program, wide_share: float
) -> Iterable[tuple[str, CoreMemory]]:
    """Yield what needs other weights or another chip."""
    if wide_share:
        yield (
            "weights of 4 bits in place of 8 (quantization: 4)",
            _scaled(flash, 1 - wide_share / 2),
        )
    for chip in CHIPS:
        if chip.flash_bytes > program.chip.flash_bytes:
            yield f"a {chip.name}", replace(flash, size=chip.flash_bytes)


def _with_result_that_fits(whole: Fitting) -> Fitting:
    """Leave the buffer for the result to the user's program where the SRAM is too small for it."""
    program, options = whole.program, whole.options
    sram = footprint(program, options).sram
    if sram.fits:
        return whole
    smaller = replace(options, softmax=False, unload=options.uses_unload, result_buffer=False)
    message = _message(sram, program)
    if not footprint(program, smaller).sram.fits:
        remedy = "Use a chip with more SRAM."
        return replace(
            whole, complaints=(Diagnostic("E444", message, _PLACE, remedy, effects=NO_ROOM),)
        )
    what = "the buffer for the result" + (" and the softmax of it" if options.softmax else "")
    asked = "Leave out --softmax: --no-unload" if options.softmax else "--no-unload"
    complaint = Diagnostic(
        "W414",
        f"{message}; the project is written without {what}; cnn_unload() is there, for a program "
        "that has room",
        _PLACE,
        f"{asked} asks for that, and no cnn_unload(). Or deliver fewer values: pool more, or use "
        "output_width: 8.",
        Severity.WARNING,
    )
    return Fitting(program, smaller, (complaint,))
