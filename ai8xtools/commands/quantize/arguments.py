"""The command line of quantize.py."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from ai8xtools.checkpoint.safetensors import SUFFIX
from ai8xtools.commands.arguments import Parser, add_proof_option, add_transposed, chip
from ai8xtools.commands.targets import choices
from ai8xtools.commands.train.arguments.own_data import add_picture_options, picture_settings
from ai8xtools.quantization import ClipMethod
from ai8xtools.quantization.options import WEIGHT_BITS
from ai8xtools.values import frozen
from datasets.own.settings import OPEN, DataSettings
from device import Chip

DEFAULT_SCALE = 0.85
DEFAULT_DEVIATIONS = 2.0
DEFAULT_SAMPLES = 512
DEFAULT_BATCH = 64
ALIASES = {"AVG": ClipMethod.AVGMAX}
"""Names that manuals give to methods."""


@frozen
class NetworkOptions:
    """A trained network: its checkpoint, its name if the file does not say it, and the chip.

    With `importing` it is an ordinary one of PyTorch; with `prove` what is made of it is compared.
    """

    input: str
    model: str | None
    chip: Chip
    importing: bool = False
    prove: bool = True


@frozen
class CalibrationOptions:
    """Samples by which integers are chosen, and how many.

    `dataset` is the name of a data set, KIND:PATH or an array FILE.npy or FILE.npz, `folder`
    that of the data sets. `average_rounding` is how the chip is told to pool: averages are rounded,
    not truncated.
    `own` is how the user's own pictures become samples.
    """

    dataset: str
    folder: str
    samples: int
    batch_size: int
    average_rounding: bool = False
    own: DataSettings = OPEN


@frozen
class SearchOptions:
    """What --search-bits may take: bytes of weights, a share like 40%, or FITS; and a file for the
    QAT policy."""

    budget: str
    policy: str | None


@frozen
class ReportOptions:
    """The file of --report, and the samples on which outputs are compared, None: on none."""

    path: str
    samples: CalibrationOptions | None


@frozen
class QuantizeOptions:
    """The network, files, and how integers are chosen; None where it is left open.

    `config_file` is a network description whose `quantization` keys count, `default_bits` the width
    where nothing else says one. `clip_method` is the name of a `ClipMethod` or of ALIASES, `scale`
    and `stddev` are parameters of two of them. `transposed` names transposed convolutions whose
    shape does not tell.
    `search` looks for the widths of weights within a budget, `report` writes errors by layer.
    `safetensors` writes the output in this format as well.
    """

    network: NetworkOptions
    output: str
    config_file: str | None
    default_bits: int | None
    clip_method: str | None
    scale: float | None
    stddev: float | None
    keep_batchnorm: bool
    transposed: tuple[str, ...]
    calibration: CalibrationOptions | None
    safetensors: bool
    verbose: bool
    search: SearchOptions | None = None
    report: ReportOptions | None = None


def parse(words: Sequence[str] | None = None) -> QuantizeOptions:
    """Return what the command line asks for; wrong usage ends the program with status 2."""
    parser = arguments()
    args = parser.parse_args(words)
    if args.calibrate is not None and args.clip_method is not None:
        parser.error("argument --calibrate: not allowed with argument --clip-method")
    if args.importing and (args.model is None or args.calibrate is None):
        parser.error("argument --import: add --model FILE:CLASS and --calibrate DATASET")
    if args.search_bits and (args.calibrate is None or args.budget is None):
        parser.error("argument --search-bits: add --calibrate DATASET and --budget BYTES")
    if not args.search_bits and (args.budget or args.write_policy):
        parser.error("argument --budget, --write-policy: add --search-bits")
    if args.report_data is not None and args.report is None:
        parser.error("argument --report-data: add --report FILE")
    if args.report_data is not None and args.calibrate is not None:
        parser.error("argument --report-data: the samples of --calibrate serve; leave out one")
    if args.calibrate is None and args.report_data is None and picture_settings(args) != OPEN:
        parser.error(
            "argument --resize, --stretch, --grayscale, --fold: add --calibrate folder:DIR"
        )
    calibration = samples_of(args, args.calibrate, rounding=args.avg_pool_rounding)
    return QuantizeOptions(
        network=NetworkOptions(
            args.input, args.model, args.device, args.importing, args.prove_import
        ),
        output=args.output,
        config_file=args.config_file,
        default_bits=args.qat_weight_bits,
        clip_method=args.clip_method,
        scale=args.scale,
        stddev=args.stddev,
        keep_batchnorm=args.keep_batchnorm,
        transposed=tuple(args.transposed),
        calibration=calibration,
        safetensors=args.safetensors,
        verbose=args.verbose,
        search=SearchOptions(args.budget, args.write_policy) if args.search_bits else None,
        report=ReportOptions(
            args.report,
            calibration or samples_of(args, args.report_data, rounding=args.avg_pool_rounding),
        )
        if args.report is not None
        else None,
    )


def samples_of(
    args: argparse.Namespace, dataset: str | None, *, rounding: bool = False
) -> CalibrationOptions | None:
    """Return the samples of a data set that the command line asks for, None for no data set."""
    if dataset is None:
        return None
    return CalibrationOptions(
        dataset, args.data, args.calibration_samples, args.batch_size, rounding,
        picture_settings(args),
    )  # fmt: skip


def arguments() -> Parser:
    """Return the parser of the command line."""
    parser = Parser(
        prog="quantize.py",
        description="Quantize a trained checkpoint: integer weights and biases, and an output "
        "shift for each layer.",
    )
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="checkpoint of the trained network, or an ONNX graph in floating point",
    )
    parser.add_argument(
        "output", metavar="OUTPUT", help=f"quantized checkpoint to write (.pth.tar or {SUFFIX})"
    )
    parser.add_argument(
        "--device", metavar="NAME", type=chip, required=True, help=choices("quantize.py")
    )
    parser.add_argument(
        "-c",
        "--config-file",
        metavar="S",
        help="network description, whose `quantization` keys give the weight bits",
    )
    parser.add_argument(
        "--qat-weight-bits",
        metavar="N",
        type=int,
        choices=WEIGHT_BITS,
        help="weight bits of layers for which nothing else specifies them (default: 8)",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="report on each tensor")
    parser.add_argument(
        "--safetensors", action="store_true", help=f"write OUTPUT as {SUFFIX} file beside it, too"
    )
    add_report_options(parser)
    add_range_options(parser)
    add_batchnorm_options(parser)
    add_calibration_options(parser)
    return parser


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """Add the report on errors by layer."""
    group = parser.add_argument_group("errors by layer")
    group.add_argument("--report", metavar="FILE",
        help="write the errors of quantization in weights, outputs and results: text, "
             ".json or .html")  # fmt: skip
    group.add_argument("--report-data", metavar="DATASET",
        help="data set on which the errors of outputs are measured (with --calibrate: "
             "that one); needs PyTorch")  # fmt: skip


def add_range_options(parser: argparse.ArgumentParser) -> None:
    """Add how a layer's range is found in networks that QAT has not prepared."""
    group = parser.add_argument_group("ranges, for networks trained without QAT")
    group.add_argument(
        "--clip-method",
        type=str.upper,
        choices=[*ALIASES, *map(str, ClipMethod)],
        help="how to find each layer's range (default: a power of two, as in QAT)",
    )
    group.add_argument(
        "--scale", metavar="F", type=float, help=f"factor of SCALE (default: {DEFAULT_SCALE})"
    )
    group.add_argument(
        "--stddev",
        metavar="F",
        type=float,
        help=f"number of standard deviations of STDDEV (default: {DEFAULT_DEVIATIONS})",
    )


