"""quantize.py --device BITNET: a trained low-bit network becomes a header with packed weights.

Source: docs/low-bit.md, "The header" and "The report".
"""

from __future__ import annotations

from pathlib import Path

from ai8xtools.checkpoint import atomic
from ai8xtools.commands.following import deploy_it
from ai8xtools.commands.loader.pages import report_files, write_pages
from ai8xtools.commands.lowbit.arguments.quantizer import QuantizeOptions
from ai8xtools.commands.lowbit.compare import Agreement, compare
from ai8xtools.commands.lowbit.convert import Rows, network_of
from ai8xtools.commands.lowbit.files import Trained
from ai8xtools.commands.lowbit.foreign import read_any
from ai8xtools.commands.lowbit.post import Rounded, correct_as_trained, rounded_after_training
from ai8xtools.commands.same_files import refuse_overwriting
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.reading import tables
from ai8xtools.software.lowbit.bounds import prove_sums
from ai8xtools.software.lowbit.emit import header, sizes
from ai8xtools.software.lowbit.network import LowBitNetwork
from ai8xtools.values import frozen

_HEADS = ["layer", "encoding", "weights", "bytes", "least", "greatest", "mean", "deviation",
          "entropy (bits)", "capacity (%)"]  # fmt: skip


def quantize_lowbit(args: QuantizeOptions) -> int:
    """Write the header, print the statistics and write a report; return the exit status."""
    pages = () if args.report is None else report_files(args.report)
    refuse_overwriting(
        [(args.output, args.output), *(("--report", str(path)) for path in pages)],
        (args.input, args.policy),
    )
    for path in pages:
        atomic.refuse_other_than_file(path)
    trained = read_any(args.input, args.policy, args.encodings)
    network, rows = network_of(trained, args.input)
    prove_sums(network)
    measured = _measured(trained, network, args)
    text = header(network, f"quantize.py {Path(args.input).name}")
    report = None
    if args.report is not None:
        from ai8xtools.commands.lowbit.report import Report, first_layer_tiles, report_of

        tiles = first_layer_tiles(trained)
        name = Path(args.input).name
        report = report_of(
            Report(name, rows, sizes(network), tiles, measured.trained, measured.table,
                   measured.agreement)
        )  # fmt: skip
    atomic.write_bytes(args.output, text.encode("ascii", "backslashreplace"))
    if args.report is not None and report is not None:
        write_pages(args.report, *report)
    _print(rows, measured)
    flash, ram = sizes(network)
    print(f"Weights: {flash:,} bytes of flash; sums and activations: {ram:,} bytes of RAM")
    deploy_it(args.input, args.output, "BITNET", "--sample-input", "SAMPLES.npy")
    for written in (args.output, args.report):
        if written is not None:
            print(f"Wrote {written}")
    return 0


@frozen
class _Measured:
    """Accuracy as trained, after rounding to fewer bits, and of the engine, as far as asked."""

    trained: Rounded | None = None
    table: tuple[Rounded, ...] = ()
    agreement: Agreement | None = None


def _measured(trained: Trained, network: LowBitNetwork, args: QuantizeOptions) -> _Measured:
    if args.data is None:
        return _Measured()
    from ai8xtools.commands.lowbit.data import pictures_of

    _, test, classes = pictures_of(args.dataset, args.data, training=False)
    if len(classes) != len(trained.classes):
        raise InputError(
            "E630", f"the network has {len(trained.classes)} classes, {args.dataset} has "
            f"{len(classes)}", "--dataset", "Name the data set that it was trained on.",
        )  # fmt: skip
    return _Measured(
        correct_as_trained(trained, test),
        rounded_after_training(trained, test) if args.ptq_table else (),
        compare(trained, network, test, args.compare_c),
    )


def _print(rows: Rows, measured: _Measured) -> None:
    lines = [
        [row.name, row.encoding, row.weights, row.size_bytes, stats.least, stats.greatest,
         stats.mean, stats.deviation, stats.entropy_bits, stats.capacity_percent]
        for row in rows for stats in (row.statistics,)
    ]  # fmt: skip
    print(tables.table(lines, _HEADS, numbers=True, floatfmt=".4g"))
    for row in rows:
        if row.filled:
            print(f"{row.name}: each row is filled up with {row.filled} codes to whole words; "
                  "inputs that do not exist count as zero")  # fmt: skip
    if measured.table:
        lines = [["not rounded" if one.encoding == "None" else one.encoding, one.bits, one.correct,
                  one.percent] for one in measured.table]  # fmt: skip
        heads = ["after training", "bits", "correct", "accuracy (%)"]
        print(tables.table(lines, heads, numbers=True, floatfmt=("", "g", "d", ".2f")))
    accuracy, engine = measured.trained, measured.agreement
    if accuracy is not None:
        print(f"Accuracy as trained: {accuracy.percent:.2f} % ({accuracy.correct:,} of "
              f"{accuracy.total:,})")  # fmt: skip
    if engine is not None:
        print(f"Engine in Python: {engine.correct_in_python:,} right, {engine.differ_in_python:,} "
              "classes differ from those of training")  # fmt: skip
    if engine is not None and engine.correct_in_c is not None:
        print(f"Engine in C: {engine.correct_in_c:,} right, {engine.differ_in_c:,} classes differ "
              "from those of Python")  # fmt: skip
