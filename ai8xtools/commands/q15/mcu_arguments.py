"""The command line of quantize.py --device MCU."""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.commands.arguments import Parser
from ai8xtools.commands.q15.arguments import CaseOptions, case_of
from ai8xtools.commands.quantize.arguments import add_sample_options
from ai8xtools.values import frozen


@frozen
class McuOptions:
    """A network in floating point, and the checkpoint that it becomes."""

    case: CaseOptions
    output: str


def arguments() -> Parser:
    """Return the parser of the command line."""
    parser = Parser(
        prog="quantize.py",
        usage="%(prog)s INPUT OUTPUT --device MCU --calibrate DATASET [options]",
        description="Quantize a network in floating point to 8 bits for a microcontroller. No "
        "limit of the accelerator applies. OUTPUT is a checkpoint for ai8xize.py --device MCU.",
    )
    option = parser.add_argument
    option("input", metavar="INPUT", help="checkpoint of the trained network, or an ONNX graph")
    option("output", metavar="OUTPUT", help="checkpoint to write (.pth.tar)")
    option("--device", required=True, metavar="NAME", type=str.upper, choices=["MCU"], help="MCU")
    add_sample_options(parser, required=True)
    option("--import", dest="importing", action="store_true",
           help="INPUT is of an ordinary PyTorch network: accepted, it is seen anyway")  # fmt: skip
    option("--debug", action="store_true", help="show where in the program a failure arises")
    return parser


def parse(words: Sequence[str]) -> McuOptions:
    """Return the options of a command line; wrong usage ends the program with status 2."""
    args = arguments().parse_args([*words])
    return McuOptions(case_of(args), args.output)
