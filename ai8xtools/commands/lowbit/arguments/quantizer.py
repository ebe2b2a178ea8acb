"""The command line of quantize.py --device BITNET."""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.commands.arguments import Parser
from ai8xtools.commands.lowbit.arguments.encodings import check_encodings
from ai8xtools.values import frozen


@frozen
class QuantizeOptions:
    """Which checkpoint becomes which header; `policy` and `encodings` are for foreign networks.

    `report` is the page to write, `data` the folder of the pictures to measure the accuracy on,
    by the engine in Python, and with `compare_c` in C too.
    """

    input: str
    output: str
    policy: str | None
    encodings: tuple[str, ...]
    report: str | None
    ptq_table: bool
    compare_c: bool
    dataset: str
    data: str | None


def arguments() -> Parser:
    """Return the parser of the command line."""
    parser = Parser(
        prog="quantize.py",
        usage="%(prog)s INPUT.pth.tar OUTPUT.h --device BITNET [options]",
        description="Pack the weights of a low-bit network into a header.",
    )  # fmt: skip
    option = parser.add_argument
    option("input", metavar="INPUT",
           help="checkpoint of a low-bit network, of train.py or of BitNetMCU")  # fmt: skip
    option("output", metavar="OUTPUT", help="header (.h) to write")
    option("--device", required=True, metavar="NAME", help="BITNET")
    option("--qat-policy", metavar="FILE",
           help="hyperparameters that a network of BitNetMCU was trained with (YAML)")  # fmt: skip
    option("--encoding", metavar="NAME[,...]", default="",
           help="encodings of its dense layers, one for all or one for each")  # fmt: skip
    option("--report", metavar="FILE.html", help="write a report, and beside it FILE.json")
    option("--ptq-table", action="store_true",
           help="accuracy with weights of 8, 4, 2, 1.6 and 1 bits (needs --data)")  # fmt: skip
    option("--compare-c", action="store_true",
           help="compile the C with cc and compare all classes (needs --data)")  # fmt: skip
    option("--dataset", default="MNIST", metavar="NAME", help="pictures with classes")
    option("--data", metavar="DIR", help="folder of the data sets: measure the accuracy")
    option("--debug", action="store_true", help="show where in the program a failure occurs")
    return parser


def parse(words: Sequence[str]) -> QuantizeOptions:
    """Return the options of a command line; wrong usage ends the program with status 2."""
    parser = arguments()
    args = parser.parse_args([*words])
    if not args.output.endswith(".h"):
        parser.error("argument OUTPUT: a low-bit network becomes a header, FILE.h")
    if args.report is not None and not args.report.endswith(".html"):
        parser.error("argument --report: is a page, FILE.html")
    if args.ptq_table and args.data is None:
        parser.error("argument --ptq-table: add --data DIR")
    if args.compare_c and args.data is None:
        parser.error("argument --compare-c: add --data DIR")
    encodings = tuple(args.encoding.split(",")) if args.encoding else ()
    check_encodings(parser, "--encoding", encodings)
    return QuantizeOptions(
        args.input, args.output, args.qat_policy, encodings, args.report, args.ptq_table,
        args.compare_c, args.dataset, args.data,
    )  # fmt: skip
