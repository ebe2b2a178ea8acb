"""Writes a project without the accelerator that was built, and prints a summary."""

from __future__ import annotations

from ai8xtools.commands.deliver import deliver
from ai8xtools.commands.loader.options import LoaderOptions
from ai8xtools.commands.outcome import cycles_facts, estimate, memory_facts
from ai8xtools.commands.software.log import with_log
from ai8xtools.commands.software.options import SoftwareOptions
from ai8xtools.commands.software.page import limit
from ai8xtools.diagnostics import note
from ai8xtools.software.emit.built import Built
from ai8xtools.software.emit.text import sentence
from ai8xtools.software.plan.cost import cycles_of_plan
from ai8xtools.software.profile import Profile
from ai8xtools.writing.packages import STACK_OF_TEST, Package


def finish(
    options: LoaderOptions,
    software: SoftwareOptions,
    built: Built,
    profile: Profile,
    plan: str,
    log: str,
) -> None:
    """Print the plan if that is asked for; write the project and its log, unless only checked."""
    note_needs(built.need.ram, built.need.flash, cycles_of_plan(built.plan), profile)
    if software.plan_report or options.project.verbose:
        print(plan)
    if options.output.check_only:
        source = options.resolve.checkpoint_file if software.qformat else options.config_file
        print(f"No errors in {source}")
        return
    project = options.project
    name = project.symbol_prefix
    package = Package(name or project.name, f"{name or 'cnn'}.h", built.need.stack + STACK_OF_TEST)
    files: dict[str, str | bytes] = dict(options.files)
    files |= with_log(built.files, project.log_filename, log)
    files |= package.files(project.build, built.files)
    written = deliver(files, software.folder(options))
    print(sentence(built, profile))
    print(f"Wrote {written}")


def note_needs(ram: int, flash: int, cycles: float | None, profile: Profile) -> None:
    """Keep what a program takes, in bytes and cycles, for those who ask for it."""
    note(memory=memory_facts({
        "RAM": (ram, limit(profile.l1)), "flash": (flash, limit(profile.flash)),
    }))  # fmt: skip
    if cycles is not None:
        joules = profile.joules(cycles)
        note(
            cycles=cycles_facts(cycles, profile.mhz or None, profile.milliseconds(cycles)),
            energy=joules and estimate(joules, 1e6),
        )
