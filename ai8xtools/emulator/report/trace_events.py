"""A timeline as trace events, which ui.perfetto.dev and chrome://tracing show.

Source: "Trace Event Format", the JSON object format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ai8xtools.emulator.report.timeline import Span, Timeline
from device.chip import GROUPS

_PROCESS = 1
_CORE = 0
NOTE = "All times are estimates: see 'Estimated time' in docs/emulator.md."


def trace_events(timeline: Timeline) -> str:
    """Return a timeline as JSON. Times are in microseconds; track 0 is the core, 1 to 4 groups."""
    events: list[dict[str, Any]] = [
        _name("process_name", _CORE, f"{timeline.chip} (estimated time)"),
        *_track(_CORE, "core: words to and from the accelerator"),
    ]
    for group in range(GROUPS):
        starts = [span.start for span in timeline.layers if group in _groups(span)]
        if starts:
            events += _track(group + 1, f"accelerator, group {group}")
            # Viewers that show one track at a time let each begin with its first event
            events += _begin_and_end("idle", "idle", group + 1, 0, starts[0], {})
    for span in timeline.spans:
        category = "core" if span.layer is None else "layer"
        for track in [_CORE] if span.layer is None else [g + 1 for g in _groups(span)]:
            events += _begin_and_end(span.name, category, track, span.start, span.end, span.details)
    for time in timeline.interrupts:
        events.append(
            {"name": "interrupt", "ph": "i", "s": "p", "ts": _rounded(time), "pid": _PROCESS,
             "tid": _CORE, "cat": "interrupt"}
        )  # fmt: skip
    document = {
        "displayTimeUnit": "ns",
        "otherData": {"chip": timeline.chip, "note": NOTE},
        "traceEvents": events,
    }
    return json.dumps(document, indent=1) + "\n"


def _groups(span: Span) -> tuple[int, ...]:
    return () if span.layer is None else span.layer.used_groups


def _begin_and_end(
    name: str, category: str, track: int, start: float, end: float, details: Mapping[str, object]
) -> list[dict[str, Any]]:
    """Return two events: one with a duration would let spans in a row overlap, by rounding."""
    common = {"name": name, "cat": category, "pid": _PROCESS, "tid": track}
    return [
        {**common, "ph": "B", "ts": _rounded(start), "args": details},
        {**common, "ph": "E", "ts": _rounded(end)},
    ]


def _track(track: int, name: str) -> list[dict[str, Any]]:
    order = {"name": "thread_sort_index", "ph": "M", "pid": _PROCESS, "tid": track}
    return [_name("thread_name", track, name), {**order, "args": {"sort_index": track}}]


def _name(kind: str, track: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": track, "args": {"name": name}}


def _rounded(microseconds: float) -> float:
    """Return a time in whole picoseconds, so that no digits are made up."""
    return round(microseconds, 6)
