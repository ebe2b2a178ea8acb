"""Python as on macOS: limits of the address space are refused, there is no renameat2."""

from __future__ import annotations

import ctypes
import os
import resource
from typing import Any, NoReturn


def _refuse(*_: Any) -> NoReturn:
    raise ValueError("current limit exceeds maximum limit")


class _Library(ctypes.CDLL):
    def __getattr__(self, name: str) -> Any:
        if name == "renameat2":
            raise AttributeError(name)
        return super().__getattr__(name)


resource.setrlimit = _refuse
ctypes.CDLL = _Library  # type: ignore[misc]
del os.posix_fallocate
