"""Quantize a trained checkpoint: integer weights and biases, and an output shift for each layer."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from checkpoint import Checkpoint, read_checkpoint, twin_of, write_checkpoint, write_safetensors
from checkpoint.safetensors import SUFFIX
from commands.arguments import Parser, chip, refuse_same_file
from device import names_where
from diagnostics import Diagnostic, DiagnosticError, Place, Severity, print_diagnostics
from diagnostics.errors import InputError
from quantization import (
    ClipMethod,
    QuantizationOptions,
    Quantized,
    bits_by_layer,
    fuse_batchnorm,
    normalized_layers,
    quantize_checkpoint,
    report_line,
    report_table,
    weight_names,
)
from quantization.options import WEIGHT_BITS

DEFAULT_SCALE = 0.85
DEFAULT_DEVIATIONS = 2.0
DEFAULT_SAMPLES = 512
DEFAULT_BATCH = 64
ALIASES = {"AVG": ClipMethod.AVGMAX}
"""Names that manuals give to methods."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read INPUT, quantize it and write OUTPUT; the output appears completely or not at all."""
    args = parse_arguments(arguments)
    refuse_same_file(args.input, args.output)
    print(f"Configuring device: {args.device.name}")
    options = quantization_options(args)
    print(f"Converting checkpoint file {args.input} to {args.output}")
    checkpoint = read_checkpoint(args.input)
    if args.verbose:
        print("\nModel keys (state_dict):\n" + ", ".join(checkpoint.state_dict))
    try:
        checkpoint = without_batchnorm(checkpoint, args)
        if args.calibrate is not None:
            from commands.quantize.calibrator import choose_integers  # here: it needs torch

            bits = bits_by_layer(checkpoint, options)
            options = replace(options, calibration=choose_integers(checkpoint, bits, args))
        quantized = quantize_checkpoint(checkpoint, options)
    except InputError as exc:
        exc.place = exc.place or args.input
        raise
    for warning in quantized.warnings:
        warn("W705", warning, Place(file=args.input))
    if options.layer_bits is not None:
        warn_about_counts(weight_names(checkpoint), len(options.layer_bits), args.config_file)
    if args.verbose:
        print_report(quantized)
    for path in outputs(args):
        write = write_safetensors if path.endswith(SUFFIX) else write_checkpoint
        write(path, quantized.checkpoint)


def without_batchnorm(checkpoint: Checkpoint, args: argparse.Namespace) -> Checkpoint:
    """Fold batch normalization into weights and biases, unless it is to stay or there is none."""
    layers = normalized_layers(checkpoint)
    if not layers or args.keep_batchnorm:
        if args.transposed:
            warn("W702", "has no effect on a checkpoint without batch normalization to fold",
                 Place(option="--transposed"))  # fmt: skip
        return checkpoint
    print(f"Folding batch normalization into weights and biases: {', '.join(layers)}")
    return fuse_batchnorm(checkpoint, None, args.transposed)


