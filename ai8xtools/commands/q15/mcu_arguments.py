"""The command line of quantize.py --device MCU."""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.commands.arguments import Parser
from ai8xtools.commands.q15.arguments import LEAST, CaseOptions, calibrated, case_of
from ai8xtools.values import frozen


@frozen
class McuOptions:
    """A network in floating point, and the checkpoint that it becomes.

    `least` is the correlation with the source from which on results are taken.
    """

    case: CaseOptions
    output: str
    least: float = LEAST


def arguments() -> Parser:
    """Return the parser of the command line."""
    parser = calibrated(
        ["MCU"],
        "OUTPUT",
        "checkpoint to write (.pth.tar)",
        "Quantize a network in floating point to 8 bits for a microcontroller. No limit of the "
        "accelerator applies. OUTPUT is a checkpoint for ai8xize.py --device MCU.",
    )
    parser.add_argument("--import", dest="importing", action="store_true",
        help="accepted without effect: an ordinary PyTorch network is recognized in "
             "any case")  # fmt: skip
    return parser


def parse(words: Sequence[str]) -> McuOptions:
    """Return the options of a command line; wrong usage ends the program with status 2."""
    args = arguments().parse_args([*words])
    return McuOptions(case_of(args), args.output, args.least_correlation)
