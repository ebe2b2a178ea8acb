"""Calls that change a disk, led past a test that lets them fail or notes them."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from ai8xtools.writing import exchange as exchanging
from ai8xtools.writing import folder

Around = Callable[..., Any]
"""Called instead of a call: its name, what it does, and its arguments."""

CHANGES = ("replace", "rename", "fsync", "link", "mkdir", "unlink", "chmod", "symlink")
OTHERS = ("open", "remove", "rmdir")
EXCHANGE, OPEN = "exchange", "io.open"


@contextlib.contextmanager
def led_past(around: Around, *names: str) -> Iterator[None]:
    """Let calls go to `around` while the block runs: functions of `os`, EXCHANGE, OPEN."""
    with contextlib.ExitStack() as stack:
        for name in names:
            owners: tuple[object, ...] = {EXCHANGE: (exchanging, folder), OPEN: (builtins, io)}.get(
                name, (os,)
            )
            attribute = name.rpartition(".")[2]
            call = getattr(owners[0], attribute)

            def instead(*given: Any, _call: Any = call, _name: str = name, **named: Any) -> Any:
                return around(_name, _call, *given, **named)

            for owner in owners:
                stack.enter_context(mock.patch.object(owner, attribute, instead))
        yield
