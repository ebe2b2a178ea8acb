"""What networks of some sizes reach with weights of some bits: a table and a picture.

Source: docs/low-bit.md, "Capacity".
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING

from ai8xtools.checkpoint import atomic
from ai8xtools.commands.lowbit.arguments.drawing import CapacityOptions
from ai8xtools.quantization.lowbit import ENCODINGS
from ai8xtools.values import frozen
from ai8xtools.writing.diagram import DiagramSeries, Panel, axis, drawn

if TYPE_CHECKING:
    from ai8xtools.training.lowbit.epochs import Pictures

BUDGET_BITS = 8 * 12 * 1024
"""Where the picture has a line: 12 KB of weights."""
_LEAST = 1e-3
"""An error or a loss that is less is drawn here."""


@frozen
class Point:
    """A trained network with three hidden layers of `width`; `bits` of all weights together."""

    encoding: str
    width: int
    weights: int
    bits: float
    loss: float
    accuracy: float


def draw(options: CapacityOptions) -> int:
    """Train, print a line for each network, write table and picture; return the exit status."""
    from ai8xtools.commands.lowbit.data import pictures_of

    training, test, classes = pictures_of(options.dataset, options.data, training=True)
    points = []
    for point in measure(
        options.encodings, options.widths, options.epochs, (training, test, len(classes))
    ):
        points.append(point)
        print(f"{point.encoding} {point.width}: {point.weights:,} weights, {point.bits:,.0f} bits, "
              f"loss {point.loss:.4f}, {point.accuracy:.2f} %", flush=True)  # fmt: skip
    note = f"Each network was trained for {options.epochs} epochs, without augmentation."
    write(points, Path(f"{options.out}.csv"), Path(f"{options.out}.svg"), note)
    print(f"Wrote {options.out}.csv and {options.out}.svg")
    return 0


def measure(
    encodings: Sequence[str],
    widths: Sequence[int],
    epochs: int,
    pictures: tuple[Pictures, Pictures, int],
) -> Iterator[Point]:
    """Train each network on training and test pictures of so many classes, and yield its point.

    `loss` is the mean of the last epoch in training, `accuracy` that of the test pictures in
    percent.
    """
    import torch

    from ai8xtools.training.lowbit.loop import EpochResult, train
    from ai8xtools.training.lowbit.network import LowBitNetwork
    from ai8xtools.training.lowbit.recipe import Recipe

    training, test, classes = pictures
    for encoding in encodings:
        for width in widths:
            recipe = Recipe(encoding=encoding, widths=(width,) * 3, epochs=epochs, lr=0.003,
                            augmentation=False)  # fmt: skip
            torch.manual_seed(0)
            network = LowBitNetwork(recipe.architecture(classes))
            results: list[EpochResult] = []
            train(network, recipe, training, test, 0, results.append)
            weights = sum(layer.weight.numel() for layer in network.quantizers())
            last = results[-1]
            yield Point(encoding, width, weights, weights * ENCODINGS[encoding].bits_per_weight,
                        last.loss, 100 * last.correct / last.total)  # fmt: skip


def write(points: Sequence[Point], table: Path, picture: Path, note: str) -> None:
    """Write the table (CSV) and the picture (SVG), below which the note stands."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Point)])
    writer.writerows(astuple(point) for point in points)
    atomic.write_bytes(table, text.getvalue().encode())
    sizes: dict[str, Callable[[Point], float]] = {
        "weights": lambda point: point.weights, "bits of weights": lambda point: point.bits
    }  # fmt: skip
    results: dict[str, Callable[[Point], float]] = {
        "test error (%)": lambda point: 100 - point.accuracy, "loss": lambda point: point.loss
    }  # fmt: skip
    panels = [_panel(points, size, result) for result in results.items() for size in sizes.items()]
    atomic.write_bytes(picture, drawn(panels, (320, 220), 2, [note]).encode())


def _panel(
    points: Sequence[Point],
    across: tuple[str, Callable[[Point], float]],
    upward: tuple[str, Callable[[Point], float]],
) -> Panel:
    """Return a diagram with logarithmic axes: a line for each encoding."""
    x, y = across[1], upward[1]
    lines: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        lines.setdefault(point.encoding, []).append((x(point), max(y(point), _LEAST)))
    return Panel(
        axis(across[0], [place for line in lines.values() for place, _ in line], logarithmic=True),
        axis(upward[0], [place for line in lines.values() for _, place in line], logarithmic=True),
        [DiagramSeries(name, line) for name, line in lines.items()],
        (BUDGET_BITS, "12 KB") if "bits" in across[0] else None,
    )
