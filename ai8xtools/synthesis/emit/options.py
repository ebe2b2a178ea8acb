"""Options that change the text of the project but no word of the accelerator.

Options that change words are in `synthesis.options`.
Source: docs/options.md, "ai8xize.py"; docs/generated-project.md, "Options that change the program".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from ai8xtools.answer import FILE_NAME
from ai8xtools.diagnostics import Diagnostic, Place
from ai8xtools.diagnostics.options import excludes, needs, no_effect, outside
from ai8xtools.reading.system import is_reserved
from ai8xtools.synthesis.measured_energy import PUBLISHED, EnergyOptions
from ai8xtools.values import frozen
from ai8xtools.writing import symbols
from ai8xtools.writing.application import ARGMAX, BENCH, asking
from ai8xtools.writing.application import OPTION as APPLICATION
from ai8xtools.writing.packages import unsuitable

_TIMERS = 6
_PORTS = 4
_PINS = 31
_NONE = "none"
_UNROLLED = 8
"""How many reads of the transposing port follow each other unless the options say."""


ANOTHER_FILE = "another generated file"
STUDIO = "studio"
"""The interface of the vendor's tools in CodeFusion Studio."""
_SAMPLE = "sample.c"


@frozen
class ProjectOptions:
    """How the project is written.

    `name` is the project's name and that of its folder; with `symbol_prefix` it is a library, whose
    names begin so; `application` is the kind of the program around it, `build` are systems whose
    metadata are added. `sdk` is the generation of the vendor's tools whose interface it has:
    `2024`, or `studio`. `folder` the path of that folder as the user gave it; `command_line` stands
    in the headers of the generated files. File names are names inside the folder; `api_filename`
    and `sample_output_filename` may be `none` (any case). `boost` is (port, pin), `clock_trim` the
    trim values of IBRO, ISO and IPO (0: leave), `log_filename` None writes no log; `kernel_format`
    is how it prints a weight (None: aligned). `sample_numpy_filename` adds the output of the
    simulation, `log_intermediate` the files named `output_...` (without their suffix;
    `output_pass_filename` may be missing or `none`), `messages` are repeated in the verbose log,
    `doubts` (why it is not expected to work, what is left out) in the main program. `result_buffer`
    is whether the main program has one, and unloads the result into it. `labels` are the names of
    the classes for the output of the softmax; `printer` names a header and a call of a function of
    it that prints what `output`, a pointer, stands for. `riscv` lets the RISC-V core run the
    network, started by a program of the Arm core.
    """

    name: str
    sdk: str = "2024"
    symbol_prefix: str | None = None
    application: str | None = None
    head: str = ARGMAX
    folder: str = ""
    command_line: str = ""
    tool: str = "ai8xize.py"
    tool_version: str = ""
    build: tuple[str, ...] = ()

    c_filename: str = "main"
    api_filename: str = "cnn.c"
    weight_filename: str = "weights.h"
    sample_filename: str = "sampledata.h"
    sample_output_filename: str = "sampleoutput.h"
    log_filename: str | None = "log.txt"
    sample_numpy_filename: str | None = None
    output_filename: str = "output"
    output_pass_filename: str | None = None
    output_config_filename: str = "config"
    output_data_filename: str = "data"
    output_weights_filename: str = "weights"
    output_bias_filename: str = "bias"

    softmax: bool = False
    result_buffer: bool = True
    labels: tuple[str, ...] = ()
    printer: tuple[str, str] | None = None
    unload: bool = True
    scale_output: bool = True
    kat: bool = True
    max_checklines: int | None = None
    fixed_input: bool = False
    old_kernel_loader: bool = False
    unroll_wide: int = 8
    unroll_8bit: int = 1
    mlator: bool = False
    unroll_mlator: int = _UNROLLED
    ignore_mlator_warning: bool = False

    timer: int | None = None
    no_timer: bool = False
    boost: tuple[int, int] | None = None
    energy: bool = False
    measured: EnergyOptions = PUBLISHED
    """What is known of the energy that a chip takes."""
    forever: bool = False
    no_wfi: bool = False
    stop_start: bool = False
    one_shot: bool = False
    snoop_loop: bool = False
    no_fifo_wait: bool = False
    debugwait: int = 2
    clock_trim: tuple[int, int, int] | None = None

    riscv: bool = False
    riscv_cache: bool = True
    riscv_debug: bool = False
    riscv_exclusive: bool = False
    deepsleep: bool = False
    fast_fifo: bool = False

    verify_writes: bool = False
    verify_kernels: bool = False
    zero_sram: bool = False

    define: str = ""
    define_default_arm: str = "MXC_ASSERT_ENABLE ARM_MATH_CM4"
    define_default_riscv: str = "MXC_ASSERT_ENABLE RV32"
    board_name: str = "EvKit_V1"
    eclipse_includes: str = ""
    eclipse_variables: str = ""
    eclipse_openocd_args: str | None = None

    verbose: bool = False
    short_log: bool = False
    kernel_format: str | None = None
    log_intermediate: bool = False
    log_pooling: bool = False
    debug_computation: bool = False
    debug_latency: bool = False
    messages: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    simulated: bool = False
    """For RTL simulation, where the RISC-V core can run from SRAM."""

    @property
    def studio(self) -> bool:
        """Whether the project is for a workspace of CodeFusion Studio, which has its own main()."""
        return self.sdk == STUDIO

    @property
    def single_file(self) -> bool:
        """Whether all functions go to the main file."""
        return self.api_filename.lower() == _NONE

    @property
    def placed(self) -> str:
        """Macro of a library that says where weights are; empty without one."""
        return f"{self.symbol_prefix.upper()}_WEIGHTS" if self.symbol_prefix else ""

    @property
    def main_filename(self) -> str:
        """File name of the Arm core's main program, or of what loads a sample for another one."""
        return _SAMPLE if self.studio else f"{self.c_filename}.c"

    @property
    def program_filename(self) -> str:
        """File name of the main program that runs the network."""
        return f"{self.c_filename}_riscv.c" if self.riscv else self.main_filename

    @property
    def inline_check(self) -> bool:
        """Whether the known answer is compared by statements instead of an array."""
        return self.sample_output_filename.lower() == _NONE

    @property
    def pass_filename(self) -> str | None:
        """File name of the numbered words, without .csv."""
        name = self.output_pass_filename
        return None if name is None or name.lower() == _NONE else name

    @property
    def uses_unload(self) -> bool:
        """Whether `cnn_unload` exists; softmax needs it."""
        return self.unload or self.softmax

    @property
    def unloads(self) -> bool:
        """Whether the main program calls `cnn_unload`."""
        return self.uses_unload and self.result_buffer

    @property
    def inference_timer(self) -> int | None:
        """Number of the timer that measures the inference; energy measurement has none, and a board
        on the desk always has one."""
        timer = 0 if self.timer is None and self.application == BENCH else self.timer
        return None if self.no_timer or self.energy else timer

    @property
    def checks_weights(self) -> bool:
        """Whether the weights are read back."""
        return self.verify_kernels or (self.verify_writes and not self.old_kernel_loader)

    @property
    def trims(self) -> tuple[int, int, int] | None:
        """Trim values, or None if there is nothing to trim."""
        return self.clock_trim if self.clock_trim and any(self.clock_trim) else None


