"""The command line of --device BITNET: a program of its own, as almost no other option applies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from commands.arguments import Parser
from values import frozen

BITNET = "BITNET"
"""--device: the smallest cores, weights of 1 to 8 bits."""


@frozen
class LowBitOptions:
    """Which header becomes which project; `labels` are the classes of the samples, if given.

    `report` is the page to write. With `floor` sums that are shifted are not rounded, whatever the
    header says; with `compress` weights are stored as Huffman codes.
    """

    header: str
    sample: str
    labels: str | None
    mcu: str | None
    name: str
    parent: str
    overwrite: bool
    floor: bool
    compress: bool
    command_line: str
    report: str | None = None

    @property
    def folder(self) -> Path:
        """The folder of the project."""
        return Path(self.parent) / self.name


def is_lowbit(words: Sequence[str]) -> bool:
    """Whether a command line is for low-bit networks."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    return any(
        (word == "--device" and value.upper() == BITNET) or word.upper() == f"--DEVICE={BITNET}"
        for word, value in pairs
    )


MODELS = ("ai85fcbit", "ai85cnnbit", "ai85winbit")
"""Networks that train.py trains in a loop of their own."""
_MODEL_OPTIONS = ("--model", "--arch", "-a")


def names_lowbit_model(words: Sequence[str]) -> bool:
    """Whether a command line of train.py names one of these networks."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    return any(
        (word in _MODEL_OPTIONS and value in MODELS)
        or word in {f"{option}={model}" for option in _MODEL_OPTIONS for model in MODELS}
        for word, value in pairs
    )


def parse(words: Sequence[str], *, json: bool) -> LowBitOptions:
    """Return the options of a command line; wrong usage ends the program with status 2."""
    parser = Parser(
        prog="ai8xize.py",
        json=json,
        usage="%(prog)s --device BITNET --checkpoint-file MODEL.h --sample-input FILE "
        "--prefix NAME --test-dir DIR [options]",
        description="Write C for a low-bit network: no multiplication is needed.",
    )
    option = parser.add_argument
    option("--device", required=True, metavar="NAME", help="BITNET")
    option("--checkpoint-file", required=True, metavar="MODEL.h",
           help="header with the packed weights")  # fmt: skip
    option("--sample-input", required=True, metavar="FILE",
           help="inputs of the console program (.npy), int8 [number, inputs]")  # fmt: skip
    option("--sample-labels", metavar="FILE", help="their classes (.npy)")
    option("--mcu", metavar="NAME", help="profile whose flash and RAM must suffice")
    option("--shiftnorm", choices=("round", "floor"), default="round",
           help="floor: bits of sums are dropped without rounding, to compare")  # fmt: skip
    option("--compress-weights", action="store_true",
           help="weights as Huffman codes: less flash, more instructions")  # fmt: skip
    option("--report", metavar="FILE", help="write a page (HTML), and the same as JSON")
    option("--prefix", required=True, metavar="NAME", help="name of the project")
    option("--test-dir", required=True, metavar="DIR", help="folder in which it is written")
    option("--overwrite", action="store_true", help="replace a project that exists")
    option("--diagnostics", choices=("text", "json"), default="text", help="form of the messages")
    option("--debug", action="store_true", help="show where in the program a failure arises")
    args = parser.parse_args([*words])
    name = args.prefix
    if not name or name in (".", "..") or Path(name).name != name or "\0" in name:
        parser.error("argument --prefix: is the name of a folder")
    return LowBitOptions(
        args.checkpoint_file, args.sample_input, args.sample_labels, args.mcu, name,
        args.test_dir, args.overwrite, args.shiftnorm == "floor", args.compress_weights,
        "ai8xize.py " + " ".join(words), args.report,
    )  # fmt: skip


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


def parse_quantize(words: Sequence[str]) -> QuantizeOptions:
    """Return the options of a command line; wrong usage ends the program with status 2."""
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
    option("--debug", action="store_true", help="show where in the program a failure arises")
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
    _check_encodings(parser, "--encoding", encodings)
    return QuantizeOptions(
        args.input, args.output, args.qat_policy, encodings, args.report, args.ptq_table,
        args.compare_c, args.dataset, args.data,
    )  # fmt: skip


def _check_encodings(parser: Parser, option: str, names: Sequence[str]) -> None:
    """End the program unless all are names of encodings."""
    from difflib import get_close_matches

    from quantization.lowbit import ENCODINGS

    for name in names:
        if name not in ENCODINGS:
            by_case = {known.lower(): known for known in ENCODINGS}
            near = get_close_matches(name.lower(), by_case, 1)
            meant = f"; did you mean {by_case[near[0]]}?" if near else ""
            parser.error(
                f"argument {option}: {name!r} is not known{meant} Known are {', '.join(ENCODINGS)}"
            )


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
    _check_encodings(parser, "--encodings", encodings)
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
