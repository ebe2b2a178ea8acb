"""Bars of time and energy: what is loaded once, and an inference from its input to its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ai8xtools.synthesis.report.values import Part, Report
from ai8xtools.values import frozen

_WIDTH = 1000
_LEAST = 1.0
_LABEL_WIDTH = 18


@frozen
class BarBox:
    """A stretch from `x`, `width` pixels wide; `layer` is None for the core.

    `label` is empty where there is no room for it.
    """

    x: float
    width: float
    layer: int | None
    label: str
    title: str


@frozen
class BarRow:
    """Stretches one after the other, with a heading and their sum."""

    heading: str
    amount: str
    boxes: tuple[BarBox, ...]


@frozen
class BarPicture:
    """Rows to one scale, `width` pixels for the longest."""

    width: int
    rows: tuple[BarRow, ...]


def bar_picture(parts: Sequence[Part], report: Report, form: str) -> BarPicture:
    """Scale parts to the width of the page; without rows where they are not known.

    `form` formats an amount with its unit, such as "%.3f ms".
    """
    rows = {
        "once, after power-up": [part for part in parts if part.once],
        "each inference": [part for part in parts if not part.once],
    }
    longest = max((_sum(row) for row in rows.values()), default=0.0)
    if not longest:
        return BarPicture(_WIDTH, ())
    names = {layer.index: layer.name or "" for layer in report.layers}
    return BarPicture(
        _WIDTH,
        tuple(
            BarRow(heading, form % _sum(row), tuple(_boxes(row, _WIDTH / longest, names, form)))
            for heading, row in rows.items()
            if row
        ),
    )


def _sum(parts: Iterable[Part]) -> float:
    return sum(part.amount for part in parts)


def _boxes(
    parts: Iterable[Part], scale: float, names: dict[int, str], form: str
) -> Iterator[BarBox]:
    before = 0.0
    for part in parts:
        width = max(_LEAST, part.amount * scale)
        what = part.title if part.layer is None else f"layer {part.layer} {names[part.layer]}"
        short = what if part.layer is None else str(part.layer)
        room = _LABEL_WIDTH if part.layer is not None else 7 * len(short)
        yield BarBox(
            round(before * scale, 1),
            round(width, 1),
            part.layer,
            short if width >= room else "",
            f"{what.strip()}: {form % part.amount}",
        )
        before += part.amount
