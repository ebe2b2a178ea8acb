"""A program without accelerator on a chosen core: `emulate.py DIR --core NAME`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ai8xtools.commands.emulate.arguments import DEFAULT_LEVEL, EmulateOptions
from ai8xtools.commands.emulate.last_line import tell
from ai8xtools.commands.emulate.trained_on import trained_on
from ai8xtools.emulator.cpu.architecture import ARCHITECTURES
from ai8xtools.emulator.cpu.counting import NOTHING, Cost
from ai8xtools.emulator.cpu.phases import Phases
from ai8xtools.emulator.errors import EmulatorError, SlotError
from ai8xtools.emulator.plain import (
    BENCH,
    LIBRARY_HEADERS,
    CopyEngine,
    PlainProgram,
    PlainRun,
    PlainSensor,
    compile_plain,
    run_plain,
    sensor_of,
)
from ai8xtools.reading import read_bytes, source_text
from datasets.own.settings import kind_and_path
from device.chip import DEFAULT_APB_BASE

_PLAN = "plan.json"
_SLOT = "nnb_slot"
_LARGEST_CONTAINER = 64 << 20
_SDK = re.compile(
    r'^[^\S\n]*+#[^\S\n]*+include[^\S\n]*+[<"]((?:mxc|mxc_\w+|tornadocnn|gcfr_regs)\.h)[>"]',
    re.MULTILINE,
)
_SHOWN = 12


def core_of(options: EmulateOptions) -> str | None:
    """Return the core that the options name, or the plan of the project; None if it has none."""
    if options.core is not None or options.project is None:
        return options.core
    core = _plan(Path(options.project)).get("core")
    return core if isinstance(core, str) and core in ARCHITECTURES else None


def refuse_unknown_core(project: Path) -> None:
    """Raise EmulatorError (E805) for a project whose plan names a core that is not emulated."""
    core = _plan(project).get("core")
    if isinstance(core, str) and core not in ARCHITECTURES:
        raise EmulatorError(
            "E805", f"the core of the project, {core}, is not emulated", str(project),
            f"Name one with --core: {', '.join(ARCHITECTURES)}.",
        )  # fmt: skip


def _plan(project: Path) -> dict[str, Any]:
    """Return the content of a project's plan; empty if it has none.

    Raises EmulatorError E865 for a file that ai8xize.py did not write.
    """
    path = project / _PLAN
    if not os.path.lexists(path):
        return {}
    try:
        plan = json.loads(source_text(path, errors="strict"))
    except (OSError, ValueError, RecursionError) as exc:
        raise _no_plan(path, exc) from None
    if not isinstance(plan, dict):
        raise _no_plan(path, TypeError("it holds no names with values"))
    return plan


def _no_plan(path: Path, exc: Exception) -> EmulatorError:
    return EmulatorError(
        "E865", f"it is not as ai8xize.py writes it ({type(exc).__name__}: {exc})", str(path),
        "Generate the project again, or remove the file.",
    )  # fmt: skip


def library_of(project: Path) -> tuple[list[Path], list[str]]:
    """Return the files of the library that a project is compiled with, and the flags for it.

    Raises EmulatorError (E807) if a file is not there.
    """
    library = _plan(project).get("library")
    if library is None:
        return [], []
    try:
        folder = Path(library["folder"])
        sources, includes = ([folder / one for one in library[k]] for k in ("sources", "includes"))
    except (LookupError, TypeError) as exc:
        raise _no_plan(project / _PLAN, exc) from None
    for source in sources:
        if not source.is_file():
            raise EmulatorError(
                "E807",
                f"the library of the project is not there: {source}",
                str(project / _PLAN),
                "Write the project again, with --cmsis-nn DIR.",
            )
    systems = [word for one in includes for word in ("-isystem", str(one))]
    return sources, [f"-I{LIBRARY_HEADERS}", *systems]


def refuse_options(options: EmulateOptions, core: str | None) -> None:
    """Raise EmulatorError (E805) for options that do not mean anything for a project.

    `core` runs a program without the accelerator; None stands for one with it.
    """
    if core is None:
        if options.project is not None and not Path(options.project).is_dir():
            return  # which is what has to be said
        used = {
            "--count": options.count,
            "--dma": options.dma,
            "--optimization": options.optimization is not None,
            "--container": options.container is not None,
        }
        needs = "programs without the accelerator, which name their core in plan.json"
        remedy = "Leave it out."
        project = Path(options.project) if any(used.values()) and options.project else None
        if project is not None and accelerator_source(project) is None:
            remedy = "Leave it out, or name a core with --core."
    else:
        used = {
            "--device": options.chip is not None,
            "--apb-base": options.apb_base != DEFAULT_APB_BASE,
            "--accelerator-only": options.accelerator_only,
            "--explain": options.explain,
            "--decompile": options.decompile is not None,
            "--input": options.input is not None
            and options.serial is None
            and not kind_and_path(str(options.input)),
            "--fast": options.fast,
            "--uart": options.played.uart is not None,
            "--trace": options.trace is not None,
            "--profile": options.profile is not None,
            "--vcd": options.vcd is not None,
            "--gdb": options.gdb is not None,
            "--cycles": options.cycles,
            "--include": bool(options.tree.include),
            "--exclude": bool(options.tree.exclude),
            "--shorten-loops": options.tree.shorten_loops,
        }
        needs = "programs with the accelerator"
        remedy = f"Leave it out; this one runs on {ARCHITECTURES[core].title} alone."
        if used["--input"]:
            remedy = "Name data of your own, such as folder:DIR, or leave it out."
    for option in (name for name, there in used.items() if there):
        raise EmulatorError("E805", f"this is for {needs}", f"option {option}", remedy)


def refuse_silent_line(project: Path, *, power: bool) -> None:
    """Raise EmulatorError (E805) for a program that waits for a serial line: there is none, nor
    does one go with the `power` of a program."""
    if project.is_dir() and sensor_of(project) == BENCH:
        raise EmulatorError(
            "E805", "the program takes inputs over a serial line, and nothing is on it",
            str(project), "For --power generate it with --application minimal." if power
            else "Add --serve, or --serial PORT and --input DATA for a board.",
        )  # fmt: skip


def _refuse_accelerator(project: Path) -> None:
    """Raise EmulatorError (E806) if a project uses the accelerator and its headers."""
    include = accelerator_source(project)
    if include is not None:
        source, name = include
        raise EmulatorError(
            "E806",
            f"it includes {name}: this project is for the accelerator",
            str(source),
            "Leave out --core, or write one for a microcontroller with --device MCU.",
        )


def accelerator_source(project: Path) -> tuple[Path, str] | None:
    """Return the first source that includes a header of the accelerator's SDK, and that header."""
    for source in sorted(project.glob("*.c")):
        include = _SDK.search(source_text(source))
        if include and not (project / include[1]).is_file():
            return source, include[1]
    return None