def check_options(options: ProjectOptions) -> list[Diagnostic]:
    """Return complaints about options that cannot be honoured, whatever the network is."""
    complaints = [*_names(options), *_ranges(options), *_cores(options), *_formats(options)]
    complaints += [*_library(options), *_studio(options)]
    if options.timer is not None and options.energy and not options.no_timer:
        complaints.append(
            no_effect("--timer", "with --energy, which measures with the power monitor")
        )
    if options.one_shot and options.inference_timer is not None:
        complaints.append(excludes("--timer", "--one-shot"))
    complaints += _debugging(options)
    return complaints


def _library(options: ProjectOptions) -> Iterator[Diagnostic]:
    """What a library does not have."""
    yield from symbols.complaints(options.symbol_prefix)
    excluded = {
        "--api-filename none": options.single_file,
        "--energy": options.energy,
        "--no-unload": not options.unload,
        "--one-shot": options.one_shot,
        "--riscv": options.riscv,
        "--snoop-loop": options.snoop_loop,
    }
    used = ["--rtl"] if options.simulated else [option for option in excluded if excluded[option]]
    program = "--rtl" if options.simulated else "--c-filename"  # what names it otherwise
    around, build = asking(options), "--build" if options.build else None
    own = symbols.OPTION if options.symbol_prefix is not None else None
    asked = next(filter(None, (own, around, build)), None)
    yield from (excludes(asked, option) for option in used if asked)
    if own is None:
        given = APPLICATION if options.application is not None else None
        yield from (needs(option, symbols.OPTION) for option in (given, build) if option)
    yield from unsuitable(
        options.build, options.name, options.symbol_prefix or "", accelerated=True
    )
    if build and around:
        yield excludes(build, around)
    if options.build and options.c_filename != "main":
        yield excludes("--build", program)
    if options.application is None and options.head != ARGMAX:
        yield needs("--head", APPLICATION)
    if options.application == BENCH and options.head != ARGMAX:
        yield excludes(f"{APPLICATION} {BENCH}", "--head")
    if around and options.c_filename != "main":
        yield excludes(around, program)


