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
from ai8xtools.commands.arguments import Parser
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
    project = project_options(args, options.project)
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
            input_split=args.input_split,
            camera_format=args.input_csv_format if is_rtl(args) else None,
        ),
        encode=encode_options(args, options.encode),
        project=project,
        rtl=rtl,
        usage=(*rtl_usage(args), *verify_usage(args)),
        output=replace(
            options.output,
            verify=args.verify,
            checkpoint_table=args.display_checkpoint,
            verify_project=args.verify_project,
            configuration=args.write_config,
            strict=args.strict,
        ),
    )


def described(
    parser: Parser, args: argparse.Namespace, chip: Chip, words: Sequence[str]
) -> LoaderOptions:
    """Return what the options mean that all targets have, for a chip.

    Wrong usage ends the program with status 2.
    """
    if args.model is not None and args.config_file is not None:
        parser.error("argument --model: takes the place of --config-file")
    for option, given in (("--dataset", args.dataset), ("--input-shape", args.input_shape)):
        if given is not None and args.model is None:
            parser.error(f"argument {option}: tells the input of a model, add --model")
    return LoaderOptions(
        config_file=args.config_file or "",
        model=model_source(args),
        chip=chip,
        test_dir=args.test_dir,
        resolve=network_options(args),
        encode=EncodeOptions(
            place=PlaceOptions(
                weight_start=args.weight_start,
                deduplicate=args.deduplicate and not args.weight_start,
                overlap_data=args.overlap_data,
                stops_at_overlaps=not args.no_error_stop,
            ),
            telling=SummaryOptions(cross_check=args.debug),
            average_rounding=args.avg_pool_rounding,
        ),
        project=ProjectOptions(
            name=args.prefix,
            folder=str(Path(args.test_dir, folder_name(args.prefix, args.test_dir))),
            command_line=shlex.join([parser.prog, *words]),
            tool_version=__version__,
            log_filename=args.log_filename if args.log else None,
            verbose=args.verbose,
        ),
        overwrite=args.overwrite,
        output=Output(args.report, args.check_only, fits=args.fits),
        silencing=_silencing(args),
    )


def model_source(args: argparse.Namespace) -> ModelSource | None:
    """Return the model that takes the place of a description."""
    if args.model is None:
        return None
    shape = args.input_shape
    if shape is not None and len(shape) == 4:
        return ModelSource(args.model, args.dataset, shape[1:], shape[0])
    return ModelSource(args.model, args.dataset, shape)


def _silencing(args: argparse.Namespace) -> frozenset[str]:
    """Return the options given that keep some messages from being shown."""
    given = {
        "--no-warn-zero": args.no_warn_zero,
        "--ignore-energy-warning": args.ignore_energy_warning,
    }
    return frozenset(option for option, wanted in given.items() if wanted)


def network_options(args: argparse.Namespace) -> ResolveOptions:
    """Return the options that change what the network is."""
    return ResolveOptions(
        sample_input=args.sample_input,
        weight_input=args.weight_input,
        bias_input=args.bias_input,
        checkpoint_file=args.checkpoint_file,
        skip_checkpoint_layers=args.skip_checkpoint_layers,
        stop_after=args.stop_after,
        no_bias=args.no_bias,
        ignore_bn=args.ignore_bn,
        ignore_activation=args.ignore_activation,
        input_offset=args.input_offset,
        output_width=args.output_width,
        ignore_streaming=args.ignore_streaming,
        allow_streaming=args.allow_streaming,
        streaming_layers=args.streaming_layers,
        read_ahead=args.read_ahead,
        calcx4=args.calcx4,
        start_layer=args.start_layer,
        synthesize_input=args.synthesize_input,
        synthesize_words=args.synthesize_words,
        skip_yaml_layers=args.skip_yaml_layers,
        reshape_inputs=args.reshape_inputs,
        waiving=_waiving(args),
    )


def _waiving(args: argparse.Namespace) -> frozenset[str]:
    """Return the options given that turn violations of constraints into warnings."""
    given = {
        "--ignore-bias-groups": args.ignore_bias_groups,
        "--ignore-hw-limits": args.ignore_hw_limits,
    }
    return frozenset(option for option, wanted in given.items() if wanted)


