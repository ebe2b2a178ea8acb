"""Options of RTL simulation tests, besides those that they share with embedded projects.

Source: docs/rtl.md, "Files"; docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

import string
from collections.abc import Iterator

from ai8xtools.diagnostics import Diagnostic, Place
from ai8xtools.diagnostics.options import excludes, no_effect, outside
from ai8xtools.synthesis.emit.options import (
    ProjectOptions,
    file_names,
    is_plain,
    name_taken,
    not_plain,
)
from ai8xtools.synthesis.emit.rtl.camera import Camera, camera_problems
from ai8xtools.synthesis.program import Program
from ai8xtools.synthesis.summary import Summary
from ai8xtools.values import frozen

DEFAULT_TOP_LEVEL = "cnn"
_LONGEST_PATH = 255
_LARGEST_TIMEOUT_MS = 10_000_000
_FILES = ("--runtest-filename", "--output-filename", "--input-filename", "--input-csv")
_LISTED = ("--top-level", "--queue-name")
"""Options whose values are parts of lines of the list of tests."""
_LISTED_CHARACTERS = frozenset(string.ascii_letters + string.digits + "._-")
_FIXED_NAMES = frozenset(
    {"verify-output.py", "latency.txt", "data", "masks", "data-expected", "data-output", "debug"}
)
"""Files and folders of a test whose names are not options."""
SIMULATED = frozenset({"run_test.log.fail", "RISCV_PROG_flash.prog"})
"""Files that a simulation writes into the folder of a test."""
_NARROWEST_FOLDER = 33
"""A dash and 32 digits of a hash: what is always left of a long name."""


@frozen
class RtlOptions:
    """How a test is written; `project` holds what embedded projects know too.

    `top_level` None is a test of the accelerator alone, without a core. `timeout_ms` None: computed
    from the program. `slow_load` is the number of idle instructions behind each stored FIFO word.
    `regression_folder` names the folder of the list of all tests, which `regression_list` is.
    """

    project: ProjectOptions
    runtest_filename: str = "run_test.sv"
    input_filename: str = "input"
    top_level: str | None = DEFAULT_TOP_LEVEL
    preload_data: bool = False
    preload_weights: bool = False
    result_output: bool = False
    compact_data: bool = True
    flash: bool = True
    slow_load: int = 0
    timeout_ms: int | None = None
    queue_name: str | None = None
    regression_folder: str | None = None
    regression_list: str = "autogen_list"
    camera: Camera | None = None

    @property
    def block_level(self) -> bool:
        """Whether the accelerator is simulated alone."""
        return self.top_level is None

    @property
    def input_image(self) -> str:
        """File of the writes of a block-level test."""
        return f"{self.input_filename}.mem"

    @property
    def output_image(self) -> str:
        """File of the words that a block-level test expects."""
        return f"{self.project.output_filename}.mem"

    @property
    def expected_header(self) -> bool:
        """Whether the known answer is an array in a header."""
        options = self.project
        shown = options.kat and not options.inline_check and not self.result_output
        return shown and self.compact_data and not self.preload_data

    @property
    def sample_header(self) -> bool:
        """Whether the sample is an array in a header."""
        return self.compact_data and not self.preload_data


def test_name(prefix: str, summary: Summary) -> str:
    """Return the name of a test: the prefix and the layers of the network."""
    repeat = summary.statistics.repeat
    return f"{prefix}{summary.topology}{f'_repeat{repeat}' if repeat > 1 else ''}"


def check_rtl_options(
    options: RtlOptions, test_dir: str, program: Program | None = None
) -> list[Diagnostic]:
    """Return complaints about options that cannot be honoured."""
    complaints = [*_names(options), *_ranges(options), *_combinations(options)]
    if len(test_dir) + _NARROWEST_FOLDER > _LONGEST_PATH:
        complaints.append(
            Diagnostic(
                "E091",
                f"the name of the folder has {len(test_dir)} characters, "
                f"more than {_LONGEST_PATH - _NARROWEST_FOLDER}",
                Place(option="--test-dir"),
                "Choose a folder with a shorter name.",
            )
        )
    if options.camera is not None and program is not None:
        complaints += camera_problems(options.camera, program)
    return complaints


def _names(options: RtlOptions) -> Iterator[Diagnostic]:
    """Names must stay inside the folder and differ from each other."""
    taken = _taken_names(options)
    for option, name in _given_names(options).items():
        is_file = option in _FILES
        if not is_plain(name) or (option in _LISTED and not set(name) <= _LISTED_CHARACTERS):
            yield not_plain(option, name)
        elif is_file and name in taken:
            yield name_taken(option, name)
        elif is_file:
            taken.add(name)


def _given_names(options: RtlOptions) -> dict[str, str]:
    """Return the names that options give, by option."""
    names = {"--runtest-filename": options.runtest_filename}
    names["--autogen_list"] = options.regression_list
    if options.block_level:
        if options.project.kat:
            names["--output-filename"] = options.output_image
        names["--input-filename"] = options.input_image
    if options.top_level is not None:
        names["--top-level"] = options.top_level
    if options.queue_name is not None:
        names["--queue-name"] = options.queue_name
    if options.camera is not None:
        names["--input-csv"] = options.camera.filename
    return names


def _taken_names(options: RtlOptions) -> set[str]:
    """Return the names of the other files and folders of a test."""
    project = options.project
    return {project.main_filename, *file_names(project).values(), *_FIXED_NAMES, *SIMULATED}


def _ranges(options: RtlOptions) -> Iterator[Diagnostic]:
    camera = options.camera
    limits = [
        ("--timeout", options.timeout_ms, 1, _LARGEST_TIMEOUT_MS),
        ("--slow-load", options.slow_load, 0, 1000),
    ]
    if camera is not None:
        limits += [
            ("--input-csv-retrace", camera.retrace, 0, 1_000_000),
            ("--input-csv-period", camera.period_ns, 1, 1_000_000),
            ("--input-pix-clk", camera.clocks_per_pixel, 1, 1_000_000),
        ]
    for option, value, low, high in limits:
        if value is not None and not low <= value <= high:
            yield outside(option, value, low, high)


def _combinations(options: RtlOptions) -> Iterator[Diagnostic]:
    project = options.project
    excluding = (
        ("--fixed-input", project.fixed_input, "--rtl", True),
        ("--forever", project.forever, "--rtl", True),
        ("--result-output", options.result_output, "--no-kat", not project.kat),
        ("--riscv", project.riscv, "--top-level None", options.block_level),
        ("--input-csv", options.camera is not None, "--top-level None", options.block_level),
        ("--result-output", options.result_output, "--top-level None", options.block_level),
        ("--rtl-preload", options.preload_data, "--top-level None", options.block_level),
        (
            "--rtl-preload-weights",
            options.preload_weights,
            "--top-level None",
            options.block_level,
        ),
        ("--zero-sram", project.zero_sram, "--top-level None", options.block_level),
    )
    for option, enabled, other, conflicting in excluding:
        if enabled and conflicting:
            yield excludes(option, other)
    if options.slow_load and options.compact_data:
        yield no_effect("--slow-load", "on input that a loop loads", "Add --no-compact-data.")
