"""What the options of ai8xize.py mean: they become one value, with the options of each stage.

Some change the network (`ResolveOptions`), some the words (`EncodeOptions`), some only the text
(`ProjectOptions`). `described` is for all targets, the rest for the accelerators.
Source: docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ai8xtools import __version__
from ai8xtools.commands.arguments import Parser, filled
from ai8xtools.commands.loader.arguments.parser import arguments
from ai8xtools.commands.loader.arguments.rtl_usage import (
    is_block_level,
    is_rtl,
    preloads_weights,
    rtl_usage,
    verify_usage,
)
from ai8xtools.commands.loader.options import LoaderOptions, ModelSource, Output
from ai8xtools.synthesis.emit import ProjectOptions
from ai8xtools.synthesis.layout import InputPort
from ai8xtools.synthesis.measured_energy import EnergyOptions
from ai8xtools.synthesis.options import (
    EncodeOptions,
    PlaceOptions,
    ResolveOptions,
    StreamOptions,
    SummaryOptions,
)
from ai8xtools.writing.folder import folder_name
from device import MAX78000, Chip


def parse(words: Sequence[str]) -> LoaderOptions:
    """Return what a command line for the accelerators asks for.

    Wrong usage ends the program with status 2.
    """
    parser = arguments()
    args = parser.parse_args(words)
    if args.config_file is None and args.model is None:
        parser.error("argument --checkpoint-file: networks of 16 or 8 bits run without the "
                     "accelerator: --device MCU or CMSIS-NN")  # fmt: skip
    options = described(parser, args, args.device or MAX78000, words)  # --fits does without
    project = replace(project_options(args, options.project), measured=_energy(parser, args))
    rtl = None
    if is_rtl(args):
        from ai8xtools.commands.loader.arguments.rtl_values import (
            rtl_options,  # most runs do without
        )

        rtl = rtl_options(args, project)
    return replace(
        options,
        resolve=replace(
            options.resolve,
            input_port=input_port(args),
            camera_format=args.input_csv_format if is_rtl(args) else None,
        ),
        encode=encode_options(args, options.encode),
        project=project,
        also=tuple(args.also),
        rtl=rtl,
        usage=(*rtl_usage(args), *verify_usage(args)),
    )


def _energy(parser: Parser, args: argparse.Namespace) -> EnergyOptions:
    """Return the options of energy; wrong usage ends the program with status 2."""
    if args.period is not None and args.fits is None and args.report is None:
        parser.error("argument --period: add --fits or --report")
    if args.measurements is None:
        return EnergyOptions(args.supply_voltage, args.period)
    if args.device is None:
        parser.error("argument --energy-calibration: add --device, the chip that was measured")
    from ai8xtools.commands.loader.measured_energy import read_measurements  # few have any

    measured = read_measurements(args.measurements)
    return EnergyOptions(args.supply_voltage, args.period, measured, args.device)


def described(
    parser: Parser, args: argparse.Namespace, chip: Chip, words: Sequence[str]
) -> LoaderOptions:
    """Return what the options mean that all targets have, for a chip.

    Wrong usage ends the program with status 2.
    """
    if args.model is not None and args.config_file is not None:
        parser.error("argument --model: takes the place of --config-file")
    for option, value in (("--dataset", args.dataset), ("--input-shape", args.input_shape)):
        if value is not None and args.model is None:
            parser.error(f"argument {option}: tells the input of a --model; descriptions have it")
    return LoaderOptions(
        config_file=args.config_file or "",
        model=model_source(args),
        chip=chip,
        test_dir=args.test_dir,
        resolve=filled(ResolveOptions(), args, waiving=_waiving(args)),
        encode=filled(
            EncodeOptions(
                filled(
                    PlaceOptions(),
                    args,
                    deduplicate=args.deduplicate and not args.weight_start,
                    stops_at_overlaps=not args.no_error_stop,
                    streams=filled(StreamOptions(), args),
                ),
                SummaryOptions(cross_check=args.debug),
            ),
            args,
        ),
        project=filled(
            ProjectOptions(
                name=args.prefix,
                folder=str(Path(args.test_dir, folder_name(args.prefix, args.test_dir))),
                command_line=shlex.join([parser.prog, *words]),
                tool_version=__version__,
            ),
            args,
            build=tuple(args.build),
            log_filename=args.log_filename if args.log else None,
        ),
        overwrite=args.overwrite,
        output=filled(Output(), args),
        silencing=_silencing(args),
    )


def model_source(args: argparse.Namespace) -> ModelSource | None:
    """Return the model that takes the place of a description."""
    if args.model is None:
        return None
    shape, frames = args.input_shape, None
    if shape is not None and len(shape) == 4:
        frames, *shape = shape
        shape = tuple(shape)
    return ModelSource(args.model, args.dataset, shape, frames, prove=args.prove_import)


def _silencing(args: argparse.Namespace) -> frozenset[str]:
    """Return the options given that keep some messages from being shown."""
    options = {
        "--no-warn-zero": args.no_warn_zero,
        "--ignore-energy-warning": args.ignore_energy_warning,
    }
    return frozenset(option for option, is_set in options.items() if is_set)


def _waiving(args: argparse.Namespace) -> frozenset[str]:
    """Return the options given that turn violations of constraints into warnings."""
    options = {
        "--ignore-bias-groups": args.ignore_bias_groups,
        "--ignore-hw-limits": args.ignore_hw_limits,
    }
    return frozenset(option for option, is_set in options.items() if is_set)


def input_port(args: argparse.Namespace) -> InputPort:
    """Return how the sample reaches the network."""
    if args.fast_fifo_quad:
        return InputPort.FAST_FIFO_QUAD
    if args.fast_fifo:
        return InputPort.FAST_FIFO
    return InputPort.FIFO if args.fifo else InputPort.MEMORY


def encode_options(args: argparse.Namespace, options: EncodeOptions) -> EncodeOptions:
    """Return the options that change words, with what follows from several of them."""
    explained = args.configuration is not None or args.report is not None
    return replace(
        options,
        express=uses_express(args),
        place=replace(options.place, explain=explained),
        telling=replace(
            options.telling,
            keep_layer_logs=args.verbose,
            keep_layer_data=args.log_intermediate or args.log_pooling or args.debug_computation,
            keep_pass_sums=args.debug_computation,
            latency_terms=args.debug_latency,
        ),
    )


def uses_express(args: argparse.Namespace) -> bool:
    """Whether weights are transferred packed; without a core, or preloaded, they cannot be."""
    if is_block_level(args):
        return False
    return not preloads_weights(args) if args.express is None else args.express


def project_options(args: argparse.Namespace, options: ProjectOptions) -> ProjectOptions:
    """Return the options of the text, with what follows from several of them."""
    implying = (args.riscv_cache, args.riscv_flash, args.riscv_debug, args.riscv_exclusive)
    return replace(
        options,
        riscv=args.riscv or any(implying),
        riscv_cache=args.riscv_cache is not False,
        fast_fifo=input_port(args).is_fast,
        c_filename=args.c_filename or "main",
        sample_output_filename=args.sample_output_filename or "sampleoutput.h",
    )
