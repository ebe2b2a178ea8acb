"""What ai8xize.py does: run the stages, write the project and the report, verify the firmware."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ai8xtools.answer import FILE_NAME, Answer, write_answer
from ai8xtools.commands.deliver import deliver
from ai8xtools.commands.loader.configuration import check_configuration, write_configuration
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.loader.pages import check_report, destination, write_pages
from ai8xtools.commands.loader.recorded import with_recorded_data
from ai8xtools.commands.loader.soundness import last_line, refuse_unsound, sentence, unsound
from ai8xtools.diagnostics import (
    Diagnostic,
    DiagnosticError,
    current,
    has_errors,
    note,
    print_diagnostics,
    refuse_errors,
    suggest,
)
from ai8xtools.diagnostics.options import possible
from ai8xtools.synthesis.answer import build_answer
from ai8xtools.synthesis.emit import (
    ProjectOptions,
    check_options,
    check_outputs,
    emit_arrays,
    emit_project,
    fitted,
    footprint,
    format_footprint,
    format_resources,
    log_text,
)
from ai8xtools.synthesis.facts import Fact
from ai8xtools.synthesis.network import Network
from ai8xtools.synthesis.pipeline import Synthesis, examine, synthesize, what_fits
from ai8xtools.synthesis.place import Placement
from ai8xtools.synthesis.summarize import wide_share
from ai8xtools.values import frozen
from ai8xtools.writing.application import undriven
from ai8xtools.writing.packages import STACK_OF_TEST, Package

if TYPE_CHECKING:
    from ai8xtools.commands.proof.reference import Reference
    from ai8xtools.synthesis.report import Report


def create_project(options: LoaderOptions) -> int:
    """Run the stages that the options ask for; return the exit status."""
    note(subject=options.project.name)
    check_report(options)
    check_configuration(options)
    destination(options).check_beside()
    if options.also:
        from ai8xtools.commands.loader.residents import with_residents  # few name any

        options = with_residents(options)
    if options.output.fits is not None:
        from ai8xtools.commands.loader.model_sources import show_fits

        return show_fits(options, options.output.fits)
    options = completed(options)
    if options.output.checkpoint_table:
        from ai8xtools.synthesis.resolve.table import checkpoint_table

        table = checkpoint_table(options.config_file, options.chip, options.resolve)
        print(table)
    complaints = complaints_of_options(options)
    if options.output.check_only or has_errors(complaints):
        network, warnings = examined(options, complaints)
        warnings = (*warnings, *proven(options, network))
        if options.output.strict:
            refuse_unsound((*complaints, *warnings))
        print_diagnostics(options.visible((*complaints, *warnings)))
        print(f"No errors in {options.config_file}")
        return 0
    result = synthesized(options)
    unproven = proven(options, result.network)
    result = replace(result, warnings=(*result.warnings, *unproven))
    if options.output.strict:
        refuse_unsound((*complaints, *result.warnings))
    if options.output.existing is not None:
        write_configuration(options, result.network, result.placement.layout)
        return examine_project(options, result)
    if options.rtl is not None:
        from ai8xtools.commands.loader.rtl_test import create_test

        shown = create_test(options, options.rtl, result, complaints)
        write_configuration(options, result.network, result.placement.layout)
        write_report(options, result.network, result.placement, shown, result)
    else:
        write_embedded(options, result)
    return 0


def completed(options: LoaderOptions) -> LoaderOptions:
    """Return the options with the description of a model, or with what the checkpoint recorded."""
    if options.model is None:
        return with_recorded_data(options)
    from ai8xtools.commands.loader.model_sources import with_description

    return with_description(options, options.model)


def complaints_of_options(options: LoaderOptions) -> list[Diagnostic]:
    """Return the complaints about the options for which the network need not be known."""
    text = options.text
    drivers = undriven(text.application, text.board_name, options.chip.name)
    complaints = possible([*options.usage, *check_options(text), *drivers])
    if options.rtl is not None:
        from ai8xtools.commands.loader.rtl_test import check_test

        return [*complaints, *check_test(options.rtl, options.test_dir)]
    if options.output.check_only or options.output.existing is not None:
        return complaints
    return [*complaints, *complaints_of_folder(options)]


def complaints_of_folder(options: LoaderOptions) -> list[Diagnostic]:
    """Return why the project cannot be written there, if so."""
    try:
        destination(options).check()
    except DiagnosticError as refusal:
        return [*refusal.diagnostics]
    return []


@frozen
class Embedded:
    """An embedded project before it is written: its files, and the messages about it."""

    options: LoaderOptions
    result: Synthesis
    files: Mapping[str, str | bytes]
    diagnostics: tuple[Diagnostic, ...]


def embedded(options: LoaderOptions, result: Synthesis) -> Embedded:
    """Return the files of a project; raise DiagnosticError if there must be none."""
    warned = complaints_of_project(options, result)
    if options.residents:
        from ai8xtools.commands.loader.residents import together

        own = answer_of(options, result, {})
        warned = [*warned, *together(options.residents, own, result)]
    options, result, left_out = reduced(options, result)
    diagnostics = (*warned, *left_out, *result.warnings)
    refuse_too_large(options, result, diagnostics)
    doubts = tuple(map(sentence, dict.fromkeys((*unsound(diagnostics), *left_out))))
    shown = options.visible(diagnostics)
    text = replace(options.project, messages=tuple(map(str, shown)), doubts=doubts)
    files = project_files(options, result, text)
    return Embedded(replace(options, project=text), result, files, diagnostics)


def write_embedded(options: LoaderOptions, result: Synthesis) -> None:
    """Write the project and its report, print what there is to say, and verify it if asked to."""
    folder = options.folder
    project = embedded(options, result)
    options, result, text = project.options, project.result, project.options.project
    shown = options.visible(project.diagnostics)
    write_configuration(options, result.network, result.placement.layout)
    written = deliver(project.files, destination(options))
    suggest("emulate.py", folder)
    note_result(options, result)
    write_report(options, result.network, result.placement, shown, result)
    print_diagnostics(shown)
    print(f"Wrote {written}")
    check_output = text.kat and not text.fixed_input
    if options.residents:
        examine_together(options, result)
    elif options.output.verify:
        from ai8xtools.commands.loader.verify import (
            verify,  # needs unicorn, which other runs do without
        )

        verified(
            verify(
                result,
                folder,
                apb_base=options.encode.apb_base,
                check_output=check_output,
                cycles=text.verbose,
                prefix=text.symbol_prefix,
                alone=text.studio,
            )
        )
    if options.output.prove and not options.residents:
        prove_words(options, result)
    if text.verbose:
        print(details(result, text, folder))
    last = last_line(project.diagnostics, verified=options.output.verify and check_output)
    for line in filter(None, (last, options.doubt)):
        print(line)


def project_files(
    options: LoaderOptions, result: Synthesis, text: ProjectOptions
) -> dict[str, str | bytes]:
    """Return the files of a project by name, those of a user and the answer file included."""
    export = None
    if text.symbol_prefix is not None:
        # few ask for it
        from ai8xtools.commands.loader.application import application_of
        from ai8xtools.synthesis.library import export_of

        export = export_of(result.mapped, result.program, text, application_of(options))
    texts = emit_project(result.program, result.summary, text, export)
    others = {**emit_arrays(result.summary, text), **dict(options.files)}
    answer, header = answer_of(options, result, {**texts, **others}), f"{text.symbol_prefix}.h"
    answers = {FILE_NAME: write_answer(answer)}
    if options.residents:
        from ai8xtools.commands.loader.residents import shared_project

        texts, answers = shared_project(options, result, texts, answer)
        header = f"{text.symbol_prefix}_all.h"
    if text.build and text.symbol_prefix is not None:
        package = Package(text.symbol_prefix, header, STACK_OF_TEST, chip=result.chip.name)
        texts |= package.files(text.build, texts)
    return {**texts, **others, **answers}


def verified(lines: Iterable[str]) -> None:
    """Print what was found right."""
    for line in lines:
        print(line)
    note(verdict="passed", reason="the words and the output are as expected")


def prove_words(options: LoaderOptions, result: Synthesis) -> None:
    """Prove that the written project computes its network; refuse it if it does not (E843)."""
    from ai8xtools.commands.proof.project import prove  # needs unicorn, which other runs do without
    from ai8xtools.emulator import NetworkAlone

    network = NetworkAlone(options.folder, result.chip, options.encode.apb_base)
    refuse_refuted(prove(network, reference_of(options, result)), options)


def examine_together(options: LoaderOptions, result: Synthesis) -> None:
    """Verify or prove the networks of a written project, as the options ask for."""
    if not (options.output.verify or options.output.prove):
        return
    # needs unicorn, which other runs do without
    from ai8xtools.commands.loader.together import references_of, verify_together
    from ai8xtools.commands.proof.residents import prove_residents
    from ai8xtools.emulator.firmware.residents import Residents

    folder, own = options.folder, answer_of(options, result, {})
    network = Residents(folder, result.chip, options.encode.apb_base)
    if options.output.verify:
        answers = [*(one.answer for one in options.residents), own]
        verified(verify_together(network, answers, result.chip, folder))
    if options.output.prove:
        known = {f"{own.symbol_prefix}_cnn": reference_of(options, result)}
        references = references_of(folder, network.prefixes, known)
        refuse_refuted(prove_residents(network, references), options)


def reference_of(options: LoaderOptions, result: Synthesis) -> Reference:
    """Return the network that a project has to compute."""
    from ai8xtools.commands.proof.reference import Reference

    rounding = options.encode.average_rounding
    return Reference.of(options.description_name, result.network, average_rounding=rounding)


def refuse_refuted(proven: bool, options: LoaderOptions) -> None:
    """Raise EmulatorError E843 for a project that does not compute its network."""
    from ai8xtools.emulator import EmulatorError

    if not proven:
        raise EmulatorError("E843", "the project does not compute its network", str(options.folder))


def complaints_of_project(options: LoaderOptions, result: Synthesis) -> list[Diagnostic]:
    """Return the warnings about the options; raise DiagnosticError where they are refused."""
    text = options.project
    complaints = [*check_options(text), *check_outputs(text, result.program, result.summary)]
    refuse_errors(complaints)
    return complaints


def reduced(
    options: LoaderOptions, result: Synthesis
) -> tuple[LoaderOptions, Synthesis, tuple[Diagnostic, ...]]:
    """Return what is written of a project that exceeds flash or SRAM, and what is said of it."""
    fitting = fitted(result.program, options.project, wide_share(result.mapped))
    return (
        replace(options, project=fitting.options),
        replace(result, program=fitting.program),
        fitting.complaints,
    )


def refuse_too_large(
    options: LoaderOptions, result: Synthesis, diagnostics: Sequence[Diagnostic]
) -> None:
    """Raise DiagnosticError if a project must not be written.

    Of a project that only needs too much memory the report is written first.
    """
    if has_errors(diagnostics):
        write_report(options, result.network, result.placement, diagnostics, result)
    refuse_errors(diagnostics)
    if options.output.strict:
        refuse_unsound(diagnostics)


def examine_project(options: LoaderOptions, result: Synthesis) -> int:
    """Compare an existing project with what the options give; return the exit status."""
    options, result, left_out = reduced(options, result)
    diagnostics = (*left_out, *result.warnings)
    refuse_errors(diagnostics)
    print_diagnostics(options.visible(diagnostics))
    if options.output.compare_project is not None:
        from ai8xtools.commands.loader.compare_project import compare_projects

        files = project_files(options, result, options.project)
        return compare_projects(
            files, Path(options.output.compare_project), result.chip, options.encode.apb_base
        )
    assert options.output.verify_project is not None
    from ai8xtools.commands.loader.verify_project import verify_project

    for line in verify_project(
        result,
        Path(options.output.verify_project),
        apb_base=options.encode.apb_base,
        repeat=options.encode.place.repeat_layers,
        fixed_input=options.project.fixed_input,
    ):
        print(line)
    return 0


def answer_of(
    options: LoaderOptions, result: Synthesis, files: Mapping[str, str | bytes]
) -> Answer:
    """Return the answer of a project with these other files."""
    from ai8xtools.commands.loader.residents import hindrances

    alone = result.network.buffer is not None or any(hindrances(options))
    answer = build_answer(
        result,
        options.project.name,
        options.encode.place.repeat_layers,
        sum(map(len, files.values())),
        fixed_input=options.project.fixed_input,
        average_rounding=options.encode.average_rounding,
        symbol_prefix="" if alone else options.project.symbol_prefix or "",
        flash_bytes=footprint(result.program, options.project).flash.used,
    )
    return answer if options.project.application is None else answer.without_input()


def proven(options: LoaderOptions, network: Network) -> tuple[Diagnostic, ...]:
    """Compare a network with the ONNX graph that it was made of; return what is said of that."""
    if options.model is None or not options.model.is_graph:
        return ()
    from ai8xtools.commands.loader.graph_proof import prove_graph  # needs the package onnx

    return prove_graph(options, options.model, network)


def examined(
    options: LoaderOptions, complaints: list[Diagnostic]
) -> tuple[Network, tuple[Diagnostic, ...]]:
    """Return the network and its warnings; raise DiagnosticError with all errors there are."""
    try:
        network, placement, warnings = examine(
            options.config_file, options.chip, options.resolve, options.encode
        )
    except DiagnosticError as refusal:
        raise DiagnosticError((*complaints, *refusal.diagnostics)) from None
    refuse_errors((*complaints, *warnings))
    write_configuration(options, network, placement.layout)
    return network, warnings


def details(result: Synthesis, options: ProjectOptions, folder: Path) -> str:
    """Return the memory use and where the verbose log is, or the log itself if there is no file."""
    if options.log_filename is None:
        return log_text(result.program, result.summary, options).rstrip("\n")
    return "\n".join(
        (
            *format_resources(result.summary.statistics),
            *format_footprint(result.program, options),
            *result.summary.memory_log[-1:],
            f"Kernel map, data memory map, registers and data: {folder / options.log_filename}",
        )
    )


def synthesized(options: LoaderOptions) -> Synthesis:
    """Run the stages up to the program; of a network that does not fit, write the report only."""
    try:
        return synthesize(options.config_file, options.chip, options.resolve, options.encode)
    except DiagnosticError as refusal:
        if options.output.report is not None:
            report_refusal(options, refusal)
        raise


def write_report(
    options: LoaderOptions,
    network: Network,
    placement: Placement,
    diagnostics: Iterable[Diagnostic],
    result: Synthesis | None = None,
) -> None:
    """Write the files of --report, if that is given; `result` is None for a refused network."""
    if options.output.report is None:
        return
    from ai8xtools.synthesis.emit.report import report_page
    from ai8xtools.synthesis.emit.report_json import report_json

    gathered = report_of(options, network, placement, diagnostics, result)
    write_pages(options.output.report, report_page(gathered), report_json(gathered))


def note_result(options: LoaderOptions, result: Synthesis) -> None:
    """Keep what is known of the project for those who ask for it."""
    if not current().at_end:
        return
    from ai8xtools.commands.outcome import accuracy_facts, cycles_facts, estimate

    report = report_of(options, result.network, result.placement, (), result)
    if report.accuracy is not None:
        note(accuracy=accuracy_facts(report.accuracy))
    if report.cycles is not None and report.clock_mhz is not None:
        milliseconds = None if report.latency is None else report.latency.value
        note(cycles=cycles_facts(report.cycles, report.clock_mhz, milliseconds))
    memories = ((need.title, need.unit, need.use) for need in report.needs)
    note(
        memory=[
            {"name": n, "unit": unit, "used": u.used, "size": u.total} for n, unit, u in memories
        ],
        energy=report.energies and estimate(report.energies.inference, 1e6),
    )


def report_of(
    options: LoaderOptions,
    network: Network,
    placement: Placement,
    diagnostics: Iterable[Diagnostic],
    result: Synthesis | None,
) -> Report:
    """Return the report of a network; `result` is None for a refused one."""
    from ai8xtools.synthesis.report import build_report

    return build_report(
        network,
        placement,
        options.chip,
        options.encode,
        name=options.project.name,
        command_line=options.project.command_line,
        tool=f"ai8xize.py {options.project.tool_version}",
        program=None if result is None else result.program,
        activations=None if result is None else result.activations,
        diagnostics=diagnostics,
        core=_core_memories(options, result),
        accuracy=options.accuracy,
        energy=options.project.measured,
    )


def _core_memories(options: LoaderOptions, result: Synthesis | None) -> list[tuple[str, int, int]]:
    """Return what an embedded project takes of flash and SRAM."""
    if result is None or options.rtl is not None:
        return []
    memories = footprint(result.program, options.project).memories
    return [(memory.name, memory.used, memory.size) for memory in memories]


def report_refusal(options: LoaderOptions, refusal: DiagnosticError) -> None:
    """Report the part that fits of a network that is refused only because the rest does not fit."""
    errors = (d for d in refusal.diagnostics if d.severity.is_error)
    if not all(Fact.ROOM in d.effects.blocks for d in errors):
        return
    network, placement, problems = what_fits(
        options.config_file, options.chip, options.resolve, options.encode
    )
    diagnostics = dict.fromkeys((*refusal.diagnostics, *problems))
    write_report(options, network, placement, diagnostics)