def add_batchnorm_options(parser: argparse.ArgumentParser) -> None:
    """Add what happens to batch normalization that was not folded in training."""
    group = parser.add_argument_group("batch normalization; it is folded before quantization")
    group.add_argument(
        "--keep-batchnorm",
        action="store_true",
        help="leave batch normalization in place; `bn.weight` is then quantized like the weights "
        "of a layer",
    )
    add_transposed(group)


def add_sample_options(group: Any, *, required: bool = False) -> None:
    """Add the samples that integers are chosen by, and the network that computes them."""
    option = group.add_argument
    option("--calib", "--calibrate", dest="calibrate", metavar="DATASET", required=required,
           help="samples like those of the application: a data set, as with train.py, or FILE.npy "
           "or FILE.npz (numbers [sample, channel, row, column])")  # fmt: skip
    option("--data", metavar="DIR", default="data", help="folder of the data sets (default: data)")
    option("--model", metavar="NAME", help="network (default: what the file says), or "
           "FILE:CLASS (the file is executed)")  # fmt: skip
    option(
        "--calibration-samples",
        metavar="N",
        type=positive,
        default=DEFAULT_SAMPLES,
        help=f"samples of the training set (default: {DEFAULT_SAMPLES})",
    )
    option(
        "--batch-size",
        metavar="N",
        type=positive,
        default=DEFAULT_BATCH,
        help=f"samples computed at a time (default: {DEFAULT_BATCH})",
    )
    add_proof_option(option)
    add_picture_options(option)


def add_calibration_options(parser: argparse.ArgumentParser) -> None:
    """Add the choice of integers by what they do to samples; needs PyTorch."""
    group = parser.add_argument_group(
        "calibration, for networks trained without QAT",
        "Shifts and integers are chosen so that the output stays near that of the trained network.",
    )
    add_sample_options(group)
    group.add_argument("--import", dest="importing", action="store_true",
                       help="INPUT holds the weights of an ordinary PyTorch network: make an ai8x "
                       "network of it first")  # fmt: skip
    group.add_argument(
        "--avg-pool-rounding",
        action="store_true",
        help="round in average pooling instead of truncating",
    )
    group.add_argument("--search-bits", action="store_true",
        help="choose the bits of each layer, 8, 4, 2 or 1, by their effect on the "
             "results")  # fmt: skip
    group.add_argument("--budget", metavar="N", type=budget,
        help="size limit of the weights: bytes, a share of their size with 8 bits "
             "(40%%), or FITS: until the network fits the chip")  # fmt: skip
    group.add_argument("--write-policy", metavar="FILE",
                       help="write the chosen bits as a QAT policy (YAML)")  # fmt: skip


def budget(text: str) -> str:
    """Check a number of bytes, a percentage, or FITS for argparse."""
    number = text.removesuffix("%")
    share = number.replace(".", "", 1).isdecimal() and text.endswith("%")
    plain = text.isascii() and (number.isdecimal() or share)
    if text.upper() != "FITS" and not plain:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes, no share like 40%, "
                                         "and not FITS")  # fmt: skip
    return text.upper()


def positive(text: str) -> int:
    """Convert a number from 1 for argparse."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)