def outputs(args: argparse.Namespace) -> list[str]:
    """Return the files to write: OUTPUT, and its twin beside it with --safetensors."""
    if not args.safetensors or args.output.endswith(SUFFIX):
        return [args.output]
    twin = twin_of(args.output)
    refuse_same_file(args.input, twin)
    return [args.output, twin]


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options; argparse ends the program with status 2 on mistakes."""
    parser = Parser(description=__doc__)
    parser.add_argument("input", metavar="INPUT", help="checkpoint of the trained network")
    parser.add_argument(
        "output", metavar="OUTPUT", help=f"quantized checkpoint to write (.pth.tar or {SUFFIX})"
    )
    parser.add_argument("--device", metavar="N", type=chip, required=True, help=names_where())
    parser.add_argument(
        "-c",
        "--config-file",
        metavar="S",
        help="network description; its `quantization` keys count",
    )
    parser.add_argument(
        "--qat-weight-bits",
        metavar="N",
        type=int,
        choices=WEIGHT_BITS,
        help="weight bits of layers that nothing else says (default: 8)",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="report on each tensor")
    parser.add_argument(
        "--safetensors", action="store_true", help=f"write OUTPUT as {SUFFIX} file beside it, too"
    )
    add_range_options(parser)
    add_batchnorm_options(parser)
    add_calibration_options(parser)
    args = parser.parse_args(arguments)
    if args.calibrate is not None and args.clip_method is not None:
        parser.error("argument --calibrate: not allowed with argument --clip-method")
    return args


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
        help="leave it; `bn.weight` is then quantized like the weights of a layer",
    )
    group.add_argument(
        "--transposed",
        metavar="LAYER",
        nargs="+",
        default=(),
        help="transposed convolutions with as many input as output channels, which their shape "
        "does not tell",
    )


def add_calibration_options(parser: argparse.ArgumentParser) -> None:
    """Add the choice of integers by what they do to samples; needs PyTorch."""
    group = parser.add_argument_group(
        "calibration, for networks trained without QAT",
        "Shifts and integers are chosen so that the output stays near that of the trained network.",
    )
    group.add_argument("--calibrate", metavar="DATASET", help="data set, as with train.py")
    group.add_argument(
        "--data", metavar="DIR", default="data", help="folder of the data sets (default: data)"
    )
    group.add_argument("--model", metavar="NAME", help="network (default: what the file says)")
    group.add_argument(
        "--calibration-samples",
        metavar="N",
        type=positive,
        default=DEFAULT_SAMPLES,
        help=f"samples of the training set (default: {DEFAULT_SAMPLES})",
    )
    group.add_argument(
        "--batch-size",
        metavar="N",
        type=positive,
        default=DEFAULT_BATCH,
        help=f"samples computed at a time (default: {DEFAULT_BATCH})",
    )
    group.add_argument(
        "--avg-pool-rounding", action="store_true", help="average pooling rounds, not truncates"
    )


def positive(text: str) -> int:
    """Convert a number from 1 for argparse."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def quantization_options(args: argparse.Namespace) -> QuantizationOptions:
    """Return what the options ask for, warning about defaults taken and options without effect."""
    method = clip_method(args.clip_method)
    parameters = {}
    for name, of, default in (
        ("scale", ClipMethod.SCALE, DEFAULT_SCALE),
        ("stddev", ClipMethod.STDDEV, DEFAULT_DEVIATIONS),
    ):
        given = getattr(args, name)
        option = Place(option=f"--{name}")
        if method is of and not given:
            warn("W701", f"not given, {default} is used for --clip-method {of}", option)
        elif method is not of and given is not None:
            warn("W702", f"has no effect without --clip-method {of}", option)
        parameters[name] = given or default
    if args.model is not None and args.calibrate is None:
        warn("W702", "has no effect without --calibrate", Place(option="--model"))
    return QuantizationOptions(
        clip_method=method,
        default_bits=args.qat_weight_bits,
        layer_bits=None if args.config_file is None else description_bits(args.config_file),
        scale=parameters["scale"],
        stddev=parameters["stddev"],
    )


def clip_method(name: str | None) -> ClipMethod | None:
    """Return the method of this name, saying so where manuals use another."""
    if name in ALIASES:
        method = ALIASES[name]
        warn("N711", f"{name} is {method}", Place(option="--clip-method"), level=Severity.NOTICE)
        return method
    return None if name is None else ClipMethod(name)


def description_bits(path: str) -> list[int | None]:
    """Return the weight bits of each layer with weights of its own, None where left open."""
    from synthesis.parse import parse_file
    from synthesis.resolve.tensors import BINARY, takes_weights

    print(f"Reading {path} to configure network...")
    layers = [layer for layer in parse_file(path).layers if takes_weights(layer)]
    problems = [
        layer.error(
            "E701",
            "binary weights cannot be made by rounding; possible are 1, 2, 4 and 8 bits",
            "quantization",
        )
        for layer in layers
        if layer.get("quantization") == BINARY
    ]
    if problems:
        raise DiagnosticError(problems)
    return [layer.get("quantization") for layer in layers]


def warn_about_counts(weights: Sequence[str], described: int, path: str) -> None:
    """Warn if the description has more or fewer layers with weights than the checkpoint."""
    if described == len(weights):
        return
    if described < len(weights):
        effect = f"left as they are: {', '.join(weights[described:])}"
    else:
        effect = f"the last {described - len(weights)} of the description are not used"
    warn(
        "W707",
        f"layers with weights in the description: {described}, in the checkpoint: {len(weights)}; "
        f"{effect}",
        Place(file=path),
        "Check that the description belongs to the checkpoint.",
    )


def print_report(quantized: Quantized) -> None:
    """Print a line per tensor for scripts and a table for people."""
    for tensor in quantized.tensors:
        print(report_line(tensor))
    print("\n" + report_table(quantized.tensors))


def warn(
    code: str,
    message: str,
    place: Place,
    remedy: str | None = None,
    level: Severity = Severity.WARNING,
) -> None:
    """Print a warning or notice on standard error."""
    print_diagnostics([Diagnostic(code, message, place, remedy, level)])
