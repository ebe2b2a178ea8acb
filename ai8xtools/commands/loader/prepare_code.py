"""The C header that prepares measurements as in training.

Source: docs/own-data.md, "What the checkpoint holds".
"""

from __future__ import annotations

import math

from ai8xtools.writing.templates import render
from datasets.own.preparation import Preparation

HEADER = "prepare.h"
_DIGITS = 3
"""After the first one of the deviation in training, of numbers that are printed."""


def prepare_header(
    how: Preparation, name: str = "", one: float = 128.0, threshold: int | None = None
) -> str | None:
    """Return the text of the header for rows of numbers, series and folded pictures, else None.

    Of numbers that are learned, `name` is what they are called, `one` the output that stands for
    1.0 in training. Where anomalies are looked for, it is the name of the normal class, and
    `threshold` that of scores.
    """
    if how.kind == "picture" and how.fold > 1:
        return render("c/prepare_picture.h.j2", shape=how.unfolded, fold=how.fold)
    if not how.low:
        return None
    offsets, factors = how.scale
    return render(
        "c/prepare.h.j2", kind=how.kind, steps=how.shape[1], fold=how.fold,
        offsets=[_literal(offset, 17) for offset in offsets.tolist()],
        factors=[f"{_literal(factor, 9)}f" for factor in factors.tolist()],
        target=[_literal(value, 17) for value in how.target], one=_literal(one, 17), name=name,
        threshold=threshold,
        decimals=_DIGITS - math.floor(math.log10(how.target[1])) if how.target else 0,
    )  # fmt: skip


def _literal(value: float, digits: int) -> str:
    """Return a C constant of exactly this number."""
    text = f"{value:.{digits}g}"
    return text if {*text} & {*".e"} else f"{text}.0"
