"""The time line: what is loaded once, and an inference from its input to its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ai8xtools.synthesis.report.values import Report, TimePart
from ai8xtools.values import frozen

_WIDTH = 1000
_LEAST = 1.0
_LABEL_WIDTH = 18


@frozen
class TimeBox:
    """A stretch from `x`, `width` pixels wide; `layer` is None for the core.

    `label` is empty where there is no room for it.
    """

    x: float
    width: float
    layer: int | None
    label: str
    title: str


@frozen
class TimeRow:
    """Stretches one after the other, with a heading and their sum in milliseconds."""

    heading: str
    milliseconds: float
    boxes: tuple[TimeBox, ...]


@frozen
class TimePicture:
    """Rows to one scale, `width` pixels for the longest."""

    width: int
    rows: tuple[TimeRow, ...]


def time_picture(report: Report) -> TimePicture:
    """Scale the time line to the width of the page; without rows where it is not known."""
    parts = {
        "once, after power-up": [part for part in report.time_line if part.once],
        "each inference": [part for part in report.time_line if not part.once],
    }
    longest = max((_sum(row) for row in parts.values()), default=0.0)
    if not longest:
        return TimePicture(_WIDTH, ())
    names = {layer.index: layer.name or "" for layer in report.layers}
    return TimePicture(
        _WIDTH,
        tuple(
            TimeRow(heading, _sum(row), tuple(_boxes(row, _WIDTH / longest, names)))
            for heading, row in parts.items()
            if row
        ),
    )


def _sum(parts: Iterable[TimePart]) -> float:
    return sum(part.milliseconds for part in parts)


def _boxes(parts: Iterable[TimePart], scale: float, names: dict[int, str]) -> Iterator[TimeBox]:
    time = 0.0
    for part in parts:
        width = max(_LEAST, part.milliseconds * scale)
        what = part.title if part.layer is None else f"layer {part.layer} {names[part.layer]}"
        short = what if part.layer is None else str(part.layer)
        room = _LABEL_WIDTH if part.layer is not None else 7 * len(short)
        yield TimeBox(
            round(time * scale, 1),
            round(width, 1),
            part.layer,
            short if width >= room else "",
            f"{what.strip()}: {part.milliseconds:.3f} ms",
        )
        time += part.milliseconds
