"""Quantize a trained checkpoint: integer weights and biases, and an output shift for each layer."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from checkpoint import read_checkpoint, write_checkpoint
from checkpoint.errors import InputError
from diagnostics import Diagnostic, DiagnosticError, Place, Severity, print_diagnostics
from quantization import (
    ClipMethod,
    QuantizationOptions,
    Quantized,
    quantize_checkpoint,
    report_line,
    report_table,
    weight_names,
)
from quantization.options import WEIGHT_BITS
from scripts.arguments import chip, refuse_same_file

DEFAULT_SCALE = 0.85
DEFAULT_DEVIATIONS = 2.0


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
    write_checkpoint(args.output, quantized.checkpoint)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options; argparse ends the program with status 2 on mistakes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", metavar="INPUT", help="checkpoint of the trained network")
    parser.add_argument("output", metavar="OUTPUT", help="quantized checkpoint to write")
    parser.add_argument(
        "--device", metavar="N", type=chip, required=True, help="MAX78000 or MAX78002"
    )
    parser.add_argument(
        "-c",
        "--config-file",
        metavar="S",
        help="network description; its `quantization` keys count",
    )
    parser.add_argument(
        "--clip-method",
        choices=[str(method) for method in ClipMethod],
        help="how to find each layer's range (default: a power of two, as in QAT)",
    )
    parser.add_argument(
        "--scale", metavar="F", type=float, help=f"factor of SCALE (default: {DEFAULT_SCALE})"
    )
    parser.add_argument(
        "--stddev",
        metavar="F",
        type=float,
        help=f"number of standard deviations of STDDEV (default: {DEFAULT_DEVIATIONS})",
    )
    parser.add_argument(
        "--qat-weight-bits",
        metavar="N",
        type=int,
        choices=WEIGHT_BITS,
        help="weight bits of layers that nothing else says (default: 8)",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="report on each tensor")
    return parser.parse_args(arguments)


def quantization_options(args: argparse.Namespace) -> QuantizationOptions:
    """Return what the options ask for, warning about defaults taken and options without effect."""
    method = None if args.clip_method is None else ClipMethod(args.clip_method)
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
    return QuantizationOptions(
        clip_method=method,
        default_bits=args.qat_weight_bits,
        layer_bits=None if args.config_file is None else description_bits(args.config_file),
        **parameters,
    )


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


def warn(code: str, message: str, place: Place, remedy: str | None = None) -> None:
    """Print a warning on standard error."""
    print_diagnostics([Diagnostic(code, message, place, remedy, Severity.WARNING)])
