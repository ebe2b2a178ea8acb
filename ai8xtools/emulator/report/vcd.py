"""A timeline as a value change dump (VCD), which GTKWave and others show.

Source: IEEE 1364-2005, section 18.
"""

from __future__ import annotations

from collections.abc import Iterator

from ai8xtools.emulator.report.timeline import CoreActivity, Span, Timeline
from ai8xtools.values import frozen
from device.chip import GROUPS

_PICOSECONDS = 1_000_000  # of a microsecond; one is the unit of the file
_MOST_EDGES = 2_000_000
_FIRST, _SYMBOLS = 33, 94  # characters of identifiers


@frozen
class _Signal:
    """A wire, with the changes of its value in time: picoseconds and value."""

    scope: str
    name: str
    bits: int
    changes: tuple[tuple[int, int], ...]


def value_changes(timeline: Timeline) -> str:
    """Return a timeline as a value change dump in picoseconds.

    Scope `core`: what its words are for. Scope `accelerator`: `clock`, `running`, `layer` (number,
    all bits set while there is none), each layer, each group, and `interrupt` until it is
    acknowledged. The clock runs while layers do. In a long recording it would make the file too
    large; `clock_div_10` and the like then tick that many times more slowly.
    """
    signals = [*_core(timeline), *_accelerator(timeline)]
    identifiers = [_identifier(number) for number in range(len(signals))]
    lines = [
        f"$comment Estimated time of a {timeline.chip} $end",
        "$timescale 1 ps $end",
        "$scope module chip $end",
        *_declarations(signals, identifiers),
        "$upscope $end",
        "$enddefinitions $end",
        "$dumpvars",
        *(_value(s, _initial(s), i) for s, i in zip(signals, identifiers, strict=True)),
        "$end",
    ]
    changes = sorted(
        (time, number, value)
        for number, signal in enumerate(signals)
        for time, value in signal.changes
    )
    now = None
    for time, number, value in changes:
        if time != now:
            lines.append(f"#{time}")
            now = time
        lines.append(_value(signals[number], value, identifiers[number]))
    lines.append(f"#{_time(timeline.end) + 1}")
    return "\n".join(lines) + "\n"


def _core(timeline: Timeline) -> Iterator[_Signal]:
    for activity in CoreActivity:
        spans = [span for span in timeline.spans if span.activity is activity]
        if spans:
            yield _wire("core", activity.value.replace(" ", "_"), spans)


def _accelerator(timeline: Timeline) -> Iterator[_Signal]:
    layers = timeline.layers
    yield _clock(layers)
    yield _wire("accelerator", "running", layers)
    yield _number(layers)
    for number in dict.fromkeys(span.layer.layer for span in layers if span.layer):
        chosen = [span for span in layers if span.layer and span.layer.layer == number]
        yield _wire("accelerator", f"layer_{number}", chosen)
    for group in range(GROUPS):
        chosen = [span for span in layers if span.layer and group in span.layer.used_groups]
        if chosen:
            yield _wire("accelerator", f"group_{group}", chosen)
    yield _interrupt(timeline)


def _wire(scope: str, name: str, spans: list[Span] | tuple[Span, ...]) -> _Signal:
    """Return a wire that is 1 during spans; those that follow one another are one."""
    changes: dict[int, int] = {}
    for span in spans:
        start = _time(span.start)
        if changes.get(start) == 0:
            del changes[start]
        else:
            changes[start] = 1
        changes[_time(span.end)] = 0
    return _Signal(scope, name, 1, tuple(changes.items()))


def _number(layers: tuple[Span, ...]) -> _Signal:
    changes: dict[int, int] = {}
    for span in layers:
        assert span.layer is not None
        changes[_time(span.start)] = span.layer.layer
        changes[_time(span.end)] = _no_layer()
    return _Signal("accelerator", "layer", 8, tuple(changes.items()))


def _no_layer() -> int:
    return 2**8 - 1


def _clock(layers: tuple[Span, ...]) -> _Signal:
    """Return the clock, or a slower one, which ticks while layers run."""
    cycles, slower = sum(span.cycles for span in layers), 1
    while 2 * cycles // slower > _MOST_EDGES:
        slower *= 10
    changes: list[tuple[int, int]] = []
    for span in layers:
        start, period = _time(span.start), slower * _PICOSECONDS / span.mhz
        for tick in range(span.cycles // slower):
            changes.append((start + round(tick * period), 1))
            changes.append((start + round((tick + 0.5) * period), 0))
    name = "clock" if slower == 1 else f"clock_div_{slower}"
    return _Signal("accelerator", name, 1, tuple(changes))


def _interrupt(timeline: Timeline) -> _Signal:
    """Return the interrupt: from the end of a run until the core has acknowledged it."""
    ends = timeline.ends_of(CoreActivity.ACKNOWLEDGE)
    changes: dict[int, int] = {}
    for time in timeline.interrupts:
        changes[_time(time)] = 1
        changes[_time(next((end for end in ends if end > time), timeline.end))] = 0
    return _Signal("accelerator", "interrupt", 1, tuple(sorted(changes.items())))


def _declarations(signals: list[_Signal], identifiers: list[str]) -> Iterator[str]:
    scope = None
    for signal, identifier in zip(signals, identifiers, strict=True):
        if signal.scope != scope:
            if scope is not None:
                yield "$upscope $end"
            yield f"$scope module {signal.scope} $end"
            scope = signal.scope
        vector = f" [{signal.bits - 1}:0]" if signal.bits > 1 else ""
        yield f"$var wire {signal.bits} {identifier} {signal.name}{vector} $end"
    if scope is not None:
        yield "$upscope $end"


def _initial(signal: _Signal) -> int:
    return 0 if signal.bits == 1 else _no_layer()


def _value(signal: _Signal, value: int, identifier: str) -> str:
    return f"{value}{identifier}" if signal.bits == 1 else f"b{value:b} {identifier}"


def _identifier(number: int) -> str:
    text = ""
    while True:
        number, digit = divmod(number, _SYMBOLS)
        text += chr(_FIRST + digit)
        if not number:
            return text


def _time(microseconds: float) -> int:
    return round(microseconds * _PICOSECONDS)
