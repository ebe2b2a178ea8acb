"""The options of ai8xize.py for RTL simulation tests.

What they mean is in `commands.loader.arguments.rtl_values`.
Source: docs/options.md, "ai8xize.py".
"""

from __future__ import annotations

import argparse
from typing import Any

SIMULATION_ONLY = (
    "--rtl-preload-weights", "--result-output", "--runtest-filename", "--input-filename",
    "--autogen", "--autogen_list", "--top-level", "--queue-name", "--timeout", "--slow-load",
    "--input-csv", "--input-csv-format", "--input-csv-retrace", "--input-csv-period",
    "--input-pix-clk", "--input-sync", "--input-fifo",
)  # fmt: skip
"""Options that have no effect without --rtl."""
CAMERA = SIMULATION_ONLY[-6:]
"""Options that have no effect without --input-csv."""

_CAMERA_FORMATS = (555, 565, 888)


def add_product_options(group: Any) -> None:
    """Add the options that choose between embedded code and RTL simulation."""
    product = group.add_mutually_exclusive_group()
    product.add_argument("-e", "--embedded-code", action="store_true",
                         help="generate embedded C (the default)")  # fmt: skip
    product.add_argument("--rtl", "--rtl-sim", dest="rtl", action="store_true",
                         help="generate a test for RTL simulation")  # fmt: skip
    product.add_argument("--rtl-preload", action="store_true",
                         help="the same; the test bench loads the input from images")  # fmt: skip


def add_rtl_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of RTL simulation tests; those that are not given are None."""
    option = parser.add_argument_group("RTL simulation, with --rtl").add_argument
    option("--rtl-preload-weights", action="store_true", default=None,
           help="the test bench loads the weights from images")  # fmt: skip
    option("--result-output", action="store_true", default=None,
           help="the test bench dumps the result, which a script compares")  # fmt: skip
    option("--runtest-filename", metavar="NAME", help="part of the test bench (run_test.sv)")
    option("--input-filename", metavar="NAME", help="writes of a block-level test (input)")
    option("--top-level", metavar="NAME",
           help="folder of the test in lists (cnn); None: block level, without a core")  # fmt: skip
    option("--timeout", type=int, metavar="MS", help="time-out (default: computed)")
    option("--slow-load", type=int, metavar="N", help="idle instructions behind each FIFO word")
    option("--autogen", metavar="DIR", help="add the test to a list in this folder")
    option("--autogen_list", metavar="NAME", help="name of the list (autogen_list)")
    option("--queue-name", metavar="NAME", help="queue of the test (default: by its time-out)")
    option("--input-csv", metavar="NAME", help="the sample comes from a camera; its samples")
    option("--input-csv-format", type=int, choices=_CAMERA_FORMATS, help="format of pixels (888)")
    option("--input-csv-retrace", type=int, metavar="N", help="samples between rows (5)")
    option("--input-csv-period", type=int, metavar="NS", help="time of a line of the file (80)")
    option("--input-sync", action="store_true", default=None,
           help="the camera follows the accelerator's clock")  # fmt: skip
    option("--input-pix-clk", type=int, metavar="N", help="clocks of a sample then (9)")
    option("--input-fifo", action="store_true", default=None,
           help="through a ring buffer to the fast FIFO")  # fmt: skip
