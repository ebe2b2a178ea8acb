"""Between ways to make rows the planner takes the one with the least memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ai8xtools.software.cores import CORES
from ai8xtools.software.plan import planner
from ai8xtools.software.plan.plan import Scheme


@pytest.mark.parametrize(("first", "second"), [((10, 10), (1, 30)), ((5, 20), (25, 1))])
def test_arena_and_stack_count_together(
    first: tuple[int, int], second: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = {(0,): first, (1,): second}

    def plan_of(*words: Any, **_: Any) -> Any:
        arena, stack = ways[words[5]]
        return SimpleNamespace(arena_bytes=arena, stack=stack)

    monkeypatch.setattr(planner, "segments_of", lambda _, recounted: [int(recounted)])
    monkeypatch.setattr(planner, "plan_of", plan_of)
    monkeypatch.setattr(planner, "stack_bytes", lambda one: one.stack)
    graph: Any = SimpleNamespace()
    made: Any = planner.plan(graph, CORES["cortex-m4"], Scheme.ROWS)
    assert (made.arena_bytes, made.stack) == min(first, second, key=sum)
