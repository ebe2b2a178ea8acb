"""quantize.py --device BITNET: a trained low-bit network becomes a header with packed weights.

Source: docs/low-bit.md, "The header" and "The report".
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from checkpoint import atomic
from commands.arguments import Parser
from commands.lowbit.convert import Rows, network_of
from commands.lowbit.files import Trained
from commands.lowbit.foreign import known_encodings, read_any
from commands.lowbit.post import Rounded, correct_as_trained, rounded_after_training
from commands.same_files import refuse_overwriting
from diagnostics.errors import InputError
from quantization.lowbit import ENCODINGS
from software.lowbit.bounds import prove_sums
from software.lowbit.emit import header, sizes

_HEADS = ["layer", "encoding", "weights", "bytes", "least", "greatest", "mean", "deviation",
          "entropy (bits)", "capacity (%)"]  # fmt: skip


def quantize_lowbit(words: Sequence[str]) -> int:
    """Write the header, print the statistics and write a report; return the exit status."""
    args = _parse(words)
    refuse_overwriting([(args.output, args.output)], (args.input,))
    trained = read_any(args.input, args.qat_policy, args.encoding)
    network, rows = network_of(trained, args.input)
    prove_sums(network)
    accuracy, table = _accuracies(trained, args)
    text = header(network, f"quantize.py {Path(args.input).name}")
    atomic.write_bytes(args.output, text.encode("ascii", "backslashreplace"))
    _print(rows, accuracy, table)
    flash, ram = sizes(network)
    print(f"Weights: {flash:,} bytes of flash; sums and activations: {ram:,} bytes of RAM")
    print(f"Wrote {args.output}")
    if args.report is not None:
        from commands.lowbit.report import Report, first_layer_tiles, write_report

        tiles = first_layer_tiles(trained)
        report = Report(Path(args.input).name, rows, (flash, ram), tiles, accuracy, table)
        write_report(Path(args.report), report)
        print(f"Wrote {args.report}")
    return 0


def _parse(words: Sequence[str]) -> argparse.Namespace:
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
    try:
        args.encoding = known_encodings(args.encoding) if args.encoding else ()
    except ValueError:
        parser.error(f"argument --encoding: known are {', '.join(ENCODINGS)}")
    return args


def _accuracies(
    trained: Trained, args: argparse.Namespace
) -> tuple[Rounded | None, tuple[Rounded, ...]]:
    """Return the accuracy as trained, and after rounding to ever fewer bits, as far as asked."""
    if args.data is None:
        return None, ()
    from commands.lowbit.data import pictures_of

    _, test, classes = pictures_of(args.dataset, args.data, training=False)
    if len(classes) != len(trained.classes):
        raise InputError(
            "E725", f"the network has {len(trained.classes)} classes, {args.dataset} has "
            f"{len(classes)}", "--dataset", "Name the data set that it was trained on.",
        )  # fmt: skip
    table = rounded_after_training(trained, test) if args.ptq_table else ()
    return correct_as_trained(trained, test), table


def _print(rows: Rows, accuracy: Rounded | None, table: tuple[Rounded, ...]) -> None:
    lines = [
        [row.name, row.encoding, row.weights, row.size_bytes, found.least, found.greatest,
         found.mean, found.deviation, found.entropy_bits, found.capacity_percent]
        for row in rows for found in (row.statistics,)
    ]  # fmt: skip
    print(tabulate(lines, _HEADS, "simple", floatfmt=".4g"))
    for row in rows:
        if row.filled:
            print(f"{row.name}: each row is filled up with {row.filled} codes to whole words; "
                  "inputs that do not exist count as zero")  # fmt: skip
    if table:
        lines = [["not rounded" if one.encoding == "None" else one.encoding, one.bits, one.correct,
                  one.percent] for one in table]  # fmt: skip
        heads = ["after training", "bits", "correct", "accuracy (%)"]
        print(tabulate(lines, heads, "simple", floatfmt=("", "g", "d", ".2f")))
    if accuracy is not None:
        print(f"Accuracy as trained: {accuracy.percent:.2f} % ({accuracy.correct:,} of "
              f"{accuracy.total:,})")  # fmt: skip
