"""A disk that refuses, and a kill, at every write, rename and fsync of a piece of work."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from tests.writing.calls import CHANGES, EXCHANGE, led_past

KILLED = 9
KINDS = ("kill", "ENOSPC", "EIO")
_ENDS = ("done", "refused", "survived")


class _Raw(io.FileIO):
    """A file each of whose writes may fail."""

    step: Callable[[], None]

    def write(self, data: Any) -> int | None:
        """Write, unless the fault is due."""
        self.step()
        return super().write(data)


def outcomes(
    work: Callable[[], object], kind: str, prepare: Callable[[], None], apart: bool = False
) -> Iterator[tuple[int, str]]:
    """Do a piece of work with a fault at its first, second, ... step until it is done without.

    `prepare` restores what the work starts from. Yields the number of the step and what the work
    ended with: killed, refused, survived (a step that may fail) or at last done, without a fault.
    """
    number = 0
    while True:
        prepare()
        ended = with_fault(work, kind, number, apart)
        yield number, ended
        if ended == "done":
            return
        number += 1


def with_fault(work: Callable[[], object], kind: str, number: int, apart: bool = False) -> str:
    """Do a piece of work with a fault at this step; return its end.

    A kill happens in a child, another fault if it is `apart`: threads that PyTorch starts in this
    process do not live on in the children that follow.
    """
    if kind != "kill" and not apart:
        return _end(work, kind, number)
    child = os.fork()
    if child == 0:
        ended = ""
        try:
            ended = _end(work, kind, number)
        except BaseException as exc:
            print(repr(exc), file=sys.__stderr__)
        finally:
            os._exit(_ENDS.index(ended) if ended else 3)
    _, status = os.waitpid(child, 0)
    return "killed" if (code := os.waitstatus_to_exitcode(status)) == KILLED else _ENDS[code]


def _end(work: Callable[[], object], kind: str, number: int) -> str:
    with contextlib.ExitStack() as stack:
        fired = _arm(stack, kind, number)
        try:
            work()
        except OSError:
            return "refused"
        return "survived" if fired() else "done"


def _arm(stack: contextlib.ExitStack, kind: str, number: int) -> Callable[[], bool]:
    """Let the step of this number fail; return what tells whether it came to that.

    A disk that is full stays so; it still removes files.
    """
    count = 0

    def step(permanent: bool = True) -> None:
        nonlocal count
        count += 1
        if count <= number:
            return
        if kind == "kill":
            os._exit(KILLED)
        if count == number + 1 or (kind == "ENOSPC" and permanent):
            raise OSError(getattr(errno, kind), os.strerror(getattr(errno, kind)))

    def faulty(name: str, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        step(name in ("fsync", "link", "symlink", "mkdir"))
        return call(*arguments, **named)

    plain = os.fdopen

    def opened(handle: int, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        if "w" not in mode:
            return plain(handle, mode, *arguments, **named)
        raw = _Raw(handle, mode)
        raw.step = step
        return io.BufferedWriter(raw, 4096)

    stack.enter_context(led_past(faulty, *CHANGES, EXCHANGE))
    stack.enter_context(mock.patch.object(os, "fdopen", opened))
    return lambda: count > number