def _studio(options: ProjectOptions) -> Iterator[Diagnostic]:
    """What is in the main program, which the user's workspace has, and what does not fit it."""
    if not options.studio:
        return
    excluded = {
        "--api-filename none": options.single_file,
        "--c-filename": options.c_filename != "main",
        "--riscv": options.riscv,
        "--rtl": options.simulated,
        "--snoop-loop": options.snoop_loop,
        symbols.OPTION: options.symbol_prefix is not None,
    }
    yield from (excludes(f"--sdk {STUDIO}", option) for option in excluded if excluded[option])
    of_main = {
        "--boost": options.boost is not None,
        "--energy": options.energy,
        "--forever": options.forever,
        "--one-shot": options.one_shot,
        "--softmax": options.softmax,
        "--stop-start": options.stop_start,
    }
    for option in of_main:
        if of_main[option]:
            yield no_effect(option, f"with --sdk {STUDIO}, where main() is not generated")


def file_names(options: ProjectOptions) -> dict[str, str]:
    """Return the names of files that options give, by option; some of them may not be written."""
    names = {
        "--c-filename": options.program_filename if options.c_filename else "",
        "--weight-filename": options.weight_filename,
        "--sample-filename": options.sample_filename,
    }
    if not options.single_file:
        names["--api-filename"] = options.api_filename
    if options.kat and not options.inline_check:
        names["--sample-output-filename"] = options.sample_output_filename
    if options.log_filename is not None:
        names["--log-filename"] = options.log_filename
    if options.sample_numpy_filename is not None:
        names["--sample-numpy-filename"] = options.sample_numpy_filename
    if options.log_intermediate:
        names |= {o: name + suffix if name else "" for o, name, suffix in _intermediate(options)}
    return names


def _intermediate(options: ProjectOptions) -> Iterator[tuple[str, str, str]]:
    """Yield the options of the files of intermediate values, with name and suffix."""
    yield "--output-filename", options.output_filename, ".csv"
    if options.pass_filename is not None:
        yield "--output-pass-filename", options.pass_filename, ".csv"
    yield "--output-config-filename", options.output_config_filename, ".csv"
    yield "--output-data-filename", options.output_data_filename, ".npy"
    yield "--output-weights-filename", options.output_weights_filename, ".npy"
    yield "--output-bias-filename", options.output_bias_filename, ".npy"


def _names(options: ProjectOptions) -> Iterator[Diagnostic]:
    """Names must stay inside the folder and differ from each other."""
    fixed = ["cnn.h", "softmax.c", "Makefile", FILE_NAME, "dataset.json", "prepare.h"]
    if options.riscv:
        fixed += ["Makefile.ARM", "Makefile.RISCV", options.main_filename]
    taken = dict.fromkeys(map(str.lower, fixed), ANOTHER_FILE)  # most systems know no case
    others = {"--prefix": options.name, "--board-name": options.board_name}
    for option, name in {**others, **file_names(options)}.items():
        if not is_plain(name):
            yield not_plain(option, name)
        elif option in others:
            continue
        elif name.lower() in taken or _is_debugging(name, options):
            yield name_taken(option, name, taken.get(name.lower(), ANOTHER_FILE))
        else:
            taken[name.lower()] = option


