"""The command lines of scripts/capacity.py and scripts/lowbit_plots.py."""

from __future__ import annotations

from collections.abc import Sequence

from ai8xtools.commands.arguments import Parser
from ai8xtools.commands.lowbit.arguments.encodings import check_encodings
from ai8xtools.values import frozen


@frozen
class CapacityOptions:
    """Which networks are trained for how long; `out` names the table and the picture."""

    encodings: tuple[str, ...]
    widths: tuple[int, ...]
    epochs: int
    dataset: str
    data: str
    out: str


def parse_capacity(words: Sequence[str] | None) -> CapacityOptions:
    """Return the options of a command line; wrong usage ends the program with status 2."""
    parser = Parser(
        prog="capacity.py",
        usage="%(prog)s --data DIR --out NAME [options]",
        description="Train low-bit networks of some sizes, and draw what they reach.",
    )
    option = parser.add_argument
    option("--data", required=True, metavar="DIR", help="folder of the data sets")
    option("--out", required=True, metavar="NAME", help="write NAME.csv and NAME.svg")
    option("--dataset", default="MNIST", metavar="NAME", help="pictures with classes")
    option("--encodings", default="Binary,Ternary,2bitsym,4bitsym,8bit", metavar="NAME[,...]",
           help="encodings of weights")  # fmt: skip
    option("--widths", default="16,32,64,96", metavar="N[,...]",
           help="outputs of the three hidden layers")  # fmt: skip
    option("--epochs", type=int, default=10, metavar="N", help="of each training")
    args = parser.parse_args(words)
    encodings = tuple(args.encodings.split(","))
    check_encodings(parser, "--encodings", encodings)
    sizes = args.widths.split(",")
    if not all(size.isascii() and size.isdecimal() and 0 < int(size) <= 4096 for size in sizes):
        parser.error("argument --widths: whole numbers from 1 to 4096, separated by commas")
    if not 0 < args.epochs <= 10_000:
        parser.error("argument --epochs: from 1 to 10,000")
    widths = tuple(map(int, sizes))
    return CapacityOptions(encodings, widths, args.epochs, args.dataset, args.data, args.out)


@frozen
class PlotOptions:
    """Which logs are drawn: FILE or NAME=FILE; errors up to `most` percent."""

    logs: tuple[str, ...]
    out: str
    classes: int
    most: float


def parse_plots(words: Sequence[str] | None) -> PlotOptions:
    """Return the options of a command line; wrong usage ends the program with status 2."""
    parser = Parser(
        prog="lowbit_plots.py",
        usage="%(prog)s [NAME=]LOG... --out NAME [options]",
        description="Draw trainings of low-bit networks: error after each epoch, error against "
        "bits and bytes of weights.",
    )
    option = parser.add_argument
    option("logs", nargs="+", metavar="[NAME=]LOG",
           help="log of train.py; trainings of the same name get the same colour")  # fmt: skip
    option("--out", required=True, metavar="NAME",
           help="write NAME.csv, NAME-curves.svg and NAME-bits.svg")  # fmt: skip
    option("--classes", type=int, default=10, metavar="N", help="of the data set (default 10)")
    option("--most", type=float, default=5.0, metavar="PERCENT",
           help="draw errors up to this one (default 5)")  # fmt: skip
    args = parser.parse_args(words)
    if not 1 <= args.classes <= 4096:
        parser.error("argument --classes: from 1 to 4,096")
    if not 0 < args.most <= 100:
        parser.error("argument --most: above 0, up to 100")
    return PlotOptions(tuple(args.logs), args.out, args.classes, args.most)
