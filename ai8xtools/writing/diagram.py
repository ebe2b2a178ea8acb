"""Diagrams as SVG: panels with axes, lines and dots, and one key for all.

Source: docs/low-bit.md, "Accuracy" and "Capacity".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ai8xtools.values import frozen
from ai8xtools.writing.templates import render

_LEFT, _TOP, _BELOW, _GAP = 62, 14, 50, 30
_KEY_LINE = 20
_CHARACTER = 6.4
"""Width of a letter of the key in pixels, generously."""
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#333333",
            "#882255", "#999933", "#44aa99")  # fmt: skip


@frozen
class Axis:
    """A range of numbers with its title, which names the unit."""

    title: str
    least: float
    greatest: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return where a value is, from 0 to 1; values outside are put at the ends."""
        least, greatest, position = (
            (math.log(x) if self.logarithmic else x)
            for x in (self.least, self.greatest, min(max(value, self.least), self.greatest))
        )
        return (position - least) / (greatest - least)

    def ticks(self) -> list[tuple[float, str]]:
        """Return places and numbers to be written there."""
        values = _decades(self.least, self.greatest) if self.logarithmic else []
        if len(values) < 3:
            values = _steps(self.least, self.greatest)
        return [(self.place(value), f"{value:,.6g}") for value in values]


@frozen
class DiagramSeries:
    """Points of one name, joined by a line or not; points of the same name have one colour.

    A `pale` line stands behind one that is more important.
    """

    name: str
    points: Sequence[tuple[float, float]]
    joined: bool = True
    dotted: bool = True
    pale: bool = False


@frozen
class Panel:
    """One diagram; `mark` is a number of the x axis with a dashed line, and what it says."""

    x: Axis
    y: Axis
    series: Sequence[DiagramSeries]
    mark: tuple[float, str] | None = None


def axis(title: str, values: Iterable[float], *, logarithmic: bool = False) -> Axis:
    """Return an axis for these values, with some room at the ends; linear ones begin at 0."""
    ordered = sorted(values)
    least, greatest = ordered[0], ordered[-1]
    if logarithmic:
        room = max((greatest / least) ** 0.06, 1.03)
        return Axis(title, least / room, greatest * room, True)
    return Axis(title, 0.0, greatest * 1.04 or 1.0)


def drawn(panels: Sequence[Panel], size: tuple[int, int], across: int, notes: Sequence[str]) -> str:
    """Return the SVG of panels of a size in pixels, so many side by side; notes stand below."""
    width, height = size
    names = list(dict.fromkeys(series.name for panel in panels for series in panel.series))
    whole = across * (_LEFT + width) + (across - 1) * _GAP + _GAP
    down = _TOP + height + _BELOW
    key = _key(names, whole)
    top = -(-len(panels) // across) * down
    lines = key[-1][2] + 1 if key else 0
    return render(
        "software/lowbit/diagram.svg.j2",
        width=whole, height=top + _KEY_LINE * lines + 16 * len(notes) + 8, size=size,
        panels=[
            _panel(panel, names, size)
            | {
                "left": _LEFT + (place % across) * (_LEFT + width + _GAP),
                "top": _TOP + place // across * down,
            }
            for place, panel in enumerate(panels)
        ],
        key=[{"name": name, "colour": _colour(names, name), "left": x, "top": top + _KEY_LINE * y}
             for name, x, y in key],
        notes=[{"text": text, "top": top + _KEY_LINE * lines + 16 * number}
               for number, text in enumerate(notes)],
    )  # fmt: skip


def _panel(panel: Panel, names: Sequence[str], size: tuple[int, int]) -> dict[str, Any]:
    width, height = size

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return width * panel.x.place(point[0]), height * (1 - panel.y.place(point[1]))

    series = [
        {
            "colour": _colour(names, one.name),
            "points": [place(point) for point in one.points],
            "joined": one.joined,
            "dotted": one.dotted,
            "opacity": 0.3 if one.pale else 1,
        }
        for one in panel.series
    ]
    mark = panel.mark
    inside = mark is not None and panel.x.least <= mark[0] <= panel.x.greatest
    return {
        "x": panel.x.title, "y": panel.y.title, "series": series,
        "columns": _apart([(width * at, text) for at, text in panel.x.ticks()]),
        "rows": [(height * (1 - at), text) for at, text in panel.y.ticks()],
        "mark": (width * panel.x.place(mark[0]), mark[1]) if mark and inside else None,
    }  # fmt: skip


def _apart(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Return ticks below an axis without the numbers that would touch the one before."""
    labels: list[tuple[float, str]] = []
    end = -math.inf
    for x, text in ticks:
        half = _CHARACTER * len(text) / 2
        fits = x - half > end + 4
        labels.append((x, text if fits else ""))
        if fits:
            end = x + half
    return labels


def _colour(names: Sequence[str], name: str) -> str:
    return _COLOURS[names.index(name) % len(_COLOURS)]


def _key(names: Sequence[str], width: int) -> list[tuple[str, float, int]]:
    """Return names with their places: pixels from the left, and the line."""
    places: list[tuple[str, float, int]] = []
    left, line = float(_LEFT), 0
    for name in names:
        needed = 40 + _CHARACTER * len(name)
        if places and left + needed > width:
            left, line = float(_LEFT), line + 1
        places.append((name, left, line))
        left += needed
    return places


def _decades(least: float, greatest: float) -> list[float]:
    """Return the numbers 1, 2 and 5 times powers of ten within limits."""
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(greatest)) + 1)
    candidates = (digit * 10.0**power for power in powers for digit in (1, 2, 5))
    return [value for value in candidates if least <= value <= greatest]


def _steps(least: float, greatest: float) -> list[float]:
    """Return at most eight round numbers of equal distance within limits."""
    rough = (greatest - least) / 8
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough)
    numbers = range(math.ceil(least / step - 1e-9), math.floor(greatest / step + 1e-9) + 1)
    return [number * step for number in numbers]
