"""Between ways to make rows the planner takes the one with the least memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ai8xtools.software.cores import CORES
from ai8xtools.software.plan import planner
from ai8xtools.software.plan.schemes import Scheme
from tests.software.test_recounted import CASES, _network, fuse, lower


@pytest.mark.parametrize(("first", "second"), [((10, 10), (1, 30)), ((5, 20), (25, 1))])
def test_arena_and_stack_count_together(
    first: tuple[int, int], second: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Planner:
        def __init__(self, *words: Any) -> None:
            arena, stack = second if words[3].recounted else first
            self.planned = SimpleNamespace(arena_bytes=arena, stack=stack, layers=(), cycles=0)

        def plan(self) -> Any:
            return self.planned

    monkeypatch.setattr(planner, "Planner", Planner)
    monkeypatch.setattr(planner, "stack_bytes", lambda one: one.stack)
    graph = fuse(lower(_network(*CASES["a row of three"])))
    made: Any = planner.plan(graph, CORES["cortex-m4"], Scheme.ROWS)
    assert (made.arena_bytes, made.stack) == min(first, second, key=sum)