def emulate_plain(project: Path, core: str, options: EmulateOptions) -> int:
    """Run a program on a core; return 0 if it says that its result is right."""
    _refuse_accelerator(project)
    level = options.optimization or DEFAULT_LEVEL
    sources, flags = library_of(project)
    kind = sensor_of(project)
    sensor = PlainSensor(kind, options.played.recorded(project)) if kind else None
    phases: list[Phases] = []
    if options.power:
        from ai8xtools.commands.emulate import power  # few ask for it

        flags += power.options_for_power(options.tree, project).flags
    program = compile_plain(
        project, ARCHITECTURES[core], f"-O{level}", flags, sources, engine=options.dma,
        sensor=sensor is not None, seconds=options.tree.seconds,
    )  # fmt: skip
    if options.input is not None:
        from ai8xtools.commands.emulate.plain_data import emulate_plain_data  # few ask for it

        return emulate_plain_data(project, program, str(options.input), options.time_limit_s)
    engine = CopyEngine() if options.dma else None
    try:
        run = run_plain(
            program,
            engine=engine,
            sensor=sensor,
            count=options.count,
            time_limit=options.time_limit_s,
            contents=_contents(options),
            show=lambda text: print(text, end="", flush=text == "\n"),
            watch=None
            if not options.power
            else lambda core, printed: phases.append(
                power.phases_of(core, lambda: (float(printed()),))
            ),
        )
    except SlotError as exc:
        exc.place = options.container
        raise
    print("\n".join([*options.played.unused(kind), *_report(program, run)]))
    if engine is not None:
        inputs, weights, outputs = engine.bytes_copied
        print(f"Copied: {inputs} bytes of inputs, {weights} of weights, {outputs} of outputs, "
              f"{engine.started} copies")  # fmt: skip
    if phases:
        seconds = 0.0 if sensor is None else sensor.seconds
        told = power.power_of_core(phases[0].measured(), seconds, _plan(project).get("power", {}))
        print("\n".join(told))
    if kind is not None and (run.status == 0 or (sensor is not None and sensor.ended)):
        tell(f"DONE ({_input(sensor, options)}nothing is said of the output)")
        return 0
    if run.passed is None and run.status == 0 and run.has_inferred:  # the user's own program
        tell("DONE (the program compares nothing; nothing is said of the output)")
        return 0
    if run.passed is None:
        tell(f"NOT PASSED: the program ended without a result (status {run.status})")
    else:
        trained = trained_on(project)
        tell("PASS" if run.passed else "FAIL", None if trained is None else trained.doubt)
    return 0 if run.passed else 1


