"""The C header that prepares measurements as in training.

Source: docs/own-data.md, "What the checkpoint holds".
"""

from __future__ import annotations

from ai8xtools.writing.templates import render
from datasets.own.preparation import Preparation

HEADER = "prepare.h"


def prepare_header(how: Preparation) -> str | None:
    """Return the text of the header for rows of numbers and series; None for other inputs."""
    if not how.low:
        return None
    offsets, factors = how.scale
    return render(
        "c/prepare.h.j2", kind=how.kind, steps=how.shape[1], fold=how.fold,
        offsets=[_literal(offset, 17) for offset in offsets.tolist()],
        factors=[f"{_literal(factor, 9)}f" for factor in factors.tolist()],
    )  # fmt: skip


def _literal(value: float, digits: int) -> str:
    """Return a C constant of exactly this number."""
    text = f"{value:.{digits}g}"
    return text if {*text} & {*".e"} else f"{text}.0"
