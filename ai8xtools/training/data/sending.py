"""Checks what can be pickled for a process that was not forked from this one."""

from __future__ import annotations

import io
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any


def can_be_sent(*parts: Any) -> bool:
    """Whether all parts can be pickled; a function without a name, for one, cannot."""
    try:
        ForkingPickler(_Nowhere()).dump(parts)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


class _Nowhere(io.RawIOBase):
    def write(self, data: Any) -> int:
        return len(data)
