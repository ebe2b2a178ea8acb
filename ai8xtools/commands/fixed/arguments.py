"""The command line of quantize.py --device FIXED."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from ai8xtools.commands.arguments import Parser
from ai8xtools.commands.q15.arguments import CaseOptions, calibrated, case_of
from ai8xtools.commands.quantize.arguments import positive
from ai8xtools.commands.software.arguments import size
from ai8xtools.quantization.fixed import Division, Rule
from ai8xtools.quantization.fixed.length import DEFAULT_SQNR_DB
from ai8xtools.quantization.fixed.network import FixedRules
from ai8xtools.values import frozen


@frozen
class FixedOptions:
    """Which network becomes which container; `case` tells network and samples."""

    case: CaseOptions
    output: str
    rules: FixedRules
    key_file: str | None
    report_samples: int


def arguments() -> Parser:
    """Return the parser of the command line."""
    parser = calibrated(
        ["FIXED"],
        "OUTPUT.nnb",
        "container to write",
        "Quantize a network in floating point to weights of 8 or 16 bits with a factor for each "
        "layer, and write it as a container.",
    )
    option = parser.add_argument
    option("--bits", choices=("auto", "1", "2", "4", "8", "16"), default="auto",
           help="width of weights (default: auto, by layer)")  # fmt: skip
    option("--few-bits", action="store_true", help="with --bits auto: 1, 2 and 4 bits too, where "
           "they reach --sqnr")  # fmt: skip
    option(
        "--sqnr",
        type=_number,
        default=DEFAULT_SQNR_DB,
        metavar="DB",
        help="with --bits auto: 8 bits from this ratio of weights to errors on (default: "
        f"{DEFAULT_SQNR_DB:g})",
    )
    option("--flash", type=size, metavar="BYTES", help="budget of the weights: --sqnr is lowered "
           "until they fit")  # fmt: skip
    option("--div", choices=[*map(str, Division)], default=str(Division.POWER_OF_TWO),
           help="the factor of a layer: a power of two (a shift), or an integer")  # fmt: skip
    option("--data-range", nargs="+", default=["max"], metavar="RULE",
           help="range of data: max, or sigma N")  # fmt: skip
    option("--weight-range", nargs="+", default=["max"], metavar="RULE",
           help="range of weights: max, sigma N or percentile P; larger ones saturate")  # fmt: skip
    option("--encrypt", metavar="KEYFILE", help="encrypt the data of the container")
    option("--report-samples", metavar="N", type=positive, default=_REPORTED,
           help=f"samples that are computed with integers, too (default: {_REPORTED})")  # fmt: skip
    return parser


def parse(words: Sequence[str]) -> FixedOptions:
    """Return the options of a command line; wrong usage ends the program with status 2."""
    parser = arguments()
    args = parser.parse_args([*words])
    if args.few_bits and args.bits != "auto":
        parser.error(f"argument --few-bits: is for --bits auto, not {args.bits}")
    if not args.output.endswith(".nnb"):
        parser.error("argument OUTPUT: a network becomes a container, FILE.nnb")
    rules = FixedRules(
        None if args.bits == "auto" else int(args.bits),
        args.sqnr,
        Division(args.div),
        _rule(parser, "--weight-range", args.weight_range, ("max", "sigma", "percentile")),
        _rule(parser, "--data-range", args.data_range, ("max", "sigma")),
        args.flash,
        args.few_bits,
    )
    return FixedOptions(case_of(args), args.output, rules, args.encrypt, args.report_samples)


_REPORTED = 64


def _number(text: str) -> float:
    """Convert a finite number for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def _rule(parser: Parser, option: str, words: Sequence[str], kinds: Sequence[str]) -> Rule:
    """Return the rule that words state; wrong usage ends the program."""
    kind, *numbers = words
    if kind not in kinds or len(numbers) != (kind != "max"):
        parser.error(f"argument {option}: give {', '.join(kinds)}, with a number after all but max")
    try:
        value = _number(numbers[0]) if numbers else 0.0
    except argparse.ArgumentTypeError as exc:
        parser.error(f"argument {option}: {exc}")
    if numbers and not 0 < value <= (100 if kind == "percentile" else 1000):
        parser.error(f"argument {option}: {value:g} is out of range")
    return Rule(kind, value)  # type: ignore[arg-type]