def _input(sensor: PlainSensor | None, options: EmulateOptions) -> str:
    """Say where the input of an application came from."""
    if sensor is None:
        return ""
    file = options.played.of(sensor.kind)
    return f"{sensor.delivery} of {file}; " if file is not None else f"{sensor.delivery}, random; "


def _contents(options: EmulateOptions) -> dict[str, bytes]:
    """Return the contents that replace arrays of the program."""
    if options.container is None:
        return {}
    return {_SLOT: read_bytes(options.container, _LARGEST_CONTAINER)}


def _report(program: PlainProgram, run: PlainRun) -> Iterator[str]:
    """Yield the resources that a program used, line by line."""
    yield f"Core: {program.image.architecture.title}"
    yield (
        f"Flash: {run.flash_bytes} bytes, of which code of the network {run.code_bytes}; "
        f"RAM: {run.ram_bytes} bytes of variables"
    )
    if run.arena_bytes is not None:
        yield f"Arena: {run.arena_used} of {run.arena_bytes} bytes written"
    yield f"Stack: {run.stack_bytes} bytes at most"
    if run.functions is not None:
        yield from _counts(run.functions, program.macs, run.inferences)


def _counts(functions: dict[str, Cost], macs: int | None, inferences: int) -> Iterator[str]:
    """Yield the table of functions; cycles are marked as estimates."""
    count = max(inferences, 1)
    total = sum(functions.values(), NOTHING)
    yield f"{'instructions':>14} {'share':>6} {'cycles (estimate)':>18}  function"
    shown = list(functions.items())[:_SHOWN]
    for name, cost in shown:
        share = 100 * cost.instructions / max(total.instructions, 1)
        yield f"{cost.instructions:14} {share:5.1f}% {cost.cycles:18.0f}  {name}"
    others = list(functions.values())[_SHOWN:]
    if others:
        rest = sum(others, NOTHING)
        yield f"{rest.instructions:14} {'':6} {rest.cycles:18.0f}  {len(others)} others"
    if count > 1:
        yield f"{total.instructions:14} {'':6} {total.cycles:18.0f}  all of {count} inferences"
    each, cycles = total.instructions / count, total.cycles / count
    yield f"{each:14.0f} {'':6} {cycles:18.0f}  all of an inference"
    if macs:
        yield (
            f"Per multiply-accumulate ({macs}): {each / macs:.2f} instructions, "
            f"{cycles / macs:.2f} cycles (estimate)"
        )
