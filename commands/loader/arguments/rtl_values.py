"""What the options for RTL simulation tests mean.

Source: spec/generated-project.md section 9, spec/network-description.md section 1.7.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from commands.loader.rtl_arguments import CAMERA, SIMULATION_ONLY
from diagnostics import Diagnostic, Place, Severity
from synthesis.emit import ProjectOptions
from synthesis.emit.rtl import Camera, RtlOptions
from synthesis.emit.rtl.options import DEFAULT_TOP_LEVEL
from synthesis.mapping import MappedNetwork

_NONE = "none"


def is_rtl(args: argparse.Namespace) -> bool:
    """Whether a test for RTL simulation is wanted."""
    return bool(args.rtl or args.rtl_preload)


def is_block_level(args: argparse.Namespace) -> bool:
    """Whether the accelerator is simulated alone."""
    return is_rtl(args) and (args.top_level or "").lower() == _NONE


def preloads_weights(args: argparse.Namespace) -> bool:
    """Whether the test bench loads the weights."""
    return is_rtl(args) and bool(args.rtl_preload_weights) and not _kept_from_preloading(args)


def _kept_from_preloading(args: argparse.Namespace) -> str | None:
    """Return the option for which the program loads the weights itself."""
    reasons = (
        ("--verify-kernels", args.verify_kernels),
        ("--verify-writes", args.verify_writes and not args.old_kernel_loader),
        ("--mexpress", args.express is True),
        ("--no-mexpress", args.express is False),
    )
    return next((option for option, given in reasons if given), None)


def rtl_options(args: argparse.Namespace, project: ProjectOptions) -> RtlOptions:
    """Return how the test is written; the name and the camera's image are not known yet."""
    through_fifo = args.fifo or args.fast_fifo or args.fast_fifo_quad
    checked = args.mlator or args.one_shot or args.stop_start
    return RtlOptions(
        project=replace(
            project,
            c_filename=args.c_filename or "test",
            api_filename=_NONE,
            sample_output_filename=args.sample_output_filename or _NONE,
            softmax=False,
            energy=False,
            unload=False,
            timer=None,
            simulated=True,
        ),
        runtest_filename=_given(args.runtest_filename, "run_test.sv"),
        input_filename=_given(args.input_filename, "input"),
        top_level=None if is_block_level(args) else _given(args.top_level, DEFAULT_TOP_LEVEL),
        preload_data=bool(args.rtl_preload) and not through_fifo and not args.zero_sram,
        preload_weights=preloads_weights(args),
        result_output=bool(args.result_output) and not checked,
        compact_data=args.compact_data,
        flash=not args.no_riscv_flash,
        slow_load=args.slow_load or 0,
        timeout_ms=args.timeout,
        queue_name=args.queue_name,
        regression_folder=regression_folder(args),
        regression_list=_given(args.autogen_list, "autogen_list"),
        camera=_camera(args, np.zeros((1, 1, 1), np.int64), planar=False),
    )


def _given(name: str | None, default: str) -> str:
    return default if name is None else name


def regression_folder(args: argparse.Namespace) -> str | None:
    """Return the folder of the list of tests."""
    return None if args.autogen is None or args.autogen.lower() == _NONE else args.autogen


def with_network(
    options: RtlOptions, name: str, folder: Path, network: MappedNetwork
) -> RtlOptions:
    """Return the options of a test whose name and sample are known."""
    camera = options.camera
    if camera is not None:
        planar = network.first.channels_first
        camera = replace(camera, image=network.sample, planar=planar)
    project = replace(options.project, name=name, folder=str(folder))
    return replace(options, project=project, camera=camera)


def _camera(
    args: argparse.Namespace, image: np.typing.NDArray[np.int64], planar: bool
) -> Camera | None:
    if args.input_csv is None:
        return None
    given = {
        "format": args.input_csv_format,
        "retrace": args.input_csv_retrace,
        "period_ns": args.input_csv_period,
        "clocks_per_pixel": args.input_pix_clk,
        "synchronous": args.input_sync,
        "use_fifo": args.input_fifo,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    return Camera(args.input_csv, image, planar, **chosen)


def rtl_usage(args: argparse.Namespace) -> list[Diagnostic]:
    """Return complaints about options that mean nothing here."""
    if not is_rtl(args):
        return [*_only_with(SIMULATION_ONLY, "--rtl", args)]
    found = [*_without_effect(args)]
    if args.verify:
        found.append(
            Diagnostic(
                "E092",
                "it cannot be used together with --rtl",
                Place(option="--verify"),
                "Leave out --verify; make rtl-demo shows how to run a test.",
            )
        )
    if args.input_csv is None:
        found += _only_with(CAMERA, "--input-csv", args)
    elif not (args.fast_fifo or args.fast_fifo_quad):
        found += _only_with(("--input-fifo",), "--fast-fifo", args)
    return found


def _only_with(
    names: tuple[str, ...], needed: str, args: argparse.Namespace
) -> Iterator[Diagnostic]:
    for name in names:
        if getattr(args, name.lstrip("-").replace("-", "_")) is not None:
            yield Diagnostic(
                "E095",
                f"it needs {needed}",
                Place(option=name),
                f"Add {needed} or leave out {name}.",
            )


def _without_effect(args: argparse.Namespace) -> Iterator[Diagnostic]:
    through_fifo = args.fifo or args.fast_fifo or args.fast_fifo_quad
    reasons = {
        "--rtl-preload": args.rtl_preload
        and ("--zero-sram" if args.zero_sram else "a FIFO" if through_fifo else None),
        "--rtl-preload-weights": args.rtl_preload_weights and _kept_from_preloading(args),
        "--result-output": args.result_output
        and next((o for o in ("mlator", "one_shot", "stop_start") if getattr(args, o)), None),
        "--mlator": args.mlator and "RTL simulation, which reads the data memory",
        "--no-compact-data": not args.compact_data and args.input_csv and "--input-csv",
    }
    for option, reason in reasons.items():
        if reason:
            name = f"--{reason.replace('_', '-')}" if "_" in reason else reason
            yield Diagnostic(
                "W093",
                f"it has no effect together with {name}",
                Place(option=option),
                "Leave one of them out.",
                Severity.WARNING,
            )
