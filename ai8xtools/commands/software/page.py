"""The page of a program for a microcontroller, and its twin as JSON.

Facts and names are those of the report for the accelerator where both have them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ai8xtools.diagnostics import Diagnostic, has_errors
from ai8xtools.software.emit.page import page_of
from ai8xtools.software.memory import Block
from ai8xtools.software.profile import UNLIMITED
from ai8xtools.synthesis.emit import ProjectOptions
from ai8xtools.synthesis.emit.report_json import message_facts
from ai8xtools.synthesis.emit.report_pictures import Picture
from ai8xtools.synthesis.report.values import OutputRange
from ai8xtools.values import frozen
from ai8xtools.values.accuracy import Measured
from ai8xtools.values.estimate import Estimate

VERSION = 1
"""Of the JSON twin; whoever changes a name or its meaning raises it."""
PIXELS = 60_000
"""Of all pictures of a page."""
_MOST_BLOCKS = 8
"""Blocks of memory that are listed, the largest first."""


@frozen
class StepRow:
    """A step of the plan: estimated cycles, and the output for the sample behind a layer's last.

    `weights` are bytes in flash, `products` multiplications or what takes their place.
    """

    layer: int
    name: str
    kind: str
    kernel: str
    products: int
    cycles: float | None
    weights: int = 0
    share: float = 0.0
    shape: str = ""
    result: OutputRange | None = None
    picture: Picture | None = None


@frozen
class Shown:
    """What page and JSON show: `needs` are memory, bytes and size (None: no limit).

    `blocks` of `arena` bytes are used over `moments`; `text` is the plan in words, `sentence` says
    where the time goes.
    """

    core: str
    scheme: str
    needs: tuple[tuple[str, int, int | None], ...]
    rows: tuple[StepRow, ...]
    cycles: int | None
    sentence: str
    text: str
    blocks: tuple[Block, ...] = ()
    moments: int = 0
    arena: int = 0
    milliseconds: float | None = None
    joules: Estimate | None = None


def limit(size: int) -> int | None:
    """Return the size of a memory, None if there is no limit."""
    return None if size == UNLIMITED else size


def pages_of(
    shown: Shown,
    project: ProjectOptions,
    messages: Sequence[Diagnostic],
    accuracy: Measured | None = None,
) -> tuple[str, str]:
    """Return page and JSON; an error among the messages is why the network was refused."""
    largest = sorted(shown.blocks, key=lambda block: (-block.size, block.first))[:_MOST_BLOCKS]
    facts = {
        "shown": shown,
        "fits": not has_errors(messages),
        "room": all(of is None or used <= of for _, used, of in shown.needs),
        "messages": messages,
        "largest": largest,
        "estimate": _estimate(shown),
        "accuracy": accuracy,
        "command_line": project.command_line,
    }
    page = page_of(shown.blocks, shown.moments, shown.arena, project.name, shown.text, facts)
    return page, _json(shown, project, messages, accuracy)


def _estimate(shown: Shown) -> str:
    """Return a sentence about time and energy, as far as they are known."""
    if shown.milliseconds is None:
        return ""
    energy = "" if shown.joules is None else f" and {shown.joules.in_units('J')}"
    return f" An inference takes about {shown.milliseconds:,.2f} ms{energy}, by the profile."


def _json(
    shown: Shown,
    project: ProjectOptions,
    messages: Sequence[Diagnostic],
    accuracy: Measured | None,
) -> str:
    facts: dict[str, Any] = {
        "version": VERSION,
        "tool": f"ai8xize.py {project.tool_version}",
        "command_line": project.command_line,
        "name": project.name,
        "core": shown.core,
        "fits": not has_errors(messages),
        "accuracy": None if accuracy is None else asdict(accuracy),
        "scheme": shown.scheme,
        "needs": [
            {"what": what, "unit": "bytes", "used": used, "of": of}
            for what, used, of in shown.needs
        ],
        "multiplications": sum(row.products for row in shown.rows),
        "cycles": shown.cycles,
        "milliseconds": shown.milliseconds,
        "joules": shown.joules and asdict(shown.joules),
        "slowest_layer": max(shown.rows, key=lambda row: row.share).layer if shown.rows else None,
        "steps": [_step(row) for row in shown.rows],
        "memory": [
            {"name": b.name, "bytes": b.size, "offset": b.offset, "first": b.first, "last": b.last}
            for b in shown.blocks
        ],
        "messages": [message_facts(message) for message in messages],
    }
    return json.dumps(facts, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _step(row: StepRow) -> dict[str, Any]:
    result = row.result
    return {
        "layer": row.layer, "name": row.name, "kind": row.kind,
        "kernel": row.kernel or None, "multiplications": row.products,
        "weight_bytes": row.weights,
        "cycles": None if row.cycles is None else round(row.cycles),
        "share": row.share, "output": row.shape,
        "result": None if result is None else {
            "low": result.low, "high": result.high, "limits": list(result.limits),
            "at_limits": result.at_limits, "zeros": result.zeros,
        },
    }  # fmt: skip
