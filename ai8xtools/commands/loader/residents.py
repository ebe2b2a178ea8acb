"""Networks of --also, beside which another one is loaded into the accelerator.

Source: docs/library.md, "Several networks in the accelerator".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ai8xtools.answer import FILE_NAME, Answer, read_answer, write_answer
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.diagnostics import Diagnostic, DiagnosticError, Place, Severity, refused
from ai8xtools.diagnostics.options import excludes, needs
from ai8xtools.reading import real_path, source_text
from ai8xtools.synthesis.emit.options import is_plain
from ai8xtools.synthesis.emit.residents import EXPECTED, shared_files
from ai8xtools.synthesis.pipeline import Synthesis
from ai8xtools.synthesis.residents import Resident, kernel_bytes, occupied_by, registers_of, turn_of
from ai8xtools.synthesis.summarize.energy import inference_counts
from ai8xtools.writing import symbols
from ai8xtools.writing.manifest import listed_files
from device import chip_named
from device.chip import GROUPS
from device.times import copying

OPTION, PREFIX = "--also", symbols.OPTION
_REMEDY = f"Name the folder of a project that was generated with {PREFIX} and a known answer."


def hindrances(options: LoaderOptions) -> list[str]:
    """Return the options that keep a library from being in the accelerator with others."""
    text, encode = options.project, options.encode
    used = {
        "--application": text.application is not None,
        "--fixed-input": text.fixed_input,
        "--no-kat": not text.kat,
        "--old-kernel-loader": encode.place.old_kernel_loader,
        "--powerdown": encode.powerdown,
        "--sample-output-filename none": text.inline_check,
        "--zero-sram": encode.zero_sram,
    }
    return [option for option in used if used[option]]


def complaints(options: LoaderOptions) -> Iterator[Diagnostic]:
    """Yield why the options do not suit --also."""
    others = {
        "--compare-project": options.output.compare_project is not None,
        "--fits": options.output.fits is not None,
        "--verify-project": options.output.verify_project is not None,
        "--weight-start": options.encode.place.weight_start > 0,
    }
    if options.also and options.project.symbol_prefix is None:
        yield needs(OPTION, PREFIX)
    if options.also:
        used = [option for option in others if others[option]]
        yield from (excludes(OPTION, option) for option in (*hindrances(options), *used))


def with_residents(options: LoaderOptions) -> LoaderOptions:
    """Return the options with the networks of --also, whose memory is occupied.

    Raises DiagnosticError: a folder holds none that suits (E918), two have the same names (E919)
    or memory (E443).
    """
    errors = (*complaints(options),)
    if errors:
        raise DiagnosticError(errors)
    residents = [one for folder in options.also for one in _read(folder, options)]
    names: dict[str, Resident] = {}
    for one in residents:
        for name in map(str.lower, one.files):
            if name in names:
                raise _same_name(one.prefix, f"{names[name].prefix} ({names[name].source})", one)
            names[name] = one
    place = replace(options.encode.place, occupied=occupied_by(residents, options.chip))
    return replace(options, residents=tuple(residents), encode=replace(options.encode, place=place))


def _read(folder: str, options: LoaderOptions) -> Iterator[Resident]:
    """Yield the networks of a folder."""
    path = Path(folder)
    listed = [name for name in listed_files(path) if is_plain(name)]
    names = [n for n in listed if n == FILE_NAME or n.endswith(f"_{FILE_NAME}")]
    if not names:
        raise _unsuitable(folder, "there is no project of ai8xize.py")
    if real_path(path) == real_path(options.folder):
        raise _unsuitable(folder, "it is the folder that is written")
    answers = [read_answer(path / name) for name in names]
    prefixes = [answer.symbol_prefix for answer in answers]
    for answer in answers:
        _refuse_unsuited(folder, answer, options)
        files = {
            name: source_text(path / name)
            for name in listed
            if name.endswith((".c", ".h")) and _owner(name, prefixes) == answer.symbol_prefix
        }
        if f"{answer.symbol_prefix}_{EXPECTED}" not in files:
            raise _unsuitable(folder, f"there is no {answer.symbol_prefix}_{EXPECTED}")
        yield Resident(answer, files, folder)


def _refuse_unsuited(folder: str, answer: Answer, options: LoaderOptions) -> None:
    """Raise DiagnosticError E918 for a network that cannot be in the accelerator with others."""
    if answer.sample is None or any(symbols.complaints(answer.symbol_prefix)):
        why = f"it has no {PREFIX}, no known answer, or it clears memories or has a rolling buffer"
        raise _unsuitable(folder, f"{answer.name} cannot share the accelerator: {why}")
    if chip_named(answer.chip) is not options.chip:
        raise _unsuitable(folder, f"{answer.symbol_prefix} is for {answer.chip}")
    if answer.apb_base != options.encode.apb_base:
        raise _unsuitable(folder, f"{answer.symbol_prefix} has the base address "
                          f"0x{answer.apb_base:08x}")  # fmt: skip


def _owner(name: str, prefixes: Sequence[str]) -> str | None:
    """Return the prefix of the network to which a file belongs; None of what is for all."""
    owners = [p for p in prefixes if name.startswith((f"{p}.", f"{p}_"))]
    owner = max(owners, key=len, default=None)
    shared = (f"{owner}_all.c", f"{owner}_all.h", f"{owner}_all_samples.h")
    return None if name in shared or name == f"{owner}_sampledata.h" else owner


def _unsuitable(folder: str, why: str) -> DiagnosticError:
    return refused("E918", why, Place(file=folder), _REMEDY)


def _same_name(prefix: str, other: str, at: Resident | None) -> DiagnosticError:
    place = Place(option=PREFIX) if at is None else Place(file=at.source)
    return refused("E919", f"{prefix} and {other} would have files of the same name", place,
                   f"Give each network a {PREFIX} of its own.")  # fmt: skip


def shared_project(
    options: LoaderOptions, result: Synthesis, texts: Mapping[str, str], own: Answer
) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the files of a project that holds the networks of --also, too: texts, and answers.

    Raises DiagnosticError E919 if one of them has a file of the same name.
    """
    answers = [*(one.answer for one in options.residents), own]
    members = [
        (one, turn_of(one, [x for x in answers if x is not one], result.chip)) for one in answers
    ]
    whole = dict(texts)
    whole.pop(f"{own.symbol_prefix}_{options.project.sample_filename}", None)
    whole |= shared_files(members, result.program, options.project)
    taken = {name.lower() for name in whole}
    for one in options.residents:
        if not taken.isdisjoint(map(str.lower, one.files)):
            raise _same_name(own.symbol_prefix, f"{one.prefix} ({one.source})", None)
        whole |= one.files
    return whole, {f"{a.symbol_prefix}_{FILE_NAME}": write_answer(a) for a in answers}