def input_port(args: argparse.Namespace) -> InputPort:
    """Return how the sample reaches the network."""
    if args.fast_fifo_quad:
        return InputPort.FAST_FIFO_QUAD
    if args.fast_fifo:
        return InputPort.FAST_FIFO
    return InputPort.FIFO if args.fifo else InputPort.MEMORY


def encode_options(args: argparse.Namespace, known: EncodeOptions) -> EncodeOptions:
    """Return the options that change words."""
    streams = StreamOptions(
        override_start=args.override_start,
        override_rollover=args.override_rollover,
        override_delta1=args.override_delta1,
        override_delta2=args.override_delta2,
        increase_start=args.increase_start,
        increase_delta1=args.increase_delta1,
        increase_delta2=args.increase_delta2,
        pipeline=args.pipeline,
    )
    return replace(
        known,
        place=replace(
            known.place,
            repeat_layers=args.repeat_layers,
            explain=args.write_config is not None or args.report is not None,
            old_kernel_loader=args.old_kernel_loader,
            streams=streams,
        ),
        telling=replace(
            known.telling,
            keep_layer_logs=args.verbose,
            keep_layer_data=args.log_intermediate or args.log_pooling or args.debug_computation,
            keep_pass_sums=args.debug_computation,
            latency_terms=args.debug_latency,
        ),
        apb_base=args.apb_base,
        express=uses_express(args),
        ready_select=args.ready_sel,
        ready_select_aon=args.ready_sel_aon,
        simple_1bit=args.simple1b,
        external_ready=args.ext_rdy,
        powerdown=args.powerdown,
        init_tram=args.init_tram,
        zero_sram=args.zero_sram,
        zero_unused=args.zero_unused,
        write_zero_registers=args.write_zero_registers,
        fixed_input=args.fixed_input,
        clock_divider=args.clock_divider,
        switch_delay_ms=args.switch_delay,
        ready_select_fifo=args.ready_sel_fifo,
        fifo_go=args.fifo_go,
        pll=args.pll,
        max_speed=args.max_speed,
        one_shot=args.one_shot,
        link_layer=args.link_layer,
        snoop_loop=args.snoop_loop,
        check_snoop=args.debug_snoop,
    )


def uses_express(args: argparse.Namespace) -> bool:
    """Whether weights are transferred packed; without a core, or preloaded, they cannot be."""
    if is_block_level(args):
        return False
    return not preloads_weights(args) if args.express is None else args.express


def project_options(args: argparse.Namespace, known: ProjectOptions) -> ProjectOptions:
    """Return the options that change only the text of the project."""
    names = (
        "api_filename", "weight_filename", "sample_filename", "sample_numpy_filename",
        "softmax", "unload", "scale_output", "kat",
        "max_checklines", "fixed_input", "unroll_wide", "unroll_8bit", "timer", "no_timer", "boost",
        "energy", "forever", "no_wfi", "stop_start", "one_shot", "snoop_loop", "no_fifo_wait",
        "debugwait", "clock_trim", "verify_writes", "verify_kernels", "zero_sram",
        "old_kernel_loader", "define", "define_default_arm", "board_name", "eclipse_includes",
        "eclipse_variables", "eclipse_openocd_args", "short_log", "riscv_debug",
        "riscv_exclusive", "deepsleep", "define_default_riscv", "kernel_format", "mlator",
        "unroll_mlator", "ignore_mlator_warning", "output_filename", "output_pass_filename",
        "output_config_filename", "output_data_filename", "output_weights_filename",
        "output_bias_filename", "log_intermediate", "log_pooling", "debug_computation",
        "debug_latency",
    )  # fmt: skip
    implying = (args.riscv_cache, args.riscv_flash, args.riscv_debug, args.riscv_exclusive)
    return replace(
        known,
        riscv=args.riscv or any(implying),
        riscv_cache=args.riscv_cache is not False,
        fast_fifo=input_port(args).is_fast,
        c_filename=args.c_filename or "main",
        sample_output_filename=args.sample_output_filename or "sampleoutput.h",
        **{name: getattr(args, name) for name in names},
    )
