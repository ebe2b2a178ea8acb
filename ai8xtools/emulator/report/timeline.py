"""What happened when, in estimated time: words that the core copied, layers that ran.

Times are those of docs/emulator.md, "Estimated time". The runs of layers follow the words that
start them, also where a FIFO delivers the input meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from ai8xtools.emulator.decode.config import LayerConfig
from ai8xtools.emulator.decode.cycles import STARTUP_CYCLES
from ai8xtools.emulator.machine.timing import MarkKind, Recording, TimedRun
from ai8xtools.emulator.report.describe import describe_layer
from ai8xtools.emulator.state.clocks import word_microseconds
from ai8xtools.emulator.words.addresses import BIAS, DATA, KERNELS, REGISTERS, TRAM
from ai8xtools.values import frozen

_FEW = 2  # words between others that belong to these


class CoreActivity(Enum):
    """What words of the core are for; the values are for people."""

    POWER = "power and clocks"
    CONTROL = "control registers"
    CONFIGURE = "configure layers"
    WEIGHTS = "load weights"
    BIASES = "load biases"
    INPUT = "load input"
    START = "start"
    ACKNOWLEDGE = "acknowledge interrupt"
    UNLOAD = "unload"
    READ = "read registers"

    @property
    def reads(self) -> bool:
        """Whether the core reads and writes nothing."""
        match self:
            case CoreActivity.UNLOAD | CoreActivity.READ:
                return True
            case (
                CoreActivity.POWER | CoreActivity.CONTROL | CoreActivity.CONFIGURE
                | CoreActivity.WEIGHTS | CoreActivity.BIASES | CoreActivity.INPUT
                | CoreActivity.START | CoreActivity.ACKNOWLEDGE
            ):  # fmt: skip
                return False
            case _:
                assert_never(self)


@frozen
class Span:
    """Something that lasts: from `start` for `duration` microseconds.

    `words` counts the words that the core copies for `activity`; a layer has `layer`, the groups
    that it runs on, and cycles at `mhz`. `run` is the number of the run it belongs to.
    """

    start: float
    duration: float
    activity: CoreActivity | None = None
    words: int = 0
    layer: LayerConfig | None = None
    cycles: int = 0
    is_estimate_of_stream: bool = False
    mhz: float = 0.0
    run: int = 0

    @property
    def end(self) -> float:
        """When it ends."""
        return self.start + self.duration

    @property
    def name(self) -> str:
        """What people call it."""
        if self.layer is not None:
            return f"layer {self.layer.layer}: {self.layer.kind.value}"
        assert self.activity is not None
        return self.activity.value

    @property
    def details(self) -> dict[str, str | int | float]:
        """Details beyond the name."""
        if self.layer is None:
            return {"words": self.words}
        stream = {"streaming": "half as much again"} if self.is_estimate_of_stream else {}
        return {
            "layer": describe_layer(self.layer).split(": ", 1)[-1],
            "estimated cycles": self.cycles,
            "MHz": self.mhz,
            "inference": self.run,
            **stream,
        }


@frozen
class Timeline:
    """Spans in the order of time; layers of a run follow one another. Times in microseconds."""

    chip: str
    spans: tuple[Span, ...]
    interrupts: tuple[float, ...]

    @property
    def end(self) -> float:
        """When the last span ends."""
        return max((span.end for span in self.spans), default=0.0)

    def ends_of(self, activity: CoreActivity) -> list[float]:
        """Return when the core has ended an activity."""
        return [span.end for span in self.spans if span.activity is activity]

    @property
    def layers(self) -> tuple[Span, ...]:
        """The spans of layers."""
        return tuple(span for span in self.spans if span.layer is not None)


def timeline(recording: Recording) -> Timeline:
    """Lay out a recording in time."""
    unit = word_microseconds(recording.chip)
    spans: list[Span] = []
    interrupts: list[float] = []
    now = 0.0
    for piece in _pieces(recording):
        if isinstance(piece, TimedRun):
            spans += _layers(piece, now)
            now += piece.microseconds
            interrupts.append(now)
        else:
            activity, words = piece
            spans.append(Span(now, words * unit, activity, words))
            now = spans[-1].end
    return Timeline(recording.chip.name, tuple(_named_by_neighbours(spans)), tuple(interrupts))


def _pieces(recording: Recording) -> Iterator[tuple[CoreActivity, int] | TimedRun]:
    """Yield runs, and words in a row that are for the same."""
    kinds = _kinds(recording)
    first = 0
    for mark in recording.marks:
        yield from _rows(kinds[first : mark.writes])
        first = mark.writes
        match mark.kind:
            case MarkKind.RUN:
                yield recording.runs[mark.count]
            case MarkKind.READ_CONTROL:
                yield CoreActivity.CONTROL, mark.count
            case MarkKind.READ_OTHER:
                yield CoreActivity.UNLOAD, mark.count
            case _:
                assert_never(mark.kind)
    yield from _rows(kinds[first:])


def _rows(kinds: list[CoreActivity]) -> Iterator[tuple[CoreActivity, int]]:
    count = 0
    for number, kind in enumerate(kinds):
        count += 1
        if number + 1 == len(kinds) or kinds[number + 1] is not kind:
            yield kind, count
            count = 0


def _kinds(recording: Recording) -> list[CoreActivity]:
    """Return what each write is for."""
    writes, addresses = recording.writes, recording.addresses
    _, area, _ = addresses.split(writes.address)
    numbers = list(CoreActivity)
    kinds = np.full(len(writes), numbers.index(CoreActivity.POWER))
    for which, kind in (
        (REGISTERS, CoreActivity.CONFIGURE),
        (BIAS, CoreActivity.BIASES),
        (TRAM, CoreActivity.CONTROL),
        (KERNELS, CoreActivity.WEIGHTS),
        (DATA, CoreActivity.INPUT),
    ):
        kinds[area == which] = numbers.index(kind)
    kinds[np.isin(writes.address, _control(recording))] = numbers.index(CoreActivity.CONTROL)
    kinds[np.isin(writes.address, list(addresses.fifos))] = numbers.index(CoreActivity.INPUT)
    return [numbers[kind] for kind in kinds.tolist()]


def _control(recording: Recording) -> NDArray[np.int64]:
    """Return the addresses of registers that belong to no layer."""
    addresses = recording.addresses
    names = {
        address
        for address, name in addresses.register_names.items()
        if " layer " not in f" {name} " and not name.startswith("power")
    }
    return np.array(sorted(names), np.int64)


def _layers(run: TimedRun, start: float) -> Iterator[Span]:
    now = start + STARTUP_CYCLES / run.mhz
    for config, cycles in zip(run.layers, run.cycles, strict=True):
        yield Span(
            now,
            cycles.estimate / run.mhz,
            layer=config,
            cycles=cycles.estimate,
            is_estimate_of_stream=cycles.uncertain,
            mhz=run.mhz,
            run=run.number,
        )
        now += cycles.estimate / run.mhz


def _named_by_neighbours(spans: list[Span]) -> Iterator[Span]:
    """Join spans that are for the same; name those next to a run by what they do there."""
    joined = _joined(spans)
    for number, span in enumerate(joined):
        before = joined[number - 1].layer if number else None
        after = joined[number + 1].layer if number + 1 < len(joined) else None
        at_start = not any(s.layer for s in joined[:number])
        activity = _named(span.activity, before is not None, after is not None, at_start)
        yield span if span.layer else Span(span.start, span.duration, activity, span.words)


def _named(
    activity: CoreActivity | None, behind_run: bool, before_run: bool, at_start: bool
) -> CoreActivity | None:
    """Return what an activity is for where it stands."""
    match activity:
        case CoreActivity.CONTROL if behind_run:
            return CoreActivity.ACKNOWLEDGE
        case CoreActivity.CONTROL if before_run:
            return CoreActivity.START
        case CoreActivity.UNLOAD if at_start:
            return CoreActivity.READ
        case (
            CoreActivity.CONTROL | CoreActivity.UNLOAD | CoreActivity.POWER | CoreActivity.WEIGHTS
            | CoreActivity.CONFIGURE | CoreActivity.BIASES | CoreActivity.INPUT
            | CoreActivity.START | CoreActivity.ACKNOWLEDGE | CoreActivity.READ | None
        ):  # fmt: skip
            return activity
        case _:
            assert_never(activity)


def _joined(spans: list[Span]) -> list[Span]:
    """Join spans in a row that are for the same, with a few other words between them.

    Such are reads of a FIFO's status before each word.
    """
    joined: list[Span] = []
    for span in spans:
        if len(joined) > 1 and _is_between(joined[-2], joined[-1], span):
            joined[-2:] = [_both(joined[-2], joined[-1])]
        if joined and _are_alike(joined[-1], span):
            joined[-1] = _both(joined[-1], span)
        else:
            joined.append(span)
    return joined


def _is_between(first: Span, span: Span, second: Span) -> bool:
    """Tell whether a span belongs to those around it; nothing belongs to reads."""
    few = span.layer is None and span.words <= _FEW
    return few and not (first.activity and first.activity.reads) and _are_alike(first, second)


def _are_alike(first: Span, second: Span) -> bool:
    return first.activity is not None and first.activity is second.activity


def _both(first: Span, second: Span) -> Span:
    duration, words = first.duration + second.duration, first.words + second.words
    return Span(first.start, duration, first.activity, words)