def together(residents: Sequence[Resident], own: Answer, result: Synthesis) -> Iterator[Diagnostic]:
    """Yield what the networks take together, and what a turn saves; or what hinders them."""
    if own.sample is None:
        yield Diagnostic(
            "E918",
            f"{own.name} cannot share the accelerator: other networks overwrite its rolling buffer",
            Place(option=OPTION),
            f"Generate it without {OPTION}.",
        )
        return
    others = [one.answer for one in residents]
    answers, chip, program = [*others, own], result.chip, result.program
    flash = [answer.flash_bytes for answer in answers]
    if sum(flash) > chip.flash_bytes:
        yield Diagnostic(
            "E444",
            f"the program needs about {_sum(answers, flash)} bytes of flash, {chip.name} has "
            f"{chip.flash_bytes:,}",
            Place(option=OPTION),
            "Use fewer or narrower weights, or write your own program: known answers and samples "
            "can be shorter with --max-checklines.",
        )
        return
    kernels = [kernel_bytes(answer) for answer in answers]
    biases = [answer.biases.values.size for answer in answers]
    words = turn_of(own, others, chip).words + len(registers_of(own))
    loaded = inference_counts(result.summary.statistics, program).load_words
    mhz = program.power.loading_mhz
    yield Diagnostic(
        "N430",
        f"in the accelerator together: kernels {_sum(answers, kernels)} of {chip.kernel_bytes:,} "
        f"bytes; biases {_sum(answers, biases)} of {GROUPS * chip.bias_bytes:,}; flash about "
        f"{_sum(answers, flash)} of {chip.flash_bytes:,}. A turn of {own.symbol_prefix} writes "
        f"{words:,} registers, "
        f"{copying(words, chip, mhz).in_milliseconds()}; loading it again would take {loaded:,} "
        f"words, {copying(loaded, chip, mhz).in_milliseconds()}",
        Place(option=OPTION),
        severity=Severity.NOTICE,
    )


def _sum(answers: Sequence[Answer], values: Sequence[int]) -> str:
    told = (f"{a.symbol_prefix} {v:,}" for a, v in zip(answers, values, strict=True))
    return f"{' + '.join(told)} = {sum(values):,}"
