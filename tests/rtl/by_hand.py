"""Tests for RTL simulation made by hand from a small program: no network stands behind them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ai8xtools.synthesis.emit.rtl import Camera, RtlOptions, emit_rtl, empty_folders, executables
from ai8xtools.synthesis.program import FifoStream, Power, Program
from ai8xtools.writing.folder import write_project
from device import MAX78002
from tests.synthesis.programs import options, program, summary, words

FIFO = program(
    inputs=(), fifo=(FifoStream(0, 0x50000008, 0x50000004, 1, words(0x04030201, 0x08070605)),)
)  # fmt: skip
MODERN = program(
    chip=MAX78002, power=Power(1, 0, "IPLL", 4, 1, 50.0), kernels=(), inputs=(), biases=()
)  # fmt: skip
IMAGE = np.arange(8, dtype=np.int64).reshape(1, 2, 4) + 1


def rtl_options(project: dict[str, Any] | None = None, **changes: Any) -> RtlOptions:
    """Return the options of a test called `net`; `project` are those shared with projects."""
    shared = {"c_filename": "test", "api_filename": "none", "sample_output_filename": "none",
              "unload": False, "simulated": True} | (project or {})  # fmt: skip
    return replace(RtlOptions(options(**shared)), **changes)


def camera(**changes: Any) -> Camera:
    """Return a camera that sends eight pixels in planar form."""
    return replace(Camera("camera.csv", IMAGE, planar=True), **changes)


def stored(made: Program, chosen: RtlOptions, folder: Path) -> Path:
    """Write a test."""
    write_project(
        emit_rtl(made, summary(), chosen),
        folder,
        executables=executables(chosen),
        empty_folders=empty_folders(chosen),
    )
    return folder
