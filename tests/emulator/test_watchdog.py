"""A program is idle or late by the time it computes, not by the time that others take."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from ai8xtools.emulator.cpu.watchdog import IDLE_SECONDS, watched


def calls_during(work: Callable[[], None], accesses: Callable[[], int]) -> list[str]:
    """Return what the watchdog called while `work` ran with a limit of half a second."""
    calls: list[str] = []

    def tick(idle: bool) -> None:
        if idle:
            calls.append("idle")

    late, signaled = (lambda word=word: calls.append(word) for word in ("late", "signal"))
    with watched(0.5, accesses, late, tick, signaled):
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


@pytest.mark.parametrize(("number", "told"), [("SIGTERM", True), ("SIGINT", True),
                                              ("SIGUSR1", False)])  # fmt: skip
def test_signals_that_ask_for_the_end_are_told(number: str, told: bool) -> None:
    """Others, such as those of timers, interrupt nothing."""
    kind = getattr(signal, number)
    before = signal.signal(kind, lambda *_: None)

    def work() -> None:
        os.kill(os.getpid(), kind)
        time.sleep(5 * IDLE_SECONDS)

    try:
        assert ("signal" in calls_during(work, lambda: 0)) == told
    finally:
        signal.signal(kind, before)
    assert signal.set_wakeup_fd(-1) == -1


def test_a_program_that_takes_too_long_is_late() -> None:
    assert "late" in calls_during(lambda: compute(0.7), lambda: 0)
