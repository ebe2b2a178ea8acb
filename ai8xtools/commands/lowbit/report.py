"""The report of quantize.py --device BITNET: statistics, pictures of weights, accuracies.

Source: docs/low-bit.md, "The report".
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from ai8xtools.commands.lowbit.compare import Agreement
from ai8xtools.commands.lowbit.convert import Rows
from ai8xtools.commands.lowbit.files import Trained
from ai8xtools.commands.lowbit.post import Rounded
from ai8xtools.quantization.lowbit import ENCODINGS
from ai8xtools.synthesis.emit.report_pictures import png
from ai8xtools.values import frozen
from ai8xtools.writing.templates import render

VERSION = 1
"""Of the JSON; whoever changes a name or its meaning raises it."""
_ACROSS = 16
"""Tiles in a row of the picture."""
_MIDDLE = 128


@frozen
class Report:
    """What the report shows: `sizes` are bytes of flash and of RAM, accuracies may be missing."""

    name: str
    rows: Rows
    sizes: tuple[int, int]
    tiles: NDArray[np.uint8]
    trained: Rounded | None
    table: tuple[Rounded, ...]
    agreement: Agreement | None


@frozen
class Total:
    """All layers together; the entropy is in bits per weight."""

    weights: int
    size_bytes: int
    entropy_bits: float
    capacity_percent: float


def report_of(report: Report) -> tuple[str, str]:
    """Return the page, and the same as JSON."""
    total = _total(report.rows)
    tiles = report.rows[0].weights // int(np.prod(report.rows[0].shape[1:]))
    page = render(
        "software/lowbit/report.html.j2",
        report=report,
        total=total,
        tiles=tiles,
        picture=_data_of(report.tiles),
    )
    content = {
        "version": VERSION,
        "name": report.name,
        "flash_bytes": report.sizes[0],
        "ram_bytes": report.sizes[1],
        "layers": [asdict(row) for row in report.rows],
        "together": asdict(total),
        "accuracy": None if report.trained is None else asdict(report.trained),
        "engine": None if report.agreement is None else asdict(report.agreement),
        "post_training": [asdict(row) | {"percent": row.percent} for row in report.table],
    }
    return page, json.dumps(content, indent=1) + "\n"


def _total(rows: Rows) -> Total:
    weights = sum(row.weights for row in rows)
    used = sum(row.weights * row.statistics.entropy_bits for row in rows)
    bits = sum(row.weights * ENCODINGS[row.encoding].bits_per_weight for row in rows)
    size = sum(row.size_bytes for row in rows)
    return Total(weights, size, used / weights, 100 * used / bits)


def first_layer_tiles(trained: Trained) -> NDArray[np.uint8]:
    """Return a grey picture of the first layer's weights: a tile for each output.

    Zero is the middle, the greatest magnitude black or white.
    """
    name = next(
        key for key in ("convs.0", "stem.0", "layers.0") if f"{key}.weight" in trained.state
    )
    weights = np.asarray(trained.state[f"{name}.weight"], np.float64)
    side = 3 if name.startswith("convs") else round(weights.shape[-1] ** 0.5)
    tiles = weights.reshape(-1, side, side)
    scaled = np.rint(tiles / (np.abs(tiles).max() or 1.0) * 127 + _MIDDLE).astype(np.uint8)
    rows = -(-len(scaled) // _ACROSS)
    padded = np.full((rows * _ACROSS, side + 1, side + 1), 255, np.uint8)
    padded[: len(scaled), :side, :side] = scaled
    grid = padded.reshape(rows, _ACROSS, side + 1, side + 1).swapaxes(1, 2)
    return grid.reshape(rows * (side + 1), _ACROSS * (side + 1))


def _data_of(picture: NDArray[np.uint8]) -> str:
    """Return a grey picture [rows, columns] as PNG in a data address."""
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode("ascii")
