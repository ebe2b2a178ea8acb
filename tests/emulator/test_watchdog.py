"""A program is idle or late by the time it computes, not by the time that others take."""

from __future__ import annotations

import time
from collections.abc import Callable

from ai8xtools.emulator.cpu.watchdog import IDLE_SECONDS, watched


def calls_during(work: Callable[[], None], accesses: Callable[[], int]) -> list[str]:
    """Return what the watchdog called while `work` ran with a limit of half a second."""
    calls: list[str] = []

    def tick(idle: bool) -> None:
        if idle:
            calls.append("idle")

    with watched(0.5, accesses, lambda: calls.append("late"), tick):
        work()
    return calls


def compute(seconds: float) -> None:
    """Take processor time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_program_that_does_not_get_its_turn_is_neither_idle_nor_late() -> None:
    assert calls_during(lambda: time.sleep(0.7), lambda: 0) == []


def test_a_program_that_computes_without_using_the_bus_is_idle() -> None:
    calls = calls_during(lambda: compute(10 * IDLE_SECONDS), lambda: 0)
    assert "idle" in calls
    assert "late" not in calls


def test_a_program_that_uses_the_bus_is_not_idle() -> None:
    counts = iter(range(1 << 30))
    assert "idle" not in calls_during(lambda: compute(0.2), lambda: next(counts))


def test_a_program_that_takes_too_long_is_late() -> None:
    assert "late" in calls_during(lambda: compute(0.7), lambda: 0)
