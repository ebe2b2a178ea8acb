"""What the options for RTL simulation tests mean.

Source: docs/rtl.md; docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from ai8xtools.commands.loader.arguments.rtl_usage import NONE, is_block_level, preloads_weights
from ai8xtools.synthesis.emit import ProjectOptions
from ai8xtools.synthesis.emit.rtl import Camera, RtlOptions
from ai8xtools.synthesis.emit.rtl.options import DEFAULT_TOP_LEVEL


def rtl_options(args: argparse.Namespace, project: ProjectOptions) -> RtlOptions:
    """Return how the test is written; the name and the camera's image are not known yet."""
    through_fifo = args.fifo or args.fast_fifo or args.fast_fifo_quad
    checked = args.mlator or args.one_shot or args.stop_start
    return RtlOptions(
        project=replace(
            project,
            c_filename=args.c_filename or "test",
            api_filename=NONE,
            sample_output_filename=args.sample_output_filename or NONE,
            softmax=False,
            energy=False,
            unload=False,
            timer=None,
            simulated=True,
        ),
        runtest_filename=_or_default(args.runtest_filename, "run_test.sv"),
        input_filename=_or_default(args.input_filename, "input"),
        top_level=None if is_block_level(args) else _or_default(args.top_level, DEFAULT_TOP_LEVEL),
        preload_data=bool(args.rtl_preload) and not through_fifo and not args.zero_sram,
        preload_weights=preloads_weights(args),
        result_output=bool(args.result_output) and not checked,
        compact_data=args.compact_data,
        flash=not args.no_riscv_flash,
        slow_load=args.slow_load or 0,
        timeout_ms=args.timeout,
        queue_name=args.queue_name,
        regression_folder=regression_folder(args),
        regression_list=_or_default(args.autogen_list, "autogen_list"),
        camera=_camera(args),
    )


def _or_default(name: str | None, default: str) -> str:
    return default if name is None else name


def regression_folder(args: argparse.Namespace) -> str | None:
    """Return the folder of the list of tests."""
    return None if args.autogen is None or args.autogen.lower() == NONE else args.autogen


def _camera(args: argparse.Namespace) -> Camera | None:
    """Return the camera; its image is known with the network only."""
    if args.input_csv is None:
        return None
    settings = {
        "format": args.input_csv_format,
        "retrace": args.input_csv_retrace,
        "period_ns": args.input_csv_period,
        "clocks_per_pixel": args.input_pix_clk,
        "synchronous": args.input_sync,
        "use_fifo": args.input_fifo,
    }
    chosen = {name: value for name, value in settings.items() if value is not None}
    nothing_yet = np.zeros((1, 1, 1), np.int64)
    return Camera(args.input_csv, nothing_yet, planar=False, **chosen)
