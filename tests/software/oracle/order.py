"""In which order units are copied and computed, so that copies go on while the core computes.

Copies of a channel complete in order; a wait is for the oldest copy of its channel that nobody
waited for. Source: docs/memory-levels.md, "Copies".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence

from ai8xtools.software.plan.geometry import Geometry
from ai8xtools.values import frozen

INPUT, WEIGHTS, OUTPUT = 0, 1, 2
"""Channels of the copies."""


class Act(enum.StrEnum):
    """What happens next."""

    START = "start"
    WAIT = "wait"
    CLEAR = "clear"
    COMPUTE = "compute"
    FINISH = "finish"


@frozen
class Event:
    """One thing that happens; what the numbers mean depends on the scheme (the functions below)."""

    act: Act
    numbers: tuple[int, ...]


def _event(act: Act, *numbers: int) -> Event:
    return Event(act, numbers)


def row_events(layer: Geometry, band: int, slots: int) -> Iterator[Event]:
    """Yield the order of bands of `band` output rows with a ring of `slots` input rows.

    START 0, first row, rows, slot; WAIT channel; COMPUTE unit, first output row, rows; START 2,
    unit, buffer.
    """
    height = layer.out_size[0]
    total = -(-height // band)

    def fetch(unit: int) -> list[Event]:
        if unit >= total:
            return []
        end = layer.needed(min(height, (unit + 1) * band) - 1)[1]
        begin = layer.needed(unit * band - 1)[1] if unit else 0
        return [_event(Act.START, INPUT, *run) for run in runs(begin, end, slots)]

    def done(unit: int) -> list[Event]:
        first = unit * band
        return [
            _event(Act.COMPUTE, unit, first, min(band, height - first)),
            _event(Act.START, OUTPUT, unit, unit % 2),
        ]

    return _overlapped(total, fetch, done)


def runs(begin: int, end: int, slots: int) -> Iterator[tuple[int, int, int]]:
    """Yield the first row, the rows and the slot of copies that do not wrap around a ring."""
    while begin < end:
        slot = begin % slots
        count = min(end - begin, slots - slot)
        yield begin, count, slot
        begin += count


def pixel_events(pixels: int, count: int) -> Iterator[Event]:
    """Yield the order of units of `count` pixels.

    START 0, first pixel, pixels, buffer; WAIT channel; COMPUTE unit; START 2, first pixel, pixels,
    buffer.
    """
    total = -(-pixels // count)

    def some(unit: int) -> tuple[int, int, int]:
        return unit * count, min(count, pixels - unit * count), unit % 2

    def fetch(unit: int) -> list[Event]:
        return [_event(Act.START, INPUT, *some(unit))] if unit < total else []

    def done(unit: int) -> list[Event]:
        return [_event(Act.COMPUTE, unit), _event(Act.START, OUTPUT, *some(unit))]

    return _overlapped(total, fetch, done)


def _overlapped(
    total: int, fetch: Callable[[int], Sequence[Event]], done: Callable[[int], Sequence[Event]]
) -> Iterator[Event]:
    """Yield units with inputs one ahead and two buffers of outputs."""
    waiting = fetch(0)
    yield from waiting
    for unit in range(total):
        yield from (_event(Act.WAIT, INPUT) for _ in waiting)
        waiting = fetch(unit + 1)
        yield from waiting
        if unit >= 2:
            yield _event(Act.WAIT, OUTPUT)
        yield from done(unit)
    yield from (_event(Act.WAIT, OUTPUT) for _ in range(min(2, total)))


def plane_events(bands: int, groups: int, channels: int) -> Iterator[Event]:
    """Yield the order of planes: bands of rows, groups of filters, input channels.

    START channel of the copy, band, group, input channel (the output: band, group); CLEAR, FINISH
    band, group; COMPUTE band, group, input channel.
    """
    units = [(b, g, c) for b in range(bands) for g in range(groups) for c in range(channels)]
    for number, (band, group, channel) in enumerate(units):
        if not number:
            yield _event(Act.START, INPUT, *units[0])
            yield _event(Act.START, WEIGHTS, *units[0])
        yield _event(Act.WAIT, INPUT)
        yield _event(Act.WAIT, WEIGHTS)
        if number + 1 < len(units):
            yield _event(Act.START, INPUT, *units[number + 1])
            yield _event(Act.START, WEIGHTS, *units[number + 1])
        if not channel:
            if number:
                yield _event(Act.WAIT, OUTPUT)
            yield _event(Act.CLEAR, band, group)
        yield _event(Act.COMPUTE, band, group, channel)
        if channel == channels - 1:
            yield _event(Act.FINISH, band, group)
            yield _event(Act.START, OUTPUT, band, group)
    yield _event(Act.WAIT, OUTPUT)