def not_plain(option: str, name: str) -> Diagnostic:
    """Return the complaint about a name that is not plain."""
    why = ", but a device on Windows" if is_reserved(name) else ""
    return Diagnostic(
        "E071",
        f"{name!r} is not a plain name{why}",
        Place(option=option),
        "Use letters, digits and the characters . _ - only, without a folder.",
    )


def name_taken(option: str, name: str, whose: str = ANOTHER_FILE) -> Diagnostic:
    """Return the complaint about the name of a file that is that of another one."""
    return Diagnostic(
        "E072",
        f"file name {name!r} is that of {whose}",
        Place(option=option),
        "Give every file its own name.",
    )


def _is_debugging(name: str, options: ProjectOptions) -> bool:
    """Whether a file of a layer may have that name."""
    patterns = (
        (options.debug_computation, r"compute-\d+\.csv"),
        (options.log_pooling, r"(un)?pooled-\d+-L\d+-ch\d+\.csv"),
    )
    return any(
        enabled and re.fullmatch(pattern, name, re.IGNORECASE) for enabled, pattern in patterns
    )


def is_plain(name: str) -> bool:
    """Whether a name stands for a file in its folder, whatever reads it."""
    return (
        bool(name)
        and name not in (".", "..")
        and PurePath(name).name == name
        and name.isprintable()
        and not set(name) & set("\\/\"'`$#%:*?<>|")
        and name == name.strip()
        and not name.startswith("-")
        and not is_reserved(name)
    )


def _ranges(options: ProjectOptions) -> Iterator[Diagnostic]:
    port, pin = options.boost or (0, 0)
    trims = options.clock_trim or (0, 0, 0)
    lines = 1 if options.max_checklines is None else options.max_checklines
    limits = (
        ("--timer", options.timer or 0, 0, _TIMERS - 1),
        ("--boost", port, 0, _PORTS - 1),
        ("--boost", pin, 0, _PINS - 1),
        ("--debugwait", options.debugwait, 0, 4000),
        ("--unroll-wide", options.unroll_wide, 0, 1024),
        ("--unroll-8bit", options.unroll_8bit, 0, 1024),
        ("--unroll-mlator", options.unroll_mlator, 0, 1024),
        ("--max-checklines", lines, 1, 2**31 - 1),
        ("--clock-trim", trims[0], 0, 0xFFFF),
        ("--clock-trim", trims[1], 0, 0x1FF),
        ("--clock-trim", trims[2], 0, 2**32 - 1),
    )
    for option, value, low, high in limits:
        if not low <= value <= high:
            yield outside(option, value, low, high)


def _cores(options: ProjectOptions) -> Iterator[Diagnostic]:
    """What only the RISC-V core can do, and what it needs."""
    for option, enabled in (("--deepsleep", options.deepsleep), ("--fast-fifo", options.fast_fifo)):
        if enabled and not options.riscv:
            yield needs(option, "--riscv")
    if options.riscv and not options.riscv_cache and not options.simulated:
        yield excludes("--no-riscv-cache", "--riscv")


def _debugging(options: ProjectOptions) -> Iterator[Diagnostic]:
    """What the debugging options need."""
    if options.log_intermediate and not options.kat:
        yield excludes("--log-intermediate", "--no-kat")
    if options.unroll_mlator != _UNROLLED and not options.mlator:
        yield no_effect("--unroll-mlator", "without --mlator")
    if options.debug_latency and not options.verbose:
        yield no_effect("--debug-latency", "without the verbose log", "Add --verbose.")


def _formats(options: ProjectOptions) -> Iterator[Diagnostic]:
    if options.kernel_format is None:
        return
    try:
        options.kernel_format.format(-1)
    except (ValueError, IndexError, KeyError, AttributeError, TypeError) as exc:
        yield Diagnostic(
            "E085",
            f"{options.kernel_format!r} does not format a number: {exc}",
            Place(option="--kernel-format"),
            "Use a format of Python such as {0:4} or {0:02x}.",
        )
