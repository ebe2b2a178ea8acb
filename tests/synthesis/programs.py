"""A small program made by hand, for the tests of the emitter: no network stands behind it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ai8xtools.synthesis.emit import ProjectOptions, emit_project
from ai8xtools.synthesis.encode.mlator import TransposerWords
from ai8xtools.synthesis.program import (
    BiasBlock,
    Block,
    ExpectedOutput,
    InputBlock,
    KernelBlock,
    Power,
    Program,
    TimerStart,
    UnloadLayer,
    UnloadPiece,
    Words,
    Write,
)
from ai8xtools.synthesis.summary import LayerLog, LayerStatistics, Operations, Statistics, Summary
from device import MAX78000

CONTROL = 0x50100000
DATA = 0x50400000
OFFSET = 0x1230
WIDE = UnloadLayer(
    32, 6, 1, (UnloadPiece(DATA, (0, 1, 2, 3), 0, 16), UnloadPiece(DATA + 0x8000, (0, 1), 4, 16))
)


def words(*values: int) -> Words:
    """Return an array of words."""
    return np.array(values, np.uint32)


def program(**changes: Any) -> Program:
    """Return a program of two layers in group 0 with six 32-bit outputs."""
    address = DATA + 0x8000 * (np.arange(6) // 4) + 4 * (np.arange(6) % 4)
    base = Program(
        chip=MAX78000,
        apb_base=0x50000000,
        groups=(0,),
        express=True,
        power=Power(1, 0, "PCLK", 1, None, 50.0),
        init=(
            Block("", (Write(0x50001000, 0, "AON control", "F1024"),)),
            Block("Quadrant 0", (Write(CONTROL, 0x00100008, "Stop SM", "R00"),)),
        ),
        kernels=(
            KernelBlock(0, 0x50180000, words(0x01020304, 0x05060708, 0x09000000)),
            KernelBlock(
                1, 0x50184200, words(0x11121314, 0x15161718, 0x19212223, 0x24252627, 0x28290000)
            ),
        ),
        biases=(BiasBlock(0, 0x50108000, np.array([3, 0xFE, 5], np.uint8)),),
        configure=(
            Block(
                "Layer 0 quadrant 0",
                (
                    Write(0x50100010, 0x00010003, "Rows", "L0 G0 R00"),
                    Write(0x50100090, 0, "Columns", "L0 G0 R01", skipped=True),
                ),
            ),
            Block("Layer 1 quadrant 0", (Write(0x50100014, 7, "Rows", "L1 G0 R00"),)),
            Block("Layer 1 quadrant 1", (Write(0x50500014, 0, "Rows", "L1 G1 R00", skipped=True),)),
        ),
        inputs=(InputBlock(0, DATA, words(0x04030201, 0x08070605, 0x0C0B0A09, 0x100F0E0D)),),
        start=(
            Block(
                "",
                (
                    Write(CONTROL, 0x00100808, "Enable quadrant 0", "R00"),
                    TimerStart(),
                    Write(CONTROL, 0x00100009, "Master enable", "R00"),
                ),
            ),
        ),
        interrupt_mask=0x1001,
        expected=ExpectedOutput(
            address.astype(np.uint32), np.full(6, 0xFFFFFFFF, np.uint32), words(1, 2, 3, 4, 5, 6)
        ),
        unload=(WIDE,),
        output_count=6,
        output_width=32,
        softmax_shift=0,
    )  # fmt: skip
    return replace(base, **changes)


def summary(**changes: Any) -> Summary:
    """Return what is told of the two layers."""
    base = Summary(
        description=("Configuring 2 layers", "Input data: CHW", "Layer 0: 1x4x4, no pooling"),
        input_text="1x4x4",
        statistics=statistics(),
        configuration=(("Global configuration", (("used quadrants", "[0]"),)),),
        kernel_map=_kernel_map(),
        result=np.zeros((0, 0, 0), np.int64),
        layer_logs=(_layer_log(),),
    )
    return replace(base, **changes)


def statistics(**changes: Any) -> Statistics:
    """Return the cost of two layers, the second one with a name."""
    layers = (
        LayerStatistics(
            0, None, Operations(macc=423360, comp=47040), 48956, estimate=48956, processors=16
        ),
        LayerStatistics(1, "fc", Operations(macc=1920), 192, estimate=192, processors=64),
    )
    return replace(Statistics(layers, 1, 71148, 442368, 10, 2048, 1), **changes)


def planar(lanes: tuple[tuple[int, ...], ...], pixels: int, index: int = 1) -> UnloadLayer:
    """Return an 8-bit output in successive instances, readable both ways."""
    ports = TransposerWords(MAX78000, 0x50000000, 0)
    pieces, channels, count = [], [], 0
    for instance, used in enumerate(lanes):
        address = 0x50000000 + MAX78000.data_address(instance, OFFSET)
        pieces.append(UnloadPiece(address, used, count, 4))
        channels += [ports.channel(instance, lane, OFFSET) for lane in used]
        count += len(used)
    return UnloadLayer(8, count, pixels, tuple(pieces), index, tuple(channels))


def options(**changes: Any) -> ProjectOptions:
    """Return the options of a project called `net`."""
    return replace(ProjectOptions("net", command_line="ai8xize.py", tool_version="1.0"), **changes)


def emit(made: Program | None = None, **changes: Any) -> dict[str, str]:
    """Return the files of a project; `changes` are those of the options."""
    return emit_project(made or program(), summary(), options(**changes))


def store(files: dict[str, str], folder: Path) -> Path:
    """Write the C files of a project, without the rest."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        if name.endswith((".c", ".h")):
            (folder / name).write_text(text)
    return folder


def _kernel_map() -> np.ndarray[Any, np.dtype[np.int16]]:
    owners = np.full((64, 768), -1, np.int16)
    owners[0, 0] = 0
    owners[1, 128:130] = 1
    return owners


def _layer_log() -> LayerLog:
    image = np.arange(16, dtype=np.int64).reshape(1, 4, 4) - 8
    sums = 1000 * image
    weights = np.arange(9, dtype=np.int64).reshape(1, 1, 3, 3)
    return LayerLog(0, "CONV2D", image, weights, np.array([3]), sums, image)
