"""The plan of a project as a page: memory over time, and the contents of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ai8xtools.software.memory import Block
from ai8xtools.writing.templates import render

_WIDTH, _HEIGHT = 900, 480


def page_of(
    blocks: Sequence[Block],
    steps: int,
    arena_bytes: int,
    name: str,
    text: str,
    report: Mapping[str, Any],
) -> str:
    """Return a page that shows the blocks of a memory of `arena_bytes` over `steps` of time.

    It needs no other file; `report` has what it shows besides.
    """
    across = _WIDTH / max(steps, 1)
    up = _HEIGHT / max(arena_bytes, 1)
    boxes = [
        {
            "x": block.first * across,
            "y": _HEIGHT - block.end * up,
            "width": (block.last - block.first + 1) * across,
            "height": block.size * up,
            "name": block.name,
            "bytes": block.size,
            "offset": block.offset,
            "kind": 0 if block.tensor is None else 1 + number % 6,
        }
        for number, block in enumerate(blocks)
    ]
    return render(
        "software/plan.html.j2",
        name=name,
        text=text,
        boxes=boxes,
        width=_WIDTH,
        height=_HEIGHT,
        segments=steps,
        arena=arena_bytes,
        report=report,
    )
