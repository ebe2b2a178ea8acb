"""What quantize.py does: read a checkpoint, quantize it, write the integers and report on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ai8xtools.checkpoint import (
    Checkpoint,
    read_checkpoint,
    twin_of,
    write_checkpoint,
    write_safetensors,
    write_with_twin,
)
from ai8xtools.checkpoint.atomic import atomic_file
from ai8xtools.checkpoint.safetensors import SUFFIX
from ai8xtools.commands.following import deploy_it
from ai8xtools.commands.loader.recorded import KEY as OWN_DATA
from ai8xtools.commands.quantize.arguments import (
    ALIASES,
    DEFAULT_DEVIATIONS,
    DEFAULT_SCALE,
    QuantizeOptions,
)
from ai8xtools.commands.quantize.costs import tell_costs
from ai8xtools.commands.same_files import refuse_overwriting
from ai8xtools.diagnostics import (
    Diagnostic,
    DiagnosticError,
    Place,
    Severity,
    print_diagnostics,
)
from ai8xtools.diagnostics.errors import InputError
from ai8xtools.diagnostics.options import no_effect
from ai8xtools.quantization import (
    ClipMethod,
    QuantizationOptions,
    Quantized,
    bits_by_layer,
    fuse_batchnorm,
    normalized_layers,
    quantize_checkpoint,
    refuse_foreign,
    report_line,
    report_table,
    weight_names,
)


def quantize(options: QuantizeOptions) -> int:
    """Read the input, quantize it and write the output, completely or not at all; return 0."""
    refuse_overwriting(
        [(path, path) for path in written(options)], (options.network.input, options.config_file)
    )
    if is_onnx(options):
        network = replace(options.network, model=options.network.input, importing=True)
        options = replace(options, network=network)
    print(f"Configuring device: {options.network.chip.name}")
    numeric = quantization_options(options)
    print(f"Converting checkpoint file {options.network.input} to {options.output}")
    checkpoint = read_trained(options)
    if options.verbose:
        print("\nModel keys (state_dict):\n" + ", ".join(checkpoint.state_dict))
    try:
        refuse_foreign(checkpoint, "be quantized")
        checkpoint = without_batchnorm(checkpoint, options.transposed, keep=options.keep_batchnorm)
        search = None
        if options.search is not None and options.calibration is not None:
            from ai8xtools.commands.quantize.searcher import search_bits  # here: it needs torch

            calibration, *search = search_bits(
                checkpoint, options.network, options.calibration, options.search
            )
            numeric = replace(numeric, calibration=calibration)
        elif options.calibration is not None:
            from ai8xtools.commands.quantize.calibrator import (
                choose_integers,  # here: it needs torch
            )

            bits = bits_by_layer(checkpoint, numeric)
            calibration = choose_integers(checkpoint, bits, options.network, options.calibration)
            numeric = replace(numeric, calibration=calibration)
        if numeric.calibration is not None:
            checkpoint.state_dict.update(numeric.calibration.constant)
        quantized = quantize_checkpoint(checkpoint, numeric)
        report = None
        if options.report is not None:
            from ai8xtools.commands.quantize.error_report import (
                make_report,  # here: it may need torch
            )

            report = make_report(checkpoint, quantized, options, options.report, search)
    except InputError as exc:
        exc.place = exc.place or options.network.input
        raise
    place = Place(file=options.network.input)
    print_diagnostics(
        Diagnostic("W755", warning, place, severity=Severity.WARNING)
        for warning in quantized.warnings
    )
    if numeric.layer_bits is not None and options.config_file is not None:
        warn_about_counts(weight_names(checkpoint), len(numeric.layer_bits), options.config_file)
    if options.verbose:
        print_report(quantized)
    if report is None or options.report is None:
        write_output(options, quantized.checkpoint)
    else:
        with atomic_file(options.report.path) as file:  # complete only with the output
            file.write(report.encode())
            write_output(options, quantized.checkpoint)
    tell_costs(options, quantized.checkpoint, options.network.model or checkpoint.arch)
    suggest_project(options, options.network.model or checkpoint.arch)
    if OWN_DATA in checkpoint.extras:
        from ai8xtools.commands.quantize.accuracy import (
            accuracy_lines,  # here: few checkpoints need it
        )

        for line in accuracy_lines(checkpoint.extras, options.network.input, numeric):
            print(line)
    return 0


def suggest_project(options: QuantizeOptions, model: str | None) -> None:
    """Keep the command that makes a project of the result."""
    words = ["--model", model] if model else []
    samples = options.calibration and options.calibration.dataset
    if samples and ":" not in samples and "." not in samples:
        words += ["--dataset", samples]
    deploy_it(options.network.input, options.output, options.network.chip.name, *words)


def is_onnx(options: QuantizeOptions) -> bool:
    """Return whether the network is an ONNX graph, which is imported."""
    return options.network.input.lower().endswith(".onnx")


def write_output(options: QuantizeOptions, checkpoint: Checkpoint) -> None:
    """Write the quantized checkpoint in the format, or in both, that the options ask for."""
    if len(outputs(options)) > 1:
        write_with_twin(options.output, checkpoint)
    elif options.output.endswith(SUFFIX):
        write_safetensors(options.output, checkpoint)
    else:
        write_checkpoint(options.output, checkpoint)


def read_trained(options: QuantizeOptions) -> Checkpoint:
    """Return the checkpoint to quantize; of an ordinary network what the import makes of it."""
    if is_onnx(options) and options.calibration is None:
        raise InputError(
            "E714", "an ONNX graph has no layers of ai8x whose weights could be quantized without "
            "samples", options.network.input,
            "Add --calibrate DATASET; a graph of integers goes to ai8xize.py --model directly.",
        )  # fmt: skip
    if options.network.importing and options.calibration is not None:
        from ai8xtools.commands.quantize.importer import imported_checkpoint  # here: it needs torch

        return imported_checkpoint(options.network, options.calibration)
    return read_checkpoint(options.network.input)


def without_batchnorm(
    checkpoint: Checkpoint, transposed: Sequence[str] = (), *, keep: bool = False
) -> Checkpoint:
    """Fold batch normalization into weights and biases, unless it is to stay or there is none."""
    layers = normalized_layers(checkpoint)
    if not layers or keep:
        if transposed:
            why = "on a checkpoint without batch normalization to fold"
            print_diagnostics([no_effect("--transposed", why)])
        return checkpoint
    print(f"Folding batch normalization into weights and biases: {', '.join(layers)}")
    return fuse_batchnorm(checkpoint, None, transposed)


def outputs(options: QuantizeOptions) -> list[str]:
    """Return the files to write: OUTPUT, and its twin beside it with --safetensors."""
    if not options.safetensors or options.output.endswith(SUFFIX):
        return [options.output]
    return [options.output, twin_of(options.output)]


def written(options: QuantizeOptions) -> list[str]:
    """Return all files to write."""
    files = outputs(options)
    if options.report is not None:
        files.append(options.report.path)
    if options.search is not None and options.search.policy is not None:
        files.append(options.search.policy)
    return files


def quantization_options(options: QuantizeOptions) -> QuantizationOptions:
    """Return what the options ask for, warning about defaults taken and options without effect."""
    method = clip_method(options.clip_method)
    parameters = {}
    for name, value, of, default in (
        ("scale", options.scale, ClipMethod.SCALE, DEFAULT_SCALE),
        ("stddev", options.stddev, ClipMethod.STDDEV, DEFAULT_DEVIATIONS),
    ):
        option = f"--{name}"
        if method is of and not value:
            message = f"not given, {default} is used for --clip-method {of}"
            warn("W751", message, Place(option=option))
        elif method is not of and value is not None:
            print_diagnostics([no_effect(option, f"without --clip-method {of}")])
        parameters[name] = value or default
    sampled = options.calibration or (options.report and options.report.samples)
    if options.network.model is not None and sampled is None:
        print_diagnostics([no_effect("--model", "without --calibrate")])
    return QuantizationOptions(
        clip_method=method,
        default_bits=options.default_bits,
        layer_bits=None if options.config_file is None else description_bits(options.config_file),
        scale=parameters["scale"],
        stddev=parameters["stddev"],
    )


def clip_method(name: str | None) -> ClipMethod | None:
    """Return the method of this name, saying so where manuals use another."""
    if name in ALIASES:
        method = ALIASES[name]
        warn("N761", f"{name} is {method}", Place(option="--clip-method"), level=Severity.NOTICE)
        return method
    return None if name is None else ClipMethod(name)


def description_bits(path: str) -> list[int | None]:
    """Return the weight bits of each layer with weights of its own, None where left open."""
    from ai8xtools.synthesis.parse import parse_file
    from ai8xtools.synthesis.resolve.tensors import BINARY, takes_weights

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
        "W757",
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
