"""The command line of --device Q15 and Q7: a program of its own, as few other options apply."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from ai8xtools.commands.arguments import Parser
from ai8xtools.commands.q15 import BITS
from ai8xtools.commands.quantize.arguments import CalibrationOptions, add_sample_options, samples_of
from ai8xtools.quantization.q15.formats import Guard
from ai8xtools.software.cores import CORES
from ai8xtools.values import frozen

LEAST = 0.99
"""Correlation with the source from which on results are taken."""
_ALL = 100.0
"""The percentile that is the largest."""
_CHECKPOINTS = (".pth.tar", ".pth", ".pt")


@frozen
class CaseOptions:
    """A network in floating point: its checkpoint, its name if that is not there, and samples.

    With `prove` what is made of it is compared with it.
    """

    input: str
    model: str | None
    calibration: CalibrationOptions
    prove: bool = True


@frozen
class Q15Options:
    """Which network becomes which project, and how formats are chosen.

    `percentile` is that of magnitudes (100: the largest). `column_major`: maps and kernels are
    stored with columns before rows. `least` is the correlation with the source from which on
    results are taken. `output` is a checkpoint or the folder of a project.
    """

    case: CaseOptions
    output: Path
    device: str
    guard: Guard
    percentile: float
    column_major: bool
    core: str
    overwrite: bool
    command_line: str
    least: float = LEAST

    @property
    def is_checkpoint(self) -> bool:
        """Whether the output is a checkpoint; else it is the folder of a project."""
        return self.output.name.endswith(_CHECKPOINTS)

    @property
    def is_usual(self) -> bool:
        """Whether it is a checkpoint, without settings that only kernels of Q15 and Q7 have."""
        special = not self.guard.holds_for_all or self.percentile < _ALL or self.column_major
        return self.is_checkpoint and not special

    @property
    def bits(self) -> int:
        """The width of numbers."""
        return BITS[self.device]


def calibrated(devices: Sequence[str], output: str, output_help: str, description: str) -> Parser:
    """Return a parser of what all take that quantize networks in floating point by samples."""
    named = "|".join(devices)
    parser = Parser(
        prog="quantize.py",
        usage=f"%(prog)s INPUT {output} --device {named} --calibrate DATASET [options]",
        description=description,
    )
    option = parser.add_argument
    option("input", metavar="INPUT", help="checkpoint of the trained network, or an ONNX graph")
    option("output", metavar=output, help=output_help)
    option("--device", required=True, metavar="NAME", type=str.upper, choices=[*devices],
           help=" or ".join(devices))  # fmt: skip
    add_sample_options(parser, required=True)
    option("--least-correlation", metavar="R", type=bounded("correlation", -1, 1), default=LEAST,
           help="refuse integers whose results correlate less with those of the source (default: "
           f"{LEAST:g})")  # fmt: skip
    option("--debug", action="store_true", help="show where in the program a failure occurs")
    return parser


def arguments() -> Parser:
    """Return the parser of the command line."""
    parser = calibrated(
        [*BITS],
        "OUTPUT",
        "checkpoint to write (.pth.tar), or the folder of a project",
        "Quantize a network in floating point to 16 or 8 bits with a power of two for each tensor. "
        "OUTPUT is a checkpoint that ai8xize.py --device MCU or CMSIS-NN takes, or the folder of a "
        "project in C.",
    )
    option = parser.add_argument
    option("--acc-guard", metavar="RULE", default=str(Guard.WORST), choices=[*map(str, Guard)],
           help="what keeps sums within 32 bits: worst (any input, default), calib (inputs up to "
           "twice those of the samples), none")  # fmt: skip
    option(
        "--calib-percentile",
        metavar="P",
        type=bounded("percentile", 0, 100),
        default=_ALL,
        help="formats hold this percentile of magnitudes (default: 100, the largest)",
    )
    option("--layout", choices=("hwc", "note"), default="hwc",
           help="order of maps and kernels: rows before columns (hwc, default), or columns before "
           "rows, as some recipes flatten them (note)")  # fmt: skip
    option("--core", choices=[*CORES], metavar="NAME",
           help="of a project: core that emulate.py runs it on (default: cortex-m4)")  # fmt: skip
    option("--overwrite", action="store_true", help="replace a project that exists; checkpoints "
           "are replaced")  # fmt: skip
    return parser


def parse(words: Sequence[str]) -> Q15Options:
    """Return the options of a command line; wrong usage ends the program with status 2."""
    parser = arguments()
    args = parser.parse_args([*words])
    command_line = "quantize.py " + " ".join(words)
    if args.core is not None and args.output.endswith(_CHECKPOINTS):
        parser.error("argument --core: is for projects; ai8xize.py --mcu NAME tells the core")
    return Q15Options(
        case_of(args), Path(args.output), args.device, Guard(args.acc_guard), args.calib_percentile,
        args.layout == "note", args.core or "cortex-m4", args.overwrite, command_line,
        args.least_correlation,
    )  # fmt: skip


def case_of(args: argparse.Namespace) -> CaseOptions:
    """Return the network and samples that the command line asks for."""
    calibration = samples_of(args, args.calibrate)
    assert calibration is not None
    return CaseOptions(args.input, args.model, calibration, args.prove_import)


def bounded(name: str, low: float, high: float) -> Callable[[str], float]:
    """Return what converts a number above `low`, up to `high`, for argparse."""

    def converted(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = low
        if not low < value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is no {name} above {low}, up to {high}")
        return value

    return converted
